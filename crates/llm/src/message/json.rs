//! Messages as JSON: the form of session files, events and RPC.
//!
//! Names are in camel case, optional members are left out when they have no value, times are Unix milliseconds. The order of members is the
//! one in which pi writes them, so that files of both can be compared. Readers are lenient: unknown members are passed over, a missing or
//! null content is an empty list, a bare string is one text.
//!
//! Numbers are written as JavaScript prints them when the serialiser is `pinch_stdx::json::write`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::{Deserializer, Error as _};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::block::{Block, Image, RawBlock, Text, Thinking, ToolCall};
use super::{
    AssistantMessage, Content, Cost, Message, OtherMessage, StopReason, SystemMessage, ToolDecl, ToolResult, Usage,
    UserMessage,
};
use crate::ids::{ApiId, ModelId, ProviderId, ToolCallId};
use crate::thinking::ThinkingLevel;

impl Message {
    /// Reads a message from a JSON value.
    ///
    /// # Errors
    /// When the value is no object or a known member has a wrong type.
    pub fn from_value(value: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(value)
    }

    /// The message as a JSON value.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::System(message) => message.serialize(to),
            Self::User(message) => message.serialize(to),
            Self::Assistant(message) => message.serialize(to),
            Self::ToolResult(message) => message.serialize(to),
            Self::Other(message) => message.raw.serialize(to),
        }
    }
}

impl Serialize for SystemMessage {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("role", "system")?;
        map.serialize_entry("content", &self.content)?;
        if !self.sections.is_empty() {
            map.serialize_entry("sections", &Sections(&self.sections))?;
        }
        map.serialize_entry("timestamp", &self.timestamp)?;
        if !self.tools_removed.is_empty() {
            let removed: Vec<_> = self.tools_removed.iter().map(|name| RemovedTool { name: name.clone() }).collect();
            map.serialize_entry("toolsRemoved", &removed)?;
        }
        if !self.tools_added.is_empty() {
            map.serialize_entry("toolsAdded", &self.tools_added)?;
        }
        map.end()
    }
}

struct Sections<'a>(&'a [(String, Option<String>)]);

impl Serialize for Sections<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, text)| (name, text)))
    }
}

#[derive(Serialize, Deserialize)]
struct RemovedTool {
    name: String,
}

impl Serialize for ToolDecl {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("description", &self.description)?;
        map.serialize_entry("parameters", &*self.parameters)?;
        if let Some(sampling) = &self.constrained_sampling {
            map.serialize_entry("constrainedSampling", sampling)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ToolDecl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            name: String,
            #[serde(default)]
            description: String,
            #[serde(default)]
            parameters: Value,
            #[serde(default)]
            constrained_sampling: Option<Value>,
        }
        let wire = Wire::deserialize(from)?;
        Ok(Self {
            name: wire.name,
            description: wire.description,
            parameters: Arc::new(wire.parameters),
            constrained_sampling: wire.constrained_sampling,
        })
    }
}

impl Serialize for UserMessage {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("role", "user")?;
        map.serialize_entry("content", &self.content)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        map.end()
    }
}

impl Serialize for AssistantMessage {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("role", "assistant")?;
        map.serialize_entry("content", &Blocks(&self.content))?;
        map.serialize_entry("api", &self.api)?;
        map.serialize_entry("provider", &self.provider)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("usage", &self.usage)?;
        map.serialize_entry("stopReason", self.stop_reason.as_str())?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        entry(&mut map, "responseId", self.response_id.as_ref())?;
        entry(&mut map, "responseModel", self.response_model.as_ref())?;
        entry(&mut map, "rawStopReason", self.raw_stop_reason.as_ref())?;
        entry(&mut map, "errorMessage", self.error_message.as_ref())?;
        entry(&mut map, "diagnostics", self.diagnostics.as_ref())?;
        entry(&mut map, "providerThinkingLevel", self.provider_thinking_level.as_ref())?;
        entry(&mut map, "thinkingLevel", self.thinking_level.map(ThinkingLevel::as_str))?;
        entry(&mut map, "durationMs", self.duration_ms)?;
        map.end()
    }
}

impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("role", "toolResult")?;
        map.serialize_entry("toolCallId", &self.tool_call_id)?;
        map.serialize_entry("toolName", &self.tool_name)?;
        map.serialize_entry("content", &self.content)?;
        entry(&mut map, "details", self.details.as_ref())?;
        map.serialize_entry("isError", &self.is_error)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        entry(&mut map, "usage", self.usage.as_ref())?;
        entry(&mut map, "durationMs", self.duration_ms)?;
        entry(&mut map, "nestedCalls", self.nested_calls.as_ref())?;
        map.end()
    }
}

