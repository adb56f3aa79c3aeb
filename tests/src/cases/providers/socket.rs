//! Cases of ChatGPT subscriptions over WebSockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pinch_llm::http::HttpClient;
use pinch_llm::message::Message;
use pinch_llm::provider::Provider;
use pinch_llm::provider::socket::{SocketProvider, SocketStats};
use pinch_llm::request::{Request, SystemPrompt};
use pinch_llm::stdx::cancel::Cancel;
use pinch_testing::cases::compare::same;
use pinch_testing::server::socket::{SocketLog, SocketScript};
use pinch_testing::server::{Recorded, Server, ServerReply};
use pinch_testing::wires::responses::ResponsesResponse;
use serde_json::{Value, json};

use super::wire::{ProviderOutput, check_events, check_headers, events_of};
use super::{named_members, setup, wanted};
use crate::cases::{Case, CaseOutcome};

/// Upper limit for any case.
const MAX_TIME: Duration = Duration::from_secs(20);
/// The default conversation of a case.
const SESSION: &str = "session";

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return CaseOutcome::Failed(why.to_string()),
    };
    let played = runtime.block_on(async { tokio::time::timeout(MAX_TIME, play(case)).await });
    let expect = wanted(&case.case["expect"]);
    match played {
        Ok(Ok(played)) => match check(&case.case["given"], expect, &played) {
            Ok(result) => result.into(),
            Err(_unknown_member) => CaseOutcome::NotImplemented,
        },
        Ok(Err(why)) => CaseOutcome::Failed(why),
        Err(_) => CaseOutcome::Failed(format!("not over after {MAX_TIME:?}")),
    }
}

/// The result of a case.
struct SocketOutcome {
    /// The server's host and port.
    host: String,
    requests: Vec<Recorded>,
    log: SocketLog,
    stats: Value,
    /// The last call.
    last: ProviderOutput,
}

impl SocketOutcome {
    fn n_posts(&self) -> usize {
        self.requests.iter().filter(|request| request.method == "POST").count()
    }
}

/// One call of a conversation.
struct SocketCall {
    user: String,
    /// Results of the calls in the previous answer, instead of a user message.
    tool_results: Vec<Value>,
    system: String,
    answer: String,
    response_id: String,
}

fn turns(given: &Value) -> Vec<SocketCall> {
    let text = |turn: &Value, member: &str, default: &str| turn[member].as_str().unwrap_or(default).to_owned();
    let turn = |turn: &Value| SocketCall {
        user: text(turn, "user", "q1"),
        tool_results: turn["toolResults"].as_array().cloned().unwrap_or_default(),
        system: text(turn, "systemPrompt", "S"),
        answer: text(turn, "answer", "A"),
        response_id: text(turn, "responseId", "r"),
    };
    match given["turns"].as_array() {
        Some(list) => list.iter().map(turn).collect(),
        None if given["requestWasDelta"] == true => {
            vec![turn(&json!({"responseId": "ra"})), turn(&json!({"user": "q2", "responseId": "rb"}))]
        }
        None => vec![turn(&Value::Null)],
    }
}

fn answer(turn: &SocketCall) -> ResponsesResponse {
    let message = |content: Value| json!({"type": "message", "id": format!("msg_{}", turn.response_id), "role": "assistant", "status": "completed", "content": content});
    let whole = message(json!([{"type": "output_text", "text": turn.answer, "annotations": []}]));
    let delta = json!({"type": "response.output_text.delta", "delta": turn.answer});
    ResponsesResponse::new(&turn.response_id, "")
        .item(&message(json!([])), vec![delta], &whole)
        .end("completed", &Value::Null)
}

