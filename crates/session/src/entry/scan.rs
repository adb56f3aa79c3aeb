//! A single pass over the bytes of a session that finds and classifies its lines without building values.
//!
//! Lines are scanned token by token, so invalid JSON is detected here and a large text costs little more than reading it.

use std::borrow::Cow;

use memchr::memchr;
use pinch_stdx::json::walk::Walk;
use pinch_stdx::text::bom_len;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryType {
    /// A header.
    Session,
    Message,
    ThinkingLevelChange,
    ModelChange,
    Compaction,
    BranchSummary,
    Custom,
    CustomMessage,
    Label,
    SessionInfo,
    ContextEdit,
    Usage,
    Unknown,
}

/// The role of a message entry's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageRole {
    /// Not a message.
    None,
    System,
    User,
    Assistant,
    ToolResult,
    BashExecution,
    /// Any other role.
    Other,
}

/// The classification of one line.
#[derive(Debug, PartialEq)]
pub(crate) struct ScannedLine<'a> {
    pub(crate) kind: EntryType,
    pub(crate) role: MessageRole,
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) parent_id: Option<Cow<'a, str>>,
}

/// Returns the non-blank lines of a text with their offsets and without line breaks. Skips a byte order mark at the start.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = bom_len(bytes);
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |found| start + found);
            at = end + 1;
            let line = &bytes[start..end];
            let trimmed = line.trim_ascii_start();
            if !trimmed.is_empty() {
                return Some((start + (line.len() - trimmed.len()), trimmed.trim_ascii_end()));
            }
        }
        None
    })
}

/// The end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineEnd {
    /// Length of the object in bytes.
    pub(crate) n_bytes: usize,
    /// Offset of the line break, or where it is missing.
    pub(crate) line_end: usize,
}

/// Scans a line. Returns `None` unless it is a JSON object with a string `type`.
pub(crate) fn line(bytes: &[u8]) -> Option<ScannedLine<'_>> {
    first_line(bytes).map(|(line, _)| line)
}

/// Scans the first line of a text like [`line()`] and finds its end on the way.
pub(crate) fn first_line(text: &[u8]) -> Option<(ScannedLine<'_>, LineEnd)> {
    let mut walk = Walk::of_line(text);
    let mut found = ScannedLine { kind: EntryType::Unknown, role: MessageRole::None, id: None, parent_id: None };
    let mut has_type = false;
    walk.object(0, |walk, key| {
        match key {
            b"type" => {
                let value = walk.string_or_skip(0)?;
                has_type = value.is_some();
                found.kind = value.map_or(EntryType::Unknown, |value| kind(&value));
            }
            b"id" => found.id = walk.string_or_skip(0)?,
            b"parentId" => found.parent_id = walk.string_or_skip(0)?,
            b"message" if walk.peek()? == b'{' => {
                found.role = MessageRole::Other;
                walk.object(1, |walk, key| {
                    if key == b"role" {
                        found.role = walk.string_or_skip(1)?.map_or(MessageRole::Other, |value| role(&value));
                        Some(())
                    } else {
                        walk.value(1)
                    }
                })?;
            }
            _ => walk.value(0)?,
        }
        Some(())
    })?;
    if found.kind != EntryType::Message {
        found.role = MessageRole::None;
    }
    let n_bytes = walk.n_walked();
    (has_type && walk.is_at_end()).then(|| (found, LineEnd { n_bytes, line_end: walk.n_walked() }))
}

fn kind(word: &str) -> EntryType {
    match word {
        "session" => EntryType::Session,
        "message" => EntryType::Message,
        "thinking_level_change" => EntryType::ThinkingLevelChange,
        "model_change" => EntryType::ModelChange,
        "compaction" => EntryType::Compaction,
        "branch_summary" => EntryType::BranchSummary,
        "custom" => EntryType::Custom,
        "custom_message" => EntryType::CustomMessage,
        "label" => EntryType::Label,
        "session_info" => EntryType::SessionInfo,
        "context_edit" => EntryType::ContextEdit,
        "usage" => EntryType::Usage,
        _ => EntryType::Unknown,
    }
}

fn role(word: &str) -> MessageRole {
    match word {
        "system" => MessageRole::System,
        "user" => MessageRole::User,
        "assistant" => MessageRole::Assistant,
        "toolResult" => MessageRole::ToolResult,
        "bashExecution" => MessageRole::BashExecution,
        _ => MessageRole::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_any_position() {
        let text = br#" { "message":{"content":[{"role":"x"}, "a\"}"],"role":"user"},"n":-1.5e3, "parentId":null,"id":"\u0061b","type":"message"}"#;
        let line = line(text).unwrap();
        assert_eq!((line.kind, line.role), (EntryType::Message, MessageRole::User));
        assert_eq!((line.id.as_deref(), line.parent_id.as_deref()), (Some("ab"), None));
    }

    #[test]
    fn values_that_are_not_objects_with_a_type_are_rejected() {
        for text in [
            "null",
            "[]",
            "{}",
            r#"{"type":7}"#,
            "{broken json",
            r#"{"type":"message","id":"a00"#,
            r#"{"type":"message","x":"hel{"type":"message","id":"b"}"#,
            r#"{"type":"a"} {"type":"b"}"#,
            r#"{"type":"a",}"#,
            r#"{"type":"a","x":nul}"#,
            r#"{"type":"a","x":01}"#,
            r#"{"type":"a","x":"\\\"}"#,
        ] {
            assert_eq!(line(text.as_bytes()), None, "{text}");
        }
        let deep = format!(r#"{{"type":"a","x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(line(deep.as_bytes()), None);
    }

    #[test]
    fn escaped_quotes_do_not_end_a_string() {
        let line = line(br#"{"type":"a","x":"\\\\","y":"\\\"","id":"i\\"}"#).unwrap();
        assert_eq!(line.id.as_deref(), Some("i\\"));
    }

    #[test]
    fn lines_are_found_with_their_offsets() {
        let text = b"\xef\xbb\xbfab\r\n\n  \n c\nd";
        let found: Vec<_> = lines(text).collect();
        assert_eq!(found, [(3, &b"ab"[..]), (12, b"c"), (14, b"d")]);
    }
}
