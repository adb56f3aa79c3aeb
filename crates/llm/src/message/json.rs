//! Messages as JSON, as used in session files, events and RPC.
//!
//! Names are in camel case, optional members without a value are omitted, and times are Unix milliseconds. Members are in pi's order, so
//! that files of both programs can be compared. Parsing is lenient: unknown members are ignored, missing or null content is an empty list,
//! and a bare string is one text.
//!
//! With the serializer `pinch_stdx::json::write`, numbers are written as in JavaScript.

use std::sync::Arc;

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::block::{Block, ToolCall};
use super::{AssistantMessage, Content, Cost, Message, SystemMessage, ToolDecl, ToolResult, Usage, UserMessage};
use crate::thinking::ThinkingLevel;

mod read;

pub use read::KnownMessage;

impl Message {
    /// Parses a message from a JSON value.
    ///
    /// # Errors
    /// Returns an error if the value is not an object or a known member has a wrong type.
    pub fn from_value(value: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(value)
    }

    /// Converts the message to a JSON value.
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

struct Sections<'a>(&'a [(Arc<str>, Option<Arc<str>>)]);

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
        map.serialize_entry("parameters", &**self.parameters.raw())?;
        if let Some(sampling) = &self.constrained_sampling {
            map.serialize_entry("constrainedSampling", sampling)?;
        }
        map.end()
    }
}

impl Serialize for UserMessage {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("role", "user")?;
        map.serialize_entry("content", &self.content)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        entry(&mut map, "provenance", self.provenance.as_ref())?;
        map.end()
    }
}

impl Serialize for AssistantMessage {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("role", "assistant")?;
        map.serialize_entry("content", &BlockList(&self.content))?;
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
        entry(&mut map, "durationMs", self.duration_ms)?;
        entry(&mut map, "thinkingLevel", self.thinking_level.map(ThinkingLevel::as_str))?;
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
        entry(&mut map, "usage", self.usage.as_ref())?;
        map.serialize_entry("isError", &self.is_error)?;
        entry(&mut map, "durationMs", self.duration_ms)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        entry(&mut map, "nestedCalls", self.nested_calls.as_ref())?;
        map.end()
    }
}

/// Writes a member if it has a value.
fn entry<M: SerializeMap, T: Serialize>(map: &mut M, name: &str, value: Option<T>) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(name, &value),
        None => Ok(()),
    }
}

struct BlockList<'a>(&'a [Arc<Block>]);

impl Serialize for BlockList<'_> {
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
        entry(&mut map, "totalFromProvider", self.total_from_provider)?;
        map.end()
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
    fn every_role_round_trips() {
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