/// The scripts of a case's sockets, in order.
fn sockets(given: &Value, turns: &[SocketCall], log: &SocketLog) -> Vec<SocketScript> {
    let normal = |turns: &[SocketCall]| {
        turns.iter().fold(SocketScript::new(log), |script, turn| script.hear().send(&answer(turn).events()))
    };
    if let Some(reply) = given.get("websocketReply") {
        let (last, before) = turns.split_last().map_or((None, turns), |(last, before)| (Some(last), before));
        let first = normal(before).hear().send([reply]);
        return vec![first, normal(last.map_or(&[], std::slice::from_ref))];
    }
    if given.get("close").is_some() || given.get("messages").is_some() {
        let messages = given["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let script = SocketScript::new(log).hear().send(messages);
        let code = given["close"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let reason = given["close"]["reason"].as_str().unwrap_or("");
        return vec![code.map_or(script.clone(), |code| script.close(code, reason))];
    }
    vec![normal(turns)]
}

async fn play(case: &Case<'_>) -> Result<SocketOutcome, String> {
    let given = &case.case["given"];
    let server = Server::start().await.map_err(|why| why.to_string())?;
    let log = SocketLog::default();
    let turns = turns(given);
    let scripts = sockets(given, &turns, &log);
    let n_asked = AtomicUsize::new(0);
    let refuses = given["websocket"] == "cannot connect";
    let last = turns.last().ok_or("the case has no turn")?;
    let by_sse: String = answer(last).frames().concat();
    server.answer_with(move |request| {
        if request.method == "POST" {
            return Some(ServerReply::sse(by_sse.clone()));
        }
        let nth = n_asked.fetch_add(1, Ordering::Relaxed);
        scripts.get(nth).filter(|_| !refuses).map(|script| ServerReply::socket(script.clone())).or_else(|| {
            // Sockets beyond the expected ones are refused and counted.
            Some(ServerReply::status(503))
        })
    });

    let provider = SocketProvider::new(Arc::new(HttpClient::new()));
    let model = setup::model(case, given, Some(&server.url()))?;
    let mut request = setup::request(case, given, model)?;
    let session = given["sessionId"].as_str().unwrap_or(SESSION).to_owned();
    request.options.session_id = Some(session.clone().into());
    if let Some(transport) = given.get("transport") {
        request.options.native.insert("transport".into(), transport.clone());
    }
    let mut seen = ProviderOutput::default();
    let mut messages = Vec::new();
    for turn in &turns {
        if given.get("turns").is_some() || turns.len() > 1 {
            for result in &turn.tool_results {
                messages.push(tool_result(result)?);
            }
            if turn.tool_results.is_empty() {
                messages.push(Arc::new(Message::user(turn.user.as_str(), 1)));
            }
            request.messages.clone_from(&messages);
            request.system = SystemPrompt::text(turn.system.as_str());
        }
        seen = call(&provider, &request).await?;
        let answered = Message::from_value(&timed(&seen.message)).map_err(|why| why.to_string())?;
        messages.push(Arc::new(answered));
    }
    let stats = provider.stats(&session).map_or(Value::Null, |stats| in_json(&stats));
    let host = server.url().trim_start_matches("http://").to_owned();
    Ok(SocketOutcome { host, requests: server.requests(), log, stats, last: seen })
}

/// A tool result: a whole message, or a text with or without the ID of its call.
fn tool_result(given: &Value) -> Result<Arc<Message>, String> {
    let mut whole = json!({"role": "toolResult", "toolCallId": "call_1", "toolName": "tool", "isError": false});
    match given {
        Value::String(text) => whole["content"] = json!([{"type": "text", "text": text}]),
        other => {
            for (name, value) in other.as_object().into_iter().flatten() {
                whole[name.as_str()] = value.clone();
            }
            if let Some(text) = whole["content"].as_str().or_else(|| whole["text"].as_str()) {
                whole["content"] = json!([{"type": "text", "text": text}]);
            }
        }
    }
    setup::message(&whole)
}

async fn call(provider: &SocketProvider, request: &Request) -> Result<ProviderOutput, String> {
    events_of(provider.stream(request.clone(), Cancel::new())).await
}

/// The message with the timestamp that was removed for the comparison.
fn timed(message: &Value) -> Value {
    let mut message = message.clone();
    message["timestamp"] = 1.into();
    message
}

fn in_json(stats: &SocketStats) -> Value {
    let mut told = json!({
        "requests": stats.requests,
        "connectionsCreated": stats.connections_created,
        "connectionsReused": stats.connections_reused,
        "cachedContextRequests": stats.cached_context_requests,
        "storeTrueRequests": stats.store_true_requests,
        "fullContextRequests": stats.full_context_requests,
        "deltaRequests": stats.delta_requests,
        "lastInputItems": stats.last_input_items,
        "websocketFailures": stats.websocket_failures,
        "sseFallbacks": stats.sse_fallbacks,
        "websocketFallbackActive": stats.websocket_fallback_active,
    });
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            told[name] = value;
        }
    };
    put("lastDeltaInputItems", stats.last_delta_input_items.map(Value::from));
    put("lastPreviousResponseId", stats.last_previous_response_id.clone().map(Value::from));
    put("lastWebSocketError", stats.last_web_socket_error.clone().map(Value::from));
    told
}

