//! The required format of an answer.

use std::sync::Arc;

use serde_json::{Value, json};

/// The required format of an answer. The default is free text.
///
/// Every wire format transmits a JSON schema in its own way: `response_format` (OpenAI Chat Completions, Mistral), `text.format` (OpenAI
/// Responses, Azure, ChatGPT subscriptions), `output_config.format` (Anthropic), `responseJsonSchema` (Google, Vertex) and
/// `outputConfig.textFormat` (Bedrock). Anthropic and Bedrock have no JSON mode without a schema, and Cloud Code Assist cannot pass a
/// format to Claude models: these calls fail with [`InvalidRequest`](crate::error::LlmErrorKind::InvalidRequest) before anything is sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON that matches a schema.
    JsonSchema(JsonSchemaFormat),
}

/// A schema that the answer has to match.
///
/// If the provider supports strict schemas and this one can be expressed as such, the provider enforces it: optional properties then become
/// required and nullable. Otherwise the schema is sent unchanged. Numeric and length bounds are not sent to Anthropic and Bedrock, which
/// reject them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JsonSchemaFormat {
    /// A name for the provider: letters, digits, `_` and `-`.
    pub name: String,
    /// A description of the answer, for the model.
    pub description: Option<String>,
    /// The JSON Schema.
    pub schema: Arc<Value>,
}

impl ResponseFormat {
    /// Creates a format for JSON that matches a schema.
    pub fn json_schema(name: impl Into<String>, schema: impl Into<Arc<Value>>) -> Self {
        Self::JsonSchema(JsonSchemaFormat { name: name.into(), description: None, schema: schema.into() })
    }

    /// Creates a format for JSON that deserializes to a `T`. Parse it with [`Reply::json`](crate::client::Reply::json).
    #[cfg(feature = "schemars")]
    pub fn of<T: schemars::JsonSchema>() -> Self {
        let name: String = T::schema_name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        Self::json_schema(name, crate::schema::derived::schema_of::<T>())
    }

    /// Serializes the format, for programs that pass requests on.
    pub fn to_value(&self) -> Value {
        match self {
            Self::JsonObject => json!({"type": "json_object"}),
            Self::JsonSchema(JsonSchemaFormat { name, description, schema }) => {
                json!({"type": "json_schema", "name": name, "description": description, "schema": schema})
            }
        }
    }

    /// Parses the output of [`ResponseFormat::to_value`]; returns `None` for anything else.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value["type"].as_str()? {
            "json_object" => Some(Self::JsonObject),
            "json_schema" => Some(Self::JsonSchema(JsonSchemaFormat {
                name: value["name"].as_str()?.to_owned(),
                description: value["description"].as_str().map(str::to_owned),
                schema: Arc::new(value.get("schema")?.clone()),
            })),
            _ => None,
        }
    }
}

impl JsonSchemaFormat {
    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}

impl From<JsonSchemaFormat> for ResponseFormat {
    fn from(format: JsonSchemaFormat) -> Self {
        Self::JsonSchema(format)
    }
}
