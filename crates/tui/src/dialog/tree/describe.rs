//! Describes the entries of a session in one line each.

use std::collections::HashMap;

use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::session_log::roles;
use pinch_llm::ids::ToolCallId;
use pinch_llm::message::{Content, Message, StopReason};
use ratatui_core::text::Span;
use serde_json::Value;

use crate::figures::tokens;
use crate::text::{SanitizeMode, sanitize};
use crate::theme::{ColorRole, Palette};
use crate::transcript::typed_prompt;

/// Maximum number of characters shown of a text.
const MAX_TEXT: usize = 200;
/// Maximum number of characters shown of an error.
const MAX_ERROR: usize = 80;

/// Kind of an entry, for filters and colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeEntryKind {
    User,
    Assistant,
    /// A tool result, or a user command.
    Tool,
    Summary,
    /// A message of an extension.
    Custom,
    /// Bookkeeping: labels, models, names.
    Note,
}

/// An entry described in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) kind: TreeEntryKind,
    /// The role with a colon, or nothing.
    role: &'static str,
    text: String,
    /// Whether there is nothing to see: an answer without text and error.
    pub(super) is_empty: bool,
}

impl Described {
    fn new(kind: TreeEntryKind, role: &'static str, text: impl AsRef<str>) -> Self {
        Self { kind, role, text: short(text.as_ref(), MAX_TEXT), is_empty: false }
    }

    /// Describes an entry that cannot be read.
    pub(super) fn unknown(type_name: &str) -> Self {
        Self::new(TreeEntryKind::Note, "", format!("[{type_name}]"))
    }

    /// Returns the whole line without styles.
    pub(super) fn plain(&self) -> String {
        format!("{} {}", self.role, self.text)
    }

    /// Returns the whole line in its colours.
    pub(super) fn spans(&self, theme: &Palette) -> Vec<Span<'static>> {
        let (role, text) = match self.kind {
            TreeEntryKind::User => (theme.fg(ColorRole::Accent), theme.fg(ColorRole::Text)),
            TreeEntryKind::Assistant => (theme.fg(ColorRole::Success), theme.fg(ColorRole::Text)),
            TreeEntryKind::Tool | TreeEntryKind::Note => (theme.fg(ColorRole::Muted), theme.fg(ColorRole::Muted)),
            TreeEntryKind::Summary => (theme.fg(ColorRole::Accent), theme.fg(ColorRole::Accent)),
            TreeEntryKind::Custom => (theme.fg(ColorRole::CustomMessageLabel), theme.fg(ColorRole::Text)),
        };
        let gap = if self.role.is_empty() { "" } else { " " };
        vec![Span::styled(format!("{}{gap}", self.role), role), Span::styled(self.text.clone(), text)]
    }
}

