//! Response formats in the terms of each provider.

use serde_json::{Value, json};

use super::strict::{self, StrictDialect};
use crate::error::{LlmError, LlmErrorKind};
use crate::request::{JsonSchemaFormat, Request, ResponseFormat};

impl ResponseFormat {
    /// Encodes `response_format` of Chat Completions; `strict` is set if the server supports strict schemas.
    pub(crate) fn encode_openai(&self, strict: bool) -> Value {
        match self {
            Self::JsonObject => json!({"type": "json_object"}),
            Self::JsonSchema(format) => json!({"type": "json_schema", "json_schema": format.encode_openai(strict)}),
        }
    }

    /// Encodes `text.format` of Responses.
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

    /// Returns the schema, for formats that have no JSON mode without one.
    ///
    /// # Errors
    /// Returns an error if there is no schema.
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
    fn encode_openai(&self, strict: bool) -> Value {
        let enforced = if strict { strict::response_schema(&self.schema, StrictDialect::OpenAi) } else { None };
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

    /// Encodes the schema for Claude.
    pub(crate) fn encode_anthropic(&self) -> Value {
        let schema = strict::without_bounds(&self.schema);
        strict::response_schema(&schema, StrictDialect::Anthropic).unwrap_or(schema)
    }
}
