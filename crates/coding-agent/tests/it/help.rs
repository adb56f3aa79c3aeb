//! Hosts, messages and logs for the tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::entry::{EntryBody, EntryId};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_coding_agent::store::{JsonlStore, SessionRef, SessionStore, StoreError};
use pinch_llm::message::Message;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

pub(crate) fn host() -> Host {
    Host::builder().clock(1_750_000_000_000, 1000).seed(7).build()
}

pub(crate) fn store(dir: &Path) -> Arc<dyn SessionStore> {
    Arc::new(JsonlStore::flat(dir))
}

pub(crate) async fn create(dir: &Path) -> SessionLog {
    SessionLog::create(&host(), store(dir), NewSession::in_folder("/w")).await.unwrap()
}

pub(crate) async fn open(path: &Path) -> Result<SessionLog, StoreError> {
    let dir = path.parent().unwrap();
    // Another seed: two writers with the same ids would be a test of its own.
    let host = Host::builder().clock(1_760_000_000_000, 1000).seed(99).build();
    SessionLog::open(&host, store(dir), &SessionRef::Path(path.to_owned()), "/w").await
}

pub(crate) fn file(log: &SessionLog) -> PathBuf {
    log.path().unwrap().to_owned()
}

pub(crate) fn message(value: Value) -> EntryBody {
    EntryBody::Message(Arc::new(Message::from_value(&value).unwrap()))
}

pub(crate) fn user(text: &str) -> EntryBody {
    message(json!({ "role": "user", "content": text, "timestamp": 1 }))
}

pub(crate) fn answer(text: &str, calls: &[&str]) -> EntryBody {
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

pub(crate) fn result(id: &str) -> EntryBody {
    message(json!({
        "role": "toolResult", "toolCallId": id, "toolName": "read", "content": [{ "type": "text", "text": "ok" }], "isError": false,
        "timestamp": 3,
    }))
}

pub(crate) fn bash() -> EntryBody {
    message(
        json!({ "role": "bashExecution", "command": "ls", "output": "", "cancelled": false, "truncated": false, "timestamp": 4 }),
    )
}

pub(crate) async fn append(log: &mut SessionLog, bodies: impl IntoIterator<Item = EntryBody>) -> Vec<EntryId> {
    let mut ids = Vec::new();
    for body in bodies {
        ids.push(log.append(body).await.unwrap());
    }
    ids
}

/// The text of a message of the user or the model.
pub(crate) fn text_of(message: &Message) -> String {
    match message {
        Message::User(user) => user.content.text(""),
        Message::Assistant(assistant) => assistant.text(""),
        other => other.role().to_owned(),
    }
}

/// What the context shows, a word a message.
pub(crate) fn shown(log: &SessionLog) -> Vec<String> {
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
