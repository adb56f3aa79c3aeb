//! `sessions_spawn`: starts a sub-agent in the background.

use std::path::Path;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolMode, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use pinch_ports::SessionRoute;
use serde_json::{Value, json};

use super::super::{agents, inbound, resolve, sandboxed};
use super::driver::SubagentDriver;
use super::{child, open};
use crate::key::{AgentId, RunId};
use crate::parts::Parts;
use crate::parts::background::BackgroundTasks;
use crate::parts::toolbox::SESSIONS_SPAWN;
use crate::run::RunRequest;
use crate::runner::millis;
use crate::subagents::limits::RequesterLimits;
use crate::subagents::record::{SubagentCleanup, SubagentRecord};
use crate::subagents::spawn::{SpawnModel, SpawnOptions, SpawnPlan, SpawnRefusal, SpawnRequester, decide};
use crate::subagents::wording;

/// Maximum length of a task, in bytes.
const MAX_TASK: usize = 32 * 1024;
/// Maximum length of a label, in characters.
const MAX_LABEL: usize = 120;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["task"],
        "properties": {
            "task": {"type": "string", "description": "What to do, with everything the sub-agent must know"},
            "label": {"type": "string", "description": "Short name"},
            "agentId": {"type": "string", "description": "Another agent, if allowed"},
            "model": {"type": "string"},
            "thinking": {"type": "string", "description": "Thinking level"},
            "runTimeoutSeconds": {"type": "number", "description": "Time limit; 0: none"},
            "cleanup": {"type": "string", "enum": ["delete", "keep"], "description": "delete: remove its session after the report (default: keep)"},
        },
    }))
    .lenient();
    let about = "Starts a sub-agent that works on a task in the background, in a session of its own, and returns at once. Its result arrives as a message \
                 when it is done.";
    // The number of sub-agents is limited, so calls of one session must not overlap.
    let mut spec = ToolSpec::new(SESSIONS_SPAWN, about, parameters);
    spec.mode = ToolMode::Sequential;
    spec
});

/// The tool, for one run.
pub(super) struct SpawnTool {
    background: Weak<BackgroundTasks>,
    /// The run that calls it, without what belongs to its message.
    requester: Box<RunRequest>,
}

impl SpawnTool {
    pub(super) fn new(background: Weak<BackgroundTasks>, request: &RunRequest) -> Self {
        let mut requester = Box::new(request.clone());
        // The turn of the session ends with the run.
        requester.turn = None;
        requester.images = Vec::new();
        requester.client_results = Vec::new();
        requester.prompt = String::new();
        Self { background, requester }
    }

