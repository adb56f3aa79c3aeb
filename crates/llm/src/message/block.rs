//! Content blocks of messages.

use serde_json::{Map, Value};

use crate::ids::ToolCallId;

/// One piece of a message's content.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text(Text),
    /// The model's reasoning.
    Thinking(Thinking),
    /// An image; only in user messages and tool results.
    Image(Image),
    /// A tool call; only in assistant messages.
    ToolCall(ToolCall),
    /// A block of an unknown type: preserved, never sent.
    Other(RawBlock),
}

impl Block {
    /// Creates a text block without a signature.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into(), signature: None })
    }

    /// Returns the text, if this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// Returns the tool call, if this is one.
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

/// Text, with the provider's opaque signature if there is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Opaque signature; its meaning depends on the wire format.
    pub signature: Option<String>,
}

impl Text {
    /// Returns whether the text accompanies the work and is not part of the answer, which OpenAI's Responses format records in the
    /// signature.
    pub fn is_commentary(&self) -> bool {
        let signature = self.signature.as_deref().filter(|signature| signature.starts_with('{'));
        let read = signature.and_then(|signature| serde_json::from_str::<serde_json::Value>(signature).ok());
        read.is_some_and(|read| read["phase"] == "commentary")
    }
}

/// The model's reasoning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thinking {
    /// The readable reasoning; a fixed notice if it is redacted.
    pub thinking: String,
    /// A provider's signature, a whole reasoning item, or the name of a reasoning field, depending on the wire format.
    pub signature: Option<String>,
    /// Whether the provider hid the reasoning; `signature` holds its opaque payload.
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
    /// Opaque signature; its meaning depends on the wire format.
    pub thought_signature: Option<String>,
    /// Why the final argument text is not a JSON object, including the raw text. Such a call is never executed.
    pub arguments_error: Option<String>,
    /// Namespace of the tool in the Responses format.
    pub namespace: Option<String>,
}

impl ToolCall {
    /// Creates a call without optional members.
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

    /// Validates the arguments and returns them, coerced where the schema is unambiguous.
    ///
    /// # Errors
    /// Returns [`ArgumentsError`](crate::schema::ArgumentsError) if they are invalid, or if the text of the arguments was not a JSON object.
    #[cfg(feature = "schema")]
    pub fn validated_arguments(
        &self,
        schema: &crate::schema::Schema,
    ) -> Result<Map<String, Value>, crate::schema::ArgumentsError> {
        match &self.arguments_error {
            Some(why) => Err(crate::schema::ArgumentsError {
                text: format!("Invalid arguments for tool \"{}\": {why}", self.name),
            }),
            None => crate::schema::validate_tool_arguments(&self.name, schema, &self.arguments),
        }
    }
}

/// A block of an unknown type.
#[derive(Clone, Debug, PartialEq)]
pub struct RawBlock {
    /// The whole block.
    pub raw: Value,
}

#[cfg(all(test, feature = "schema"))]
mod tests {
    use super::*;
    use crate::schema::Schema;

    #[test]
    fn arguments_that_are_no_object_are_invalid_for_every_schema() {
        let schema = Schema::new(serde_json::json!({}));
        let mut call = ToolCall::new("1", "t", Map::new());
        assert_eq!(call.validated_arguments(&schema), Ok(Map::new()));
        call.arguments_error = Some("invalid JSON: x".into());
        let error = call.validated_arguments(&schema).unwrap_err();
        assert_eq!(error.text, "Invalid arguments for tool \"t\": invalid JSON: x");
    }
}
