//! Classifies failures by their text alone: old sessions and foreign runtimes have nothing else.

use super::LlmErrorKind;
use super::overflow::is_overflow_text;
use super::patterns::{
    API_ERROR, AUTH, AUTH_PERMANENT, CAPACITY, CONNECT, FORMAT, GATEWAY, INVALID_MODEL, INVALID_REFERENCE,
    MODEL_NOT_FOUND, NO_ANSWER, OVERLOADED, PASSING, REFUSED, SERVER, SERVER_FAULT, SESSION_EXPIRED, TIMEOUT,
    UNAVAILABLE, beginning,
};
use super::payment::{is_402_text, is_billing, kind_of_402};
use super::rate::{is_periodic_limit, is_rate_limit};
use super::rejection::{image_dimension, is_image_size};
use super::words::{any, in_order, leading_status, then};

/// Returns the kind of failure that a text describes, or `None` if another attempt, key or model would not help.
pub fn kind_of_text(text: &str) -> Option<LlmErrorKind> {
    use LlmErrorKind as Kind;
    let lower = beginning(text);
    let text = lower.as_str();
    let status = leading_status(text).map(|(status, _)| status);
    // The order matters: the first match wins.
    if image_dimension(text).is_some() || is_image_size(text) {
        return None;
    }
    Some(if SESSION_EXPIRED.finds_any(text) {
        Kind::SessionExpired
    } else if is_model_not_found(text) {
        Kind::ModelNotFound
    } else if is_overflow_text(text) {
        Kind::ContextOverflow
    } else if is_402_text(text) {
        kind_of_402(text)
    } else if any(text, &["key limit exceeded", "api key budget limit"]) {
        Kind::Billing
    } else if is_periodic_limit(text) {
        if is_billing(text) { Kind::Billing } else { Kind::RateLimit }
    } else if is_rate_limit(text) {
        Kind::RateLimit
    } else if is_overloaded(text) {
        Kind::Overloaded
    } else if SERVER_FAULT.finds_any(text) && !is_billing(text) && !is_auth(text) {
        Kind::ServerFault
    } else if status == Some(529) {
        Kind::Overloaded
    } else if status.is_some_and(is_transient_status) || is_generic_internal(text) {
        Kind::Server
    } else if is_billing(text) {
        Kind::Billing
    } else if AUTH_PERMANENT.finds_any(text) {
        Kind::AuthPermanent
    } else if is_auth(text) {
        Kind::Auth
    } else if text.trim() == "an unknown error occurred" || is_server(text) {
        Kind::Server
    } else if FORMAT.finds_any(text) {
        Kind::InvalidRequest
    } else if text.contains("unknown error (no error details in response)") {
        Kind::NoDetails
    } else if CONNECT.finds_any(text) {
        Kind::Connect
    } else if is_timeout(text) {
        Kind::Timeout
    } else {
        return of_provider(text);
    })
}

/// Returns whether a text starts with the status of a transient failure.
pub fn is_transient_http(text: &str) -> bool {
    leading_status(text).is_some_and(|(status, _)| is_transient_status(status))
}

fn is_transient_status(status: u16) -> bool {
    matches!(status, 499 | 500 | 502 | 503 | 504 | 521 | 522 | 523 | 524 | 529)
}

fn is_model_not_found(text: &str) -> bool {
    MODEL_NOT_FOUND.finds_any(text) || (INVALID_MODEL.finds_any(text) && !INVALID_REFERENCE.finds_any(text))
}

fn is_overloaded(text: &str) -> bool {
    OVERLOADED.finds_any(text) || (UNAVAILABLE.finds_any(text) && CAPACITY.finds_any(text))
}

fn is_timeout(text: &str) -> bool {
    [&TIMEOUT, &CONNECT, &UNAVAILABLE, &NO_ANSWER].iter().any(|table| table.finds_any(text))
}

/// Returns whether a text reports that the credentials are permanently invalid.
pub(super) fn is_auth_permanent(text: &str) -> bool {
    AUTH_PERMANENT.finds_any(&beginning(text))
}

/// Returns whether a text is about rejected credentials.
pub fn is_auth(text: &str) -> bool {
    let text = beginning(text);
    [&AUTH, &REFUSED, &AUTH_PERMANENT].iter().any(|table| table.finds_any(&text))
}

/// Returns whether a text reports that the form of the request was rejected.
pub fn is_format(text: &str) -> bool {
    FORMAT.finds_any(&beginning(text))
}

fn is_server(text: &str) -> bool {
    SERVER.finds_any(text)
        || GATEWAY.finds_any(text)
        || (API_ERROR.finds_any(text) && PASSING.finds_any(text) && !is_billing(text))
}

fn is_generic_internal(text: &str) -> bool {
    text.contains("an error occurred while processing your request")
        && any(text, &["help.openai.com", "request id", "request_id"])
}

/// Classifies texts of individual providers, checked last.
fn of_provider(text: &str) -> Option<LlmErrorKind> {
    if text.contains("invalid_argument") && any(text, &["exceeds the max", "input too long", "input is too long"]) {
        return Some(LlmErrorKind::InvalidRequest);
    }
    if any(text, &["throttlingexception", "too many concurrent requests"])
        || in_order(text, &["concurrency limit", "reached"])
        || then(text, &["workers_ai"], &["rate", "limit", "quota"])
    {
        return Some(LlmErrorKind::RateLimit);
    }
    if any(text, &["modelnotreadyexception", "model is not ready"]) {
        return Some(LlmErrorKind::Overloaded);
    }
    text.contains("model_deactivated").then_some(LlmErrorKind::ModelNotFound)
}

/// Returns whether a text is about a provider without capacity.
pub fn is_overloaded_text(text: &str) -> bool {
    is_overloaded(&beginning(text))
}

/// Returns whether a text is about a request that got no answer in time.
pub fn is_timeout_text(text: &str) -> bool {
    is_timeout(&beginning(text))
}