    async fn spawn(&self, input: &JsonObject) -> Result<Value, SpawnRefusal> {
        let text = |name: &str| {
            let text = input.get(name).and_then(Value::as_str).map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let task =
            text("task").ok_or_else(|| SpawnRefusal::error("task is missing: say what the sub-agent should do"))?;
        if task.len() > MAX_TASK {
            return Err(SpawnRefusal::error(format!(
                "the task is longer than {MAX_TASK} bytes. Put details into a file"
            )));
        }
        let gone = || SpawnRefusal::error("the program is ending and starts no more sub-agents");
        let background = self.background.upgrade().ok_or_else(gone)?;
        let parts = background.parts().filter(|parts| !parts.gate.is_closed()).ok_or_else(gone)?;
        let failed = |error: &dyn std::fmt::Display| SpawnRefusal::error(error.to_string());
        open(&background, &parts).await.map_err(|error| failed(&error))?;
        let key = self.requester.session_key.as_deref().unwrap_or_default();
        let key = inbound::canonical(&parts, key).map_err(|error| failed(&error))?;
        let requester = SpawnRequester {
            n_active: parts.subagents.n_active(&key),
            key,
            spawned_by: self.requester.caller.spawned_by.as_ref().map(ToString::to_string),
            depth: self.requester.spawn_depth,
            model: self
                .requester
                .model
                .clone()
                .map(|model| SpawnModel { provider: self.requester.provider.clone(), model }),
            thinking: self.requester.think_level,
        };
        let options = SpawnOptions { agent: text("agentId"), model: text("model"), thinking: text("thinking") };
        let plan = decide(&parts.config, &requester, &options, |agent, model| check_model(&parts, agent, model))?;
        let mut record = self.record(&parts, &requester.key, &plan, task);
        record.label = text("label").map(|label| label.chars().take(MAX_LABEL).collect());
        if text("cleanup").as_deref() == Some("delete") {
            record.cleanup = SubagentCleanup::Delete;
        }
        let seconds = ["runTimeoutSeconds", "timeoutSeconds"].iter().find_map(|name| input.get(*name)?.as_f64());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and limited by the type"
        )]
        let seconds = seconds.filter(|seconds| *seconds > 0.0).map(|seconds| seconds.ceil() as u64);
        record.run_timeout_seconds = seconds;
        record.requires_sandbox = self.needs_sandbox(&parts, &record);
        self.start(&background, &parts, record, &plan).await
    }

    /// Stores the sub-agent and starts it.
    async fn start(
        &self,
        background: &Arc<BackgroundTasks>,
        parts: &Arc<Parts>,
        record: SubagentRecord,
        plan: &SpawnPlan,
    ) -> Result<Value, SpawnRefusal> {
        let id = record.run_id.to_string();
        child::create(parts, &record, plan).await.map_err(|error| SpawnRefusal::error(error.to_string()))?;
        let stored = match parts.subagents.add(record.clone()) {
            Ok(()) => parts.subagents.save().await,
            Err(error) => Err(error),
        };
        if let Err(error) = stored {
            parts.subagents.remove(&id);
            child::delete(parts, &record).await;
            return Err(SpawnRefusal::error(error.to_string()));
        }
        let mut caller = self.requester.caller.clone();
        caller.message_id = None;
        let driver = SubagentDriver { background: Arc::downgrade(background), id: id.clone(), caller };
        let first = wording::task_message(&record.task);
        background.spawn(async move { Box::pin(driver.run(first)).await });
        Ok(plan.to_json(&record.child_session_key, &id))
    }

    /// Creates the record of a sub-agent.
    fn record(&self, parts: &Parts, key: &str, plan: &SpawnPlan, task: String) -> SubagentRecord {
        let now = parts.host.now_ms();
        let archive_after = parts.config.agents.defaults.subagent_limits.archive_after;
        let caller = &self.requester.caller;
        let mut route = SessionRoute::default();
        route.channel.clone_from(&caller.channel);
        route.account_id.clone_from(&caller.account);
        route.to.clone_from(&self.requester.message_to);
        route.thread_id = caller.thread.as_deref().map(Value::from);
        SubagentRecord {
            run_id: RunId::from(parts.host.ids().uuid_v4()),
            child_session_key: plan.child_key(&parts.host.ids().uuid_v4()).into(),
            requester_session_key: key.into(),
            requester_display_key: key.to_owned(),
            requester_origin: (route != SessionRoute::default()).then_some(route),
            task,
            created_at: now,
            archive_at_ms: archive_after.map(|after| now.saturating_add(in_ms(after))),
            spawn_depth: plan.depth,
            requester_limits: RequesterLimits::of(&self.requester),
            ..SubagentRecord::default()
        }
    }

    /// Returns whether the sub-agent must be in a sandbox although its agent usually is not: nobody leaves a sandbox through a sub-agent.
    fn needs_sandbox(&self, parts: &Parts, record: &SubagentRecord) -> bool {
        let is_sandboxed = |request: &RunRequest| {
            let Ok(workspace) = resolve::workspace(parts, request) else { return true };
            let dir: &Path = &workspace.dir;
            sandboxed::plan(parts, request, &workspace.agent_id, dir).is_some()
        };
        if self.requester.requires_sandbox {
            return true;
        }
        let child = resolve::request(parts, "", Some(&record.child_session_key), None, "");
        is_sandboxed(&self.requester) && !is_sandboxed(&child)
    }
}

fn in_ms(time: Duration) -> i64 {
    i64::try_from(millis(time)).unwrap_or(i64::MAX)
}

/// Returns why an agent cannot use a model.
fn check_model(parts: &Arc<Parts>, agent: &AgentId, model: &SpawnModel) -> Result<(), String> {
    let parts = agents::of_agent(parts, agent);
    let mut request = resolve::request(&parts, "", None, Some(agent.as_str()), "");
    request.provider.clone_from(&model.provider);
    request.model = Some(model.model.clone());
    resolve::candidates(&parts, &request).map(drop).map_err(|error| error.to_string())
}

impl Tool for SpawnTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            cx.cancel.check().map_err(|_| ToolError::aborted())?;
            let result = match Box::pin(self.spawn(&input)).await {
                Ok(accepted) => accepted,
                Err(refusal) => refusal.to_json(),
            };
            let text = serde_json::to_string_pretty(&result).unwrap_or_default();
            let failed = result["status"] != "accepted";
            Ok(ToolOutput { details: Some(result), failed, ..ToolOutput::text(text) })
        })
    }
}