/// Writes a member that has a value.
fn entry<M: SerializeMap, T: Serialize>(map: &mut M, name: &str, value: Option<T>) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(name, &value),
        None => Ok(()),
    }
}

struct Blocks<'a>(&'a [Arc<Block>]);

impl Serialize for Blocks<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|block| &**block))
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => to.serialize_str(text),
            Self::Blocks(blocks) => blocks.serialize(to),
        }
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => {
                let mut map = to.serialize_map(None)?;
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &text.text)?;
                entry(&mut map, "textSignature", text.signature.as_ref())?;
                map.end()
            }
            Self::Thinking(thinking) => {
                let mut map = to.serialize_map(None)?;
                map.serialize_entry("type", "thinking")?;
                map.serialize_entry("thinking", &thinking.thinking)?;
                entry(&mut map, "thinkingSignature", thinking.signature.as_ref())?;
                entry(&mut map, "redacted", thinking.redacted.then_some(true))?;
                map.end()
            }
            Self::Image(image) => {
                let mut map = to.serialize_map(None)?;
                map.serialize_entry("type", "image")?;
                map.serialize_entry("data", &image.data)?;
                map.serialize_entry("mimeType", &image.mime_type)?;
                map.end()
            }
            Self::ToolCall(call) => call.serialize(to),
            Self::Other(other) => other.raw.serialize(to),
        }
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("type", "toolCall")?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("arguments", &self.arguments)?;
        entry(&mut map, "thoughtSignature", self.thought_signature.as_ref())?;
        entry(&mut map, "namespace", self.namespace.as_ref())?;
        entry(&mut map, "argumentsError", self.arguments_error.as_ref())?;
        map.end()
    }
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("input", &self.input)?;
        map.serialize_entry("output", &self.output)?;
        map.serialize_entry("cacheRead", &self.cache_read)?;
        map.serialize_entry("cacheWrite", &self.cache_write)?;
        entry(&mut map, "reasoning", self.reasoning)?;
        map.serialize_entry("totalTokens", &self.total_tokens)?;
        map.serialize_entry("cost", &self.cost)?;
        entry(&mut map, "cacheWrite1h", self.cache_write_1h)?;
        map.end()
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("input", &self.input)?;
        map.serialize_entry("output", &self.output)?;
        map.serialize_entry("cacheRead", &self.cache_read)?;
        map.serialize_entry("cacheWrite", &self.cache_write)?;
        map.serialize_entry("total", &self.total)?;
        entry(&mut map, "totalFromProvider", self.total_from_provider.then_some(true))?;
        map.end()
    }
}

/// Every member that a known message may have. One flat shape for all roles reads four times faster than a tagged enum, which would have
/// to buffer the object until it has met `role`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FlatMessage<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(default)]
    content: Lenient,
    #[serde(default)]
    timestamp: Option<f64>,
    // system
    #[serde(default)]
    sections: Option<Map<String, Value>>,
    #[serde(default)]
    tools_added: Option<Vec<ToolDecl>>,
    #[serde(default)]
    tools_removed: Option<Vec<RemovedTool>>,
    // assistant
    #[serde(default)]
    api: Option<ApiId>,
    #[serde(default)]
    provider: Option<ProviderId>,
    #[serde(default)]
    model: Option<ModelId>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    error_message: Option<String>,
    #[serde(default)]
    response_id: Option<String>,
    #[serde(default)]
    response_model: Option<String>,
    #[serde(default)]
    raw_stop_reason: Option<String>,
    #[serde(default)]
    thinking_level: Option<String>,
    #[serde(default)]
    provider_thinking_level: Option<String>,
    #[serde(default)]
    duration_ms: Option<f64>,
    #[serde(default)]
    diagnostics: Option<Value>,
    // tool result
    #[serde(default)]
    tool_call_id: Option<ToolCallId>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    details: Option<Value>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    nested_calls: Option<Value>,
}

impl<'de> Deserialize<'de> for Message {
    /// Reads any message. Use [`Message::from_json`] for text: it is several times faster.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Map::<String, Value>::deserialize(from)?;
        if is_known_role(raw.get("role").and_then(Value::as_str).unwrap_or("")) {
            let flat = FlatMessage::deserialize(Value::Object(raw)).map_err(D::Error::custom)?;
            Ok(flat.into_message())
        } else {
            Ok(Self::Other(OtherMessage { raw }))
        }
    }
}

