//! Executor of the kind `agent_session`: a session on a file, a scripted model, scripted tools.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::llm::message::{Content, Image, Message};
use pinch_agent_core::llm::model::Model;
use pinch_agent_core::llm::provider::scripted::ScriptedProvider;
use pinch_agent_core::llm::request::Auth;
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::tool::ToolSet;
use pinch_coding_agent::auth::{AuthError, FixedAuth, RequestAuth};
use pinch_coding_agent::entry::{CustomMessage, Entry, EntryBody, EntryId};
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::prompt::PromptSections as SystemPrompt;
use pinch_coding_agent::resources::templates::{Template, Templates};
use pinch_coding_agent::session::{
    AgentSession, Change, CompactRequest, ContextUsage, Navigation, Prompt, SessionControl, SessionError, SessionParts,
    SessionRun, SessionStats,
};
use pinch_coding_agent::session_log::roles::BashExecution;
use pinch_coding_agent::session_log::{NewSession, SessionLog, convert_to_llm};
use pinch_coding_agent::settings::Settings;
use pinch_coding_agent::store::JsonlStore;
use pinch_coding_agent::tools::bash::UserCommand;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use pinch_testing::cases::notation;
use regex::Regex;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::scripted::{CaseTool, ScriptedLog, event_line, is_system, model, note, reply, summary};
use super::sessions::compaction;
use super::{Case, CaseOutcome};

/// Runs a case.
pub(crate) fn execute(case: &Case<'_>) -> CaseOutcome {
    let mut input = case.case["input"].clone();
    notation::expand(&mut input);
    let mut wanted = case.case.get("betterExpected").unwrap_or(&case.case["expected"]).clone();
    notation::expand(&mut wanted);
    notation::put_in(&mut wanted, &compaction::wording());
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build() else {
        return CaseOutcome::Failed("no runtime".into());
    };
    let named = |actual: Map<String, Value>| -> Value {
        actual.into_iter().filter(|(key, _)| wanted.get(key).is_some()).collect::<Map<_, _>>().into()
    };
    match runtime.block_on(run(&input)).map(named) {
        Ok(mut actual) => {
            forget_overflow_estimates(&mut wanted);
            forget_overflow_estimates(&mut actual);
            notation::matches(&wanted, &actual, &input.to_string()).into()
        }
        Err(why) => CaseOutcome::Failed(why),
    }
}

/// Estimates in overflow compactions are not compared: they may or may not include the system prompt.
fn forget_overflow_estimates(value: &mut Value) {
    let Ok(estimate) = Regex::new(r"tokensBefore=\d+") else { return };
    let mut has_overflow = false;
    for line in value["trace"].as_array_mut().into_iter().flatten() {
        if let Some(text) = line.as_str().filter(|text| text.starts_with("compaction_end overflow")) {
            has_overflow = true;
            *line = estimate.replace(text, "tokensBefore=").into_owned().into();
        }
    }
    for entry in value["entries"].as_array_mut().into_iter().flatten().filter(|_| has_overflow) {
        if let Some(tokens) = entry.get_mut("tokensBefore") {
            *tokens = Value::Null;
        }
    }
}

/// A running session, and what was observed of it.
struct AgentSessionScene {
    session: AgentSession,
    provider: Arc<ScriptedProvider>,
    trace: ScriptedLog,
    triggers: Vec<Value>,
    results: Vec<Value>,
}

async fn run(input: &Value) -> Result<Map<String, Value>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut scene = AgentSessionScene::new(input, folder.path()).await?;
    let mut tasks = JoinSet::new();
    for call in input["calls"].as_array().into_iter().flatten() {
        scene.call(call, &mut tasks).await?;
    }
    while tasks.join_next().await.is_some() {}
    scene.outcome()
}

