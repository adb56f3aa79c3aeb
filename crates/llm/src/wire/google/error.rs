//! Error responses of Google.

use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

use crate::error::{LlmError, LlmErrorKind, classify, retry};
use crate::model::Model;
use crate::wire::refusal;

/// Classifies a response with a failing status.
pub(super) fn refusal(model: &Model, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
    let text = String::from_utf8_lossy(body);
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.contains("application/json"));
    let json: Option<Value> = serde_json::from_str(text.trim()).ok().filter(|_| is_json);
    let said = match &json {
        // Google's own bodies contain the status; those of servers in front of it may not.
        Some(json) if member(json)["code"].is_number() => json.to_string(),
        Some(json) => format!("{} {json}", status.as_u16()),
        None => {
            let reason = status.canonical_reason().unwrap_or("");
            json!({"error": {"message": text, "code": status.as_u16(), "status": reason}}).to_string()
        }
    };
    refuse(model, status, headers, json.as_ref(), said)
}

/// Creates an error with its details and a text.
pub(in crate::wire) fn refuse(
    model: &Model,
    status: StatusCode,
    headers: &HeaderMap,
    json: Option<&Value>,
    text: String,
) -> LlmError {
    let error = json.map(member);
    let code = error.and_then(|error| error["status"].as_str()).map(str::to_owned);
    let mut refused = refusal::with_text(model, status, headers, code, json, text);
    // Google reports a wrong key as an invalid argument.
    let details = error.and_then(|error| error["details"].as_array()).into_iter().flatten();
    if details.into_iter().any(|detail| detail["reason"] == "API_KEY_INVALID") {
        refused.kind = LlmErrorKind::Auth;
    }
    refused
}

/// Returns the `error` of a body, which may be a list of one.
pub(in crate::wire) fn member(body: &Value) -> &Value {
    if body.is_array() { &body[0]["error"] } else { &body["error"] }
}

/// Classifies an `error` member in a response with a success status. `data` is the text that contains it.
pub(super) fn in_stream(model: &Model, error: &Value, data: &str) -> LlmError {
    let whole: Value = serde_json::from_str(data).unwrap_or_else(|_| json!({"error": error}));
    let word = error["status"].as_str();
    let text = format!("got status: {}. {whole}", word.unwrap_or("undefined"));
    let status = refusal::status_in(error);
    let words = refusal::own_words(&whole);
    let kind = classify::classify(status, word, words.as_deref().unwrap_or(&text));
    LlmError {
        status,
        code: word.map(str::to_owned),
        retry_after: retry::retry_after_in_body(&whole),
        ..LlmError::new(model.provider.clone(), kind, text)
    }
}
