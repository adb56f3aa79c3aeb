//! The lines of a session file after the header: their data, parsing and serialization.
//!
//! Parsing is lenient: unknown types, and known types with unexpected fields, become [`EntryBody::Other`] and keep their JSON object.
//! Writing uses pi's key order, so that files of both programs can be compared byte for byte.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use pinch_llm::ids::{ModelId, ProviderId, SessionId};
use pinch_llm::message::{Content, Message, Usage};
use pinch_stdx::host::ms_from_iso;
use serde_json::{Map, Value};
use smol_str::SmolStr;

pub(crate) mod text;
mod fields;
pub(crate) use fields::content;
pub(crate) mod scan;
pub mod migrate;
pub mod names;

/// Version of the session format that is written.
pub const VERSION: u64 = 3;

/// Id of an entry: eight hexadecimal digits in files of pi and pinch, any text in others. Short ids are stored inline, because a long
/// session has tens of thousands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(SmolStr);

impl EntryId {
    /// Creates an id from its text.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(SmolStr::new(text))
    }

    /// Returns the text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl From<&str> for EntryId {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl Borrow<str> for EntryId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The first line of a session file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Format version; files without one have version 1.
    pub version: u64,
    /// Id of the session.
    pub id: SessionId,
    /// ISO time at which the session started.
    pub timestamp: String,
    /// Working directory; missing in very old files.
    pub cwd: Option<String>,
    /// Session file that this one was forked from.
    pub parent_session: Option<String>,
}

impl Header {
    /// Parses a header line. Returns `None` unless it is an object of type `session` with a string id.
    pub fn parse(line: &[u8]) -> Option<Self> {
        Self::from_value(&Value::Object(text::parse_object(line)?))
    }

    /// Finds the header in the text of a session.
    ///
    /// # Errors
    /// A description of what is wrong with the first non-blank line.
    pub fn of_text(text: &[u8]) -> Result<Self, String> {
        match scan::lines(text).map(|(_, line)| line).find(|line| scan::line(line).is_some()) {
            Some(line) => Self::parse(line).ok_or_else(|| "the first entry is not a header with an id".to_owned()),
            None => Err("no line is a JSON object with a type".to_owned()),
        }
    }

    /// Reads a header from a JSON object.
    pub fn from_value(value: &Value) -> Option<Self> {
        if value.get("type")?.as_str()? != "session" {
            return None;
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            version: value.get("version").map_or(1, |v| v.as_f64().map_or(1, |v| v as u64)),
            id: text("id")?.into(),
            timestamp: text("timestamp").unwrap_or_default(),
            cwd: text("cwd"),
            parent_session: text("parentSession"),
        })
    }

    /// Returns the line, without a line break.
    pub fn to_line(&self) -> String {
        let mut map = Map::new();
        map.insert("type".into(), "session".into());
        map.insert("version".into(), self.version.into());
        map.insert("id".into(), self.id.as_str().into());
        map.insert("timestamp".into(), self.timestamp.as_str().into());
        if let Some(cwd) = &self.cwd {
            map.insert("cwd".into(), cwd.as_str().into());
        }
        if let Some(parent) = &self.parent_session {
            map.insert("parentSession".into(), parent.as_str().into());
        }
        text::to_line(&map)
    }
}

