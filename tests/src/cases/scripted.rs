//! The notation shared by the kinds `agent_loop` and `agent_session`: scripted models and tools, message and event strings.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::llm::event::{BlockKind, StreamEvent};
use pinch_agent_core::llm::message::{Block, Content, Message, StopReason, Usage};
use pinch_agent_core::llm::provider::scripted::{ScriptedReply, ScriptedStep};
use pinch_agent_core::llm::schema::Schema;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use serde_json::{Value, json};

/// Parses one reply of a script. `usage` N means totalTokens N, output 10, input N-10.
pub(crate) fn reply(item: &Value) -> ScriptedReply {
    if let Some(text) = item["failBeforeStart"].as_str().or_else(|| item["throw"].as_str()) {
        return ScriptedReply { fail_before_start: Some(text.to_owned()), ..ScriptedReply::default() };
    }
    let strings = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let steps = item["content"].as_array().into_iter().flatten().filter_map(|block| {
        Some(if block["text"].is_array() {
            ScriptedStep::Text(strings(&block["text"]))
        } else if block["thinking"].is_array() {
            ScriptedStep::Thinking(strings(&block["thinking"]))
        } else if block["toolCall"].is_object() {
            let call = &block["toolCall"];
            ScriptedStep::ToolCall {
                id: call["id"].as_str()?.to_owned(),
                name: call["name"].as_str()?.to_owned(),
                arguments: call["arguments"].as_object().cloned().unwrap_or_default(),
            }
        } else {
            ScriptedStep::Hang
        })
    });
    let usage = match &item["usage"] {
        Value::Number(n) => {
            let total = n.as_u64().unwrap_or(0);
            Usage { input: total.saturating_sub(10), output: 10, total_tokens: total, ..Usage::default() }
        }
        Value::Object(_) => serde_json::from_value(item["usage"].clone()).unwrap_or_default(),
        _ => Usage::default(),
    };
    ScriptedReply {
        steps: steps.collect(),
        stop: item["stopReason"].as_str().map(stop_reason),
        error_message: item["errorMessage"].as_str().map(str::to_owned),
        usage,
        ..ScriptedReply::default()
    }
}

fn stop_reason(word: &str) -> StopReason {
    [StopReason::Stop, StopReason::Length, StopReason::ToolUse, StopReason::Error, StopReason::Aborted]
        .into_iter()
        .find(|stop| stop.as_str() == word)
        .unwrap_or(StopReason::Stop)
}

/// Lines recorded by scripted tools and hooks.
pub(crate) type ScriptedLog = Arc<Mutex<Vec<String>>>;

/// Records a line.
pub(crate) fn note(notes: &ScriptedLog, line: String) {
    notes.lock().unwrap_or_else(PoisonError::into_inner).push(line);
}

/// A tool defined by a case.
pub(crate) struct CaseTool {
    spec: ToolSpec,
    script: Value,
    notes: ScriptedLog,
}

impl CaseTool {
    /// Builds the tool of a case.
    pub(crate) fn build(script: &Value, notes: &ScriptedLog) -> Arc<dyn Tool> {
        let name = script["name"].as_str().unwrap_or("tool");
        let parameters = match &script["parameters"] {
            Value::Null => json!({"type": "object", "properties": {}}),
            schema => schema.clone(),
        };
        let mut spec = ToolSpec::new(name, "a tool", Schema::new(parameters));
        if script["executionMode"] == "sequential" {
            spec.mode = pinch_agent_core::tool::ToolMode::Sequential;
        }
        Arc::new(Self { spec, script: script.clone(), notes: Arc::clone(notes) })
    }
}

impl Tool for CaseTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, mut raw: JsonObject) -> Result<JsonObject, ToolError> {
        match &self.script["prepareArguments"] {
            Value::Object(more) => {
                raw.extend(more.clone());
                Ok(raw)
            }
            other => match other["throw"].as_str() {
                Some(text) => Err(ToolError::new(text)),
                None => Ok(raw),
            },
        }
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let late = if cx.cancel.is_cancelled() { " (signal already aborted)" } else { "" };
            note(&self.notes, format!("{} {}{late}", cx.call, Value::Object(input)));
            let own = &self.script["byId"][cx.call.as_str()];
            let get = |name: &str| if own[name].is_null() { &self.script[name] } else { &own[name] };
            for update in get("updates").as_array().into_iter().flatten() {
                cx.progress.report(ToolOutput::text(update.as_str().unwrap_or_default()));
                tokio::task::yield_now().await;
            }
            let ignores = get("onAbort") == "ignore";
            if let Some(ms) = get("delayMs").as_u64() {
                let sleep = tokio::time::sleep(Duration::from_millis(ms));
                if ignores {
                    sleep.await;
                } else if cx.cancel.run(sleep).await.is_err() {
                    return Err(ToolError::aborted());
                }
            }
            if cx.cancel.is_cancelled() && !ignores {
                return Err(ToolError::aborted());
            }
            if let Some(text) = get("throw").as_str() {
                return Err(ToolError::new(text));
            }
            let mut output = ToolOutput::text(get("result").as_str().unwrap_or("ok"));
            output.details = Some(json!({}));
            output.end_run = *get("terminate") == true;
            Ok(output)
        })
    }
}

