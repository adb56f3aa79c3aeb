//! Scenarios of encoding a request, without a network.

use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Message, StopReason};
use pinch_llm::request::{Auth, Request};
use pinch_llm::wire;
use serde_json::{Value, json};

use super::support::{decode, encode, encode_as, end_of, ensure, equal, good, model_at, request_of, tool};
use crate::wires::{Answer, AnswerPart, Wire};

/// An image of one pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A key that every format accepts: a token that contains an account.
const KEY_FOR_ALL: &str = "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjLTEifX0=.s";

fn message(value: &Value) -> Result<Message, String> {
    Message::from_value(value).map_err(|why| format!("{value}: {why}"))
}

fn image() -> Value {
    json!({"type": "image", "data": IMAGE, "mimeType": "image/png"})
}

fn request(wire: &dyn Wire, more: &Value, messages: Vec<Message>) -> Request {
    request_of(wire, model_at(wire, "http://localhost", more), messages)
}

fn body(wire: &dyn Wire, more: &Value, messages: Vec<Message>) -> Result<String, String> {
    Ok(encode(wire, &request(wire, more, messages))?.body.to_string())
}

/// Checks that vision models get the image, and others a note.
fn check_image(wire: &dyn Wire, messages: &[Message]) -> Result<(), String> {
    let seeing = body(wire, &json!({}), messages.to_vec())?;
    ensure(seeing.contains(IMAGE), || format!("the picture is not in {seeing}"))?;
    let blind = body(wire, &json!({"input": ["text"]}), messages.to_vec())?;
    ensure(!blind.contains(IMAGE), || "a model that cannot see gets the picture".into())?;
    ensure(blind.contains("image omitted"), || format!("no note about the picture in {blind}"))
}

pub(super) fn user_images(wire: &dyn Wire) -> Result<(), String> {
    let both = json!({"role": "user", "content": [{"type": "text", "text": "look"}, image()], "timestamp": 1});
    check_image(wire, &[message(&both)?])?;
    check_image(wire, &[message(&json!({"role": "user", "content": [image()], "timestamp": 1}))?])
}

