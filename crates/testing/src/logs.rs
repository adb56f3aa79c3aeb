//! Hosts, entries and session logs for tests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_session::entry::{EntryBody, EntryId};
use pinch_session::llm::message::Message;
use pinch_session::llm::stdx::host::Host;
use pinch_session::session_log::{NewSession, SessionLog};
use pinch_session::store::{JsonlStore, SessionRef, SessionStore, StoreError};
use serde_json::{Value, json};

/// Creates a host whose clock starts in June 2025 and advances by a second per reading.
pub fn host() -> Host {
    Host::builder().clock(1_750_000_000_000, 1000).seed(7).build()
}

/// Creates a store with files in one flat directory.
pub fn store(dir: &Path) -> Arc<dyn SessionStore> {
    Arc::new(JsonlStore::flat(dir))
}

/// Creates a session in a directory.
pub async fn create(dir: &Path) -> SessionLog {
    SessionLog::create(&host(), store(dir), NewSession::in_directory("/w")).await.unwrap()
}

/// Opens a session file, as a host with other ids than [`host`].
pub async fn open(path: &Path) -> Result<SessionLog, StoreError> {
    let dir = path.parent().unwrap();
    // Another seed: two writers with the same ids would be a separate test.
    let host = Host::builder().clock(1_760_000_000_000, 1000).seed(99).build();
    SessionLog::open(&host, store(dir), &SessionRef::Path(path.to_owned()), "/w").await
}

/// Returns the file of a log.
pub fn file(log: &SessionLog) -> PathBuf {
    log.path().unwrap().to_owned()
}

/// Replaces a word in a file by one of the same length, keeping the file's modification time and identity: a change that only reading the
/// file reveals.
pub fn change_unseen(path: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let modified = std::fs::metadata(path).unwrap().modified().unwrap();
    let text = std::fs::read_to_string(path).unwrap().replace(from, to);
    std::fs::write(path, text).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

/// Creates a message entry from its JSON.
pub fn message(value: Value) -> EntryBody {
    EntryBody::Message(Arc::new(Message::from_value(&value).unwrap()))
}

/// Creates a user message.
pub fn user(text: &str) -> EntryBody {
    message(json!({ "role": "user", "content": text, "timestamp": 1 }))
}

/// Creates an answer with text and calls of the tool `read` with these ids.
pub fn answer(text: &str, calls: &[&str]) -> EntryBody {
    let mut content = vec![json!({ "type": "text", "text": text })];
    content.extend(
        calls.iter().map(|id| json!({ "type": "toolCall", "id": id, "name": "read", "arguments": { "path": id } })),
    );
    let stop = if calls.is_empty() { "stop" } else { "toolUse" };
    message(json!({
        "role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m", "stopReason": stop, "timestamp": 2,
        "usage": { "input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": {} },
    }))
}

/// Creates the result of a call of `read`.
pub fn result(id: &str) -> EntryBody {
    message(json!({
        "role": "toolResult", "toolCallId": id, "toolName": "read", "content": [{ "type": "text", "text": "ok" }], "isError": false,
        "timestamp": 3,
    }))
}

/// Creates a command that the user ran.
pub fn bash() -> EntryBody {
    message(
        json!({ "role": "bashExecution", "command": "ls", "output": "", "cancelled": false, "truncated": false, "timestamp": 4 }),
    )
}

/// Appends entries; returns their ids.
pub async fn append(log: &mut SessionLog, bodies: impl IntoIterator<Item = EntryBody>) -> Vec<EntryId> {
    let mut ids = Vec::new();
    for body in bodies {
        ids.push(log.append(body).await.unwrap());
    }
    ids
}

/// Returns the text of a user or assistant message.
pub fn text_of(message: &Message) -> String {
    match message {
        Message::User(user) => user.content.text(""),
        Message::Assistant(assistant) => assistant.text(""),
        other => other.role().to_owned(),
    }
}

/// Summarizes the context, one word per message.
pub fn shown(log: &SessionLog) -> Vec<String> {
    log.context()
        .messages
        .iter()
        .map(|message| match &**message {
            Message::User(user) => format!("user {}", user.content.text("")),
            Message::Assistant(assistant) => format!("assistant {}", assistant.text("")),
            Message::ToolResult(result) => {
                format!("result {}{}", result.tool_call_id, if result.is_error { " missing" } else { "" })
            }
            other => other.role().to_owned(),
        })
        .collect()
}

/// Runs a future to its end on a new runtime.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
