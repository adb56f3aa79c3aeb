//! Cases of kind `stream`: a call against a scripted server.

use std::time::Duration;

use futures::StreamExt;
use pinch_llm::error::retry;
use pinch_llm::event::{BlockKind, Finished, Fold, StreamEvent};
use pinch_llm::message::{Block, Message};
use pinch_llm::model::Model;
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::request::Request;
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_testing::cases::compare::{contains, same};
use pinch_testing::server::{Fault, Server, ServerReply};
use serde_json::{Value, json};

use super::setup;
use crate::cases::{Case, CaseOutcome};

/// Time between two chunks.
const CHUNK_GAP: Duration = Duration::from_millis(12);
/// Upper limit for any case.
const MAX_TIME: Duration = Duration::from_secs(20);

/// The result of a call.
#[derive(Default)]
struct StreamOutput {
    events: Vec<Value>,
    /// The parsed arguments of calls after each delta.
    partial_arguments: Vec<Value>,
    message: Value,
    n_requests: usize,
}

pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let model = match setup::model(case) {
        Ok(model) => model,
        Err(why) => return CaseOutcome::Failed(why),
    };
    let registry = ProviderRegistry::builtin();
    let expect = &case.case["expect"];
    if let Err(unknown) = registry.get(&model.api) {
        return match expect["threw"].as_str() {
            Some(text) => same(&text.into(), &unknown.to_string().into()).into(),
            None => CaseOutcome::NotImplemented,
        };
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return CaseOutcome::Failed(why.to_string()),
    };
    let called = runtime.block_on(async { tokio::time::timeout(MAX_TIME, call(case, &registry, model)).await });
    match called {
        Ok(Ok(seen)) => check(case.case, seen).into(),
        Ok(Err(why)) => CaseOutcome::Failed(why),
        Err(_) => CaseOutcome::Failed(format!("not over after {MAX_TIME:?}")),
    }
}

/// Makes the call, with retries as a caller that sets `maxRetries` would.
async fn call(case: &Case<'_>, registry: &ProviderRegistry, mut model: Model) -> Result<StreamOutput, String> {
    let server = Server::start().await.map_err(|why| why.to_string())?;
    for reply in replies(&case.case["response"])? {
        server.reply(reply);
    }
    server.repeat_last();
    model.base_url = at_server(&model.base_url, &server.url());
    let mut request = setup::request(case, model)?;
    if request.model.api == *"azure-openai-responses" {
        // Its URL comes from the environment; the call's own setting takes precedence.
        let base = format!("{}/openai/v1", server.url());
        request.options.native.insert("azureBaseUrl".into(), base.into());
    }
    let limits = retry::RetryLimits {
        max_retries: u32::try_from(case.case["options"]["maxRetries"].as_u64().unwrap_or(0)).unwrap_or(u32::MAX),
        ..retry::RetryLimits::default()
    };
    let mut n_done = 0;
    loop {
        let (mut seen, finished) = call_once(case.case, registry, &request).await?;
        let started = seen.events.iter().any(|event| event["type"] == "start");
        let delay = finished.error.filter(|_| !started).and_then(|e| retry::retry_delay(&e, n_done, &limits, 0.0));
        match delay {
            Some(delay) => tokio::time::sleep(delay).await,
            None => {
                seen.n_requests = server.requests().len();
                return Ok(seen);
            }
        }
        n_done += 1;
    }
}

async fn call_once(
    case: &Value,
    registry: &ProviderRegistry,
    request: &Request,
) -> Result<(StreamOutput, Finished), String> {
    let provider = registry.get(&request.model.api).map_err(|why| why.to_string())?;
    let cancel = Cancel::new();
    if case["abort"]["before"] == true {
        cancel.cancel(CancelReason::User);
    }
    let abort_after = case["abort"]["afterEvent"].as_u64().and_then(|n| usize::try_from(n).ok());
    let mut stream = provider.stream(request.clone(), cancel.clone());
    let mut seen = StreamOutput::default();
    let mut fold = Fold::new();
    let mut kinds = Vec::new();
    while let Some(event) = stream.next().await {
        fold.push(&event);
        if let StreamEvent::BlockStart { kind, .. } = &event {
            kinds.push(kind.clone());
        }
        if let StreamEvent::Delta { index, .. } = &event
            && matches!(kinds.get(*index), Some(BlockKind::ToolCall { .. }))
        {
            let arguments = fold.block(*index).and_then(|block| Some(block.as_tool_call()?.arguments.clone()));
            seen.partial_arguments.push(json!([index, arguments]));
        }
        seen.events.extend(event_json(&event, &kinds));
        if abort_after == Some(seen.events.len()) {
            cancel.cancel(CancelReason::User);
        }
        if let StreamEvent::End(finished) = event {
            seen.message = Message::Assistant(finished.message.clone()).to_value();
            return Ok((seen, finished));
        }
    }
    Err("the stream has no end".into())
}

