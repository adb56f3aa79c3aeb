//! Executor of the kind `agent_session`: a session on a file, a scripted model, scripted tools.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use pinch_agent_core::hooks::NoHooks;
use pinch_agent_core::llm::message::Message;
use pinch_agent_core::llm::provider::scripted::ScriptedProvider;
use pinch_agent_core::llm::request::CallOptions;
use pinch_agent_core::tool::ToolSet;
use pinch_coding_agent::compaction::{CompactError, CompactionReason, estimate};
use pinch_coding_agent::entry::{Entry, EntryBody, EntryId};
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::prompt::Prompt as SystemPrompt;
use pinch_coding_agent::session::{AgentSession, Prompt, SessionControl, SessionParts};
use pinch_coding_agent::session_log::{NewSession, SessionLog, convert_to_llm};
use pinch_coding_agent::settings::Settings;
use pinch_coding_agent::store::JsonlStore;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use regex::Regex;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::scripted::{CaseTool, Notes, event_line, is_system, model, note, reply, summary};
use super::sessions::{compaction, notation};
use super::{Case, Outcome};

/// What a second prompt is told; here the borrow checker says it first.
const BUSY: &str =
    "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.";

/// Calls that a session itself does not offer (yet).
const FOREIGN: [&str; 5] = ["sendCustom", "navigateToEntryIndex", "stats", "bash", "reload"];

/// Runs a case.
pub(crate) fn execute(case: &Case<'_>) -> Outcome {
    let mut input = case.case["input"].clone();
    notation::expand(&mut input);
    let calls = || input["calls"].as_array().into_iter().flatten();
    if calls().any(|call| FOREIGN.iter().any(|name| call.get(name).is_some()))
        || input.get("templates").is_some()
        || input["noKey"] == true
    {
        return Outcome::NotImplemented;
    }
    let mut wanted = case.case.get("betterExpected").unwrap_or(&case.case["expected"]).clone();
    notation::expand(&mut wanted);
    notation::put_in(&mut wanted, &compaction::wording());
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build() else {
        return Outcome::Failed("no runtime".into());
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
        Err(why) => Outcome::Failed(why),
    }
}

/// What compactions of overflows estimate is not compared: the system prompt may be in it.
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

/// A session at work, and what is seen of it.
struct Scene {
    session: AgentSession,
    provider: Arc<ScriptedProvider>,
    trace: Notes,
    triggers: Vec<Value>,
    results: Vec<Value>,
}

async fn run(input: &Value) -> Result<Map<String, Value>, String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut scene = Scene::new(input, folder.path()).await?;
    let mut tasks = JoinSet::new();
    for call in input["calls"].as_array().into_iter().flatten() {
        scene.call(call, &mut tasks).await?;
    }
    while tasks.join_next().await.is_some() {}
    scene.outcome()
}

impl Scene {
    async fn new(input: &Value, folder: &std::path::Path) -> Result<Self, String> {
        let text = |error: &dyn std::error::Error| error.to_string();
        // Time goes on with every look at it: a scripted answer must not come in the millisecond of its prompt.
        let host = Host::builder().clock(1_800_000_000_000, 1).build();
        let file = folder.join("settings.json");
        let given = input.get("settings").cloned().unwrap_or_else(|| json!({}));
        std::fs::write(&file, given.to_string()).map_err(|e| text(&e))?;
        let (settings, problems) = Settings::load(&file);
        if let Some(problem) = problems.first() {
            return Err(problem.to_string());
        }
        let store = Arc::new(JsonlStore::flat(folder.join("sessions")));
        let new = NewSession::in_folder(&folder.to_string_lossy());
        let mut log = SessionLog::create(&host, store, new).await.map_err(|e| text(&e))?;
        for message in input["seed"].as_array().into_iter().flatten() {
            let message = Message::from_value(message).map_err(|e| text(&e))?;
            log.append_message(message).await.map_err(|e| text(&e))?;
        }
        let script = input["script"].as_array().into_iter().flatten().map(reply);
        let provider = Arc::new(ScriptedProvider::new(script).when_exhausted("script exhausted"));
        let notes = Notes::default();
        let tools = input["tools"].as_array().into_iter().flatten().map(|tool| CaseTool::build(tool, &notes));
        let session = AgentSession::start(SessionParts {
            host,
            log,
            model: Arc::new(model(false, input["contextWindow"].as_u64().unwrap_or(100_000), 100)),
            thinking: None,
            provider: provider.clone(),
            tools: tools.collect::<ToolSet>(),
            system: SystemPrompt::text("sys"),
            hooks: Arc::new(NoHooks),
            compaction: settings.compaction,
            plan: settings.recovery,
            options: CallOptions::default(),
        });
        Ok(Self {
            session: session.await.map_err(|e| text(&e))?,
            provider,
            trace: Notes::default(),
            triggers: input["triggers"].as_array().cloned().unwrap_or_default(),
            results: Vec::new(),
        })
    }

