//! Classifies error texts that come without a typed error.
//!
//! The phrases and their order are those of OpenClaw's tables; `llm` has its own for errors of live requests. Text is lowercased first.

use super::FailoverReason;
use super::find::{all, any, any_word, in_order, then, word};
use super::image::{image_dimension, is_image_size};
use super::overflow::is_context_overflow;
use super::payment::{is_402_text, is_billing, reason_of_402};
use super::rate::{is_periodic_limit, is_rate_limit};
use crate::replies::api_error::leading_status;

/// The reason of a failure by its text; `None` if another profile or model would not help.
pub fn reason_of_text(text: &str) -> Option<FailoverReason> {
    if is_context_overflow(text) {
        return None;
    }
    reason_of_message(text)
}

/// The reason by the text, whatever its length.
pub(super) fn reason_of_message(raw: &str) -> Option<FailoverReason> {
    use FailoverReason as R;
    let lower = raw.to_lowercase();
    let text = lower.as_str();
    let status = leading_status(text).map(|(status, _)| status);
    // The order matters: the first match wins.
    if image_dimension(text).is_some() || is_image_size(text) {
        return None;
    }
    Some(if is_session_expired(text) {
        R::SessionExpired
    } else if is_model_not_found(text) {
        R::ModelNotFound
    } else if is_context_overflow(text) {
        return None;
    } else if is_402_text(text) {
        reason_of_402(text)
    } else if any(text, &["key limit exceeded", "api key budget limit"]) {
        R::Billing
    } else if is_periodic_limit(text) {
        if is_billing(text) { R::Billing } else { R::RateLimit }
    } else if is_rate_limit(text) {
        R::RateLimit
    } else if is_overloaded(text) {
        R::Overloaded
    } else if is_structured_server_error(text) && !is_billing(text) && !is_auth(text) {
        R::ServerError
    } else if status == Some(529) {
        R::Overloaded
    } else if status.is_some_and(is_transient_status) || is_generic_internal(text) {
        R::Timeout
    } else if is_billing(text) {
        R::Billing
    } else if is_auth_permanent(text) {
        R::AuthPermanent
    } else if is_auth(text) {
        R::Auth
    } else if text.trim() == "an unknown error occurred" || is_server(text) || is_transient_api_error(text) {
        R::Timeout
    } else if is_format(text) {
        R::Format
    } else if text.contains("unknown error (no error details in response)") {
        R::NoErrorDetails
    } else if is_timeout(text) {
        R::Timeout
    } else {
        return of_provider(text);
    })
}

/// Whether a text begins with a transient status.
pub fn is_transient_http(text: &str) -> bool {
    leading_status(text).is_some_and(|(status, _)| is_transient_status(status))
}

fn is_transient_status(status: u16) -> bool {
    matches!(status, 499 | 500 | 502 | 503 | 504 | 521 | 522 | 523 | 524 | 529)
}

/// Whether a text reports that the provider no longer has the conversation.
pub fn is_session_expired(text: &str) -> bool {
    let text = text.to_lowercase();
    let ends = ["not found", "does not exist", "expired", "invalid"];
    ["session", "conversation"].iter().any(|what| ends.iter().any(|end| text.contains(&format!("{what} {end}"))))
        || any(
            &text,
            &[
                "no conversation found",
                "no such session",
                "invalid session",
                "session id not found",
                "conversation id not found",
            ],
        )
}

pub(super) fn is_model_not_found(text: &str) -> bool {
    any(
        text,
        &[
            "no endpoints found for",
            "router not found",
            "unknown model",
            "model_not_found",
            "model-not-found",
            "model not found",
            "modelnotfound",
            "not_found_error",
            "not supported model",
            "is not a valid model id",
        ],
    ) || near(text, "model", "not found", 60)
        || (word(text, "404") && text.contains("not found"))
        || (text.contains("models/") && text.contains("is not found"))
        || in_order(text, &["model", "does not exist"])
        || all(text, &["selected model", "not found"])
        || (all(text, &["model", "deprecated"]) && any(text, &["upgrade to", "transition to"]))
        || all(text, &["stealth model", "find it here"])
        || (text.contains("invalid model") && !text.contains("invalid model reference"))
        || (text.contains("model") && any(text, &["was retired", "is retired", "has been retired"]))
        || in_order(text, &["is not supported when using", "with a chatgpt account"])
}

/// Whether `second` follows `first` within this many characters.
fn near(text: &str, first: &str, second: &str, within: usize) -> bool {
    text.match_indices(first).any(|(at, _)| {
        let rest = &text[at + first.len()..];
        rest.find(second).is_some_and(|n| rest[..n].chars().count() <= within)
    })
}

pub(super) fn is_overloaded(text: &str) -> bool {
    any(text, &["overloaded", "high demand"])
        || (any(text, &["service unavailable", "service_unavailable"])
            && any(text, &["overload", "capacity", "high demand"]))
}

