//! Executors for the embed-streaming suite: one per operation, each using only `input`.

use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Block, Message, Usage};
use pinch_testing::cases::compare::same;
use serde_json::{Map, Value, json};

use super::{Case, CaseOutcome};

mod chunks;
mod errors;
mod hygiene;
mod parts;
mod payloads;
mod subscribe;

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> CaseOutcome {
    let op = case.case["op"].as_str().unwrap_or("");
    let input = &case.case["input"];
    let actual = parts::run(op, input)
        .or_else(|| chunks::run(op, input))
        .or_else(|| subscribe::run(op, input))
        .or_else(|| errors::run(op, input))
        .or_else(|| payloads::run(op, input))
        .or_else(|| hygiene::run(op, input));
    let Some(actual) = actual else { return CaseOutcome::NotImplemented };
    let result = actual.and_then(|actual| match &case.case["expect_properties"] {
        Value::Array(properties) => chunks::hold(properties, input, &actual),
        _ => check(&case.case["expect"], &actual),
    });
    result.into()
}

/// Compares, ignoring fields that mean "not set". For an object of outputs, only the named ones are compared.
fn check(expect: &Value, actual: &Value) -> Result<(), String> {
    let Some(outputs) = actual.get("$outputs") else {
        return same(&without_unset(expect), &without_unset(actual));
    };
    for (name, value) in expect.as_object().ok_or("the case should name outputs")? {
        let output = outputs.get(name).ok_or_else(|| format!("no output is called {name}"))?;
        same(&without_unset(value), &without_unset(output)).map_err(|why| format!("/{name}{why}"))?;
    }
    Ok(())
}

/// Removes absent, null and false fields of objects, at any depth.
fn without_unset(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !matches!(value, Value::Null | Value::Bool(false)))
            .map(|(key, value)| (key.clone(), without_unset(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without_unset).collect(),
        other => other.clone(),
    }
}

/// Several outputs, of which a case names those to compare.
fn outputs(all: Value) -> Value {
    json!({ "$outputs": all })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// An assistant message of a case: fields may be missing.
fn assistant(value: &Value) -> Result<Arc<AssistantMessage>, String> {
    let mut full = json!({"role": "assistant", "api": "", "provider": "", "model": "", "stopReason": "stop", "timestamp": 0,
        "content": [], "usage": {}});
    for (key, value) in value.as_object().into_iter().flatten() {
        full[key] = value.clone();
    }
    let message = Message::from_value(&full).map_err(|error| error.to_string())?;
    let mut message = message.as_assistant().ok_or("no assistant message")?.as_ref().clone();
    if let Some(usage) = read_usage(&value["usage"]) {
        message.usage = usage;
    }
    Ok(Arc::new(message))
}

fn content_value(content: &[Arc<Block>]) -> Value {
    let block = |block: &Arc<Block>| match &**block {
        Block::Text(text) => json!({"type": "text", "text": text.text}),
        Block::Thinking(thinking) => json!({"type": "thinking", "thinking": thinking.thinking}),
        Block::ToolCall(call) => {
            json!({"type": "toolCall", "id": call.id.as_str(), "name": call.name, "arguments": call.arguments})
        }
        Block::Image(image) => json!({"type": "image", "data": image.data, "mimeType": image.mime_type}),
        Block::Other(raw) => raw.raw.clone(),
    };
    content.iter().map(block).collect()
}

/// Usage in any of the spellings found in cases; `None` without a positive number.
fn read_usage(raw: &Value) -> Option<Usage> {
    let get = |names: &[&str]| {
        let number = names.iter().find_map(|name| raw.get(*name)?.as_f64()).filter(|n| n.is_finite() && *n > 0.0);
        // Whole tokens: there are no fractions of a token.
        number.map_or(0, |n| n as u64)
    };
    let usage = Usage {
        input: get(&["input", "inputTokens", "input_tokens", "promptTokens", "prompt_tokens"]),
        output: get(&["output", "outputTokens", "output_tokens", "completionTokens", "completion_tokens"]),
        cache_read: get(&["cacheRead", "cache_read", "cache_read_input_tokens"]),
        cache_write: get(&["cacheWrite", "cache_write", "cache_creation_input_tokens"]),
        total_tokens: get(&["total", "totalTokens", "total_tokens"]),
        ..Usage::default()
    };
    (!usage.is_zero()).then_some(usage)
}
