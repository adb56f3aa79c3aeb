//! Events as JSON lines, compatible with pi 0.87.1's JSON and RPC modes.
//!
//! The size of a line is proportional to its event: nothing is repeated, except that the end of a message contains the message.

use pinch_agent_core::event::{AgentEvent, RunEnd, ToolStart};
use pinch_agent_core::tool::ToolOutput;
use pinch_llm::event::{BlockKind, StreamEvent};
use pinch_llm::message::{Block, Message, Usage};
use pinch_stdx::json::write;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};

use super::results;
use crate::compaction::CompactionReason;
use crate::event::{ExtensionFailure, SessionEvent};

/// Converts events to lines. Remembers what update lines repeat: the usage so far and the kinds of the open blocks.
#[derive(Debug, Default)]
pub struct EventWriter {
    names: EventNames,
    line: Vec<u8>,
    usage: Vec<u8>,
    kinds: Vec<EventLineKind>,
}

/// The naming scheme of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventNames {
    /// Names of pi 0.87.1.
    #[default]
    Current,
    /// Names of pi 0.49.3, for older clients: automatic compactions are `auto_compaction_start` and `auto_compaction_end`, and events
    /// unknown to that version are omitted. The contents of events are current.
    Pi049,
}

#[derive(Clone, Copy, Debug)]
enum EventLineKind {
    Text,
    Thinking,
    ToolCall,
}

impl EventLineKind {
    fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::ToolCall => "toolcall",
        }
    }
}

impl EventWriter {
    /// Creates a writer at the start of an event stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a writer with another naming scheme.
    pub fn with_names(names: EventNames) -> Self {
        Self { names, ..Self::default() }
    }

    /// Returns the line of an event with its line feed, or `None` for events that are not written.
    pub fn line(&mut self, event: &SessionEvent) -> Option<&[u8]> {
        self.line.clear();
        self.write(event)?;
        self.line.push(b'\n');
        Some(&self.line)
    }

    fn write(&mut self, event: &SessionEvent) -> Option<()> {
        if self.names == EventNames::Pi049 && !is_in_049(event) {
            return None;
        }
        let compaction = match self.names {
            EventNames::Current => ["compaction_start", "compaction_end"],
            EventNames::Pi049 => ["auto_compaction_start", "auto_compaction_end"],
        };
        match event {
            SessionEvent::Agent(AgentEvent::MessageUpdate(update)) => self.update(update),
            SessionEvent::Agent(event) => self.agent(event),
            SessionEvent::RunEnd { end: RunEnd { messages, .. }, will_retry } => {
                self.object("agent_end", &[("messages", messages), ("willRetry", will_retry)])
            }
            SessionEvent::Settled { aborted } => self.object("agent_settled", &[("aborted", aborted)]),
            SessionEvent::EntryAppended(entry) => self.object("entry_appended", &[("entry", &entry.to_value())]),
            SessionEvent::QueueUpdate { steering, follow_up } => {
                self.object("queue_update", &[("steering", steering), ("followUp", follow_up)])
            }
            SessionEvent::CompactionStart { reason } => self.object(compaction[0], &[("reason", &reason.as_str())]),
            SessionEvent::CompactionEnd { reason, result, aborted, will_retry, error_message } => {
                let mut value = json!({"type": compaction[1], "reason": reason.as_str()});
                if let Some(result) = result {
                    value["result"] = results::compacted(result);
                }
                value["aborted"] = (*aborted).into();
                value["willRetry"] = (*will_retry).into();
                if let Some(text) = error_message {
                    value["errorMessage"] = text.as_str().into();
                }
                self.value(&value)
            }
            SessionEvent::SummaryRetryScheduled { attempt, max_attempts, delay_ms, error_message } => self.object(
                "summarization_retry_scheduled",
                &[
                    ("attempt", attempt),
                    ("maxAttempts", max_attempts),
                    ("delayMs", delay_ms),
                    ("errorMessage", error_message),
                ],
            ),
            SessionEvent::SummaryRetryStart { source, reason } => {
                let source = source.as_str();
                match reason.map(CompactionReason::as_str) {
                    Some(reason) => {
                        self.object("summarization_retry_attempt_start", &[("source", &source), ("reason", &reason)])
                    }
                    None => self.object("summarization_retry_attempt_start", &[("source", &source)]),
                }
            }
            SessionEvent::SummaryRetryEnd => self.object("summarization_retry_finished", &[]),
            SessionEvent::RetryStart { attempt, max_attempts, delay_ms, error_message } => self.object(
                "auto_retry_start",
                &[
                    ("attempt", attempt),
                    ("maxAttempts", max_attempts),
                    ("delayMs", delay_ms),
                    ("errorMessage", error_message),
                ],
            ),
            SessionEvent::RetryEnd { success, attempt, final_error } => {
                let mut value = json!({"type": "auto_retry_end", "success": success, "attempt": attempt});
                if let Some(text) = final_error {
                    value["finalError"] = text.as_str().into();
                }
                self.value(&value)
            }
            SessionEvent::ThinkingLevelChanged { level } => {
                self.object("thinking_level_changed", &[("level", &level.as_str())])
            }
            SessionEvent::InfoChanged { name: Some(name) } => self.object("session_info_changed", &[("name", name)]),
            SessionEvent::InfoChanged { name: None } => self.object("session_info_changed", &[]),
            SessionEvent::ExtensionError(ExtensionFailure { extension, event, error }) => {
                self.object("extension_error", &[("extensionPath", extension), ("event", event), ("error", error)])
            }
            SessionEvent::Conflict { path, leaf } => {
                let leaf = leaf.as_ref().map(|id| id.as_str().to_owned());
                self.object("session_conflict", &[("path", &path.to_string_lossy()), ("leafId", &leaf)])
            }
        }
    }