fn is_known_role(role: &str) -> bool {
    matches!(role, "system" | "user" | "assistant" | "toolResult")
}

impl Message {
    /// Reads a message from JSON text in one pass.
    ///
    /// # Errors
    /// When the text is no JSON object or a known member has a wrong type.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Role<'a> {
            #[serde(borrow, default)]
            role: Cow<'a, str>,
        }
        // Known roles are by far the most frequent, and their members fit the flat shape: try that first.
        match serde_json::from_str::<FlatMessage<'_>>(text) {
            Ok(flat) if is_known_role(&flat.role) => Ok(flat.into_message()),
            Ok(_) => Ok(Self::Other(OtherMessage { raw: serde_json::from_str(text)? })),
            Err(error) => match serde_json::from_str::<Role<'_>>(text) {
                Ok(role) if !is_known_role(&role.role) => {
                    Ok(Self::Other(OtherMessage { raw: serde_json::from_str(text)? }))
                }
                _ => Err(error),
            },
        }
    }
}

impl FlatMessage<'_> {
    fn into_message(self) -> Message {
        let timestamp = self.timestamp.map_or(0, to_ms);
        match &*self.role {
            "system" => Message::System(SystemMessage {
                content: self.content.or_empty_text(),
                sections: self
                    .sections
                    .unwrap_or_default()
                    .into_iter()
                    .map(|(name, text)| (name, text.as_str().map(str::to_owned)))
                    .collect(),
                tools_added: self.tools_added.unwrap_or_default(),
                tools_removed: self.tools_removed.unwrap_or_default().into_iter().map(|t| t.name).collect(),
                timestamp,
            }),
            "user" => Message::User(UserMessage { content: self.content.or_empty(), timestamp }),
            "assistant" => Message::Assistant(Arc::new(AssistantMessage {
                content: self.content.into_blocks().into_iter().map(Arc::new).collect(),
                api: self.api.unwrap_or_else(|| ApiId::new("")),
                provider: self.provider.unwrap_or_else(|| ProviderId::new("")),
                model: self.model.unwrap_or_else(|| ModelId::new("")),
                usage: self.usage.unwrap_or_default(),
                stop_reason: self.stop_reason.as_deref().map_or(StopReason::Stop, stop_reason),
                error_message: self.error_message,
                timestamp,
                response_id: self.response_id,
                response_model: self.response_model,
                raw_stop_reason: self.raw_stop_reason,
                thinking_level: self.thinking_level.as_deref().and_then(ThinkingLevel::parse),
                provider_thinking_level: self.provider_thinking_level,
                duration_ms: self.duration_ms.map(to_ms),
                diagnostics: self.diagnostics,
            })),
            _ => Message::ToolResult(ToolResult {
                tool_call_id: self.tool_call_id.unwrap_or_else(|| ToolCallId::new("")),
                tool_name: self.tool_name.unwrap_or_default(),
                content: self.content.into_blocks(),
                details: self.details,
                is_error: self.is_error.unwrap_or(false),
                timestamp,
                usage: self.usage,
                duration_ms: self.duration_ms.map(to_ms),
                nested_calls: self.nested_calls,
            }),
        }
    }
}

/// JavaScript numbers are floats; times fit into an integer.
fn to_ms(number: f64) -> i64 {
    number as i64
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "stop" => StopReason::Stop,
        "length" => StopReason::Length,
        "toolUse" => StopReason::ToolUse,
        "aborted" => StopReason::Aborted,
        "pending" => StopReason::Pending,
        "deferred" => StopReason::Deferred,
        // A reason of some later version: the one that is never taken for a good answer.
        _ => StopReason::Error,
    }
}

/// Content as it may be found: missing, null, a string, or a list.
#[derive(Default)]
struct Lenient(Option<Content>);

impl Lenient {
    fn or_empty(self) -> Content {
        self.0.unwrap_or_default()
    }

    fn or_empty_text(self) -> Content {
        self.0.unwrap_or_else(|| Content::Text(String::new()))
    }

    fn into_blocks(self) -> Vec<Block> {
        match self.0 {
            None => Vec::new(),
            Some(Content::Blocks(blocks)) => blocks,
            Some(Content::Text(text)) => vec![Block::text(text)],
        }
    }
}

