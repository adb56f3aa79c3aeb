//! Which tools a model may or must call.

use serde_json::{Value, json};

/// Which tools a model may or must call.
///
/// All wire formats support the choice. Anthropic and Google reject a choice without tools, so it is omitted if the request declares none.
/// Claude models cannot be forced to call a tool while they think: with thinking enabled, `Required` and `Tool` are sent as `auto` in
/// Anthropic's and Bedrock's formats.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call the named tool.
    Tool(String),
    /// A native value of the wire format.
    Native(Value),
}

impl ToolChoice {
    /// Forces a call of one tool.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::Tool(name.into())
    }

    /// Serializes the choice, for programs that pass requests on: a word, or an object with the tool's name or the native value.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Native(native) => json!({ "native": native }),
            choice => choice.encode("required", |name| json!({"type": "tool", "name": name})).unwrap_or_default(),
        }
    }

    /// Parses the output of [`ToolChoice::to_value`]; returns `None` for anything else.
    pub fn from_value(value: &Value) -> Option<Self> {
        Some(match value.as_str() {
            Some("auto") => Self::Auto,
            Some("none") => Self::None,
            Some("required") => Self::Required,
            Some(_) => return None,
            None if value["type"] == "tool" => Self::Tool(value["name"].as_str()?.to_owned()),
            None => Self::Native(value.get("native")?.clone()),
        })
    }

    /// Encodes the value for a format with the given word for "required", and `named` for naming a tool.
    pub(crate) fn encode(&self, required: &str, named: impl FnOnce(&str) -> Value) -> Option<Value> {
        match self {
            Self::Auto => Some("auto".into()),
            Self::None => Some("none".into()),
            Self::Required => Some(required.into()),
            Self::Tool(name) => Some(named(name)),
            Self::Native(value) => Some(value.clone()).filter(|value| !value.is_null()),
        }
    }

    /// Encodes the value for OpenAI's Chat Completions.
    pub(crate) fn encode_openai(&self) -> Option<Value> {
        self.encode("required", |name| json!({"type": "function", "function": {"name": name}}))
    }

    /// Encodes the value for Anthropic's Messages.
    pub(crate) fn encode_anthropic(&self) -> Option<Value> {
        self.encode("any", |name| json!({"type": "tool", "name": name}))
    }
}
