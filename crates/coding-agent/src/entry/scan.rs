//! One pass over a session's bytes: where its lines are and what they are, without building any value.
//!
//! A line is walked over token by token, strings by searching for their closing quote; so a line that is no JSON is found out here, and a
//! large text costs little more than reading it.

use std::borrow::Cow;

use memchr::memchr;

/// Nesting at which a line is given up, like `serde_json` does.
const MAX_DEPTH: u32 = 127;

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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
pub(crate) enum Role {
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

/// What one line is.
#[derive(Debug, PartialEq)]
pub(crate) struct Line<'a> {
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) parent_id: Option<Cow<'a, str>>,
}

/// The lines of a text with their places, blank ones left out, without their ends. A byte order mark at the start is passed over.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
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

/// Looks at one line; `None` when it is no JSON object with a string `type`.
pub(crate) fn line(bytes: &[u8]) -> Option<Line<'_>> {
    let mut cursor = Cursor { bytes, at: 0 };
    let mut found = Line { kind: Kind::Unknown, role: Role::None, id: None, parent_id: None };
    let mut has_type = false;
    cursor.object(0, |cursor, key| {
        match key {
            b"type" => {
                let value = cursor.string_or_skip(0)?;
                has_type = value.is_some();
                found.kind = value.map_or(Kind::Unknown, |value| kind(&value));
            }
            b"id" => found.id = cursor.string_or_skip(0)?,
            b"parentId" => found.parent_id = cursor.string_or_skip(0)?,
            b"message" if cursor.peek()? == b'{' => {
                found.role = Role::Other;
                cursor.object(1, |cursor, key| {
                    if key == b"role" {
                        found.role = cursor.string_or_skip(1)?.map_or(Role::Other, |value| role(&value));
                        Some(())
                    } else {
                        cursor.value(1)
                    }
                })?;
            }
            _ => cursor.value(0)?,
        }
        Some(())
    })?;
    cursor.skip_space();
    if found.kind != Kind::Message {
        found.role = Role::None;
    }
    (has_type && cursor.at == bytes.len()).then_some(found)
}

fn kind(word: &str) -> Kind {
    match word {
        "session" => Kind::Session,
        "message" => Kind::Message,
        "thinking_level_change" => Kind::ThinkingLevelChange,
        "model_change" => Kind::ModelChange,
        "compaction" => Kind::Compaction,
        "branch_summary" => Kind::BranchSummary,
        "custom" => Kind::Custom,
        "custom_message" => Kind::CustomMessage,
        "label" => Kind::Label,
        "session_info" => Kind::SessionInfo,
        "context_edit" => Kind::ContextEdit,
        "usage" => Kind::Usage,
        _ => Kind::Unknown,
    }
}

fn role(word: &str) -> Role {
    match word {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "toolResult" => Role::ToolResult,
        "bashExecution" => Role::BashExecution,
        _ => Role::Other,
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// The inside of the string that begins here. Quotes are searched for rather than escapes: code has an escaped line end every few
    /// words, quotes are rare.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            let found = self.at + memchr(b'"', self.bytes.get(self.at..)?)?;
            self.at = found + 1;
            let n_backslashes = self.bytes[start..found].iter().rev().take_while(|byte| **byte == b'\\').count();
            if n_backslashes % 2 == 0 {
                return Some(&self.bytes[start..found]);
            }
        }
    }

    /// The string that begins here, its escapes resolved; other values are walked over.
    fn string_or_skip(&mut self, depth: u32) -> Option<Option<Cow<'a, str>>> {
        if self.peek()? != b'"' {
            self.value(depth)?;
            return Some(None);
        }
        let inside = self.string()?;
        if memchr(b'\\', inside).is_none() {
            return Some(Some(String::from_utf8_lossy(inside)));
        }
        let mut quoted = vec![b'"'];
        quoted.extend_from_slice(inside);
        quoted.push(b'"');
        pinch_stdx::json::lossy::from_slice(&quoted).ok().map(|text: String| Some(Cow::Owned(text)))
    }

    /// Walks over the object that begins here; `member` must walk over each value.
    fn object(&mut self, depth: u32, mut member: impl FnMut(&mut Self, &[u8]) -> Option<()>) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.take(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            self.take(b':')?;
            member(self, key)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Walks over one value inside of something nested `depth` deep.
    fn value(&mut self, depth: u32) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' => self.object(depth + 1, |cursor, _| cursor.value(depth + 1)),
            b'[' => self.array(depth + 1),
            _ => self.literal(),
        }
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.take(b'[')?;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(depth)?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn literal(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.') = self.bytes.get(self.at) {
            self.at += 1;
        }
        match &self.bytes[start..self.at] {
            b"true" | b"false" | b"null" => Some(()),
            [] => None,
            number => serde_json::from_slice::<serde_json::Number>(number).ok().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_matters_wherever_it_stands() {
        let text = br#" { "message":{"content":[{"role":"x"}, "a\"}"],"role":"user"},"n":-1.5e3, "parentId":null,"id":"\u0061b","type":"message"}"#;
        let line = line(text).unwrap();
        assert_eq!((line.kind, line.role), (Kind::Message, Role::User));
        assert_eq!((line.id.as_deref(), line.parent_id.as_deref()), (Some("ab"), None));
    }

    #[test]
    fn refuses_what_is_no_object_with_a_type() {
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
    fn escaped_quotes_end_no_string() {
        let line = line(br#"{"type":"a","x":"\\\\","y":"\\\"","id":"i\\"}"#).unwrap();
        assert_eq!(line.id.as_deref(), Some("i\\"));
    }

    #[test]
    fn lines_are_found_with_their_places() {
        let text = b"\xef\xbb\xbfab\r\n\n  \n c\nd";
        let found: Vec<_> = lines(text).collect();
        assert_eq!(found, [(3, &b"ab"[..]), (12, b"c"), (14, b"d")]);
    }
}