impl<'de> Deserialize<'de> for Lenient {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Lenient;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or a list of content blocks")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Lenient, E> {
                self.visit_string(text.to_owned())
            }

            fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Lenient, E> {
                Ok(Lenient(Some(Content::Text(text))))
            }

            fn visit_unit<E: serde::de::Error>(self) -> Result<Lenient, E> {
                Ok(Lenient(None))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Lenient, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Lenient(Some(Content::Blocks(blocks))))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Lenient, A::Error> {
                // A foreign message may have any content; it is read again as a whole.
                let raw = Map::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Lenient(Some(Content::Blocks(vec![Block::Other(RawBlock { raw: Value::Object(raw) })]))))
            }
        }
        from.deserialize_any(Visitor)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Lenient::deserialize(from).map(Lenient::or_empty)
    }
}

/// A block's members one by one, gathered without knowing its type yet.
#[derive(Default)]
struct FlatBlock {
    kind: String,
    text: Option<String>,
    text_signature: Option<String>,
    thinking: Option<String>,
    thinking_signature: Option<String>,
    redacted: bool,
    data: Option<String>,
    mime_type: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<Value>,
    thought_signature: Option<String>,
    arguments_error: Option<String>,
    namespace: Option<String>,
    rest: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Block;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a content block")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Block, A::Error> {
                let mut flat = FlatBlock::default();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    match &*key {
                        "type" => flat.kind = map.next_value()?,
                        "text" => flat.text = map.next_value()?,
                        "textSignature" => flat.text_signature = map.next_value()?,
                        "thinking" => flat.thinking = map.next_value()?,
                        "thinkingSignature" => flat.thinking_signature = map.next_value()?,
                        "redacted" => flat.redacted = map.next_value::<Option<bool>>()?.unwrap_or(false),
                        "data" => match map.next_value()? {
                            Value::String(text) => flat.data = Some(text),
                            other => drop(flat.rest.insert("data".into(), other)),
                        },
                        "mimeType" => flat.mime_type = map.next_value()?,
                        "id" => match map.next_value()? {
                            Value::String(text) => flat.id = Some(text),
                            other => drop(flat.rest.insert("id".into(), other)),
                        },
                        "name" => match map.next_value()? {
                            Value::String(text) => flat.name = Some(text),
                            other => drop(flat.rest.insert("name".into(), other)),
                        },
                        "arguments" => flat.arguments = map.next_value()?,
                        "thoughtSignature" => flat.thought_signature = map.next_value()?,
                        "argumentsError" => flat.arguments_error = map.next_value()?,
                        "namespace" => flat.namespace = map.next_value()?,
                        other => {
                            let name = other.to_owned();
                            flat.rest.insert(name, map.next_value()?);
                        }
                    }
                }
                Ok(flat.into_block())
            }
        }
        from.deserialize_map(Visitor)
    }
}

impl FlatBlock {
    fn into_block(self) -> Block {
        match self.kind.as_str() {
            "text" => Block::Text(Text { text: self.text.unwrap_or_default(), signature: self.text_signature }),
            "thinking" => Block::Thinking(Thinking {
                thinking: self.thinking.unwrap_or_default(),
                signature: self.thinking_signature,
                redacted: self.redacted,
            }),
            "image" => Block::Image(Image {
                data: self.data.unwrap_or_default(),
                mime_type: self.mime_type.unwrap_or_default(),
            }),
            "toolCall" => Block::ToolCall(ToolCall {
                id: ToolCallId::from(self.id.unwrap_or_default()),
                name: self.name.unwrap_or_default(),
                arguments: match self.arguments {
                    Some(Value::Object(arguments)) => arguments,
                    _ => Map::new(),
                },
                thought_signature: self.thought_signature,
                arguments_error: self.arguments_error,
                namespace: self.namespace,
            }),
            _ => Block::Other(RawBlock { raw: Value::Object(self.into_raw()) }),
        }
    }

