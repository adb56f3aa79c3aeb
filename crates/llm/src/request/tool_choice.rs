//! Which tools a model may or must call.

use serde_json::{Value, json};

/// Which tools a model may or must call.
///
/// The choice reaches the request body of every wire format. Anthropic and Google refuse a choice without tools, so there it is left out
/// when the request declares none. Claude models cannot be forced to call a tool while they think: with thinking enabled, `Required` and
/// `Tool` are sent as `auto` in Anthropic's and Bedrock's formats.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call the tool of this name.
    Tool(String),
    /// A value in the wire format's own terms.
    Native(Value),
}

impl ToolChoice {
    /// Forces a call of one tool.
    pub fn tool(name: impl Into<String>) -> Self {
        Self::Tool(name.into())
    }

    /// The choice as JSON, for programs that pass requests on: a word, or an object with the tool's name or the native value.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Native(native) => json!({ "native": native }),
            choice => choice.encode("required", |name| json!({"type": "tool", "name": name})).unwrap_or_default(),
        }
    }

    /// Reads what [`ToolChoice::to_value`] writes; `None` for anything else.
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

    /// The value for a format that spells "required" as given and names a tool as `named` writes it.
    pub(crate) fn encode(&self, required: &str, named: impl FnOnce(&str) -> Value) -> Option<Value> {
        match self {
            Self::Auto => Some("auto".into()),
            Self::None => Some("none".into()),
            Self::Required => Some(required.into()),
            Self::Tool(name) => Some(named(name)),
            Self::Native(value) => Some(value.clone()).filter(|value| !value.is_null()),
        }
    }

    /// The value in the terms of OpenAI's Chat Completions.
    pub(crate) fn encode_openai(&self) -> Option<Value> {
        self.encode("required", |name| json!({"type": "function", "function": {"name": name}}))
    }

    /// The value in the terms of Anthropic's Messages.
    pub(crate) fn encode_anthropic(&self) -> Option<Value> {
        self.encode("any", |name| json!({"type": "tool", "name": name}))
    }
}