impl AgentSessionScene {
    async fn new(input: &Value, folder: &std::path::Path) -> Result<Self, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        // The clock advances with every reading: a scripted answer must not have the same time as its prompt.
        let host = Host::builder().clock(1_800_000_000_000, 1).build();
        let file = folder.join("settings.json");
        let given = input.get("settings").cloned().unwrap_or_else(|| json!({}));
        std::fs::write(&file, given.to_string()).map_err(|e| text(&e))?;
        let (settings, problems) = Settings::load(&file);
        if let Some(problem) = problems.first() {
            return Err(problem.to_string());
        }
        let store = Arc::new(JsonlStore::flat(folder.join("sessions")));
        let new = NewSession::in_directory(&folder.to_string_lossy());
        let mut log = SessionLog::create(&host, store, new).await.map_err(|e| text(&e))?;
        for message in input["seed"].as_array().into_iter().flatten() {
            let message = Message::from_value(message).map_err(|e| text(&e))?;
            log.append_message(message).await.map_err(|e| text(&e))?;
        }
        let script = input["script"].as_array().into_iter().flatten().map(reply);
        let provider = Arc::new(ScriptedProvider::new(script).when_exhausted("script exhausted"));
        let notes = ScriptedLog::default();
        let tools = input["tools"].as_array().into_iter().flatten().map(|tool| CaseTool::build(tool, &notes));
        let model = Arc::new(model(false, input["contextWindow"].as_u64().unwrap_or(100_000), 100));
        let templates = input["templates"].as_object().into_iter().flatten().map(|(name, text)| {
            Template::parse(name, text.as_str().unwrap_or_default(), &folder.join(format!("{name}.md")))
        });
        let auth: Arc<dyn RequestAuth> = match input["noKey"] == true {
            true => Arc::new(NoKey),
            false => Arc::new(FixedAuth::default()),
        };
        let mut parts = SessionParts::new(host, log, model, provider.clone());
        parts.auth = Some(auth);
        parts.tools = tools.collect::<ToolSet>();
        parts.system = SystemPrompt::text("sys");
        parts.templates = templates.collect::<Result<Templates, _>>()?;
        parts.compaction = settings.compaction;
        parts.plan = settings.recovery;
        Ok(Self {
            session: AgentSession::start(parts).await.map_err(|e| text(&e))?,
            provider,
            trace: ScriptedLog::default(),
            triggers: input["triggers"].as_array().cloned().unwrap_or_default(),
            results: Vec::new(),
        })
    }

    async fn call(&mut self, call: &Value, tasks: &mut JoinSet<()>) -> Result<(), String> {
        if let Some(text) = call["prompt"].as_str() {
            self.prompt(text, images(call), tasks).await
        } else if call.get("compact").is_some() {
            self.compact(call["instructions"].as_str()).await;
            Ok(())
        } else if let Some(ms) = call["settle"].as_u64() {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(())
        } else if call.get("contextUsage").is_some() {
            let usage = self.session.context_usage().map_or(Value::Null, |usage| context_usage(&usage));
            self.results.push(usage);
            Ok(())
        } else if call.get("stats").is_some() {
            let stats = stats(&self.session.stats());
            self.results.push(stats);
            Ok(())
        } else if let Some(command) = call["bash"].as_str() {
            self.session.record_bash(bash(command, call)).await.map_err(|e| e.to_string())
        } else if let Some(index) = call["navigateToEntryIndex"].as_u64() {
            self.navigate(index, &call["options"]).await
        } else if call.get("sendCustom").is_some() {
            self.custom(&call["sendCustom"], &call["options"], tasks).await
        } else if call.get("lastText").is_some() {
            self.results.push(self.session.last_text().map_or(Value::Null, Value::from));
            Ok(())
        } else if let Some(name) = call["name"].as_str() {
            self.name(name).await
        } else {
            Err(format!("no such call: {call}"))
        }
    }

    /// Names the session as the RPC command does: the caller must report the event.
    async fn name(&mut self, name: &str) -> Result<(), String> {
        self.session.set_name(name).await.map_err(|error| error.to_string())?;
        let event = SessionEvent::InfoChanged { name: self.session.log().name() };
        line(&event, &mut Vec::new()).into_iter().for_each(|line| note(&self.trace, line));
        Ok(())
    }

    async fn prompt(&mut self, text: &str, images: Vec<Image>, tasks: &mut JoinSet<()>) -> Result<(), String> {
        let control = self.session.control();
        let run = self.session.prompt(Prompt { images, ..Prompt::text(text) });
        let sight = Sight { trace: &self.trace, triggers: &mut self.triggers, control, tasks };
        match sight.follow(run).await {
            Ok(()) => note(&self.trace, "-- prompt() resolved".into()),
            Err(error) => self.results.push(json!({"error": error.to_string()})),
        }
        Ok(())
    }

    /// A message from an extension: sent immediately, kept for the next prompt, or only recorded.
    async fn custom(&mut self, message: &Value, options: &Value, tasks: &mut JoinSet<()>) -> Result<(), String> {
        let message = CustomMessage {
            custom_type: message["customType"].as_str().unwrap_or_default().to_owned(),
            content: Content::Text(message["content"].as_str().unwrap_or_default().to_owned()),
            display: message["display"] == true,
            details: message.get("details").cloned(),
        };
        let control = self.session.control();
        if options["deliverAs"] == "nextTurn" {
            control.with_next_prompt(&message);
            return Ok(());
        }
        let run = match options["triggerTurn"] == true {
            true => self.session.prompt_custom(&message, &Cancel::new()),
            false => self.session.note(&message),
        };
        let sight = Sight { trace: &self.trace, triggers: &mut self.triggers, control, tasks };
        sight.follow(run).await.map_err(|error| error.to_string())
    }

    async fn navigate(&mut self, index: u64, options: &Value) -> Result<(), String> {
        let target = usize::try_from(index).ok().and_then(|at| self.entries().get(at).map(|entry| entry.id.clone()));
        let target = target.ok_or("there is no such entry")?;
        let text = |name: &str| options[name].as_str().map(str::to_owned);
        let parent = self.session.log().entry(&target).and_then(|entry| entry.parent_id.clone());
        let to = Navigation {
            summarise: options["summarize"] == true,
            focus: text("customInstructions"),
            replace_instructions: options["replaceInstructions"] == true,
            label: text("label"),
            ..Navigation::to(target)
        };
        let result = match self.session.navigate(to, &|_| {}).await {
            Err(error) => json!({"error": error.to_string()}),
            Ok(done) => {
                let entry = done.summary.and_then(|id| self.session.log().entry(&id));
                let made = entry.as_deref().and_then(|entry| match &entry.body {
                    EntryBody::BranchSummary(branch) => Some(branch.clone()),
                    _ => None,
                });
                let from_is_parent = made.as_ref().map(|branch| parent.is_some_and(|id| id.as_str() == branch.from_id));
                let messages: Vec<Value> =
                    self.session.messages().iter().filter(|m| !is_system(m)).map(|m| summary(m).into()).collect();
                json!({
                    "editorText": done.editor_text, "cancelled": done.cancelled,
                    "summary": made.map(|branch| branch.summary), "fromIdIsTargetParent": from_is_parent,
                    "messages": messages,
                })
            }
        };
        self.results.push(result);
        Ok(())
    }

    async fn compact(&mut self, focus: Option<&str>) {
        let trace = self.trace.clone();
        let tell = move |event| line(&event, &mut Vec::new()).into_iter().for_each(|line| note(&trace, line));
        let done = self.session.compact(CompactRequest::manual(focus.map(str::to_owned)), &tell).await;
        self.results.push(match done {
            Ok(done) => json!({
                "summary": done.summary, "firstKeptEntryIndex": self.place(&done.first_kept_entry_id),
                "tokensBefore": done.tokens_before, "details": done.details,
            }),
            Err(error) => json!({"error": error.to_string().lines().next().unwrap_or_default()}),
        });
    }

    /// The entries that cases compare.
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.session.log().entries().filter(|entry| is_compared(entry)).collect()
    }

    /// The index of an entry among the compared ones; for an omitted entry, that of its parent.
    fn place(&self, id: &EntryId) -> Value {
        let entries = self.entries();
        let mut next = Some(id.clone());
        while let Some(id) = next {
            if let Some(at) = entries.iter().position(|entry| entry.id == id) {
                return at.into();
            }
            next = self.session.log().entry(&id).and_then(|entry| entry.parent_id.clone());
        }
        Value::Null
    }

    fn entry(&self, entry: &Entry) -> Value {
        let parent = entry.parent_id.as_ref().map_or(Value::Null, |id| self.place(id));
        let mut shown = json!({"type": entry.body.type_name(), "parent": parent});
        match &entry.body {
            EntryBody::Message(message) => shown["message"] = summary(message).into(),
            EntryBody::ThinkingLevelChange { thinking_level } => {
                shown["thinkingLevel"] = thinking_level.as_str().into();
            }
            EntryBody::ModelChange { provider, model_id } => {
                shown["model"] = format!("{provider}/{model_id}").into();
            }
            EntryBody::Compaction(compaction) => {
                let kept = compaction.first_kept_entry_id.as_ref();
                shown["firstKept"] = kept.map_or(Value::Null, |id| self.place(id));
                shown["summary"] = compaction.summary.as_str().into();
                shown["tokensBefore"] = compaction.tokens_before.into();
                shown["fromHook"] = compaction.from_hook.unwrap_or(false).into();
                shown["details"] = compaction.details.clone().unwrap_or(Value::Null);
            }
            EntryBody::CustomMessage(message) => shown["content"] = message.content.text("").into(),
            EntryBody::BranchSummary(branch) => {
                shown["summary"] = branch.summary.as_str().into();
                shown["details"] = branch.details.clone().unwrap_or(Value::Null);
                shown["fromHook"] = branch.from_hook.unwrap_or(false).into();
            }
            EntryBody::SessionInfo { name } => shown["name"] = name.as_str().into(),
            _ => {}
        }
        shown
    }

    fn outcome(self) -> Result<Map<String, Value>, String> {
        let entries = self.entries();
        let all = self.session.log().entry_ids().len();
        let n_lines = match self.session.path().map(std::fs::read_to_string) {
            Some(Ok(text)) => text.lines().count() - (all - entries.len()),
            _ => 0,
        };
        let lines = |messages: &[Arc<Message>]| -> Value {
            messages
                .iter()
                .filter(|m| !is_system(m))
                .map(|m| Value::from(notation::without_our_blocks(&summary(m))))
                .collect()
        };
        let calls: Vec<Value> =
            self.provider.requests().iter().map(|request| lines(&convert_to_llm(&request.messages))).collect();
        let mut out = Map::new();
        let trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone();
        out.insert("trace".into(), trace.into());
        out.insert("entries".into(), entries.iter().map(|entry| self.entry(entry)).collect());
        out.insert("fileLines".into(), n_lines.into());
        out.insert("agentMessages".into(), lines(self.session.messages()));
        out.insert("llmCalls".into(), calls.into());
        out.insert("results".into(), self.results.into());
        Ok(out)
    }
}

