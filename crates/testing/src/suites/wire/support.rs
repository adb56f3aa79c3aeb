//! Requests, calls and comparisons shared by the scenarios.

use std::sync::Arc;

use pinch_llm::error::LlmError;
use pinch_llm::event::laws::Laws;
use pinch_llm::event::{Emit, Finished, StreamEvent};
use pinch_llm::frame::Frames;
use pinch_llm::message::{AssistantMessage, Message, ToolDecl};
use pinch_llm::model::Model;
use pinch_llm::request::{Auth, CallOptions, Request, SystemPrompt};
use pinch_llm::stdx::host::Host;
use pinch_llm::wire::{HttpRequest, Signing, WireCall, WireFormat};
use serde_json::{Value, json};

use crate::wires::Wire;

/// Time of all calls, in Unix milliseconds.
const NOW: i64 = 1_700_000_000_000;

pub(super) fn model_at(wire: &dyn Wire, server: &str, more: &Value) -> Model {
    let mut record = json!({
        "id": "m", "api": wire.api(), "provider": wire.api(), "baseUrl": format!("{server}{}", wire.base_path()),
        "reasoning": true, "input": ["text", "image"], "contextWindow": 200_000, "maxTokens": 8_000,
        "cost": {"input": 1.0, "output": 2.0, "cacheRead": 0.5, "cacheWrite": 1.5},
    });
    if let (Some(record), Some(more)) = (record.as_object_mut(), more.as_object()) {
        record.extend(more.clone());
    }
    #[expect(clippy::expect_used, reason = "the record above has every member a model must have")]
    Model::from_record(&record).expect("the record is complete")
}

pub(super) fn request_of(wire: &dyn Wire, model: Model, messages: Vec<Message>) -> Request {
    // The suite tests HTTP, even if a format has other transports.
    let native = [("transport", "sse"), ("project", "p")];
    let native = native.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value)));
    let mut options = CallOptions::default();
    options.native = native.collect();
    Request::new(model, messages.into_iter().map(Arc::new).collect())
        .with_system(SystemPrompt::text("Be brief."))
        .with_tools([tool("read")])
        .with_options(options)
        .with_auth(Auth::key(wire.key()))
        .with_host(Host::builder().clock(NOW, 0).seed(7).build())
}

pub(super) fn request_at(wire: &dyn Wire, server: &str) -> Request {
    request_of(wire, model_at(wire, server, &json!({})), vec![Message::user("hi", 1)])
}

pub(super) fn tool(name: &str) -> ToolDecl {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    ToolDecl::new(name, format!("does {name}"), parameters)
}

pub(super) fn format_of(wire: &dyn Wire) -> Result<Box<dyn WireFormat>, String> {
    wire.format().ok_or_else(|| format!("{} is not built in", wire.api()))
}

pub(super) fn encode(wire: &dyn Wire, request: &Request) -> Result<HttpRequest, String> {
    encode_as(&*format_of(wire)?, request)
}

pub(super) fn encode_as(format: &dyn WireFormat, request: &Request) -> Result<HttpRequest, String> {
    let call = WireCall::new(request, NOW);
    let failed = |error: LlmError| format!("no request leaves: {}", error.text);
    let mut made = format.encode(&call).map_err(failed)?;
    let body = made.body.to_string();
    let parts = Signing { url: &made.url, headers: &mut made.headers, body: body.as_bytes() };
    format.sign(&call, parts).map_err(failed)?;
    Ok(made)
}

/// Decodes a response that arrives in these chunks, after checking the laws and that the last event is the end.
pub(super) fn decode<'a>(
    wire: &dyn Wire,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<StreamEvent>, String> {
    let request = request_at(wire, "http://localhost");
    let call = WireCall::new(&request, NOW);
    let format = format_of(wire)?;
    let mut decoder = format.decoder(&call);
    let (mut frames, mut emit) = (Frames::new(format.framing()), Emit::default());
    let mut broken = false;
    for chunk in chunks {
        frames.push(chunk);
        loop {
            match frames.next_frame() {
                Ok(Some(frame)) => drop(decoder.push(frame, &mut emit)),
                Ok(None) => break,
                Err(_) => {
                    broken = true;
                    break;
                }
            }
        }
    }
    if !broken && let Ok(Some(frame)) = frames.finish() {
        decoder.push(frame, &mut emit);
    }
    decoder.finish(&mut emit);
    lawful(std::iter::from_fn(|| emit.pop()).collect())
}

/// Returns the events if they obey the laws and end.
pub(super) fn lawful(events: Vec<StreamEvent>) -> Result<Vec<StreamEvent>, String> {
    let mut laws = Laws::default();
    for event in &events {
        laws.check(event)?;
    }
    match events.last() {
        Some(StreamEvent::End(_)) => Ok(events),
        other => Err(format!("the last event is no end: {other:?}")),
    }
}

pub(super) fn end_of(events: &[StreamEvent]) -> Result<&Finished, String> {
    match events.last() {
        Some(StreamEvent::End(finished)) => Ok(finished),
        other => Err(format!("the last event is no end: {other:?}")),
    }
}

/// Returns the message of a successful answer.
pub(super) fn good(finished: &Finished) -> Result<&AssistantMessage, String> {
    match &finished.error {
        None if finished.is_ok() => Ok(&finished.message),
        error => Err(format!("a good answer was expected, but: {error:?}")),
    }
}

/// Returns the message as stored, without members that differ between calls.
pub(super) fn kept(finished: &Finished) -> Value {
    let mut value = Message::Assistant(Arc::clone(&finished.message)).to_value();
    if let Some(map) = value.as_object_mut() {
        map.remove("durationMs");
    }
    value
}

/// Renders the events for comparison, without parts that differ between calls.
pub(super) fn in_words(events: &[StreamEvent]) -> Vec<String> {
    let word = |event: &StreamEvent| match event {
        // The initial knowledge depends on which event came first.
        StreamEvent::Start(_) => "start".to_owned(),
        StreamEvent::End(finished) => format!("end {} {:?}", kept(finished), finished.error.as_ref().map(|e| &e.text)),
        other => format!("{other:?}"),
    };
    events.iter().map(word).collect()
}

/// Returns an error if the condition does not hold.
pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

pub(super) fn equal<T: PartialEq + std::fmt::Debug>(what: &str, actual: T, expected: T) -> Result<(), String> {
    ensure(actual == expected, || format!("{what}: expected {expected:?}, got {actual:?}"))
}
