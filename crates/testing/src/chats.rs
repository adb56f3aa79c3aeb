//! Chat services for tests: they accept, edit and reject messages like Telegram and Slack.
//!
//! Telegram: `POST /sendMessage {text, reply_parameters?: {message_id}}` and `POST /editMessageText {message_id, text}`, at most 4 096
//! UTF-16 units, and a rejection with `retry_after` for messages that arrive too fast. Slack: `POST /chat.postMessage {blocks: [{text}],
//! thread_ts?}` and `POST /chat.update {ts, blocks}`, at most 3 000 bytes per block.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Recorded, Server, ServerReply};

/// The kind of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatKind {
    /// Telegram.
    Telegram,
    /// Slack.
    Slack,
}

/// A message as it is displayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatMessage {
    /// Its id.
    pub id: String,
    /// The message or thread that it belongs to.
    pub thread: Option<String>,
    /// Its text after the last edit.
    pub text: String,
    /// Number of edits.
    pub n_edits: usize,
}

/// A chat service on the loopback interface.
#[derive(Debug)]
pub struct ChatService {
    server: Server,
    state: Arc<Mutex<ChatState>>,
}

#[derive(Debug, Default)]
struct ChatState {
    messages: Vec<ChatMessage>,
    last: Option<Instant>,
    n_too_fast: usize,
    refused: Vec<String>,
}

impl ChatService {
    /// Starts a service that accepts one message per `gap`, if it enforces rates.
    ///
    /// # Errors
    /// Returns an error if no port can be bound.
    pub async fn start(kind: ChatKind, gap: Duration) -> io::Result<Self> {
        let server = Server::start().await?;
        let state: Arc<Mutex<ChatState>> = Arc::default();
        let own = Arc::clone(&state);
        server.answer_with(move |request| {
            let mut state = own.lock().unwrap_or_else(PoisonError::into_inner);
            Some(match kind {
                ChatKind::Telegram => state.telegram(request, gap),
                ChatKind::Slack => state.slack(request),
            })
        });
        Ok(Self { server, state })
    }

    /// Returns the URL without a trailing slash.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns the displayed messages, in order.
    pub fn messages(&self) -> Vec<ChatMessage> {
        self.state().messages.clone()
    }

    /// Returns how many messages arrived too fast.
    pub fn n_too_fast(&self) -> usize {
        self.state().n_too_fast
    }

    /// Returns the reasons for permanent rejections.
    pub fn refused(&self) -> Vec<String> {
        self.state().refused.clone()
    }

    fn state(&self) -> MutexGuard<'_, ChatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChatState {
    fn telegram(&mut self, request: &Recorded, gap: Duration) -> ServerReply {
        let body = request.json();
        let text = body["text"].as_str().unwrap_or("").to_owned();
        let refuse = |state: &mut Self, why: &str| {
            state.refused.push(why.to_owned());
            ServerReply::json(
                400,
                &json!({"ok": false, "error_code": 400, "description": format!("Bad Request: {why}")}),
            )
        };
        if text.encode_utf16().count() > 4_096 {
            return refuse(self, "message is too long");
        }
        if text.trim().is_empty() {
            return refuse(self, "message text is empty");
        }
        if let Some(left) = self.last.and_then(|last| gap.checked_sub(last.elapsed())).filter(|left| !left.is_zero()) {
            self.n_too_fast += 1;
            let wait = json!({"retry_after": left.as_secs_f64()});
            return ServerReply::json(429, &json!({"ok": false, "error_code": 429, "parameters": wait}));
        }
        self.last = Some(Instant::now());
        let id = if request.path.ends_with("/editMessageText") {
            let id = body["message_id"].as_u64().unwrap_or(0).to_string();
            match self.edit(&id, text) {
                Edited::Changed => id,
                Edited::Same => return refuse(self, "message is not modified"),
                Edited::Unknown => return refuse(self, "message to edit not found"),
            }
        } else {
            let thread = body["reply_parameters"]["message_id"].as_u64().map(|id| id.to_string());
            self.add(text, thread)
        };
        let id: u64 = id.parse().unwrap_or(0);
        ServerReply::json(200, &json!({"ok": true, "result": {"message_id": id}}))
    }

    fn slack(&mut self, request: &Recorded) -> ServerReply {
        let body = request.json();
        let blocks: Vec<&str> =
            body["blocks"].as_array().into_iter().flatten().filter_map(|b| b["text"].as_str()).collect();
        let refuse = |state: &mut Self, why: &str| {
            state.refused.push(why.to_owned());
            ServerReply::json(200, &json!({"ok": false, "error": why}))
        };
        if blocks.iter().any(|text| text.len() > 3_000) {
            return refuse(self, "msg_blocks_too_long");
        }
        if blocks.iter().all(|text| text.trim().is_empty()) {
            return refuse(self, "no_text");
        }
        let text = blocks.join("\n");
        let word = |value: &Value| value.as_str().map(str::to_owned);
        let ts = if request.path.ends_with("/chat.update") {
            let ts = word(&body["ts"]).unwrap_or_default();
            match self.edit(&ts, text) {
                Edited::Changed | Edited::Same => ts,
                Edited::Unknown => return refuse(self, "message_not_found"),
            }
        } else {
            self.add(text, word(&body["thread_ts"]))
        };
        ServerReply::json(200, &json!({"ok": true, "ts": ts}))
    }

    fn add(&mut self, text: String, thread: Option<String>) -> String {
        let id = (self.messages.len() + 1).to_string();
        self.messages.push(ChatMessage { id: id.clone(), thread, text, n_edits: 0 });
        id
    }

    fn edit(&mut self, id: &str, text: String) -> Edited {
        let Some(message) = self.messages.iter_mut().find(|message| message.id == id) else { return Edited::Unknown };
        if message.text == text {
            return Edited::Same;
        }
        message.text = text;
        message.n_edits += 1;
        Edited::Changed
    }
}

/// Outcome of an edit.
enum Edited {
    Changed,
    Same,
    Unknown,
}