fn call_and_result(content: &Value) -> Result<Vec<Message>, String> {
    let call = json!({"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"path": "a"}});
    Ok(vec![
        Message::user("hi", 1),
        message(&json!({"role": "assistant", "content": [call], "api": "x", "provider": "x", "model": "x",
            "stopReason": "toolUse", "timestamp": 2}))?,
        message(&json!({"role": "toolResult", "toolCallId": "call_1", "toolName": "read", "content": content,
            "isError": false, "timestamp": 3}))?,
    ])
}

pub(super) fn tool_images(wire: &dyn Wire) -> Result<(), String> {
    check_image(wire, &call_and_result(&json!([{"type": "text", "text": "seen"}, image()]))?)?;
    check_image(wire, &call_and_result(&json!([image()]))?)
}

/// Returns an answer with thinking, text and calls, as decoded by the format.
fn own_answer(wire: &dyn Wire) -> Result<AssistantMessage, String> {
    let parts = [AnswerPart::thinking("secret pondering"), AnswerPart::text("spoken words"), call("call_1", "a")];
    let frames = wire.frames(&Answer::of(parts));
    let events = decode(wire, frames.iter().map(Vec::as_slice))?;
    good(end_of(&events)?).cloned()
}

fn call(id: &str, path: &str) -> AnswerPart {
    AnswerPart::call(id, "read", &json!({"path": path}).to_string())
}

/// Returns the conversation that contains an answer, with the results of its calls.
fn conversation(answer: &AssistantMessage) -> Result<Vec<Message>, String> {
    let mut messages = vec![Message::user("asked", 1), Message::Assistant(Arc::new(answer.clone()))];
    for call in answer.tool_calls() {
        messages.push(message(&json!({"role": "toolResult", "toolCallId": call.id.as_str(), "toolName": call.name,
            "content": [{"type": "text", "text": "result text"}], "isError": false, "timestamp": 3}))?);
    }
    messages.push(Message::user("goes on", 4));
    Ok(messages)
}

fn check_handed(body: &str) -> Result<(), String> {
    for needed in ["asked", "spoken words", "read", "result text", "goes on"] {
        ensure(body.contains(needed), || format!("{needed:?} is not in {body}"))?;
    }
    ensure(!body.contains("secret pondering"), || format!("foreign thinking is sent: {body}"))?;
    ensure(!body.contains("No result provided"), || format!("the result lost its call: {body}"))
}

pub(super) fn hand_off_to(wire: &dyn Wire) -> Result<(), String> {
    for foreign in wire::builtin().iter().map(|format| format.api()).filter(|api| *api != wire.api()) {
        // Ids of the Responses family: the longest and oddest ones.
        let id = format!("call_{}|fc_{}", "x".repeat(24), "y".repeat(64));
        let answer = json!({"role": "assistant", "api": foreign, "provider": foreign, "model": "other", "timestamp": 2,
            "stopReason": "toolUse", "content": [
                {"type": "thinking", "thinking": "secret pondering", "thinkingSignature": "c2ln"},
                {"type": "text", "text": "spoken words", "textSignature": "c2ln"},
                {"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a"}, "thoughtSignature": "c2ln"}]});
        let answer = message(&answer)?;
        let answer = answer.as_assistant().ok_or("no answer")?;
        let body = body(wire, &json!({}), conversation(answer)?)?;
        check_handed(&body).map_err(|why| format!("from {foreign}: {why}"))?;
        ensure(!body.contains("c2ln"), || format!("a foreign signature is sent: {body}"))?;
    }
    Ok(())
}

pub(super) fn hand_off_from(wire: &dyn Wire) -> Result<(), String> {
    let answer = own_answer(wire)?;
    for format in wire::builtin().iter().filter(|format| format.api() != wire.api()) {
        let mut request = request(wire, &json!({}), conversation(&answer)?);
        let mut model = (*request.model).clone();
        (model.api, model.provider) = (format.api().into(), "other".into());
        request.model = Arc::new(model);
        request.auth = Auth::key(KEY_FOR_ALL);
        let told = encode_as(&**format, &request).and_then(|made| check_handed(&made.body.to_string()));
        told.map_err(|why| format!("to {}: {why}", format.api()))?;
    }
    Ok(())
}

pub(super) fn pairing(wire: &dyn Wire) -> Result<(), String> {
    let mut messages = call_and_result(&json!([{"type": "text", "text": " \n"}]))?;
    let with_blank = body(wire, &json!({}), messages.clone())?;
    ensure(with_blank.contains("read"), || format!("the call is missing in {with_blank}"))?;
    messages.pop();
    messages.push(Message::user("and?", 4));
    messages.push(message(&json!({"role": "user", "content": [{"type": "text", "text": "  "}], "timestamp": 5}))?);
    messages.push(message(&json!({"role": "toolResult", "toolCallId": "nobody", "toolName": "read",
        "content": [{"type": "text", "text": "stray result"}], "isError": false, "timestamp": 6}))?);
    let body = body(wire, &json!({}), messages)?;
    ensure(body.contains("No result provided"), || format!("a call without a result is sent: {body}"))?;
    ensure(!body.contains("stray result"), || format!("a result without a call is sent: {body}"))?;
    ensure(!body.contains("\"text\":\"  \""), || format!("a blank text is sent: {body}"))
}

/// Visits the members of a body, at any depth.
fn members<'b>(body: &'b Value, visit: &mut dyn FnMut(&'b str, &'b Value)) {
    match body {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            visit(name, value);
            members(value, visit);
        }),
        Value::Array(list) => list.iter().for_each(|value| members(value, visit)),
        _ => {}
    }
}

