//! What each step of [`history`](crate::normalise::history) changes, and what it leaves alone.

mod calls;
mod history;
mod text;
mod thinking;
mod turns;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{answer, read};
use crate::message::Message;

/// One line a message: the role, the id of a result, and the blocks.
fn lines(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| line(&message.to_value())).collect()
}

fn line(message: &Value) -> String {
    let role = message["role"].as_str().unwrap();
    let id = message["toolCallId"].as_str().map(|id| format!("({id})")).unwrap_or_default();
    let content = match &message["content"] {
        Value::String(text) => format!("{text:?}"),
        blocks => blocks.as_array().unwrap().iter().map(block).collect::<Vec<_>>().join(" "),
    };
    format!("{role}{id}: {content}")
}

/// A text as itself, thinking in braces, a call in brackets, with a signature after `/`.
fn block(block: &Value) -> String {
    let signature =
        ["textSignature", "thinkingSignature", "thoughtSignature"].iter().find_map(|key| block[*key].as_str());
    let signature = signature.map(|signature| format!("/{signature}")).unwrap_or_default();
    let member = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str().unwrap() {
        "text" => member("text") + &signature,
        "thinking" => format!("{{{}}}{signature}", member("thinking")),
        "image" => format!("<{}>", member("mimeType")),
        _ => format!("[{} {}]{signature}", member("id"), member("name")),
    }
}

/// Applies a step and expects these lines.
#[track_caller]
fn check(step: impl Fn(&[Arc<Message>]) -> Vec<Arc<Message>>, messages: &[Value], expect: &[&str]) {
    assert_eq!(lines(&step(&read(messages))), expect);
}

/// Like [`check`], with an answer for each list of blocks.
#[track_caller]
fn check_answers(step: impl Fn(&[Arc<Message>]) -> Vec<Arc<Message>>, contents: &[Value], expect: &[&str]) {
    let messages: Vec<Value> = contents.iter().map(|content| answer("m", "stop", content.clone())).collect();
    check(step, &messages, expect);
}

fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thought(text: &str, signature: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "thinkingSignature": signature})
}

fn system(text: &str) -> Value {
    json!({"role": "system", "content": text, "timestamp": 8})
}

fn at(mut message: Value, timestamp: i64) -> Value {
    message["timestamp"] = timestamp.into();
    message
}
