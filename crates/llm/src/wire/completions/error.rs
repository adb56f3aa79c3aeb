//! Error responses in OpenAI's format.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::error::{LlmError, classify};
use crate::model::Model;
use crate::wire::refusal;

/// Classifies a response with a failing status.
pub(super) fn refusal(model: &Model, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let json: Option<Value> = serde_json::from_str(text).ok();
    let number = status.as_u16();
    let error = json.as_ref().and_then(|json| json.get("error")).filter(|error| !error.is_null());
    let code = error.and_then(code);
    match error {
        Some(object @ Value::Object(_)) => {
            let text = with_raw(format!("{number}: {object}"), object);
            refusal::with_text(model, status, headers, code, json.as_ref(), text)
        }
        Some(other) => refusal::error(model, status, headers, code, json.as_ref(), &other.to_string()),
        None => refusal::error(model, status, headers, code, json.as_ref(), text),
    }
}

/// Classifies an `error` member in a chunk of the stream.
pub(super) fn in_stream(model: &Model, error: &Value) -> LlmError {
    let text = match error {
        Value::String(text) => text.clone(),
        error => error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned),
    };
    let code = code(error);
    // Gateways put the upstream server's status here.
    let status = refusal::status_in(error);
    let words = refusal::own_words(error);
    let kind = classify::classify(status, code.as_deref(), words.as_deref().unwrap_or(&text));
    LlmError { code, status, ..LlmError::new(model.provider.clone(), kind, with_raw(text, error)) }
}

fn code(error: &Value) -> Option<String> {
    error["code"].as_str().or_else(|| error["type"].as_str()).map(str::to_owned)
}

/// Appends the upstream server's message, which OpenRouter keeps separately, unless the text already contains it.
fn with_raw(text: String, error: &Value) -> String {
    match &error["metadata"]["raw"] {
        Value::Null => text,
        Value::String(raw) if text.contains(raw.as_str()) => text,
        Value::String(raw) => format!("{text}\n{raw}"),
        raw if text.contains(&raw.to_string()) => text,
        raw => format!("{text}\n{raw}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstream_message_is_not_repeated() {
        let error = |raw: &str| serde_json::json!({"message": "failed: slow down", "metadata": {"raw": raw}});
        let said = |raw: &str| with_raw("failed: slow down".into(), &error(raw));
        assert_eq!(said("slow down"), "failed: slow down");
        assert_eq!(said("other words"), "failed: slow down\nother words");
    }
}
