//! Executor of the kind `agent_loop`: one agent, a scripted model, scripted tools and hooks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::Agent;
use pinch_agent_core::hooks::{BeforeTool, FinishedCall, Hooks, PendingCall, ToolPatch, TurnContext, TurnPlan};
use pinch_agent_core::llm::event::EventStream;
use pinch_agent_core::llm::message::{Block, Content, Image, Message, SystemMessage, UserMessage};
use pinch_agent_core::llm::provider::Provider;
use pinch_agent_core::llm::provider::scripted::ScriptedProvider;
use pinch_agent_core::llm::request::{Auth, Request, ThinkingChoice};
use pinch_agent_core::llm::thinking::ThinkingLevel;
use pinch_agent_core::queue::{QueueKind, QueueMode};
use pinch_agent_core::tool::{ToolMode, ToolSet};
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use pinch_testing::cases::compare::same;
use serde_json::{Map, Value, json};

use super::scripted::{CaseTool, ScriptedLog, event_line, expand, is_system, model, note, reply, summary};
use super::{Case, CaseOutcome};

/// Runs a case.
pub(crate) fn execute(case: &Case<'_>) -> CaseOutcome {
    let input = expand(&case.case["input"]);
    let wanted = case.case.get("betterExpected").unwrap_or(&case.case["expected"]);
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build() else {
        return CaseOutcome::Failed("no runtime".into());
    };
    let actual = runtime.block_on(run(&input));
    let named: Map<String, Value> =
        actual.into_iter().filter(|(key, _)| wanted.get(key).is_some() || key == "error").collect();
    same(&normalise(&expand(wanted)), &normalise(&Value::Object(named))).into()
}

/// Rejected arguments are reported in different words; keeps only what must match.
fn normalise(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(super::wording::free_validation_wording(text)),
        Value::Array(list) => list.iter().map(normalise).collect(),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), normalise(v))).collect()),
        other => other.clone(),
    }
}

/// Returns the next key for each call, as a provider with rotating credentials would.
struct Keys {
    inner: Arc<ScriptedProvider>,
    keys: Mutex<VecDeque<String>>,
}

impl Provider for Keys {
    fn stream(&self, mut request: Request, cancel: Cancel) -> EventStream {
        if let Some(key) = self.keys.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
            request.auth = Auth::key(key);
        }
        self.inner.stream(request, cancel)
    }
}

struct CaseHooks {
    input: Value,
    notes: ScriptedLog,
}

impl Hooks for CaseHooks {
    fn next_turn<'a>(&'a self, turn: TurnContext<'a>) -> BoxFuture<'a, Result<TurnPlan, String>> {
        Box::pin(async move {
            if let Some(text) = self.input["transformThrows"].as_str() {
                return Err(text.to_owned());
            }
            let n = self.input["dropFirstN"].as_u64().unwrap_or(0) as usize;
            Ok(TurnPlan { messages: Some(turn.messages.iter().skip(n).cloned().collect()), ..TurnPlan::default() })
        })
    }

    fn before_tool<'a>(&'a self, call: &'a PendingCall) -> BoxFuture<'a, BeforeTool> {
        Box::pin(async move {
            let answer = &self.input["before"][call.call.id.as_str()];
            if !self.input["before"].is_null() {
                note(&self.notes, format!("before {} {}", call.call.id, Value::Object(call.input.clone())));
            }
            let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
            if answer["throw"].is_string() {
                BeforeTool::deny(text("throw"))
            } else if answer["block"] == true {
                BeforeTool::Deny { reason: text("reason"), end_run: answer["terminate"] == true, details: None }
            } else {
                BeforeTool::Allow
            }
        })
    }

    fn after_tool<'a>(&'a self, done: &'a FinishedCall) -> BoxFuture<'a, ToolPatch> {
        Box::pin(async move {
            if self.input["after"].is_null() {
                return ToolPatch::default();
            }
            note(&self.notes, format!("after {} isError={}", done.call.id, done.output.failed));
            let answer = &self.input["after"][done.call.id.as_str()];
            if let Some(text) = answer["throw"].as_str() {
                return ToolPatch {
                    content: Some(vec![Block::text(text)]),
                    details: Some(json!({})),
                    failed: Some(true),
                    end_run: Some(false),
                    ..ToolPatch::default()
                };
            }
            ToolPatch {
                content: serde_json::from_value(answer["content"].clone()).ok(),
                details: answer.get("details").cloned(),
                failed: answer["isError"].as_bool(),
                end_run: answer["terminate"].as_bool(),
                ..ToolPatch::default()
            }
        })
    }
}

/// A request as the model received it.
fn call_line(request: &Request, with_key: bool) -> Value {
    let messages: Vec<String> = request.messages.iter().filter(|m| !is_system(m)).map(|m| summary(m)).collect();
    let mut line = json!({ "messages": messages });
    if let Some(key) = request.auth.key.as_ref().filter(|_| with_key) {
        line["apiKey"] = key.reveal().into();
    }
    if let ThinkingChoice::Level(level) = request.options.thinking
        && level != ThinkingLevel::Off
    {
        line["reasoning"] = level.as_str().into();
    }
    line
}

