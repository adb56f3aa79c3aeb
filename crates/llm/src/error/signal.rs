//! Classifies failures by status, code and message, any of which may be missing.

use super::LlmErrorKind;
use super::patterns::beginning;
use super::payment::{is_billing, kind_of_402};
use super::text::{is_auth_permanent, kind_of_text};
use super::words::leading_status;

/// What is known about a failure.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signal<'a> {
    /// HTTP status.
    pub(super) status: Option<u16>,
    /// The code of the provider or of the operating system.
    pub(super) code: Option<&'a str>,
    /// The message.
    pub(super) message: Option<&'a str>,
}

/// Returns the kind of a failure, or `None` if nothing is known. The status takes precedence over the code, and the code over the message;
/// the meaning of a status depends on the message, though.
pub(super) fn kind_of_signal(signal: Signal<'_>) -> Option<LlmErrorKind> {
    let message = signal.message.unwrap_or("");
    let by_message = kind_of_text(message);
    if signal.code.is_some_and(|code| code.eq_ignore_ascii_case("deactivated_workspace")) {
        return Some(LlmErrorKind::AuthPermanent);
    }
    let stripped = message.trim_start();
    let stripped =
        stripped.get(..6).filter(|head| head.eq_ignore_ascii_case("error:")).map_or(stripped, |_| &stripped[6..]);
    let status = signal.status.or_else(|| leading_status(stripped).map(|(status, _)| status));
    status
        .and_then(|status| of_status(status, message, by_message))
        .or_else(|| signal.code.and_then(kind_of_code))
        .or(by_message)
}

/// Classifies a status together with a message; returns `None` if the status alone is inconclusive.
fn of_status(status: u16, message: &str, by_message: Option<LlmErrorKind>) -> Option<LlmErrorKind> {
    use LlmErrorKind as K;
    let is = |kinds: &[K]| by_message.is_some_and(|kind| kinds.contains(&kind));
    let message_or = |kinds: &[K], other: K| by_message.filter(|kind| kinds.contains(kind)).unwrap_or(other);
    let lower = beginning(message);
    let starts_html = ["<!doctype", "<html"].iter().any(|mark| lower.contains(mark));
    const GONE: &[LlmErrorKind] = &[K::SessionExpired, K::Billing, K::Auth, K::AuthPermanent];
    Some(match status {
        408 | 499 | 500..=599 if starts_html => K::Server,
        402 if message.trim().is_empty() => K::Billing,
        402 => kind_of_402(message),
        429 if lower.contains("moonshot") || lower.contains("kimi") => message_or(&[K::Billing], K::RateLimit),
        // An exhausted quota resets later than a rate limit.
        429 if is_billing(message) => K::Quota,
        429 => K::RateLimit,
        401 | 403 if is_auth_permanent(message) => K::AuthPermanent,
        401 | 403 => message_or(&[K::Billing], K::Auth),
        408 => K::Timeout,
        410 => message_or(GONE, K::Timeout),
        404 if is(&[K::ContextOverflow]) => K::ContextOverflow,
        404 => message_or(GONE, K::ModelNotFound),
        503 | 499 => message_or(&[K::Overloaded], K::Server),
        500 | 502 | 504 => message_or(&[K::ServerFault], K::Server),
        529 => K::Overloaded,
        400 | 422 if is(&[K::ServerFault]) => K::InvalidRequest,
        400 | 422 => match by_message {
            Some(kind) => kind,
            // The response has no details.
            None if is_empty_body(&lower) => K::Protocol,
            None => K::InvalidRequest,
        },
        _ => return None,
    })
}

fn is_empty_body(lower: &str) -> bool {
    let rest = leading_status(lower).map_or(lower, |(_, rest)| rest).trim();
    let rest = rest.strip_prefix("status code").map_or(rest, str::trim);
    rest.is_empty() || matches!(rest, "(no body)" | "no body")
}

/// Classifies a code of the provider or of the operating system.
fn kind_of_code(code: &str) -> Option<LlmErrorKind> {
    Some(match code.trim().to_ascii_uppercase().as_str() {
        "RESOURCE_EXHAUSTED"
        | "RATE_LIMIT"
        | "RATE_LIMITED"
        | "RATE_LIMIT_EXCEEDED"
        | "TOO_MANY_REQUESTS"
        | "THROTTLED"
        | "THROTTLING"
        | "THROTTLINGEXCEPTION"
        | "THROTTLING_EXCEPTION" => LlmErrorKind::RateLimit,
        "OVERLOADED" | "OVERLOADED_ERROR" => LlmErrorKind::Overloaded,
        "ETIMEDOUT" | "ESOCKETTIMEDOUT" => LlmErrorKind::Timeout,
        "ECONNRESET" | "ECONNABORTED" | "ECONNREFUSED" | "ENETUNREACH" | "EHOSTUNREACH" | "EHOSTDOWN" | "ENETRESET"
        | "EPIPE" | "EAI_AGAIN" => LlmErrorKind::Connect,
        _ => return None,
    })
}