/// One entry of a session: a node of its tree.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Id, unique within the session.
    pub id: EntryId,
    /// Parent entry; `None` for a root.
    pub parent_id: Option<EntryId>,
    /// ISO time at which the entry was appended.
    pub timestamp: String,
    /// Content of the entry.
    pub body: EntryBody,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryBody {
    /// A message of the conversation.
    Message(Arc<Message>),
    /// A change of the thinking level.
    ThinkingLevelChange {
        /// Name of the level.
        thinking_level: String,
    },
    /// A change of the model.
    ModelChange {
        /// Provider that serves the model.
        provider: ProviderId,
        /// Id of the model.
        model_id: ModelId,
    },
    /// A summary that replaces the conversation before it.
    Compaction(Compaction),
    /// A summary of an abandoned branch.
    BranchSummary(BranchSummary),
    /// State of an extension; never sent to a model.
    Custom {
        /// Type chosen by the extension.
        custom_type: String,
        /// The state.
        data: Option<Value>,
    },
    /// A message from an extension.
    CustomMessage(CustomMessage),
    /// A label on an entry; `None` clears it.
    Label {
        /// The labelled entry.
        target_id: EntryId,
        /// Text of the label.
        label: Option<String>,
    },
    /// The session's name; a blank one clears it.
    SessionInfo {
        /// The name, trimmed.
        name: String,
    },
    /// A change to how the model sees an earlier entry. The entry itself stays unchanged.
    ContextEdit {
        /// The edited entry.
        target_id: EntryId,
        /// Replacement content; `None` hides the entry.
        replacement: Option<Content>,
    },
    /// Usage outside the conversation; it counts towards the cost, but not the context.
    Usage(UsageNote),
    /// An entry of an unknown type: the whole object.
    Other(Map<String, Value>),
}

/// A summary that replaces the conversation before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compaction {
    /// The summary.
    pub summary: String,
    /// First entry that is kept unchanged. If it is the compaction's own id, nothing is kept.
    pub first_kept_entry_id: Option<EntryId>,
    /// Tokens of the context before compaction.
    pub tokens_before: u64,
    /// Machine-readable details, by default the files read and modified.
    pub details: Option<Value>,
    /// Whether an extension made it.
    pub from_hook: Option<bool>,
    /// Tokens and cost of making it.
    pub usage: Option<Usage>,
    /// The complete state of prompt and tools at this point.
    pub system_message: Option<Arc<Message>>,
}

/// A summary of an abandoned branch.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchSummary {
    /// The leaf that was left (in files of pi before 0.84.3: the entry moved to); `root` if there was none.
    pub from_id: String,
    /// The summary.
    pub summary: String,
    /// Machine-readable details, by default the files read and modified.
    pub details: Option<Value>,
    /// Whether an extension made it.
    pub from_hook: Option<bool>,
    /// Tokens and cost of making it.
    pub usage: Option<Usage>,
}

/// A message from an extension.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomMessage {
    /// Message type chosen by the extension.
    pub custom_type: String,
    /// Text and images.
    pub content: Content,
    /// Whether the message is shown to people.
    pub display: bool,
    /// Machine-readable details.
    pub details: Option<Value>,
}

/// Usage outside the conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UsageNote {
    /// What the request was for.
    pub kind: String,
    /// Provider that was charged.
    pub provider: ProviderId,
    /// Model that was used.
    pub model: ModelId,
    /// Tokens and cost.
    pub usage: Usage,
    /// A free-form note.
    pub note: Option<String>,
}

impl EntryBody {
    /// Returns the value of the `type` field.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::ThinkingLevelChange { .. } => "thinking_level_change",
            Self::ModelChange { .. } => "model_change",
            Self::Compaction(_) => "compaction",
            Self::BranchSummary(_) => "branch_summary",
            Self::Custom { .. } => "custom",
            Self::CustomMessage(_) => "custom_message",
            Self::Label { .. } => "label",
            Self::SessionInfo { .. } => "session_info",
            Self::ContextEdit { .. } => "context_edit",
            Self::Usage(_) => "usage",
            Self::Other(raw) => raw.get("type").and_then(Value::as_str).unwrap_or(""),
        }
    }

    /// Returns the message, if the entry is one.
    pub fn as_message(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }
}

impl Entry {
    /// Creates an entry that follows `parent_id`, or a root.
    pub fn new(id: EntryId, parent_id: Option<EntryId>, timestamp: impl Into<String>, body: EntryBody) -> Self {
        Self { id, parent_id, timestamp: timestamp.into(), body }
    }