async fn run(input: &Value) -> Map<String, Value> {
    let notes = ScriptedLog::default();
    let script = input["script"].as_array().into_iter().flatten().map(reply);
    let provider = Arc::new(ScriptedProvider::new(script).when_exhausted("script exhausted"));
    let keys = input["apiKeys"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let with_keys = Keys { inner: Arc::clone(&provider), keys: Mutex::new(keys.collect()) };
    let mut agent = Agent::new(Host::system(), Arc::new(model(true, 1000, 100)), Arc::new(with_keys));
    let system = SystemMessage { content: Content::Text("sys".into()), ..SystemMessage::default() };
    agent.messages = vec![Arc::new(Message::System(system))];
    agent.messages.extend(messages(&input["messages"]));
    agent.tools =
        input["tools"].as_array().into_iter().flatten().map(|t| CaseTool::build(t, &notes)).collect::<ToolSet>();
    agent.thinking = input["thinkingLevel"].as_str().and_then(ThinkingLevel::parse).unwrap_or_default();
    if input["toolExecution"] == "sequential" {
        agent.execution = ToolMode::Sequential;
    }
    agent.hooks = Arc::new(CaseHooks { input: input.clone(), notes: Arc::clone(&notes) });
    let queues = agent.queues();
    for (kind, mode) in [(QueueKind::Steering, "steeringMode"), (QueueKind::FollowUp, "followUpMode")] {
        if let Some(mode) = input[mode].as_str().and_then(QueueMode::parse) {
            queues.set_mode(kind, mode);
        }
    }
    for action in input["preQueue"].as_array().into_iter().flatten() {
        queue(&queues, action);
    }
    let mut triggers: Vec<&Value> = input["triggers"].as_array().into_iter().flatten().collect();
    let default = json!([{"prompt": "go"}]);
    let calls = if input["calls"].is_array() { &input["calls"] } else { &default };
    let mut lines: Vec<String> = Vec::new();
    let mut error = None;
    for call in calls.as_array().into_iter().flatten() {
        let prompts = prompts(call);
        let cancel = Cancel::new();
        let mut kinds = Vec::new();
        let mut run = match agent.run(prompts, cancel.clone()) {
            Ok(run) => run,
            Err(refused) => {
                error = Some(refused.to_string());
                continue;
            }
        };
        while let Some(event) = run.next().await {
            if call.get("promptDuringRun").is_some() {
                error = Some(BUSY.to_owned());
            }
            let Some(line) = event_line(&event, &mut kinds) else { continue };
            while let Some(at) = triggers.iter().position(|t| t["on"].as_str().is_some_and(|on| line.starts_with(on))) {
                for action in triggers.remove(at)["do"].as_array().into_iter().flatten() {
                    if action["abort"] == true {
                        cancel.cancel(CancelReason::User);
                    } else {
                        queue(&queues, action);
                    }
                }
            }
            lines.push(line);
        }
    }
    let with_key = !input["apiKeys"].is_null();
    let mut out = Map::new();
    out.insert("events".into(), lines.into());
    let transcript: Vec<String> = agent.messages.iter().filter(|m| !is_system(m)).map(|m| summary(m)).collect();
    out.insert("transcript".into(), transcript.into());
    out.insert("totalMessages".into(), agent.messages.len().into());
    let calls: Vec<Value> = provider.requests().iter().map(|r| call_line(r, with_key)).collect();
    out.insert("llmCalls".into(), calls.into());
    let notes = notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
    out.insert("toolRuntime".into(), notes.into());
    out.insert("stateErrorMessage".into(), agent.error_message.clone().map_or(Value::Null, Value::from));
    out.insert("queuesLeft".into(), (!queues.is_empty()).into());
    out.extend(error.map(|text| ("error".to_owned(), Value::from(text))));
    out
}

/// The error for a second prompt; in Rust the borrow checker makes this impossible.
const BUSY: &str =
    "Agent is already processing a prompt. Use steer() or followUp() to queue messages, or wait for completion.";

fn messages(list: &Value) -> Vec<Arc<Message>> {
    list.as_array().into_iter().flatten().filter_map(|m| Message::from_value(m).ok()).map(Arc::new).collect()
}

fn prompts(call: &Value) -> Vec<Arc<Message>> {
    let text = call["prompt"].as_str().or_else(|| call.get("promptDuringRun").map(|_| "first"));
    let Some(text) = text else { return messages(&call["messages"]) };
    let mut blocks = vec![Block::text(text)];
    for image in call["images"].as_array().into_iter().flatten() {
        let get = |name: &str| image[name].as_str().unwrap_or_default().to_owned();
        blocks.push(Block::Image(Image { data: get("data"), mime_type: get("mimeType") }));
    }
    vec![Arc::new(Message::User(UserMessage::new(Content::Blocks(blocks), 1)))]
}

fn queue(queues: &pinch_agent_core::queue::MessageQueues, action: &Value) {
    for (name, kind) in [("steer", QueueKind::Steering), ("followUp", QueueKind::FollowUp)] {
        if let Some(text) = action[name].as_str() {
            queues.push(kind, Message::user(text, 1));
        }
    }
}