/// Observes the events of a run: writes the trace and fires triggers.
struct Sight<'a> {
    trace: &'a ScriptedLog,
    triggers: &'a mut Vec<Value>,
    control: SessionControl,
    tasks: &'a mut JoinSet<()>,
}

impl Sight<'_> {
    async fn follow(self, mut run: SessionRun<'_>) -> Result<(), SessionError> {
        let mut kinds = Vec::new();
        while let Some(event) = run.next().await {
            let Some(line) = line(&event?, &mut kinds) else { continue };
            if !line.starts_with("message_update") {
                note(self.trace, line.clone());
            }
            let fires = |trigger: &Value| trigger["on"].as_str().is_some_and(|on| line.starts_with(on));
            for trigger in self.triggers.extract_if(.., |trigger| fires(trigger)) {
                self.tasks.spawn(act(trigger["do"].clone(), self.control.clone(), self.trace.clone()));
            }
        }
        Ok(())
    }
}

/// Credentials that never exist.
struct NoKey;

impl RequestAuth for NoKey {
    fn for_model<'a>(&'a self, model: &'a Model, _: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>> {
        Box::pin(async { Err(AuthError::Missing { provider: model.provider.clone() }) })
    }
}

fn context_usage(usage: &ContextUsage) -> Value {
    json!({"tokens": usage.tokens, "contextWindow": usage.context_window, "percent": usage.percent()})
}