/// The model's URL with the server's origin.
pub(in crate::cases) fn at_server(base_url: &str, server: &str) -> String {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    format!("{server}{path}")
}

fn replies(given: &Value) -> Result<Vec<ServerReply>, String> {
    match given {
        Value::Array(list) => list.iter().map(reply).collect(),
        one => Ok(vec![reply(one)?]),
    }
}

fn reply(given: &Value) -> Result<ServerReply, String> {
    if given["destroy"] == true {
        return Ok(ServerReply::fault(Fault::Close));
    }
    let body = given["body"].as_str().unwrap_or("");
    let chunks = given["chunksHex"].as_array();
    let hangs = given["hang"] == true;
    let names_head = given.get("status").is_some() && given.get("headers").is_some();
    if hangs && names_head && body.is_empty() && chunks.is_none() {
        return Ok(ServerReply::fault(Fault::Hang));
    }
    let status = given["status"].as_u64().and_then(|n| u16::try_from(n).ok()).unwrap_or(200);
    let mut reply = ServerReply::status(status);
    match given["headers"].as_object() {
        None => reply = reply.header("content-type", "text/event-stream"),
        Some(headers) => {
            for (name, value) in headers {
                reply = reply.header(name.as_str(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
    }
    reply = reply.send(body.to_owned());
    for chunk in chunks.into_iter().flatten() {
        let hex = chunk.as_str().ok_or("a chunk is no text")?;
        reply = reply.send(from_hex(hex)?).pause(CHUNK_GAP);
    }
    Ok(if hangs { reply.then(Fault::Hang) } else { reply })
}

fn from_hex(hex: &str) -> Result<Vec<u8>, String> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| {
            let pair = std::str::from_utf8(pair).map_err(|why| why.to_string())?;
            u8::from_str_radix(pair, 16).map_err(|why| why.to_string())
        })
        .collect()
}

/// An event in the form that cases use; cases do not have usage events.
pub(in crate::cases) fn event_json(event: &StreamEvent, kinds: &[BlockKind]) -> Option<Value> {
    let name = |index: usize| match kinds.get(index) {
        Some(BlockKind::Thinking { .. }) => "thinking",
        Some(BlockKind::ToolCall { .. }) => "toolcall",
        Some(BlockKind::Text | BlockKind::Commentary) | None => "text",
    };
    Some(match event {
        StreamEvent::Start(_) => json!({"type": "start"}),
        StreamEvent::BlockStart { index, .. } => {
            json!({"type": format!("{}_start", name(*index)), "contentIndex": index})
        }
        StreamEvent::Delta { index, text } => {
            json!({"type": format!("{}_delta", name(*index)), "contentIndex": index, "delta": text})
        }
        StreamEvent::BlockEnd { index, block } => {
            let mut end = json!({"type": format!("{}_end", name(*index)), "contentIndex": index});
            match &**block {
                Block::Text(text) => end["content"] = text.text.as_str().into(),
                Block::Thinking(thinking) => end["content"] = thinking.thinking.as_str().into(),
                Block::ToolCall(call) => end["toolCall"] = serde_json::to_value(call).unwrap_or(Value::Null),
                Block::Image(_) | Block::Other(_) => {}
            }
            end
        }
        StreamEvent::Usage(_) => return None,
        StreamEvent::End(finished) => {
            let kind = if finished.is_ok() { "done" } else { "error" };
            json!({"type": kind, "reason": finished.message.stop_reason.as_str()})
        }
    })
}

fn check(case: &Value, mut seen: StreamOutput) -> Result<(), String> {
    let (expect, prefer) = (&case["expect"], &case["prefer"]);
    let mut expected = expect["message"].clone();
    strip_nulls(&mut expected);
    // A field that the preference names is compared too.
    forget_new_members(&merged(&expected, &prefer["message"]), &mut seen.message);
    let last = seen.events.last().map(|event| event["type"].clone());
    let failed = matches!(seen.message["stopReason"].as_str(), Some("error" | "aborted"));
    same(&json!(if failed { "error" } else { "done" }), &last.unwrap_or(Value::Null))
        .map_err(|why| format!("last event{why}"))?;

    if let Some(prefix) = case["errorPrefix"].as_str() {
        let actual = seen.message["errorMessage"].as_str().ok_or("an errorMessage is missing")?;
        if !actual.starts_with(prefix) {
            return Err(format!("errorMessage must begin with {prefix:?}, is {actual:?}"));
        }
        expected["errorMessage"] = "$any".into();
    }
    if let Some(preferred) = prefer["message"].as_object() {
        contains(&prefer["message"], &seen.message).map_err(|why| format!("message{why}"))?;
        // Fields that the preference does not mention are still compared.
        for key in preferred.keys() {
            for message in [&mut expected, &mut seen.message] {
                if let Some(map) = message.as_object_mut() {
                    map.remove(key);
                }
            }
        }
        if preferred.contains_key("stopReason") && !failed {
            remove(&mut expected, "errorMessage");
        }
    } else if case["compareOnly"].as_array().is_none_or(|only| only.iter().any(|what| what == "events")) {
        check_events(case, &expect["events"], seen.events)?;
    }
    if !expected.is_null() {
        same(&expected, &seen.message).map_err(|why| format!("message{why}"))?;
    }
    if let Some(arguments) = expect.get("partialArguments").filter(|_| prefer["message"].is_null()) {
        same(arguments, &seen.partial_arguments.into()).map_err(|why| format!("partialArguments{why}"))?;
    }
    match prefer.get("requestCount").or_else(|| expect.get("requestCount")) {
        Some(count) => same(count, &seen.n_requests.into()).map_err(|why| format!("requestCount{why}")),
        None => Ok(()),
    }
}

fn check_events(case: &Value, expected: &Value, mut actual: Vec<Value>) -> Result<(), String> {
    let mut expected = expected.as_array().cloned().unwrap_or_default();
    if case["abort"].is_object() {
        // Whether blocks are ended before the end may differ.
        drop_ends_before_last(&mut expected);
        drop_ends_before_last(&mut actual);
    }
    for (at, event) in actual.iter_mut().enumerate() {
        let lacks = expected.get(at).is_some_and(|e| e["toolCall"].get("argumentsError").is_none());
        if lacks && let Some(call) = event.get_mut("toolCall") {
            remove(call, "argumentsError");
        }
    }
    same(&expected.into(), &actual.into()).map_err(|why| format!("events{why}"))
}

fn drop_ends_before_last(events: &mut Vec<Value>) {
    let is_end = |event: &Value| event["type"].as_str().is_some_and(|kind| kind.ends_with("_end"));
    while events.len() >= 2 && is_end(&events[events.len() - 2]) {
        events.remove(events.len() - 2);
    }
}

/// A value overlaid with the fields of another one, at every depth.
fn merged(value: &Value, over: &Value) -> Value {
    match (value, over) {
        (_, Value::Null) => value.clone(),
        (Value::Object(members), Value::Object(others)) => {
            let mut all = members.clone();
            for (name, other) in others {
                let one = merged(all.get(name).unwrap_or(&Value::Null), other);
                all.insert(name.clone(), one);
            }
            all.into()
        }
        (Value::Array(items), Value::Array(others)) => {
            let n = items.len().max(others.len());
            let at = |list: &[Value], i: usize| list.get(i).cloned().unwrap_or_default();
            (0..n).map(|i| merged(&at(items, i), &at(others, i))).collect()
        }
        (_, other) => other.clone(),
    }
}

fn remove(value: &mut Value, key: &str) {
    if let Some(map) = value.as_object_mut() {
        map.remove(key);
    }
}

/// Removes fields that are null in the file; pinch omits them.
fn strip_nulls(message: &mut Value) {
    if let Some(map) = message.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
}

/// Fields added in later versions are compared only where the case has them.
pub(in crate::cases) fn forget_new_members(expected: &Value, actual: &mut Value) {
    for member in ["durationMs", "thinkingLevel", "responseModel"] {
        if expected.get(member).is_none() {
            remove(actual, member);
        }
    }
    if expected["usage"]["cost"].get("totalFromProvider").is_none()
        && let Some(cost) = actual.pointer_mut("/usage/cost")
    {
        remove(cost, "totalFromProvider");
    }
    for (at, block) in actual["content"].as_array_mut().into_iter().flatten().enumerate() {
        if expected["content"][at].get("argumentsError").is_none() {
            remove(block, "argumentsError");
        }
    }
}
