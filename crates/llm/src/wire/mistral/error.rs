//! Error responses of Mistral.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::error::{LlmError, classify};
use crate::model::Model;
use crate::wire::refusal;

/// Maximum characters of a body in an error text.
const MAX_SHOWN: usize = 4_000;

/// Classifies a response with a failing status.
pub(super) fn refusal(model: &Model, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
    let body = String::from_utf8_lossy(body);
    let body = body.trim();
    let json: Option<Value> = serde_json::from_str(body).ok();
    let said = if body.is_empty() { status.canonical_reason().unwrap_or("no body").to_owned() } else { shown(body) };
    let text = format!("Mistral API error ({}): {said}", status.as_u16());
    refusal::with_text(model, status, headers, json.as_ref().and_then(code), json.as_ref(), text)
}

/// Classifies an error instead of a chunk.
pub(super) fn in_stream(model: &Model, error: &Value) -> LlmError {
    let said = error["message"].as_str().map_or_else(|| shown(&error.to_string()), shown);
    let code = code(error);
    let text = format!("Mistral API error: {said}");
    let status = refusal::status_in(error);
    let words = refusal::own_words(error);
    let kind = classify::classify(status, code.as_deref(), words.as_deref().unwrap_or(&text));
    LlmError { code, status, ..LlmError::new(model.provider.clone(), kind, text) }
}

/// Returns the error code as a word, if it is not a number.
fn code(error: &Value) -> Option<String> {
    error["type"].as_str().or_else(|| error["code"].as_str()).map(str::to_owned)
}

fn shown(text: &str) -> String {
    let n_more = text.chars().count().saturating_sub(MAX_SHOWN);
    if n_more == 0 {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MAX_SHOWN).collect();
    format!("{kept}... [truncated {n_more} chars]")
}