/// A message as one line.
pub(crate) fn summary(message: &Message) -> String {
    let content_text = |content: &Content| {
        let image = if content.has_image() { " +image" } else { "" };
        format!("{}{image}", content.text(""))
    };
    match message {
        Message::User(user) => format!("user: {}", content_text(&user.content)),
        Message::Assistant(answer) => {
            let mut line = format!("assistant[{}]: ", shown(answer.stop_reason));
            for block in &answer.content {
                match &**block {
                    Block::Text(text) => line.push_str(&text.text),
                    Block::Thinking(thinking) => line.push_str(&format!("(thinking){}", thinking.thinking)),
                    Block::ToolCall(call) => line.push_str(&format!("<{} {}>", call.name, call.id)),
                    Block::Image(_) | Block::Other(_) => {}
                }
            }
            if let Some(error) = &answer.error_message {
                line.push_str(&format!(" !{error}"));
            }
            line
        }
        Message::ToolResult(result) => {
            let verdict = if result.is_error { "ERROR" } else { "ok" };
            format!("toolResult {} {verdict}: {}", result.tool_call_id, text_of(&result.content))
        }
        Message::System(system) => format!("system: {}", content_text(&system.content)),
        Message::Other(other) => {
            let text = match &other.raw.get("content") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(blocks)) => blocks.iter().filter_map(|b| b["text"].as_str()).collect(),
                _ => other.raw.get("summary").and_then(Value::as_str).unwrap_or_default().to_owned(),
            };
            format!("{}: {text}", other.role())
        }
    }
}

/// The scripted model of the recordings started its messages with `stop`.
fn shown(stop: StopReason) -> &'static str {
    if stop == StopReason::Pending { "stop" } else { stop.as_str() }
}

fn text_of(blocks: &[Block]) -> String {
    pinch_agent_core::llm::message::block::join_text(blocks, "")
}

/// Whether a message is omitted from traces.
pub(crate) fn is_system(message: &Message) -> bool {
    matches!(message, Message::System(_))
}

/// A loop event as one line; `None` for events that traces omit.
pub(crate) fn event_line(event: &AgentEvent, kinds: &mut Vec<&'static str>) -> Option<String> {
    Some(match event {
        AgentEvent::AgentStart => "agent_start".into(),
        AgentEvent::TurnStart => "turn_start".into(),
        AgentEvent::MessageStart(message) | AgentEvent::MessageEnd { message, .. } if is_system(message) => {
            return None;
        }
        AgentEvent::MessageStart(message) => {
            kinds.clear();
            format!("message_start {}", summary(message))
        }
        AgentEvent::MessageEnd { message, .. } => format!("message_end {}", summary(message)),
        AgentEvent::MessageUpdate(update) => update_line(update, kinds)?,
        AgentEvent::ToolStart(start) => {
            format!("tool_execution_start {} {} {}", start.id, start.name, Value::Object((*start.args).clone()))
        }
        AgentEvent::ToolUpdate { start, so_far } => {
            format!("tool_execution_update {} {}", start.id, text_of(&so_far.content))
        }
        AgentEvent::ToolEnd { start, output, .. } => {
            let verdict = if output.failed { "ERROR" } else { "ok" };
            format!("tool_execution_end {} {verdict} {}", start.id, text_of(&output.content))
        }
        AgentEvent::TurnEnd { message, results, .. } => {
            format!("turn_end({},{})", message.stop_reason.as_str(), results.len())
        }
        AgentEvent::AgentEnd(end) => {
            format!("agent_end({})", end.messages.iter().filter(|m| !is_system(m)).count())
        }
        other => format!("an unknown event: {other:?}"),
    })
}

fn update_line(event: &StreamEvent, kinds: &mut Vec<&'static str>) -> Option<String> {
    Some(match event {
        StreamEvent::BlockStart { kind, .. } => {
            kinds.push(match kind {
                BlockKind::Text | BlockKind::Commentary => "text",
                BlockKind::Thinking { .. } => "thinking",
                BlockKind::ToolCall { .. } => "toolcall",
            });
            format!("message_update {}_start", kinds.last().copied().unwrap_or("?"))
        }
        StreamEvent::Delta { index, text } => {
            format!("message_update {}_delta {text}", kinds.get(*index).copied().unwrap_or("?"))
        }
        StreamEvent::BlockEnd { index, .. } => {
            format!("message_update {}_end", kinds.get(*index).copied().unwrap_or("?"))
        }
        StreamEvent::Start(_) | StreamEvent::Usage(_) | StreamEvent::End(_) => return None,
    })
}

/// Expands `@repeat:c:n` in every string of a value.
pub(crate) fn expand(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(expand_text(text)),
        Value::Array(list) => list.iter().map(expand).collect(),
        Value::Object(map) => Value::Object(map.iter().map(|(k, v)| (k.clone(), expand(v))).collect()),
        other => other.clone(),
    }
}

fn expand_text(text: &str) -> String {
    const MARK: &str = "@repeat:";
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        out.push_str(&rest[..at]);
        let spec = &rest[at + MARK.len()..];
        let mut chars = spec.chars();
        let parsed = chars.next().and_then(|c| {
            let digits = chars.as_str().strip_prefix(':')?;
            let n_digits = digits.bytes().take_while(u8::is_ascii_digit).count();
            Some((c, digits[..n_digits].parse::<usize>().ok()?, &digits[n_digits..]))
        });
        match parsed {
            Some((c, n, after)) => {
                out.extend(std::iter::repeat_n(c, n));
                rest = after.strip_prefix(';').unwrap_or(after);
            }
            None => {
                out.push_str(MARK);
                rest = spec;
            }
        }
    }
    out + rest
}

/// The model record of scripted cases.
pub(crate) fn model(reasoning: bool, context_window: u64, max_tokens: u64) -> pinch_agent_core::llm::model::Model {
    let record = json!({
        "id": "m1", "name": "m1", "api": "scripted", "provider": "prov", "baseUrl": "http://127.0.0.1:0",
        "reasoning": reasoning, "input": ["text", "image"], "contextWindow": context_window, "maxTokens": max_tokens,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    });
    #[expect(clippy::expect_used, reason = "the record above is complete")]
    pinch_agent_core::llm::model::Model::from_record(&record).expect("the record is complete")
}