pub(super) fn blank_texts(wire: &dyn Wire) -> Result<(), String> {
    let blank = json!({"type": "text", "text": " \n"});
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a"}});
    let result = |id: &str, content: Value, failed: bool| {
        message(&json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": content,
            "isError": failed, "timestamp": 3}))
    };
    let messages = vec![
        message(&json!({"role": "user", "content": [blank, image(), blank], "timestamp": 1}))?,
        message(&json!({"role": "assistant", "api": wire.api(), "provider": wire.api(), "model": "m", "timestamp": 2,
            "stopReason": "toolUse", "content": [blank, call("call_1"), call("call_2"), call("call_3"), call("call_4")]}))?,
        result("call_1", json!([]), false)?,
        result("call_2", json!([blank]), true)?,
        result("call_3", json!([blank, image()]), false)?,
        result("call_4", json!([image(), blank]), true)?,
        Message::user("and?", 4),
        message(&json!({"role": "assistant", "api": wire.api(), "provider": wire.api(), "model": "m", "timestamp": 5,
            "stopReason": "stop", "content": [blank]}))?,
        Message::user("still there?", 6),
    ];
    let mut request = request(wire, &json!({}), messages);
    request.system = pinch_llm::request::SystemPrompt::text(" ");
    let body = encode(wire, &request)?.body;
    let mut blanks = Vec::new();
    members(&body, &mut |name, value| {
        let holds_text = ["text", "content", "output", "error", "input_text", "instructions"].contains(&name);
        if holds_text && value.as_str().is_some_and(|text| text.trim().is_empty()) {
            blanks.push(name);
        }
    });
    ensure(blanks.is_empty(), || format!("blank: {blanks:?} in {body}"))?;
    let text = body.to_string();
    let n_said = text.matches("(no tool output)").count();
    equal("outputs without words", n_said, 2)?;
    ensure(!text.contains("\"content\":[]") && !text.contains("\"parts\":[]"), || format!("an empty message in {text}"))
}

pub(super) fn long_ids(wire: &dyn Wire) -> Result<(), String> {
    let ids = ["a", "b", "."].map(|end| format!("{}{end}", "toolu.".repeat(20)));
    let call = |id: &String| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a"}});
    let mut messages = vec![
        Message::user("hi", 1),
        message(
            &json!({"role": "assistant", "content": ids.iter().map(call).collect::<Value>(), "api": "x", "provider": "x",
            "model": "x", "stopReason": "toolUse", "timestamp": 2}),
        )?,
    ];
    for id in &ids {
        messages.push(message(&json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": false,
            "content": [{"type": "text", "text": "seen"}], "timestamp": 3}))?);
    }
    // The third generation of Gemini requires call ids, and OpenAI short ones; for other formats this is irrelevant.
    let body = encode(wire, &request(wire, &json!({"id": "gemini-3-pro", "provider": "openai"}), messages))?.body;
    let (mut names, mut of_results) = (Vec::new(), Vec::new());
    members(&body, &mut |name, value| {
        let Some(text) = value.as_str() else { return };
        match name {
            "id" | "tool_call_id" | "tool_use_id" | "toolUseId" | "call_id" => names.push(text),
            "content" | "text" | "output" if text == "seen" => of_results.push(text),
            _ => {}
        }
    });
    equal("results", of_results.len(), ids.len())?;
    equal("names", names.len(), 2 * ids.len())?;
    let (mut of_calls, mut of_results) = (names[..ids.len()].to_vec(), names[ids.len()..].to_vec());
    equal("names of calls and of results", &of_calls, &of_results)?;
    of_calls.sort_unstable();
    of_calls.dedup();
    equal("different names", of_calls.len(), ids.len())?;
    of_results.retain(|name| name.len() > 64);
    ensure(of_results.is_empty(), || format!("too long: {of_results:?}"))
}

pub(super) fn headers(wire: &dyn Wire) -> Result<(), String> {
    let list = |pairs: &[(&str, Option<&str>)]| -> Vec<(String, Option<String>)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect()
    };
    let of_model = json!({"headers": {"x-one": "model", "X-Two": "model", "x-three": "model", "x-four": "model"}});
    let mut request = request(wire, &of_model, vec![Message::user("hi", 1)]);
    request.auth.headers = list(&[("x-two", Some("auth")), ("x-three", Some("auth"))]);
    request.options.headers = list(&[("X-Three", Some("call")), ("X-Four", None), ("accept", Some("call"))]);
    let made = encode(wire, &request)?;
    let told = |name: &str| made.headers.get(name).and_then(|value| value.to_str().ok());
    equal("x-one", told("x-one"), Some("model"))?;
    equal("x-two", told("x-two"), Some("auth"))?;
    equal("x-three", told("x-three"), Some("call"))?;
    equal("x-four", told("x-four"), None)?;
    equal("accept", told("accept"), Some("call"))
}

/// Returns the limit of the answer in a body.
fn limit_of(body: &Value) -> Option<u64> {
    const NAMES: [&str; 5] =
        ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens"];
    let mut limit = None;
    members(body, &mut |name, value| limit = limit.or(value.as_u64().filter(|_| NAMES.contains(&name))));
    limit
}