    fn agent(&mut self, event: &AgentEvent) -> Option<()> {
        match event {
            AgentEvent::AgentStart => self.object("agent_start", &[]),
            AgentEvent::TurnStart => self.object("turn_start", &[]),
            AgentEvent::MessageStart(message) => {
                if let Message::Assistant(answer) = &**message {
                    self.kinds.clear();
                    self.remember(&answer.usage);
                }
                self.object("message_start", &[("message", message)])
            }
            AgentEvent::MessageEnd { message, .. } => self.object("message_end", &[("message", message)]),
            AgentEvent::ToolStart(start) => self.object(
                "tool_execution_start",
                &[("toolCallId", &start.id), ("toolName", &start.name), ("args", &start.args)],
            ),
            AgentEvent::ToolUpdate { start: ToolStart { id, name, args, .. }, so_far } => self.object(
                "tool_execution_update",
                &[("toolCallId", id), ("toolName", name), ("args", args), ("partialResult", &ToolOutputView(so_far))],
            ),
            AgentEvent::ToolEnd { start: ToolStart { id, name, .. }, output, duration_ms } => {
                let result = ToolOutputView(output);
                let mut members: Vec<(&str, &dyn Member)> =
                    vec![("toolCallId", id), ("toolName", name), ("result", &result), ("isError", &output.failed)];
                if let Some(duration_ms) = duration_ms {
                    members.push(("durationMs", duration_ms));
                }
                self.object("tool_execution_end", &members)
            }
            AgentEvent::TurnEnd { message, results, .. } => {
                self.object("turn_end", &[("message", message), ("toolResults", results)])
            }
            // The session reports the end of a run, and updates are handled separately.
            _ => None,
        }
    }

    /// Writes update lines by hand, because an answer has thousands of them.
    fn update(&mut self, event: &StreamEvent) -> Option<()> {
        match event {
            StreamEvent::Usage(usage) => {
                self.remember(usage);
                None
            }
            StreamEvent::BlockStart { index, kind } => {
                let word = match kind {
                    BlockKind::Text | BlockKind::Commentary => EventLineKind::Text,
                    BlockKind::Thinking { .. } => EventLineKind::Thinking,
                    BlockKind::ToolCall { .. } => EventLineKind::ToolCall,
                };
                self.kinds.push(word);
                self.begin_update(word, "_start", *index);
                if let BlockKind::ToolCall { id, name } = kind {
                    self.member("id", id)?;
                    self.member("toolName", name)?;
                }
                self.end_update()
            }
            StreamEvent::Delta { index, text } => {
                let word = *self.kinds.get(*index)?;
                self.begin_update(word, "_delta", *index);
                self.member("delta", &**text)?;
                self.end_update()
            }
            StreamEvent::BlockEnd { index, block } => {
                let word = *self.kinds.get(*index)?;
                self.begin_update(word, "_end", *index);
                match &**block {
                    Block::Text(text) => self.member("content", &text.text)?,
                    Block::Thinking(thinking) => self.member("content", &thinking.thinking)?,
                    call => self.member("toolCall", call)?,
                }
                self.end_update()
            }
            StreamEvent::Start(_) | StreamEvent::End(_) => None,
        }
    }

