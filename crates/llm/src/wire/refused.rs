//! Refusals: what all formats make of a response with a failing status.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::error::{LlmError, classify, retry};
use crate::model::Model;

/// The error of a refusal. `said` is what the body says, in the words people will read; empty when it says nothing.
pub(super) fn error(
    model: &Model,
    status: StatusCode,
    headers: &HeaderMap,
    code: Option<String>,
    body: Option<&Value>,
    said: &str,
) -> LlmError {
    let number = status.as_u16();
    let text = if said.is_empty() { format!("{number} status code (no body)") } else { format!("{number} {said}") };
    with_text(model, status, headers, code, body, text)
}

/// The error of a refusal whose whole text is given.
pub(super) fn with_text(
    model: &Model,
    status: StatusCode,
    headers: &HeaderMap,
    code: Option<String>,
    body: Option<&Value>,
    text: String,
) -> LlmError {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let kind = classify::classify(Some(status), code.as_deref(), &text);
    LlmError {
        status: Some(status),
        request_id: header("request-id").or_else(|| header("x-request-id")).map(str::to_owned),
        retry_after: body.and_then(retry::retry_after_in_body),
        should_retry: header("x-should-retry").and_then(|word| word.parse().ok()),
        code,
        ..LlmError::new(model.provider.clone(), kind, text)
    }
}

/// The status that an error inside a stream names as its code, as a number or as text. Other codes are no status.
pub(super) fn status_in(error: &Value) -> Option<StatusCode> {
    let code = &error["code"];
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    let status = StatusCode::from_u16(u16::try_from(number).ok()?).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}
