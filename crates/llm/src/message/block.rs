//! Content blocks: what messages are made of.

use serde_json::{Map, Value};

use crate::ids::ToolCallId;

/// One piece of a message's content.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text(Text),
    /// The model's reasoning.
    Thinking(Thinking),
    /// An image; in user messages and tool results only.
    Image(Image),
    /// A tool call; in assistant messages only.
    ToolCall(ToolCall),
    /// A block of a type this crate does not know: kept, never sent.
    Other(RawBlock),
}

impl Block {
    /// A text block without signature.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into(), signature: None })
    }

    /// The text, when this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The tool call, when this is one.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

/// Joins the text blocks of a list.
pub fn join_text(blocks: &[Block], separator: &str) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
    texts.join(separator)
}

/// Text, with the provider's opaque signature where there is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Opaque to us; meaning by wire format.
    pub signature: Option<String>,
}

/// The model's reasoning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thinking {
    /// The readable reasoning; a fixed notice when it is redacted.
    pub thinking: String,
    /// A provider's signature, a whole reasoning item, or the name of a reasoning field: meaning by wire format.
    pub signature: Option<String>,
    /// The provider hid the reasoning; `signature` holds its opaque payload.
    pub redacted: bool,
}

/// An image.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// The file's bytes in base64, without a `data:` prefix.
    pub data: String,
    /// E.g. `image/png`.
    pub mime_type: String,
}

/// A tool call by the model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The call's id, by which its result is matched.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// The arguments, always an object.
    pub arguments: Map<String, Value>,
    /// Opaque to us; meaning by wire format.
    pub thought_signature: Option<String>,
    /// Why the final argument text is not a JSON object, with the raw text. Such a call is never executed.
    pub arguments_error: Option<String>,
    /// Namespace of the tool in the Responses format.
    pub namespace: Option<String>,
}

impl ToolCall {
    /// A call with nothing but what every call has.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments,
            thought_signature: None,
            arguments_error: None,
            namespace: None,
        }
    }
}

/// A block of a type this crate does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct RawBlock {
    /// The whole block.
    pub raw: Value,
}