    async fn call(&mut self, call: &Value, tasks: &mut JoinSet<()>) -> Result<(), String> {
        if let Some(text) = call["prompt"].as_str() {
            self.prompt(text, tasks).await
        } else if call.get("compact").is_some() {
            self.compact(call["instructions"].as_str()).await;
            Ok(())
        } else if let Some(ms) = call["settle"].as_u64() {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(())
        } else if call.get("contextUsage").is_some() {
            let usage = self.context_usage();
            self.results.push(usage);
            Ok(())
        } else if call.get("lastText").is_some() {
            self.results.push(self.session.last_text().map_or(Value::Null, Value::from));
            Ok(())
        } else if let Some(name) = call["name"].as_str() {
            self.session.log_mut().append_name(name).await.map(drop).map_err(|e| e.to_string())
        } else {
            Err(format!("no such call: {call}"))
        }
    }

    async fn prompt(&mut self, text: &str, tasks: &mut JoinSet<()>) -> Result<(), String> {
        let control = self.session.control();
        let mut run = self.session.prompt(Prompt::text(text));
        let mut kinds = Vec::new();
        while let Some(event) = run.next().await {
            let Some(line) = line(&event.map_err(|e| e.to_string())?, &mut kinds) else { continue };
            if !line.starts_with("message_update") {
                note(&self.trace, line.clone());
            }
            let fires = |trigger: &Value| trigger["on"].as_str().is_some_and(|on| line.starts_with(on));
            for trigger in self.triggers.extract_if(.., |trigger| fires(trigger)) {
                tasks.spawn(act(trigger["do"].clone(), control.clone(), self.trace.clone()));
            }
        }
        note(&self.trace, "-- prompt() resolved".into());
        Ok(())
    }

    async fn compact(&mut self, focus: Option<&str>) {
        note(&self.trace, "compaction_start manual".into());
        let done = self.session.compact(CompactionReason::Manual, focus.map(str::to_owned), &Cancel::new()).await;
        let (end, result) = match done {
            Ok(done) => {
                let end = format!("aborted=false willRetry=false tokensBefore={}", done.tokens_before);
                let result = json!({
                    "summary": done.summary, "firstKeptEntryIndex": self.place(&done.first_kept_entry_id),
                    "tokensBefore": done.tokens_before, "details": done.details,
                });
                (end, result)
            }
            Err(error) => {
                let aborted = matches!(error, CompactError::Cancelled);
                let text = error.to_string();
                let first = text.lines().next().unwrap_or_default();
                let shown = if aborted { String::new() } else { format!(" !Compaction failed: {text}") };
                (format!("aborted={aborted} willRetry=false{shown}"), json!({"error": first}))
            }
        };
        note(&self.trace, format!("compaction_end manual {end}"));
        self.results.push(result);
    }

    /// How full the window is; unknown between a compaction and the next answer.
    fn context_usage(&self) -> Value {
        let window = self.session.model().context_window;
        let branch = self.session.log().active_branch();
        let is_known = branch.entries().rev().find_map(|entry| match &entry.body {
            EntryBody::Compaction(_) => Some(false),
            EntryBody::Message(message) => message.as_assistant().map(|_| true),
            _ => None,
        });
        if is_known == Some(false) {
            return json!({"tokens": null, "contextWindow": window, "percent": null});
        }
        let tokens = estimate::context_tokens(self.session.messages()).tokens;
        json!({"tokens": tokens, "contextWindow": window, "percent": tokens as f64 / window as f64 * 100.0})
    }

    /// The entries that cases compare.
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.session.log().entries().filter(|entry| is_compared(entry)).collect()
    }

    /// The place of an entry among those; of one that is left out its parent's.
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

fn is_compared(entry: &Entry) -> bool {
    match &entry.body {
        EntryBody::Message(message) => !is_system(message),
        EntryBody::ContextEdit { .. } => false,
        _ => true,
    }
}

/// The actions of a trigger, one after another.
async fn act(actions: Value, control: SessionControl, trace: Arc<Mutex<Vec<String>>>) {
    for action in actions.as_array().into_iter().flatten() {
        if let Some(ms) = action["sleep"].as_u64() {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        if let Some(text) = action["steer"].as_str() {
            control.steer(text, Vec::new());
        }
        if let Some(text) = action["followUp"].as_str() {
            control.follow_up(text, Vec::new());
        }
        if action["abort"] == true {
            control.cancel(CancelReason::User);
        }
        if action["abortRetry"] == true {
            control.cancel_retry();
        }
        if action.get("clearQueue").is_some() {
            let (steering, follow_up) = control.clear_queues();
            let cleared = json!({"steering": steering, "followUp": follow_up});
            note(&trace, format!("clearQueue returns {cleared}"));
        }
        if let Some(text) = action["prompt"].as_str() {
            match action["options"]["streamingBehavior"].as_str() {
                Some("steer") => control.steer(text, Vec::new()),
                Some(_) => control.follow_up(text, Vec::new()),
                None => note(&trace, format!("prompt error: {BUSY}")),
            }
        }
        // Whoever pulls the session sees one action before the next.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// An event in one line; `None` for what traces leave out.
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
        SessionEvent::Conflict { .. } => "session_conflict".into(),
    })
}