fn stats(stats: &SessionStats) -> Value {
    let spent = &stats.spent;
    json!({
        "userMessages": stats.user_messages, "assistantMessages": stats.assistant_messages,
        "toolCalls": stats.tool_calls, "toolResults": stats.tool_results, "totalMessages": stats.total_messages,
        "tokens": {
            "input": spent.input, "output": spent.output, "cacheRead": spent.cache_read,
            "cacheWrite": spent.cache_write, "total": spent.total(),
        },
        "cost": spent.cost, "contextUsage": stats.context.as_ref().map(context_usage),
    })
}

/// A finished command, as cases record it; its options are in the call or next to it.
fn bash(command: &str, call: &Value) -> BashExecution {
    let ran = UserCommand { output: "out".into(), exit_code: Some(0), ..UserCommand::default() };
    let excludes = call["options"]["excludeFromContext"] == true || call["excludeFromContext"] == true;
    ran.into_record(command, excludes, 1_800_000_000_000)
}

/// The images of a prompt, given as whole blocks or as data and type.
fn images(call: &Value) -> Vec<Image> {
    let given = call["options"]["images"].as_array().or_else(|| call["images"].as_array());
    let image = |image: &Value| Image {
        data: image["data"].as_str().or_else(|| image.as_str()).unwrap_or_default().into(),
        mime_type: image["mimeType"].as_str().unwrap_or("image/png").into(),
    };
    given.into_iter().flatten().map(image).collect()
}