/// Returns the beginning of a text on one line.
fn short(text: &str, max: usize) -> String {
    // Only the beginning of much longer texts is examined.
    let end = text.char_indices().nth(max * 4).map_or(text.len(), |(at, _)| at);
    let clean = sanitize(&text[..end], SanitizeMode::Output);
    let mut line = String::new();
    let mut n_chars = 0;
    for word in clean.split_whitespace() {
        if n_chars > 0 {
            line.push(' ');
        }
        line.push_str(word);
        n_chars += word.chars().count() + 1;
        if n_chars > max {
            break;
        }
    }
    match line.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Describes an entry. `calls` records tool calls, for their results.
pub(super) fn describe(body: &EntryBody, calls: &mut HashMap<ToolCallId, String>) -> Described {
    let note = |text: String| Described::new(TreeEntryKind::Note, "", text);
    match body {
        EntryBody::Message(message) => of_message(message, calls),
        EntryBody::ThinkingLevelChange { thinking_level } => note(format!("[thinking: {thinking_level}]")),
        EntryBody::ModelChange { model_id, .. } => note(format!("[model: {model_id}]")),
        EntryBody::Compaction(compaction) => {
            let text = format!("[compaction: {} tokens]", tokens(compaction.tokens_before));
            Described::new(TreeEntryKind::Summary, "", text)
        }
        EntryBody::BranchSummary(branch) => {
            Described::new(TreeEntryKind::Summary, "[branch summary]:", &branch.summary)
        }
        EntryBody::CustomMessage(message) => {
            let text = format!("[{}]: {}", message.custom_type, message.content.text(" "));
            Described::new(TreeEntryKind::Custom, "", text)
        }
        EntryBody::Custom { custom_type, .. } => note(format!("[{custom_type}]")),
        EntryBody::Label { label, .. } => note(format!("[label: {}]", label.as_deref().unwrap_or("(cleared)"))),
        EntryBody::SessionInfo { name } => note(format!("[title: {name}]")),
        other => note(format!("[{}]", other.type_name())),
    }
}

fn of_message(message: &Message, calls: &mut HashMap<ToolCallId, String>) -> Described {
    match message {
        Message::User(user) => Described::new(TreeEntryKind::User, "user:", typed_prompt(&text_of(&user.content))),
        Message::Assistant(answer) => {
            for call in answer.tool_calls() {
                calls.insert(call.id.clone(), of_call(&call.name, &Value::Object(call.arguments.clone())));
            }
            let text: Vec<&str> = answer.content.iter().filter_map(|block| block.as_text()).collect();
            let text = text.join(" ");
            if !text.trim().is_empty() {
                return Described::new(TreeEntryKind::Assistant, "assistant:", text);
            }
            let error = answer.error_message.as_deref().unwrap_or_default();
            match answer.stop_reason {
                StopReason::Aborted => Described::new(TreeEntryKind::Assistant, "assistant:", "(aborted)"),
                _ if !error.is_empty() => {
                    Described::new(TreeEntryKind::Assistant, "assistant:", short(error, MAX_ERROR))
                }
                _ => {
                    let nothing = Described::new(TreeEntryKind::Assistant, "assistant:", "(no content)");
                    Described { is_empty: true, ..nothing }
                }
            }
        }
        Message::ToolResult(result) => {
            let text = calls.remove(&result.tool_call_id).unwrap_or_else(|| format!("[{}]", result.tool_name));
            Described::new(TreeEntryKind::Tool, "", text)
        }
        Message::Other(other) => {
            let text = |name: &str| other.raw.get(name).and_then(Value::as_str).unwrap_or_default();
            match text("role") {
                roles::BASH_EXECUTION => Described::new(TreeEntryKind::Tool, "[bash]:", text("command")),
                roles::BRANCH_SUMMARY => Described::new(TreeEntryKind::Summary, "[branch summary]:", text("summary")),
                roles::COMPACTION_SUMMARY => Described::new(TreeEntryKind::Summary, "[compaction]:", text("summary")),
                role => Described::new(TreeEntryKind::Note, "", format!("[{role}]")),
            }
        }
        _ => Described::new(TreeEntryKind::Note, "", "[system]"),
    }
}

fn text_of(content: &Content) -> String {
    let text = content.text(" ");
    if text.trim().is_empty() { "[image]".to_owned() } else { text }
}

/// Describes a tool call, for its result.
fn of_call(name: &str, arguments: &Value) -> String {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let path = || text("path").or_else(|| text("file_path")).unwrap_or_default();
    match name {
        "read" => {
            let number = |key: &str| arguments.get(key).and_then(Value::as_u64);
            let range = match (number("offset"), number("limit")) {
                (None, None) => String::new(),
                (start, None) => format!(":{}", start.unwrap_or(1)),
                (start, Some(limit)) => format!(":{}-{}", start.unwrap_or(1), start.unwrap_or(1) + limit.max(1) - 1),
            };
            format!("[read: {}{range}]", path())
        }
        "write" | "edit" | "ls" => format!("[{name}: {}]", path()),
        "bash" => format!("[bash: {}]", short(text("command").unwrap_or_default(), 50)),
        "grep" => {
            format!("[grep: /{}/ in {}]", text("pattern").unwrap_or_default(), text("path").unwrap_or("."))
        }
        "find" => {
            format!("[find: {} in {}]", text("pattern").unwrap_or_default(), text("path").unwrap_or("."))
        }
        _ => format!("[{name}: {}]", short(&arguments.to_string(), 40)),
    }
}