    fn remember(&mut self, usage: &Usage) {
        self.usage.clear();
        if write::append(&mut self.usage, usage).is_err() {
            self.usage.clear();
            self.usage.extend_from_slice(b"{}");
        }
    }

    fn begin_update(&mut self, kind: EventLineKind, part: &str, index: usize) {
        self.line.extend_from_slice(br#"{"type":"message_update","usage":"#);
        self.line.extend_from_slice(&self.usage);
        self.line.extend_from_slice(br#","assistantMessageEvent":{"type":""#);
        self.line.extend_from_slice(kind.word().as_bytes());
        self.line.extend_from_slice(part.as_bytes());
        self.line.extend_from_slice(br#"","contentIndex":"#);
        self.line.extend_from_slice(index.to_string().as_bytes());
    }

    fn end_update(&mut self) -> Option<()> {
        self.line.extend_from_slice(b"}}");
        Some(())
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Option<()> {
        self.line.extend_from_slice(b",\"");
        self.line.extend_from_slice(name.as_bytes());
        self.line.extend_from_slice(b"\":");
        write::append(&mut self.line, value).ok()
    }

    fn object(&mut self, kind: &str, members: &[(&str, &dyn Member)]) -> Option<()> {
        self.line.extend_from_slice(b"{\"type\":\"");
        self.line.extend_from_slice(kind.as_bytes());
        self.line.push(b'"');
        for (name, value) in members {
            self.line.extend_from_slice(b",\"");
            self.line.extend_from_slice(name.as_bytes());
            self.line.extend_from_slice(b"\":");
            value.append(&mut self.line)?;
        }
        self.line.push(b'}');
        Some(())
    }

    fn value(&mut self, value: &Value) -> Option<()> {
        write::append(&mut self.line, value).ok()
    }
}

/// Returns whether pi 0.49.3 had such events.
fn is_in_049(event: &SessionEvent) -> bool {
    match event {
        SessionEvent::Agent(_)
        | SessionEvent::RunEnd { .. }
        | SessionEvent::RetryStart { .. }
        | SessionEvent::RetryEnd { .. } => true,
        SessionEvent::CompactionStart { reason } | SessionEvent::CompactionEnd { reason, .. } => {
            *reason != CompactionReason::Manual
        }
        SessionEvent::Settled { .. }
        | SessionEvent::EntryAppended(_)
        | SessionEvent::QueueUpdate { .. }
        | SessionEvent::SummaryRetryScheduled { .. }
        | SessionEvent::SummaryRetryStart { .. }
        | SessionEvent::SummaryRetryEnd
        | SessionEvent::ThinkingLevelChanged { .. }
        | SessionEvent::InfoChanged { .. }
        | SessionEvent::ExtensionError(_)
        | SessionEvent::Conflict { .. } => false,
    }
}

/// A value that can be written as a member.
trait Member {
    fn append(&self, line: &mut Vec<u8>) -> Option<()>;
}

impl<T: Serialize> Member for T {
    fn append(&self, line: &mut Vec<u8>) -> Option<()> {
        write::append(line, self).ok()
    }
}

/// A tool's result in event format.
struct ToolOutputView<'a>(&'a ToolOutput);

impl ToolOutputView<'_> {
    /// Returns whether a tool returned it as the result of a failure. Errors are not results: their details are empty, and only the event
    /// marks them.
    fn is_failed_result(&self) -> bool {
        let is_error = self.0.details.as_ref().and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
        self.0.failed && !is_error
    }
}

impl Serialize for ToolOutputView<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("content", &self.0.content)?;
        if let Some(details) = &self.0.details {
            map.serialize_entry("details", details)?;
        }
        if let Some(structured) = &self.0.structured {
            map.serialize_entry("structuredContent", structured)?;
        }
        if self.is_failed_result() {
            map.serialize_entry("isError", &true)?;
        }
        if self.0.end_run {
            map.serialize_entry("terminate", &true)?;
        }
        map.end()
    }
}