pub(super) fn is_timeout(text: &str) -> bool {
    any(
        text,
        &[
            "timeout",
            "timed out",
            "service unavailable",
            "deadline exceeded",
            "connection error",
            "network error",
            "network request failed",
            "fetch failed",
            "socket hang up",
            "without sending chunk",
            "without sending any chunk",
            "provider returned error",
        ],
    ) || any_word(
        text,
        &[
            "econnrefused",
            "econnreset",
            "econnaborted",
            "enetunreach",
            "ehostunreach",
            "ehostdown",
            "enetreset",
            "etimedout",
            "esockettimedout",
            "epipe",
            "enotfound",
            "eai_again",
        ],
    ) || text.match_indices("reason:").any(|(at, _)| {
        let rest = text[at + "reason:".len()..].trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        matches!(&rest[..end], "abort" | "error" | "malformed_response" | "network_error")
    })
}

/// Whether a text reports permanently invalid credentials.
pub fn is_auth_permanent(text: &str) -> bool {
    let text = text.to_lowercase();
    let ends = ["revoked", "invalid", "deactivated", "deleted"];
    let keys = ["api key ", "api_key_", "apikey ", "api_key ", "api key_", "apikey", "apikey_"];
    keys.iter().any(|key| ends.iter().any(|end| text.contains(&format!("{key}{end}"))))
        || any(
            &text,
            &[
                "invalid_api_key",
                "key has been disabled",
                "key has been revoked",
                "account has been deactivated",
                "permission_error",
                "not allowed for this organization",
                "oauth token refresh failed",
            ],
        )
        || then(
            &text,
            &["could not authenticate", "could not validate"],
            &["api key", "api_key", "apikey", "credentials"],
        )
}

/// Whether a text reports refused credentials.
pub fn is_auth(text: &str) -> bool {
    let text = text.to_lowercase();
    any(
        &text,
        &[
            "invalid api key",
            "invalid_api_key",
            "invalidapikey",
            "invalid apikey",
            "invalid api_key",
            "incorrect api key",
            "invalid token",
            "authentication",
            "re-authenticate",
            "oauth token refresh failed",
            "unauthorized",
            "forbidden",
            "access denied",
            "insufficient permission",
            "missing scope:",
            "missing scopes:",
            "expired",
            "no credentials found",
            "no api key found",
        ],
    ) || any_word(&text, &["401", "403"])
        || is_auth_permanent(&text)
}

/// Whether a text reports that the provider rejected the form of the request.
pub fn is_format(text: &str) -> bool {
    let text = text.to_lowercase();
    any(&text, &["string should match pattern", "tool_use.id", "tool_use_id", "invalid request format"])
        || in_order(&text, &["tool call id was", "must be"])
}

fn is_server(text: &str) -> bool {
    any(
        text,
        &[
            "an error occurred while processing",
            "internal server error",
            "internal_error",
            "server_error",
            "service temporarily unavailable",
            "service_unavailable",
            "bad gateway",
            "bad_gateway",
            "gateway timeout",
            "gateway_timeout",
            "upstream error",
            "upstream connect error",
            "connection reset",
        ],
    )
}

fn is_structured_server_error(text: &str) -> bool {
    let packed: String = text.split_whitespace().collect();
    any(&packed, &["\"type\":\"server_error\"", "\"code\":\"server_error\""])
}

fn is_generic_internal(text: &str) -> bool {
    text.contains("an error occurred while processing your request")
        && any(text, &["help.openai.com", "request id", "request_id"])
}

fn is_transient_api_error(text: &str) -> bool {
    let packed: String = text.split_whitespace().collect();
    packed.contains("\"type\":\"api_error\"")
        && any(
            text,
            &[
                "internal server error",
                "overload",
                "temporarily unavailable",
                "service unavailable",
                "unknown error",
                "server error",
                "bad gateway",
                "gateway timeout",
                "upstream error",
                "backend error",
                "try again later",
                "unexpected error",
            ],
        )
        && !is_billing(text)
        && !is_auth(text)
}

/// Texts of individual providers, checked last.
fn of_provider(text: &str) -> Option<FailoverReason> {
    if text.contains("invalid_argument") && any(text, &["exceeds the max", "input too long", "input is too long"]) {
        return Some(FailoverReason::Format);
    }
    if any(text, &["throttlingexception", "too many concurrent requests"])
        || in_order(text, &["concurrency limit", "reached"])
        || then(text, &["workers_ai"], &["rate", "limit", "quota"])
    {
        return Some(FailoverReason::RateLimit);
    }
    if any(text, &["modelnotreadyexception", "model is not ready"]) {
        return Some(FailoverReason::Overloaded);
    }
    text.contains("model_deactivated").then_some(FailoverReason::ModelNotFound)
}

/// Whether a text reports a provider without capacity.
pub fn is_overloaded_text(text: &str) -> bool {
    is_overloaded(&text.to_lowercase())
}

/// Whether a text reports a timeout.
pub fn is_timeout_text(text: &str) -> bool {
    is_timeout(&text.to_lowercase())
}
