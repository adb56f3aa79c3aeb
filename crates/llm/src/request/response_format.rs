//! The form in which a model has to answer.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Request;
use crate::error::{LlmError, LlmErrorKind};
use crate::wire::strict::{self, Limits};

/// The form in which a model has to answer. Without one it answers in free text.
///
/// Every wire format sends a JSON schema in its own way: `response_format` (OpenAI Chat Completions, Mistral), `text.format` (OpenAI
/// Responses, Azure, ChatGPT subscriptions), `output_config.format` (Anthropic), `responseJsonSchema` (Google, Vertex) and
/// `outputConfig.textFormat` (Bedrock). Anthropic and Bedrock have no JSON mode without a schema, and Cloud Code Assist cannot pass a
/// format on to Claude models: there the call fails with [`LlmErrorKind::InvalidRequest`] before anything is sent.
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
/// Where the provider offers strict schemas and this one can be expressed as such, the provider enforces it: optional properties then become
/// required and nullable. Otherwise the schema is sent as it is. Numeric and length bounds are not sent to Anthropic and Bedrock, which
/// refuse them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JsonSchemaFormat {
    /// A name for the provider: letters, digits, `_` and `-`.
    pub name: String,
    /// What the answer is, for the model.
    pub description: Option<String>,
    /// The JSON Schema.
    pub schema: Arc<Value>,
}

impl ResponseFormat {
    /// JSON that matches a schema.
    pub fn json_schema(name: impl Into<String>, schema: impl Into<Arc<Value>>) -> Self {
        Self::JsonSchema(JsonSchemaFormat { name: name.into(), description: None, schema: schema.into() })
    }

    /// JSON from which a `T` can be read. Read it with [`Reply::json`](crate::client::Reply::json).
    #[cfg(feature = "schemars")]
    pub fn of<T: schemars::JsonSchema>() -> Self {
        let name: String = T::schema_name().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        Self::json_schema(name, crate::schema::derived::schema_of::<T>())
    }

    /// The format as JSON, for programs that pass requests on.
    pub fn to_value(&self) -> Value {
        match self {
            Self::JsonObject => json!({"type": "json_object"}),
            Self::JsonSchema(JsonSchemaFormat { name, description, schema }) => {
                json!({"type": "json_schema", "name": name, "description": description, "schema": schema})
            }
        }
    }

    /// Reads what [`ResponseFormat::to_value`] writes; `None` for anything else.
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

    /// The value of `response_format` in Chat Completions; `strict` says whether the server knows strict schemas.
    pub(crate) fn encode_openai(&self, strict: bool) -> Value {
        match self {
            Self::JsonObject => json!({"type": "json_object"}),
            Self::JsonSchema(format) => json!({"type": "json_schema", "json_schema": format.encode_openai(strict)}),
        }
    }

    /// The value of `text.format` in Responses.
    pub(crate) fn encode_responses(&self, strict: bool) -> Value {
        match self {
            Self::JsonObject => json!({"type": "json_object"}),
            Self::JsonSchema(format) => {
                let mut written = json!({"type": "json_schema"});
                if let (Some(to), Value::Object(members)) = (written.as_object_mut(), format.encode_openai(strict)) {
                    to.extend(members);
                }
                written
            }
        }
    }

    /// The schema, for formats that have no JSON mode without one.
    ///
    /// # Errors
    /// When there is no schema.
    pub(crate) fn require_schema(&self, request: &Request) -> Result<&JsonSchemaFormat, LlmError> {
        match self {
            Self::JsonSchema(format) => Ok(format),
            Self::JsonObject => {
                let text = format!("{} has no JSON mode without a schema: use a JSON schema", request.model.api);
                Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::InvalidRequest, text))
            }
        }
    }
}

impl JsonSchemaFormat {
    /// The same format with a description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    fn encode_openai(&self, strict: bool) -> Value {
        let enforced = if strict { strict::response_schema(&self.schema, Limits::OpenAi) } else { None };
        let mut written = json!({"name": self.name});
        if let Some(description) = &self.description {
            written["description"] = description.as_str().into();
        }
        if strict {
            written["strict"] = enforced.is_some().into();
        }
        written["schema"] = enforced.unwrap_or_else(|| (*self.schema).clone());
        written
    }

    /// The schema as Claude takes it.
    pub(crate) fn encode_anthropic(&self) -> Value {
        let schema = strict::without_bounds(&self.schema);
        strict::response_schema(&schema, Limits::Anthropic).unwrap_or(schema)
    }
}

impl From<JsonSchemaFormat> for ResponseFormat {
    fn from(format: JsonSchemaFormat) -> Self {
        Self::JsonSchema(format)
    }
}