fn is_compared(entry: &Entry) -> bool {
    match &entry.body {
        EntryBody::Message(message) => !is_system(message),
        EntryBody::ContextEdit { .. } => false,
        _ => true,
    }
}

/// Runs the actions of a trigger in order.
async fn act(actions: Value, control: SessionControl, trace: Arc<Mutex<Vec<String>>>) {
    for action in actions.as_array().into_iter().flatten() {
        if let Some(ms) = action["sleep"].as_u64() {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        if let Some(text) = action["steer"].as_str() {
            control.steer(text, images(action));
        }
        if let Some(text) = action["followUp"].as_str() {
            control.follow_up(text, images(action));
        }
        if action["abort"] == true {
            control.cancel(CancelReason::User);
        }
        if action["abortRetry"] == true {
            control.cancel_retry();
        }
        // The result of an action is recorded after the events that it causes, which the session reports when it is polled.
        let mut returned = None;
        if action.get("clearQueue").is_some() {
            let (steering, follow_up) = control.clear_queues();
            let cleared = json!({"steering": steering, "followUp": follow_up});
            returned = Some(format!("clearQueue returns {cleared}"));
        }
        if let Some(command) = action["bash"].as_str() {
            control.change(Change::Bash(bash(command, action)));
        }
        if let Some(name) = action["name"].as_str() {
            control.change(Change::Name(name.to_owned()));
        }
        if let Some(text) = action["prompt"].as_str() {
            let queue = action["options"]["streamingBehavior"].as_str().map(|word| match word {
                "steer" => QueueKind::Steering,
                _ => QueueKind::FollowUp,
            });
            if let Err(busy) = control.prompt(text, images(action), queue) {
                returned = Some(format!("prompt error: {busy}"));
            }
        }
        // The code polling the session must see one action before the next.
        tokio::time::sleep(Duration::from_millis(1)).await;
        returned.into_iter().for_each(|line| note(&trace, line));
    }
}

/// An event as one line; `None` for events that traces omit.
fn line(event: &SessionEvent, kinds: &mut Vec<&'static str>) -> Option<String> {
    let failed = |text: &Option<String>| text.as_ref().map(|text| format!(" !{text}")).unwrap_or_default();
    Some(match event {
        SessionEvent::Agent(event) => event_line(event, kinds)?,
        SessionEvent::RunEnd { end, .. } => {
            format!("agent_end({})", end.messages.iter().filter(|m| !is_system(m)).count())
        }
        SessionEvent::QueueUpdate { steering, follow_up } => {
            format!("queue_update steering={} followUp={}", json!(steering), json!(follow_up))
        }
        SessionEvent::CompactionStart { reason } => format!("compaction_start {}", reason.as_str()),
        SessionEvent::CompactionEnd { reason, result, aborted, will_retry, error_message } => {
            let tokens = result.as_ref().map(|done| format!(" tokensBefore={}", done.tokens_before));
            let (reason, tokens, failed) = (reason.as_str(), tokens.unwrap_or_default(), failed(error_message));
            format!("compaction_end {reason} aborted={aborted} willRetry={will_retry}{tokens}{failed}")
        }
        SessionEvent::RetryStart { attempt, max_attempts, delay_ms, error_message } => {
            format!("auto_retry_start {attempt}/{max_attempts} {delay_ms}ms !{error_message}")
        }
        SessionEvent::RetryEnd { success, attempt, final_error } => {
            format!("auto_retry_end success={success} attempt={attempt}{}", failed(final_error))
        }
        SessionEvent::Settled { .. } | SessionEvent::EntryAppended(_) => return None,
        SessionEvent::ThinkingLevelChanged { level } => {
            json!({"type": "thinking_level_changed", "level": level.as_str()}).to_string()
        }
        SessionEvent::InfoChanged { name } => json!({"type": "session_info_changed", "name": name}).to_string(),
        SessionEvent::ExtensionError(failure) => format!("extension_error {}", failure.error),
        SessionEvent::Conflict { .. } => "session_conflict".into(),
        SessionEvent::SummaryRetryScheduled { attempt, .. } => format!("summarization_retry_scheduled {attempt}"),
        SessionEvent::SummaryRetryStart { source, .. } => {
            format!("summarization_retry_attempt_start {}", source.as_str())
        }
        SessionEvent::SummaryRetryEnd => "summarization_retry_finished".into(),
        other => format!("{other:?}"),
    })
}