/// Whether a case passes; the outer error is the name of a field that is not compared here.
fn check(given: &Value, expect: &Value, played: &SocketOutcome) -> Result<Result<(), String>, String> {
    let handshake = played.requests.first();
    let texts = played.log.texts();
    let closes = given.get("close").is_some();
    for (name, expected) in expect.as_object().into_iter().flatten() {
        let of_handshake = || handshake.ok_or_else(|| format!("no request left, but {name} is expected"));
        let result = match name.as_str() {
            "url" => of_handshake().and_then(|request| {
                let actual = format!("ws://HOST{}", request.path);
                same(&expected.as_str().unwrap_or("").replace(&played.host, "HOST").into(), &actual.into())
            }),
            "headers" => of_handshake().and_then(|request| check_headers(expected, request)),
            "firstFrame" => same(expected, texts.first().unwrap_or(&Value::Null)),
            "connections" => same(expected, &played.log.n_opened().into()),
            "sent" => check_sent(expected, &texts),
            "stats" => named_members(expected, &played.stats),
            "fallback" | "thenTransport" => {
                same(expected, &if played.n_posts() == 1 { "sse" } else { "websocket" }.into())
            }
            "diagnostics" => check_notes(expected, &played.last.message["diagnostics"], closes),
            "diagnosticError" => same(expected, &played.last.message["diagnostics"][0]["error"]["message"]),
            "events" => check_whole_events(expected, &played.last.events),
            "errorMessage" => same(expected, &played.last.message["errorMessage"]),
            "newConnection" => same(expected, &(played.log.n_opened() > 1).into()),
            "resent" => check_resent(&texts, given),
            "fallbackListed" => same(expected, &played.stats["websocketFallbackActive"]),
            other => return Err(other.to_owned()),
        };
        if let Err(why) = result {
            return Ok(Err(format!("{name}{why}")));
        }
    }
    Ok(Ok(()))
}

fn check_sent(expected: &Value, texts: &[Value]) -> Result<(), String> {
    let turns = expected.as_array().map_or(&[][..], Vec::as_slice);
    same(&turns.len().into(), &texts.len().into())?;
    turns
        .iter()
        .zip(texts)
        .enumerate()
        .try_for_each(|(at, (expected, text))| named_members(expected, text).map_err(|why| format!("/{at}{why}")))
}

/// The last request is complete, and the previous one contained what the case says.
fn check_resent(texts: &[Value], given: &Value) -> Result<(), String> {
    let [.., lost, last] = texts else { return Err(format!("{} requests were sent", texts.len())) };
    let was_delta = lost.get("previous_response_id").is_some();
    same(&(given["requestWasDelta"] == true).into(), &was_delta.into())?;
    same(&Value::Null, last.get("previous_response_id").unwrap_or(&Value::Null))?;
    let n_items = |text: &Value| text["input"].as_array().map_or(0, Vec::len);
    let is_whole = if was_delta { n_items(last) > n_items(lost) } else { n_items(last) == n_items(lost) };
    is_whole.then_some(()).ok_or_else(|| format!("the request that was sent again is not whole: {last}"))
}

/// Compares notes about failures, ignoring what differs between runs.
fn check_notes(expected: &Value, actual: &Value, closes: bool) -> Result<(), String> {
    same(&plain_notes(expected, closes), &plain_notes(actual, closes))
}

fn plain_notes(notes: &Value, closes: bool) -> Value {
    let mut notes = notes.clone();
    for note in notes.as_array_mut().into_iter().flatten() {
        remove(note, "timestamp");
        remove(&mut note["details"], "requestBytes");
        remove(&mut note["error"], "stack");
        if !closes {
            remove(&mut note["error"], "message");
        }
    }
    notes
}

fn check_whole_events(expected: &Value, actual: &[Value]) -> Result<(), String> {
    let plain = |event: &Value| {
        let mut event = event.clone();
        for member in ["message", "error"] {
            if let Some(notes) = event.pointer_mut(&format!("/{member}/diagnostics")) {
                *notes = plain_notes(notes, true);
            }
        }
        event
    };
    let expected: Value = expected.as_array().into_iter().flatten().map(plain).collect();
    let mut actual: Vec<Value> = actual.iter().map(plain).collect();
    check_events(&expected, &mut actual)
}

fn remove(value: &mut Value, member: &str) {
    if let Some(map) = value.as_object_mut() {
        map.remove(member);
    }
}