    fn into_raw(self) -> Map<String, Value> {
        let mut raw = Map::new();
        raw.insert("type".into(), self.kind.into());
        let strings = [
            ("text", self.text),
            ("textSignature", self.text_signature),
            ("thinking", self.thinking),
            ("thinkingSignature", self.thinking_signature),
            ("data", self.data),
            ("mimeType", self.mime_type),
            ("id", self.id),
            ("name", self.name),
            ("thoughtSignature", self.thought_signature),
            ("argumentsError", self.arguments_error),
            ("namespace", self.namespace),
        ];
        raw.extend(strings.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into()))));
        raw.extend(self.arguments.map(|arguments| ("arguments".to_owned(), arguments)));
        raw.extend(self.rest);
        raw
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[derive(Default)]
        struct Wire {
            input: Option<f64>,
            output: Option<f64>,
            cache_read: Option<f64>,
            cache_write: Option<f64>,
            reasoning: Option<f64>,
            total_tokens: Option<f64>,
            cost: Option<WireCost>,
            #[serde(rename = "cacheWrite1h")]
            cache_write_1h: Option<f64>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct WireCost {
            input: Option<f64>,
            output: Option<f64>,
            cache_read: Option<f64>,
            cache_write: Option<f64>,
            total: Option<f64>,
            total_from_provider: Option<bool>,
        }
        // Files hold floats here at times; a count below zero is a provider's mistake.
        fn count(number: Option<f64>) -> u64 {
            number.map_or(0, |n| n.max(0.0) as u64)
        }
        let wire = Wire::deserialize(from)?;
        let cost = wire.cost.unwrap_or_default();
        Ok(Self {
            input: count(wire.input),
            output: count(wire.output),
            cache_read: count(wire.cache_read),
            cache_write: count(wire.cache_write),
            reasoning: wire.reasoning.map(|n| count(Some(n))),
            total_tokens: count(wire.total_tokens),
            cost: Cost {
                input: cost.input.unwrap_or(0.0),
                output: cost.output.unwrap_or(0.0),
                cache_read: cost.cache_read.unwrap_or(0.0),
                cache_write: cost.cache_write.unwrap_or(0.0),
                total: cost.total.unwrap_or(0.0),
                total_from_provider: cost.total_from_provider.unwrap_or(false),
            },
            cache_write_1h: wire.cache_write_1h.map(|n| count(Some(n))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(text: &str) {
        let message = Message::from_json(text).expect(text);
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(Message::from_value(&value).unwrap(), message, "both ways of reading agree");
    }

    #[test]
    fn every_role_comes_back_as_it_was() {
        round_trip(r#"{"role":"user","content":"hi","timestamp":1}"#);
        round_trip(
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"}],"timestamp":1}"#,
        );
        round_trip(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"EqQB"},{"type":"toolCall","id":"t","name":"read","arguments":{"b":1,"a":2}}],"api":"anthropic-messages","provider":"anthropic","model":"m","usage":{"input":12,"output":9,"cacheRead":100,"cacheWrite":7,"totalTokens":128,"cost":{"input":0.5,"output":0.5,"cacheRead":0.5,"cacheWrite":0.5,"total":2.5}},"stopReason":"toolUse","timestamp":1700000000000,"responseId":"msg_01"}"#,
        );
        round_trip(
            r#"{"role":"toolResult","toolCallId":"t","toolName":"read","content":[],"details":{"x":null},"isError":false,"timestamp":3}"#,
        );
        round_trip(r#"{"role":"bashExecution","command":"ls","exitCode":0,"z":{"content":1},"timestamp":3}"#);
        round_trip(
            r#"{"role":"system","content":"","sections":{"tools":"x","old":null},"timestamp":2,"toolsRemoved":[{"name":"b"}],"toolsAdded":[{"name":"a","description":"d","parameters":{"type":"object"}}]}"#,
        );
    }

    #[test]
    fn readers_are_lenient() {
        let message = Message::from_json(r#"{"role":"assistant","content":null,"x":1}"#).unwrap();
        assert!(message.as_assistant().unwrap().content.is_empty());
        let odd = r#"{"role":"custom","content":{"any":1},"timestamp":"later","id":7}"#;
        assert_eq!(Message::from_json(odd).unwrap().to_value(), serde_json::from_str::<Value>(odd).unwrap());
        let block = r#"{"role":"user","content":[{"type":"video","id":5,"url":"u"}],"timestamp":1}"#;
        round_trip(block);
    }

    #[test]
    fn scratch_members_of_old_files_are_dropped() {
        let old = r#"{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"b","arguments":{"x":1},"partialJson":"{","index":2}]}"#;
        let Message::Assistant(message) = Message::from_json(old).unwrap() else { panic!("assistant") };
        assert_eq!(
            serde_json::to_string(&*message.content[0]).unwrap(),
            r#"{"type":"toolCall","id":"a","name":"b","arguments":{"x":1}}"#
        );
    }
}
