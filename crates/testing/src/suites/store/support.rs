//! Headers, lines, logs and comparisons shared by the scenarios.

use std::fmt::{Debug, Display};
use std::sync::{Arc, Barrier};

use bytes::Bytes;
use pinch_session::entry::{EntryBody, EntryId, Header};
use pinch_session::llm::message::Message;
use pinch_session::llm::stdx::host::Host;
use pinch_session::session_log::{NewSession, SessionLog};
use pinch_session::store::{Appended, Journal, SessionRef, SessionStore};
use serde_json::{Value, json};

use super::StorePlace;

/// The working directory of sessions, unless a scenario names another.
pub(super) const CWD: &str = "/work/here";

/// Runs a scenario to its end.
pub(super) fn run<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(text)?;
    runtime.block_on(work)
}

/// Waits for the others when dropped, whatever happened before, so that they never wait for one that failed.
pub(super) struct StartTogether<'a>(pub(super) &'a Barrier);

impl Drop for StartTogether<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// Formats an error.
pub(super) fn text(error: impl Display) -> String {
    error.to_string()
}

/// Returns an error if the condition does not hold.
pub(super) fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

pub(super) fn equal<T: PartialEq + Debug>(what: &str, actual: T, expected: T) -> Result<(), String> {
    ensure(actual == expected, || format!("{what}: expected {expected:?}, got {actual:?}"))
}

/// Compares bytes and shows only the first difference, because sessions are long.
pub(super) fn equal_bytes(what: &str, actual: &[u8], expected: &[u8]) -> Result<(), String> {
    let at = actual.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 80)]).into_owned();
    ensure(actual == expected, || {
        format!(
            "{what}: {} bytes instead of {}; from {at}: {:?} instead of {:?}",
            actual.len(),
            expected.len(),
            shown(actual),
            shown(expected)
        )
    })
}

pub(super) fn header(id: &str) -> Header {
    Header {
        version: 3,
        id: id.into(),
        timestamp: "2025-06-01T10:00:00.000Z".to_owned(),
        cwd: Some(CWD.to_owned()),
        parent_session: None,
    }
}

/// Returns a header line with its terminator.
pub(super) fn header_line(id: &str) -> String {
    header(id).to_line() + "\n"
}

/// Returns the line of a user message with its terminator.
pub(super) fn line(id: &str, parent: Option<&str>, text: &str, time: i64) -> String {
    let entry = json!({
        "type": "message", "id": id, "parentId": parent, "timestamp": "2025-06-01T10:00:00.000Z",
        "message": { "role": "user", "content": text, "timestamp": time },
    });
    format!("{entry}\n")
}

/// Returns a journal with a written header, and its end.
pub(super) async fn begun(place: &dyn StorePlace, id: &str) -> Result<(Box<dyn Journal>, u64), String> {
    let mut journal = place.store().create(&header(id)).await.map_err(text)?;
    let end = add(&mut *journal, &header_line(id), 0).await?;
    Ok((journal, end))
}

/// Appends without concurrent writers; returns the new end.
pub(super) async fn add(journal: &mut dyn Journal, lines: &str, end: u64) -> Result<u64, String> {
    match journal.append(Bytes::copy_from_slice(lines.as_bytes()), end).await.map_err(text)? {
        Appended::At(end) => Ok(end),
        Appended::Moved { tail } => Err(format!("nobody else wrote, but: {:?}", String::from_utf8_lossy(&tail))),
    }
}

/// Returns a session's text as another program sees it.
pub(super) async fn stored(place: &dyn StorePlace, at: &SessionRef) -> Result<Bytes, String> {
    let mut journal = place.store().open(at).await.map_err(text)?;
    journal.load().await.map_err(text)
}

/// Returns whether a session exists for another program.
pub(super) async fn is_there(place: &dyn StorePlace, at: &SessionRef) -> Result<bool, String> {
    let loaded = match place.store().open(at).await {
        Ok(mut journal) => journal.load().await.map(drop),
        Err(error) => Err(error),
    };
    match loaded {
        Ok(()) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(format!("a missing session is reported as {error:?}")),
    }
}

pub(super) fn id(id: &str) -> SessionRef {
    SessionRef::Id(id.into())
}

/// Creates a host whose ids differ from those of other seeds, as for separate programs.
pub(super) fn host(seed: u64) -> Host {
    Host::builder().clock(1_750_000_000_000, 1000).seed(seed).build()
}

pub(super) async fn create(store: Arc<dyn SessionStore>, seed: u64) -> Result<SessionLog, String> {
    SessionLog::create(&host(seed), store, NewSession::in_directory(CWD)).await.map_err(text)
}

pub(super) async fn open(place: &dyn StorePlace, at: &SessionRef, seed: u64) -> Result<SessionLog, String> {
    SessionLog::open(&host(seed), place.store(), at, CWD).await.map_err(text)
}

/// Returns the name of a log's session for others.
pub(super) fn name(log: &SessionLog) -> SessionRef {
    id(log.id())
}

pub(super) async fn append(log: &mut SessionLog, bodies: Vec<EntryBody>) -> Result<Vec<EntryId>, String> {
    let mut ids = Vec::new();
    for body in bodies {
        ids.push(log.append(body).await.map_err(text)?);
    }
    Ok(ids)
}

fn message(value: &Value) -> EntryBody {
    match Message::from_value(value) {
        Ok(message) => EntryBody::Message(Arc::new(message)),
        Err(_) => EntryBody::Other(serde_json::Map::new()),
    }
}

pub(super) fn user(text: &str) -> EntryBody {
    message(&json!({ "role": "user", "content": text, "timestamp": 1 }))
}

/// Creates an answer that makes these calls.
pub(super) fn answer(calls: &[&str]) -> EntryBody {
    let calls = calls.iter().map(|id| json!({ "type": "toolCall", "id": id, "name": "read", "arguments": {} }));
    let content: Vec<Value> = [json!({ "type": "text", "text": "answer" })].into_iter().chain(calls).collect();
    let stop = if content.len() > 1 { "toolUse" } else { "stop" };
    message(&json!({
        "role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m", "stopReason": stop, "timestamp": 2,
        "usage": { "input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": {} },
    }))
}

pub(super) fn result(id: &str) -> EntryBody {
    let content = json!([{ "type": "text", "text": "ok" }]);
    message(
        &json!({ "role": "toolResult", "toolCallId": id, "toolName": "read", "content": content, "isError": false, "timestamp": 3 }),
    )
}

/// Summarizes what a model receives, in a word or two per message.
pub(super) fn shown(log: &SessionLog) -> Vec<String> {
    let in_words = |message: &Message| match message {
        Message::User(user) => user.content.text(""),
        Message::ToolResult(result) if result.is_error => format!("missing {}", result.tool_call_id),
        Message::ToolResult(result) => format!("result {}", result.tool_call_id),
        other => other.role().to_owned(),
    };
    log.context().messages.iter().map(|message| in_words(message)).collect()
}

/// Returns everything in a log that a second program must see alike, except the leaf, which is not stored.
pub(super) fn facts(log: &SessionLog) -> Value {
    let entries: Vec<Value> = log.entries().map(|entry| entry.to_value()).collect();
    let lines: Vec<_> =
        log.entry_ids().map(|id| log.line(id).map(|line| String::from_utf8_lossy(&line).into_owned())).collect();
    let mut labels: Vec<_> = log.labels().map(|(id, label)| (id.to_string(), label.text.clone())).collect();
    labels.sort();
    json!({ "header": log.header().to_line(), "entries": entries, "lines": lines, "labels": labels, "name": log.name() })
}