    /// Parses a line. Returns `None` unless it is an object with a string `type` and a string `id`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        fields::parse(line)
    }

    /// Reads an entry from a JSON object.
    pub fn from_value(value: &Value) -> Option<Self> {
        fields::from_map(value.as_object()?.clone())
    }

    /// Returns the entry as JSON, with keys in pi's order.
    pub fn to_value(&self) -> Value {
        Value::Object(fields::to_map(self))
    }

    /// Returns the line, without a line break.
    pub fn to_line(&self) -> String {
        text::to_line(&fields::Written(self))
    }

    /// Returns the time of the append in Unix milliseconds, or `None` if it cannot be parsed.
    pub fn timestamp_ms(&self) -> Option<i64> {
        ms_from_iso(&self.timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(line: &str) {
        let entry = Entry::parse(line.as_bytes()).expect(line);
        assert_eq!(entry.to_line(), line);
        assert_eq!(Entry::from_value(&entry.to_value()).as_ref(), Some(&entry), "both ways of reading agree");
    }

    #[test]
    fn every_type_survives_a_round_trip() {
        let head = r#""id":"0a","parentId":null,"timestamp":"2025-06-01T10:00:00.000Z""#;
        let usage = r#"{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#;
        for (kind, fields) in [
            ("message", r#""message":{"role":"user","content":"hi","timestamp":1}"#.to_owned()),
            ("thinking_level_change", r#""thinkingLevel":"high""#.to_owned()),
            ("model_change", r#""provider":"p","modelId":"m""#.to_owned()),
            (
                "compaction",
                format!(
                    r#""summary":"S","firstKeptEntryId":"0b","tokensBefore":12,"details":{{"z":1,"a":null}},"usage":{usage},"fromHook":false,"systemMessage":{{"role":"system","content":"","timestamp":1}}"#
                ),
            ),
            ("branch_summary", format!(r#""fromId":"root","summary":"S","usage":{usage},"fromHook":true"#)),
            ("label", r#""targetId":"0b","label":"x""#.to_owned()),
            ("label", r#""targetId":"0b""#.to_owned()),
            ("session_info", r#""name":"n""#.to_owned()),
            ("context_edit", r#""targetId":"0b","replacement":null"#.to_owned()),
            ("context_edit", r#""targetId":"0b","replacement":{"content":"x"}"#.to_owned()),
            ("usage", format!(r#""kind":"cache_warm","provider":"p","model":"m","usage":{usage},"note":"n""#)),
            ("future", r#""b":1.5,"a":[{}]"#.to_owned()),
        ] {
            round_trip(&format!(r#"{{"type":"{kind}",{head},{fields}}}"#));
        }
        round_trip(&format!(r#"{{"type":"custom","customType":"c","data":{{"x":1}},{head}}}"#));
        round_trip(&format!(
            r#"{{"type":"custom_message","customType":"c","content":"hi","display":true,"details":[1],{head}}}"#
        ));
    }

    #[test]
    fn numbers_are_written_as_in_javascript() {
        let entry = Entry::parse(br#"{"type":"x","id":"a","n":[1.0,1e21,0.000001,1e-7,-0.5]}"#).unwrap();
        assert_eq!(entry.to_line(), r#"{"type":"x","id":"a","n":[1,1e+21,0.000001,1e-7,-0.5]}"#);
    }

    #[test]
    fn a_known_type_with_unexpected_fields_is_kept_unchanged() {
        let line = r#"{"type":"label","id":"a","parentId":null,"timestamp":"t","targetId":7}"#;
        let entry = Entry::parse(line.as_bytes()).unwrap();
        assert!(matches!(entry.body, EntryBody::Other(_)));
        assert_eq!(entry.to_line(), line);
    }

    #[test]
    fn a_lone_surrogate_does_not_lose_the_entry() {
        let line = br#"{"type":"session_info","id":"a","timestamp":"t","name":"x\ud83dy\ud83d\ude00"}"#;
        let entry = Entry::parse(line).unwrap();
        assert_eq!(entry.body, EntryBody::SessionInfo { name: "x\u{fffd}y\u{1f600}".into() });
    }
}
