//! Classifies errors of foreign runtimes by status, code and message, any of which may be missing.

use super::FailoverReason;
use super::overflow::is_context_overflow;
use super::payment::reason_of_402;
use super::text::{is_auth_permanent, reason_of_message};
use crate::replies::api_error::leading_status;

/// What is known about an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signal<'a> {
    /// HTTP status.
    pub status: Option<u16>,
    /// The code of the provider or of the operating system.
    pub code: Option<&'a str>,
    /// The message.
    pub message: Option<&'a str>,
}

/// The classification of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classified {
    /// A failure that another profile or model may avoid.
    Reason(FailoverReason),
    /// The conversation is too long.
    ContextOverflow,
    /// Neither.
    None,
}

impl From<Option<FailoverReason>> for Classified {
    fn from(reason: Option<FailoverReason>) -> Self {
        reason.map_or(Self::None, Self::Reason)
    }
}

/// Classifies an error. The status takes precedence over the code, and the code over the message.
pub fn reason_of_signal(signal: Signal<'_>) -> Classified {
    let message = signal.message.unwrap_or("");
    let by_message = of_message(message);
    if signal.code.is_some_and(|code| code.eq_ignore_ascii_case("deactivated_workspace")) {
        return Classified::Reason(FailoverReason::AuthPermanent);
    }
    let stripped = message.trim_start();
    let stripped =
        stripped.get(..6).filter(|head| head.eq_ignore_ascii_case("error:")).map_or(stripped, |_| &stripped[6..]);
    let status = signal.status.or_else(|| leading_status(stripped).map(|(status, _)| status));
    if let Some(by_status) = status.and_then(|status| of_status(status, message, by_message)) {
        return by_status;
    }
    match signal.code.and_then(reason_of_code) {
        Some(reason) => Classified::Reason(reason),
        None => by_message,
    }
}

/// The reason of a status with a message.
pub fn reason_of_status(status: u16, message: Option<&str>) -> Option<FailoverReason> {
    match reason_of_signal(Signal { status: Some(status), code: None, message }) {
        Classified::Reason(reason) => Some(reason),
        Classified::ContextOverflow | Classified::None => None,
    }
}

fn of_message(message: &str) -> Classified {
    if is_context_overflow(message) {
        return Classified::ContextOverflow;
    }
    reason_of_message(message).into()
}

fn of_status(status: u16, message: &str, by_message: Classified) -> Option<Classified> {
    use FailoverReason as R;
    let is = |reasons: &[R]| matches!(by_message, Classified::Reason(reason) if reasons.contains(&reason));
    let message_or = |reasons: &[R], other: R| if is(reasons) { by_message } else { Classified::Reason(other) };
    let lower = message.to_lowercase();
    let starts_html = ["<!doctype", "<html"].iter().any(|mark| lower.contains(mark));
    Some(match status {
        408 | 499 | 500..=599 if starts_html => Classified::Reason(R::Timeout),
        402 if message.trim().is_empty() => Classified::Reason(R::Billing),
        402 => Classified::Reason(reason_of_402(message)),
        429 if lower.contains("moonshot") || lower.contains("kimi") => message_or(&[R::Billing], R::RateLimit),
        429 => Classified::Reason(R::RateLimit),
        401 | 403 if is_auth_permanent(message) => Classified::Reason(R::AuthPermanent),
        401 | 403 => message_or(&[R::Billing], R::Auth),
        408 => Classified::Reason(R::Timeout),
        410 => message_or(&[R::SessionExpired, R::Billing, R::Auth, R::AuthPermanent], R::Timeout),
        404 if by_message == Classified::ContextOverflow => by_message,
        404 => message_or(&[R::SessionExpired, R::Billing, R::Auth, R::AuthPermanent], R::ModelNotFound),
        503 | 499 => message_or(&[R::Overloaded], R::Timeout),
        500 | 502 | 504 => message_or(&[R::ServerError], R::Timeout),
        529 => Classified::Reason(R::Overloaded),
        400 | 422 if is(&[R::ServerError]) => Classified::Reason(R::Format),
        400 | 422 if by_message != Classified::None => by_message,
        400 | 422 if is_empty_body(&lower) => Classified::None,
        400 | 422 => Classified::Reason(R::Format),
        _ => return None,
    })
}

fn is_empty_body(lower: &str) -> bool {
    let rest = leading_status(lower).map_or(lower, |(_, rest)| rest).trim();
    let rest = rest.strip_prefix("status code").map_or(rest, str::trim);
    rest.is_empty() || matches!(rest, "(no body)" | "no body")
}

/// The reason of a code.
pub fn reason_of_code(code: &str) -> Option<FailoverReason> {
    Some(match code.trim().to_ascii_uppercase().as_str() {
        "DEACTIVATED_WORKSPACE" => FailoverReason::AuthPermanent,
        "RESOURCE_EXHAUSTED"
        | "RATE_LIMIT"
        | "RATE_LIMITED"
        | "RATE_LIMIT_EXCEEDED"
        | "TOO_MANY_REQUESTS"
        | "THROTTLED"
        | "THROTTLING"
        | "THROTTLINGEXCEPTION"
        | "THROTTLING_EXCEPTION" => FailoverReason::RateLimit,
        "OVERLOADED" | "OVERLOADED_ERROR" => FailoverReason::Overloaded,
        "ETIMEDOUT" | "ESOCKETTIMEDOUT" | "ECONNRESET" | "ECONNABORTED" | "ECONNREFUSED" | "ENETUNREACH"
        | "EHOSTUNREACH" | "EHOSTDOWN" | "ENETRESET" | "EPIPE" | "EAI_AGAIN" => FailoverReason::Timeout,
        _ => return None,
    })
}
