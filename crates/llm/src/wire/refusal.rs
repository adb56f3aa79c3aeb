//! Responses with a failing status, as typed errors.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::error::{LlmError, classify, retry};
use crate::model::Model;

/// Creates the error for a response with a failing status: kind, request id, and the requested delay. `said` is the body's message for
/// people, possibly empty. `body` is the body as JSON, if it is JSON: only members with the server's own message determine the kind.
pub fn error(
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

/// Creates the error with a complete text.
pub(super) fn with_text(
    model: &Model,
    status: StatusCode,
    headers: &HeaderMap,
    code: Option<String>,
    body: Option<&Value>,
    text: String,
) -> LlmError {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let words = body.and_then(own_words).map(|words| format!("{} {words}", status.as_u16()));
    let kind = classify::classify(Some(status), code.as_deref(), words.as_deref().unwrap_or(&text));
    LlmError {
        status: Some(status),
        request_id: header("request-id").or_else(|| header("x-request-id")).map(str::to_owned),
        retry_after: body.and_then(retry::retry_after_in_body),
        should_retry: header("x-should-retry").and_then(|word| word.parse().ok()),
        code,
        ..LlmError::new(model.provider.clone(), kind, text)
    }
}

/// Returns the provider's own message in a body, without anything that echoes the request, or `None` if there is none. The kind of a
/// failure is determined by it.
pub(super) fn own_words(body: &Value) -> Option<String> {
    let mut words = String::new();
    gather(body, 0, &mut words);
    (!words.is_empty()).then_some(words)
}

/// Maximum nesting of errors.
const MAX_DEPTH: usize = 6;
/// Maximum number of errors of a list that are read.
const MAX_LISTED: usize = 8;

fn gather(value: &Value, depth: usize, words: &mut String) {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            // The message of a server behind the server.
            Ok(inner @ (Value::Object(_) | Value::Array(_))) if depth < MAX_DEPTH => gather(&inner, depth + 1, words),
            _ => {
                words.push_str(text);
                words.push('\n');
            }
        },
        Value::Array(list) if depth < MAX_DEPTH => {
            list.iter().take(MAX_LISTED).for_each(|one| gather(one, depth + 1, words));
        }
        Value::Object(members) if depth < MAX_DEPTH => {
            for (name, member) in members {
                match name.as_str() {
                    "code" if !member.is_object() && !member.is_array() => {
                        words.push_str("\"code\":");
                        words.push_str(&member.to_string());
                        words.push('\n');
                    }
                    "message" | "Message" | "msg" | "error" | "errors" | "error_description" | "detail" | "details"
                    | "title" | "description" | "reason" | "type" | "__type" | "status" | "metadata" | "raw" => {
                        gather(member, depth + 1, words);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Returns the HTTP status that an error inside a stream has as its code, as a number or as text.
pub(super) fn status_in(error: &Value) -> Option<StatusCode> {
    let code = &error["code"];
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    let status = StatusCode::from_u16(u16::try_from(number).ok()?).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::LlmErrorKind;

    #[test]
    fn echoed_parts_of_the_request_do_not_affect_the_kind() {
        let model = Model::from_record(&json!({"id": "m", "api": "openai-completions", "provider": "p"})).unwrap();
        let echo = json!({"messages": [{"role": "user", "content": "billing: 413 prompt is too long, insufficient_quota, model x not found"}]});
        for (body, status, kind) in [
            (
                json!({"error": {"message": "no such field", "type": "invalid_request_error"}, "request": echo}),
                400,
                LlmErrorKind::InvalidRequest,
            ),
            (json!({"error": "bad gateway", "request": echo}), 502, LlmErrorKind::Server),
            (json!({"detail": [{"msg": "field required", "input": echo}]}), 422, LlmErrorKind::InvalidRequest),
            (
                json!({"error": {"message": "Provider returned error", "metadata": {"raw": "{\"error\":{\"message\":\"prompt is too long\"}}"}}}),
                400,
                LlmErrorKind::ContextOverflow,
            ),
            (json!({"error": {"code": 1308, "message": "limit"}}), 429, LlmErrorKind::Quota),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let found = with_text(&model, status, &HeaderMap::new(), None, Some(&body), body.to_string());
            assert_eq!(found.kind, kind, "{body}");
        }
    }
}
