//! Conversion between JSON objects and [`Entry`].

use std::sync::Arc;

use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::json::KnownMessage;
use pinch_llm::message::{Content, Message};
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::text;
use super::{BranchSummary, Compaction, CustomMessage, Entry, EntryBody, EntryId, UsageNote};

/// A message entry, by far the most frequent kind: its message is parsed directly from the text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageLine<'a> {
    r#type: &'a str,
    id: EntryIdText,
    #[serde(default)]
    parent_id: Option<EntryIdText>,
    #[serde(default)]
    timestamp: String,
    message: KnownMessage,
}

struct EntryIdText(EntryId);

impl<'de> Deserialize<'de> for EntryIdText {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <std::borrow::Cow<'de, str>>::deserialize(from).map(|text| Self(EntryId::new(text)))
    }
}

pub(super) fn parse(line: &[u8]) -> Option<Entry> {
    // Validating UTF-8 once for the whole line saves a check per string.
    if let Ok(text) = std::str::from_utf8(line)
        && let Ok(wire) = serde_json::from_str::<MessageLine<'_>>(text)
        && wire.r#type == "message"
    {
        return Some(Entry {
            id: wire.id.0,
            parent_id: wire.parent_id.map(|id| id.0),
            timestamp: wire.timestamp,
            body: EntryBody::Message(Arc::new(wire.message.0)),
        });
    }
    from_map(text::parse_object(line)?)
}

pub(super) fn from_map(raw: Map<String, Value>) -> Option<Entry> {
    let kind = raw.get("type")?.as_str()?;
    let id = EntryId::new(raw.get("id")?.as_str()?);
    let parent_id = raw.get("parentId").and_then(Value::as_str).map(EntryId::new);
    let timestamp = raw.get("timestamp").and_then(Value::as_str).unwrap_or_default().to_owned();
    let body = body(kind, &raw).unwrap_or(EntryBody::Other(raw));
    Some(Entry { id, parent_id, timestamp, body })
}

/// Parses the fields of a known type. Returns `None` for unknown types and unexpected fields.
fn body(kind: &str, raw: &Map<String, Value>) -> Option<EntryBody> {
    let text = |name: &str| raw.get(name).and_then(Value::as_str).map(str::to_owned);
    let value = |name: &str| raw.get(name).filter(|v| !v.is_null()).cloned();
    Some(match kind {
        "message" => EntryBody::Message(Arc::new(Message::from_value(raw.get("message")?).ok()?)),
        "thinking_level_change" => EntryBody::ThinkingLevelChange { thinking_level: text("thinkingLevel")? },
        "model_change" => EntryBody::ModelChange {
            provider: ProviderId::from(text("provider")?),
            model_id: ModelId::from(text("modelId")?),
        },
        "compaction" => EntryBody::Compaction(Compaction {
            summary: text("summary")?,
            first_kept_entry_id: raw.get("firstKeptEntryId").and_then(Value::as_str).map(EntryId::new),
            tokens_before: raw.get("tokensBefore").and_then(Value::as_f64).map_or(0, |n| n.max(0.0) as u64),
            details: value("details"),
            from_hook: raw.get("fromHook").and_then(Value::as_bool),
            usage: read(raw, "usage"),
            system_message: raw.get("systemMessage").and_then(|v| Message::from_value(v).ok()).map(Arc::new),
        }),
        "branch_summary" => EntryBody::BranchSummary(BranchSummary {
            from_id: text("fromId").unwrap_or_default(),
            summary: text("summary").unwrap_or_default(),
            details: value("details"),
            from_hook: raw.get("fromHook").and_then(Value::as_bool),
            usage: read(raw, "usage"),
        }),
        "custom" => EntryBody::Custom { custom_type: text("customType")?, data: raw.get("data").cloned() },
        "custom_message" => EntryBody::CustomMessage(CustomMessage {
            custom_type: text("customType")?,
            content: content(raw.get("content")),
            display: raw.get("display").and_then(Value::as_bool).unwrap_or(false),
            details: value("details"),
        }),
        "label" => EntryBody::Label {
            target_id: raw.get("targetId").and_then(Value::as_str).map(EntryId::new)?,
            label: text("label").filter(|label| !label.is_empty()),
        },
        "session_info" => EntryBody::SessionInfo { name: text("name").unwrap_or_default() },
        "context_edit" => EntryBody::ContextEdit {
            target_id: raw.get("targetId").and_then(Value::as_str).map(EntryId::new)?,
            replacement: match raw.get("replacement")? {
                Value::Null => None,
                replacement => Some(content(Some(replacement.get("content")?))),
            },
        },
        "usage" => EntryBody::Usage(UsageNote {
            kind: text("kind").unwrap_or_default(),
            provider: ProviderId::from(text("provider").unwrap_or_default()),
            model: ModelId::from(text("model").unwrap_or_default()),
            usage: read(raw, "usage")?,
            note: text("note"),
        }),
        _ => return None,
    })
}

