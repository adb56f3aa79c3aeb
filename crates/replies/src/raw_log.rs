//! The raw stream log: everything that models write in runs, before any processing, as lines of JSON in OpenClaw's format.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use pinch_agent_core::event::AgentEvent;
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::event::{BlockKind, StreamEvent};
use pinch_llm::message::{Block, Message};
use pinch_stdx::fs::{create_private_dir, creating_private};
use pinch_stdx::host::Host;
use serde_json::{Value, json};

/// Appends the stream of one run to the log.
#[derive(Debug)]
pub struct RawLog {
    file: File,
    host: Host,
    run_id: String,
    session_id: String,
    /// The kinds of the blocks of the current answer, by index.
    kinds: BTreeMap<usize, LoggedKind>,
}

impl RawLog {
    /// Opens the log, which is readable only by the user, and creates it if necessary.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn open(path: &Path, host: Host, run_id: &str, session_id: &str) -> io::Result<Self> {
        path.parent().map_or(Ok(()), create_private_dir)?;
        let mut options = OpenOptions::new();
        let file = creating_private(options.append(true).create(true)).open(path)?;
        let (run_id, session_id) = (run_id.to_owned(), session_id.to_owned());
        Ok(Self { file, host, run_id, session_id, kinds: BTreeMap::new() })
    }

    /// Records an event of the session.
    pub(super) fn record(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Agent(AgentEvent::MessageUpdate(event)) => self.stream_event(event),
            SessionEvent::Agent(AgentEvent::MessageEnd { message, .. }) => {
                let Message::Assistant(answer) = &**message else { return };
                let thinking = answer.content.iter().filter_map(|block| match &**block {
                    Block::Thinking(thinking) => Some(thinking.thinking.as_str()),
                    _ => None,
                });
                let thinking = thinking.collect::<Vec<_>>().join("\n");
                let fields = json!({"rawText": answer.text("\n"), "rawThinking": thinking});
                self.append("assistant_message_end", fields);
            }
            _ => {}
        }
    }

    fn stream_event(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Start(_) => self.kinds.clear(),
            StreamEvent::BlockStart { index, kind } => {
                let kind = match kind {
                    BlockKind::Text | BlockKind::Commentary => LoggedKind::Text,
                    BlockKind::Thinking { .. } => LoggedKind::Thinking,
                    BlockKind::ToolCall { .. } => return,
                };
                self.kinds.insert(*index, kind);
                self.append_part(kind, "start", "", "");
            }
            StreamEvent::Delta { index, text } => {
                if let Some(kind) = self.kinds.get(index).copied() {
                    self.append_part(kind, "delta", text, "");
                }
            }
            StreamEvent::BlockEnd { block, .. } => match &**block {
                Block::Text(text) => self.append_part(LoggedKind::Text, "end", "", &text.text),
                Block::Thinking(thinking) => self.append_part(LoggedKind::Thinking, "end", "", &thinking.thinking),
                Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => {}
            },
            StreamEvent::Usage(_) | StreamEvent::End(_) => {}
        }
    }

    fn append_part(&mut self, kind: LoggedKind, part: &str, delta: &str, content: &str) {
        let (event, name) = match kind {
            LoggedKind::Text => ("assistant_text_stream", "text"),
            LoggedKind::Thinking => ("assistant_thinking_stream", "thinking"),
        };
        self.append(event, json!({"evtType": format!("{name}_{part}"), "delta": delta, "content": content}));
    }

    /// Appends a line. A log that cannot be written must not disturb the run.
    fn append(&mut self, event: &str, fields: Value) {
        let mut line = json!({
            "ts": self.host.now_ms(), "event": event, "runId": self.run_id, "sessionId": self.session_id,
        });
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        if let Err(error) = self.file.write_all(format!("{line}\n").as_bytes()) {
            tracing::debug!(%error, "the raw stream log could not be written");
        }
    }
}

/// The kind of a block in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoggedKind {
    Text,
    Thinking,
}