pub(super) fn output_limit(wire: &dyn Wire) -> Result<(), String> {
    let long = "x".repeat(35_000);
    for (window, most, expected) in
        [(200_000, 8_000, 3_000..=3_000), (30_000, 30_000, 10_000..=20_000), (1_000, 900, 1..=16)]
    {
        let more = json!({"contextWindow": window, "maxTokens": most});
        let mut request = request(wire, &more, vec![Message::user(long.as_str(), 1)]);
        request.options.max_tokens = (window == 200_000).then_some(3_000);
        let body = encode(wire, &request)?.body;
        let limit = limit_of(&body).ok_or("no limit is sent")?;
        ensure(expected.contains(&limit), || format!("limit {limit} in a window of {window}, expected {expected:?}"))?;
    }
    // A model without a known limit must not lead to a request for zero tokens.
    let unknown = request(wire, &json!({"maxTokens": 0}), vec![Message::user("hi", 1)]);
    let limit = limit_of(&encode(wire, &unknown)?.body);
    ensure(limit != Some(0), || "an answer of no tokens is asked for".into())
}

pub(super) fn temperature(wire: &dyn Wire) -> Result<(), String> {
    for takes in [true, false] {
        let mut request =
            request(wire, &json!({"compat": {"supportsTemperature": takes}}), vec![Message::user("hi", 1)]);
        request.options.temperature = Some(0.25);
        let body = encode(wire, &request)?.body;
        let mut told = false;
        members(&body, &mut |name, value| told |= name == "temperature" && *value == 0.25);
        ensure(told == takes, || format!("takes a temperature: {takes}, but the body is {body}"))?;
    }
    Ok(())
}

pub(super) fn schema_keywords(wire: &dyn Wire) -> Result<(), String> {
    let mut request = request(wire, &json!({"compat": {"toolSchemaKeywords": "xai"}}), vec![Message::user("hi", 1)]);
    let mut bounded = tool("read");
    let path = json!({"type": "string", "minLength": 7});
    bounded.parameters = json!({"anyOf": [{"type": "object", "properties": {"path": path}}]}).into();
    request.tools = Arc::new([bounded]);
    let body = encode(wire, &request)?.body.to_string();
    ensure(body.contains("\"path\":{\"type\":\"string\"}"), || format!("a refused keyword is sent: {body}"))?;
    ensure(!body.contains("anyOf"), || format!("the root of a schema is no object: {body}"))
}

pub(super) fn stable_bytes(wire: &dyn Wire) -> Result<(), String> {
    let whole = conversation(&own_answer(wire)?)?;
    let mut earlier: Option<Value> = None;
    for n in [1, 3, 4] {
        let mut request = request(wire, &json!({}), whole[..n].to_vec());
        request.options.cache_retention = Some(pinch_llm::request::CacheRetention::None);
        let made = encode(wire, &request)?;
        equal("the same request", made.body.to_string(), encode(wire, &request)?.body.to_string())?;
        // Some formats have an envelope.
        let places = [Some(&made.body), made.body.get("request")];
        let member = |name: &str| places.iter().flatten().find_map(|body| body.get(name));
        let messages = ["messages", "input", "contents"].iter().find_map(|name| member(name)).cloned();
        let messages = messages.ok_or_else(|| format!("no messages in {}", made.body))?;
        if let Some(before) = &earlier {
            let (before, now) = (before.to_string(), messages.to_string());
            // The following text may belong to the last message, if roles must alternate.
            let prefix = before.trim_end_matches([']', '}']);
            ensure(now.starts_with(prefix), || format!("a later turn begins otherwise:\n{before}\n{now}"))?;
        }
        earlier = Some(messages);
    }
    Ok(())
}

pub(super) fn secrets(wire: &dyn Wire) -> Result<(), String> {
    let request = request(wire, &json!({}), vec![Message::user("hi", 1)]);
    let made = encode(wire, &request)?;
    let key = wire.key();
    let sent = made.headers.iter().any(|(_, value)| String::from_utf8_lossy(value.as_bytes()).contains(&key));
    ensure(sent, || "no header holds the key".into())?;
    for shown in [format!("{made:?}"), format!("{request:?}"), made.url.clone(), made.body.to_string()] {
        ensure(!shown.contains(&key), || format!("the key can be read in {shown}"))?;
    }
    let answer = own_answer(wire)?;
    equal("stop reason", answer.stop_reason, StopReason::ToolUse)
}