fn read<T: DeserializeOwned>(raw: &Map<String, Value>, name: &str) -> Option<T> {
    raw.get(name).and_then(|value| T::deserialize(value).ok())
}

/// Parses content as in a user message.
pub(crate) fn content(value: Option<&Value>) -> Content {
    let mut raw = Map::new();
    raw.insert("role".into(), "user".into());
    raw.insert("content".into(), value.cloned().unwrap_or(Value::Null));
    match Message::from_value(&Value::Object(raw)) {
        Ok(Message::User(message)) => message.content,
        _ => Content::default(),
    }
}

pub(super) fn to_map(entry: &Entry) -> Map<String, Value> {
    match serde_json::to_value(Written(entry)) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Serializes an entry with its keys in order.
pub(super) struct Written<'a>(pub(super) &'a Entry);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let entry = self.0;
        if let EntryBody::Other(raw) = &entry.body {
            return raw.serialize(to);
        }
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("type", entry.body.type_name())?;
        match &entry.body {
            EntryBody::Custom { custom_type, data } => {
                map.serialize_entry("customType", custom_type)?;
                optional(&mut map, "data", data.as_ref())?;
            }
            EntryBody::CustomMessage(message) => {
                map.serialize_entry("customType", &message.custom_type)?;
                map.serialize_entry("content", &message.content)?;
                map.serialize_entry("display", &message.display)?;
                optional(&mut map, "details", message.details.as_ref())?;
            }
            _ => {}
        }
        map.serialize_entry("id", entry.id.as_str())?;
        map.serialize_entry("parentId", &entry.parent_id.as_ref().map(EntryId::as_str))?;
        map.serialize_entry("timestamp", &entry.timestamp)?;
        write_body(&mut map, &entry.body)?;
        map.end()
    }
}

fn write_body<M: SerializeMap>(map: &mut M, body: &EntryBody) -> Result<(), M::Error> {
    match body {
        EntryBody::Message(message) => map.serialize_entry("message", &**message)?,
        EntryBody::ThinkingLevelChange { thinking_level } => map.serialize_entry("thinkingLevel", thinking_level)?,
        EntryBody::ModelChange { provider, model_id } => {
            map.serialize_entry("provider", provider)?;
            map.serialize_entry("modelId", model_id)?;
        }
        EntryBody::Compaction(compaction) => {
            map.serialize_entry("summary", &compaction.summary)?;
            optional(map, "firstKeptEntryId", compaction.first_kept_entry_id.as_ref().map(EntryId::as_str))?;
            map.serialize_entry("tokensBefore", &compaction.tokens_before)?;
            optional(map, "details", compaction.details.as_ref())?;
            optional(map, "usage", compaction.usage.as_ref())?;
            optional(map, "fromHook", compaction.from_hook)?;
            optional(map, "systemMessage", compaction.system_message.as_deref())?;
        }
        EntryBody::BranchSummary(branch) => {
            map.serialize_entry("fromId", &branch.from_id)?;
            map.serialize_entry("summary", &branch.summary)?;
            optional(map, "details", branch.details.as_ref())?;
            optional(map, "usage", branch.usage.as_ref())?;
            optional(map, "fromHook", branch.from_hook)?;
        }
        EntryBody::Label { target_id, label } => {
            map.serialize_entry("targetId", target_id.as_str())?;
            optional(map, "label", label.as_ref())?;
        }
        EntryBody::SessionInfo { name } => map.serialize_entry("name", name)?,
        EntryBody::ContextEdit { target_id, replacement } => {
            map.serialize_entry("targetId", target_id.as_str())?;
            map.serialize_entry("replacement", &replacement.as_ref().map(|content| ReplacedField { content }))?;
        }
        EntryBody::Usage(note) => {
            map.serialize_entry("kind", &note.kind)?;
            map.serialize_entry("provider", &note.provider)?;
            map.serialize_entry("model", &note.model)?;
            map.serialize_entry("usage", &note.usage)?;
            optional(map, "note", note.note.as_ref())?;
        }
        EntryBody::Custom { .. } | EntryBody::CustomMessage(_) | EntryBody::Other(_) => {}
    }
    Ok(())
}

#[derive(Serialize)]
struct ReplacedField<'a> {
    content: &'a Content,
}

/// Writes a member if it has a value.
fn optional<M: SerializeMap, T: Serialize>(map: &mut M, name: &str, value: Option<T>) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(name, &value),
        None => Ok(()),
    }
}
