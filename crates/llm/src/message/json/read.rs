//! Parsing messages.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value};

use super::RemovedTool;
use crate::ids::{ApiId, ModelId, ProviderId, ToolCallId};
use crate::message::block::{Block, Image, RawBlock, Text, Thinking, ToolCall};
use crate::message::{
    AssistantMessage, Content, Cost, Message, OtherMessage, StopReason, SystemMessage, ToolDecl, ToolResult, Usage,
    UserMessage,
};
use crate::thinking::ThinkingLevel;

/// Every member that a known message may have. One flat shape for all roles parses four times faster than a tagged enum, which would have
/// to buffer the object until it reaches `role`.
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
    // The name used by other programs.
    #[serde(default)]
    tool_use_id: Option<ToolCallId>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    provenance: Option<Value>,
    #[serde(default)]
    details: Option<Value>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    nested_calls: Option<Value>,
}

impl<'de> Deserialize<'de> for Message {
    /// Deserializes any message. For text, use [`Message::from_json`], which is several times faster.
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
    /// Parses a message from JSON text in one pass.
    ///
    /// # Errors
    /// Returns an error if the text is not a JSON object or a known member has a wrong type.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct RoleMember<'a> {
            #[serde(borrow, default)]
            role: Cow<'a, str>,
        }
        // Known roles are by far the most frequent, and their members fit the flat shape, so try that first.
        match serde_json::from_str::<FlatMessage<'_>>(text) {
            Ok(flat) if is_known_role(&flat.role) => Ok(flat.into_message()),
            Ok(_) => Ok(Self::Other(OtherMessage { raw: serde_json::from_str(text)? })),
            Err(error) => match serde_json::from_str::<RoleMember<'_>>(text) {
                Ok(role) if !is_known_role(&role.role) => {
                    Ok(Self::Other(OtherMessage { raw: serde_json::from_str(text)? }))
                }
                _ => Err(error),
            },
        }
    }
}

/// A message of a known role, parsed from text in one pass without intermediate copies.
///
/// Other roles are errors: parse those with [`Message::from_json`].
#[derive(Clone, Debug)]
pub struct KnownMessage(pub Message);

impl<'de> Deserialize<'de> for KnownMessage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let flat = FlatMessage::deserialize(from)?;
        if !is_known_role(&flat.role) {
            return Err(D::Error::custom("an unknown role"));
        }
        Ok(Self(flat.into_message()))
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
                    .map(|(name, text)| (name.into(), text.as_str().map(Into::into)))
                    .collect(),
                tools_added: self.tools_added.unwrap_or_default(),
                tools_removed: self.tools_removed.unwrap_or_default().into_iter().map(|t| t.name).collect(),
                timestamp,
            }),
            "user" => Message::User(UserMessage {
                content: self.content.or_empty(),
                timestamp,
                // Ignore an invalid one.
                provenance: self.provenance.and_then(|raw| serde_json::from_value(raw).ok()).map(Arc::new),
            }),
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
                tool_call_id: self.tool_call_id.or(self.tool_use_id).unwrap_or_else(|| ToolCallId::new("")),
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

/// Converts a time: JavaScript numbers are floats, but times fit an integer.
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
        // A reason from a later version, mapped to one that is never mistaken for a successful answer.
        _ => StopReason::Error,
    }
}

/// Content in any form: missing, null, a string, or a list.
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
        struct BlockVisitor;
        impl<'de> serde::de::Visitor<'de> for BlockVisitor {
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
                // Nearly all messages have one block.
                let mut blocks = Vec::with_capacity(1);
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Lenient(Some(Content::Blocks(blocks))))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Lenient, A::Error> {
                // A foreign message may have any content, so parse it again as a whole.
                let raw = Map::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Lenient(Some(Content::Blocks(vec![Block::Other(RawBlock { raw: Value::Object(raw) })]))))
            }
        }
        from.deserialize_any(BlockVisitor)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Lenient::deserialize(from).map(Lenient::or_empty)
    }
}

/// A text that is borrowed if possible.
#[derive(Deserialize, Default)]
struct Word<'a>(#[serde(borrow)] Cow<'a, str>);

/// A block's members, collected before its type is known.
#[derive(Default)]
struct FlatBlock<'a> {
    kind: Word<'a>,
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
        struct ContentVisitor;
        impl<'de> serde::de::Visitor<'de> for ContentVisitor {
            type Value = Block;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a content block")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Block, A::Error> {
                let mut flat = FlatBlock::default();
                while let Some(key) = map.next_key::<Word<'de>>()? {
                    match &*key.0 {
                        "type" => flat.kind = map.next_value()?,
                        "text" => flat.text = map.next_value()?,
                        "textSignature" => flat.text_signature = map.next_value()?,
                        "thinking" => flat.thinking = map.next_value()?,
                        "thinkingSignature" => flat.thinking_signature = signature(map.next_value()?),
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
        from.deserialize_map(ContentVisitor)
    }
}

/// Returns a signature: a text, or a reasoning item as stored by other programs.
fn signature(value: Option<Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text),
        item @ Value::Object(_) => Some(item.to_string()),
        _ => None,
    }
}

/// Returns the signature of thinking under the names used by other programs.
fn foreign_signature(rest: &Map<String, Value>, thought_signature: Option<String>) -> Option<String> {
    let named = ["signature", "thought_signature"].iter().find_map(|name| rest.get(*name)?.as_str());
    named.map(str::to_owned).or(thought_signature)
}

impl FlatBlock<'_> {
    fn into_block(self) -> Block {
        match &*self.kind.0 {
            "text" => Block::Text(Text { text: self.text.unwrap_or_default(), signature: self.text_signature }),
            "thinking" => Block::Thinking(Thinking {
                thinking: self.thinking.unwrap_or_default(),
                signature: self.thinking_signature.or_else(|| foreign_signature(&self.rest, self.thought_signature)),
                redacted: self.redacted,
            }),
            "image" => Block::Image(Image {
                data: self.data.unwrap_or_default(),
                mime_type: self.mime_type.unwrap_or_default(),
            }),
            // A call without arguments was never complete: no model can have made it, and no tool may run it.
            "toolCall" if self.arguments.as_ref().is_none_or(Value::is_null) => {
                Block::Other(RawBlock { raw: Value::Object(self.into_raw()) })
            }
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
        raw.insert("type".into(), self.kind.0.into());
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
        struct WireBlocks {
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
        // Files sometimes contain floats; a negative or overflowing count is a provider's bug.
        fn count(number: Option<f64>) -> u64 {
            number.map_or(0, |n| n.clamp(0.0, (1_u64 << 53) as f64) as u64)
        }
        let wire = WireBlocks::deserialize(from)?;
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
                total_from_provider: cost.total_from_provider,
            },
            cache_write_1h: wire.cache_write_1h.map(|n| count(Some(n))),
        })
    }
}

impl<'de> Deserialize<'de> for ToolDecl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WireContent {
            name: String,
            #[serde(default)]
            description: String,
            #[serde(default)]
            parameters: Value,
            #[serde(default)]
            constrained_sampling: Option<Value>,
        }
        let wire = WireContent::deserialize(from)?;
        Ok(Self {
            name: wire.name,
            description: wire.description,
            parameters: wire.parameters.into(),
            constrained_sampling: wire.constrained_sampling,
        })
    }
}
