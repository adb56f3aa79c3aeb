//! Typed errors between server and client. An error's cause (`source`) stays on the server.

use std::time::Duration;

use http::StatusCode;
use pinch_llm::error::{LlmError, LlmErrorKind};
use serde_json::{Value, json};

const KINDS: [(LlmErrorKind, &str); 14] = [
    (LlmErrorKind::Aborted, "aborted"),
    (LlmErrorKind::Connect, "connect"),
    (LlmErrorKind::Timeout, "timeout"),
    (LlmErrorKind::StreamCut, "stream_cut"),
    (LlmErrorKind::RateLimit, "rate_limit"),
    (LlmErrorKind::Overloaded, "overloaded"),
    (LlmErrorKind::Server, "server"),
    (LlmErrorKind::Billing, "billing"),
    (LlmErrorKind::Auth, "auth"),
    (LlmErrorKind::ModelNotFound, "model_not_found"),
    (LlmErrorKind::ContextOverflow, "context_overflow"),
    (LlmErrorKind::InvalidRequest, "invalid_request"),
    (LlmErrorKind::ContentFiltered, "content_filtered"),
    (LlmErrorKind::Protocol, "protocol"),
];

/// Serializes an error. The client knows itself what was emitted before it.
pub(super) fn write(error: &LlmError) -> Value {
    let kind = KINDS.iter().find(|(known, _)| *known == error.kind).map(|(_, word)| *word);
    let ms = error.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    let members = [
        ("provider", json!(error.provider.as_str())),
        ("kind", json!(kind)),
        ("status", json!(error.status.map(|status| status.as_u16()))),
        ("code", json!(error.code)),
        ("requestId", json!(error.request_id)),
        ("retryAfterMs", json!(ms)),
        ("shouldRetry", json!(error.should_retry)),
        ("text", json!(error.text)),
    ];
    members.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Parses an error; returns `None` if the value is not one.
pub(super) fn read(reported: &Value) -> Option<LlmError> {
    let text = |member: &str| reported[member].as_str().map(str::to_owned);
    let kind = KINDS.iter().find(|(_, word)| reported["kind"] == *word).map(|(kind, _)| *kind)?;
    let status = reported["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    let mut error = LlmError::new(text("provider")?.into(), kind, text("text")?);
    error.status = status.and_then(|status| StatusCode::from_u16(status).ok());
    error.code = text("code");
    error.request_id = text("requestId");
    error.retry_after = reported["retryAfterMs"].as_u64().map(Duration::from_millis);
    error.should_retry = reported["shouldRetry"].as_bool();
    Some(error)
}
