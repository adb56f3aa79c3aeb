//! Why an attempt failed, as far as it matters for the next attempt.
//!
//! `pinch_llm::error` classifies failures, where the status and the provider's own message are still available. Here each kind is only
//! mapped to its reason.

use pinch_llm::error::text::kind_of_text;
use pinch_llm::error::{LlmError, LlmErrorKind};

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FailoverReason {
    /// Credit or quota is used up.
    Billing,
    /// Too many requests.
    RateLimit,
    /// The provider has no capacity.
    Overloaded,
    /// The credentials were refused, possibly for a while.
    Auth,
    /// The credentials are permanently invalid.
    AuthPermanent,
    /// The request timed out, or the connection failed.
    Timeout,
    /// The provider rejected the form of the request.
    Format,
    /// The model does not exist for this account.
    ModelNotFound,
    /// The provider no longer has the conversation.
    SessionExpired,
    /// The provider had an internal error.
    ServerError,
    /// The provider reported a failure without details.
    NoErrorDetails,
    /// The answer was empty.
    EmptyResponse,
    /// The reason is unknown.
    Unknown,
}

impl FailoverReason {
    /// All reasons.
    pub const ALL: [Self; 13] = [
        Self::Billing,
        Self::RateLimit,
        Self::Overloaded,
        Self::Auth,
        Self::AuthPermanent,
        Self::Timeout,
        Self::Format,
        Self::ModelNotFound,
        Self::SessionExpired,
        Self::ServerError,
        Self::NoErrorDetails,
        Self::EmptyResponse,
        Self::Unknown,
    ];

    /// Returns the identifier used in files, events and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Billing => "billing",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Auth => "auth",
            Self::AuthPermanent => "auth_permanent",
            Self::Timeout => "timeout",
            Self::Format => "format",
            Self::ModelNotFound => "model_not_found",
            Self::SessionExpired => "session_expired",
            Self::ServerError => "server_error",
            Self::NoErrorDetails => "no_error_details",
            Self::EmptyResponse => "empty_response",
            Self::Unknown => "unknown",
        }
    }

    /// Parses the identifier; `quota`, used in some documents, is a rate limit.
    pub fn parse(word: &str) -> Option<Self> {
        if word == "quota" {
            return Some(Self::RateLimit);
        }
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// Returns the equivalent HTTP status.
    pub fn status(self) -> Option<u16> {
        match self {
            Self::Billing => Some(402),
            Self::RateLimit => Some(429),
            Self::Overloaded => Some(503),
            Self::Auth => Some(401),
            Self::AuthPermanent => Some(403),
            Self::Timeout => Some(408),
            Self::Format => Some(400),
            Self::ModelNotFound => Some(404),
            Self::SessionExpired => Some(410),
            Self::ServerError => Some(500),
            Self::NoErrorDetails | Self::EmptyResponse | Self::Unknown => None,
        }
    }
}

impl std::fmt::Display for FailoverReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The classification of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classified {
    /// A failure that another profile or model may avoid.
    Reason(FailoverReason),
    /// The conversation is too long.
    ContextOverflow,
    /// Neither.
    None,
}

/// Classifies a failed call.
pub fn classify(error: &LlmError) -> Classified {
    of_kind(error.kind)
}

/// Returns why a call failed; `None` if another model or profile would not help because it was cancelled, too long, or refused for its
/// content.
pub fn reason_of(error: &LlmError) -> Option<FailoverReason> {
    match classify(error) {
        Classified::Reason(reason) => Some(reason),
        Classified::ContextOverflow | Classified::None => None,
    }
}

/// Returns the reason of a failure of which only the message is known; `None` if another profile or model would not help.
pub fn reason_of_text(text: &str) -> Option<FailoverReason> {
    match kind_of_text(text).map(of_kind) {
        Some(Classified::Reason(reason)) => Some(reason),
        Some(Classified::ContextOverflow | Classified::None) | None => None,
    }
}

fn of_kind(kind: LlmErrorKind) -> Classified {
    Classified::Reason(match kind {
        LlmErrorKind::Aborted | LlmErrorKind::ContentFiltered => return Classified::None,
        LlmErrorKind::ContextOverflow => return Classified::ContextOverflow,
        LlmErrorKind::Connect | LlmErrorKind::Timeout | LlmErrorKind::StreamCut | LlmErrorKind::Server => {
            FailoverReason::Timeout
        }
        LlmErrorKind::ServerFault => FailoverReason::ServerError,
        LlmErrorKind::RateLimit | LlmErrorKind::Quota => FailoverReason::RateLimit,
        LlmErrorKind::Overloaded => FailoverReason::Overloaded,
        LlmErrorKind::Billing => FailoverReason::Billing,
        LlmErrorKind::Auth => FailoverReason::Auth,
        LlmErrorKind::AuthPermanent => FailoverReason::AuthPermanent,
        LlmErrorKind::ModelNotFound => FailoverReason::ModelNotFound,
        LlmErrorKind::SessionExpired => FailoverReason::SessionExpired,
        LlmErrorKind::InvalidRequest => FailoverReason::Format,
        LlmErrorKind::NoDetails => FailoverReason::NoErrorDetails,
        // A broken answer, and kinds of later versions.
        _ => FailoverReason::Unknown,
    })
}

/// The name and message of an error that is not an [`LlmError`].
#[derive(Clone, Copy, Debug)]
pub struct NamedError<'a> {
    /// The class name of the error.
    pub name: &'a str,
    /// The message.
    pub message: &'a str,
}

/// Returns whether an error reports a cancellation.
pub fn is_abort(error: NamedError<'_>) -> bool {
    error.name == "AbortError" || error.message.to_lowercase().contains("aborted")
}

/// Returns whether an error reports a timeout; `causes` are its underlying errors.
pub fn is_timeout(error: NamedError<'_>, causes: &[NamedError<'_>]) -> bool {
    let says = |error: &NamedError<'_>| {
        error.name == "TimeoutError" || reason_of_text(error.message) == Some(FailoverReason::Timeout)
    };
    says(&error) || (error.name == "AbortError" && causes.iter().any(says))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_classified_with_the_message_of_the_provider() {
        let of = |status: u16, text: &str| {
            let status = http::StatusCode::from_u16(status).ok();
            classify(&LlmError::refused("p".into(), status, None, text))
        };
        let reason = Classified::Reason;
        assert_eq!(of(402, "402 Payment Required"), reason(FailoverReason::Billing));
        assert_eq!(of(402, "Daily usage limit reached, try again tomorrow"), reason(FailoverReason::RateLimit));
        assert_eq!(
            of(413, "Request too large: tokens per minute (TPM) limit 30000"),
            reason(FailoverReason::RateLimit)
        );
        assert_eq!(of(413, "413 request_too_large"), Classified::ContextOverflow);
        assert_eq!(of(400, "prompt is too long: 210000 tokens > 200000 maximum"), Classified::ContextOverflow);
        assert_eq!(of(403, "your api key has been revoked"), reason(FailoverReason::AuthPermanent));
    }

    #[test]
    fn a_kind_decides_the_reason_whatever_the_text() {
        let reason = |kind, text: &str| reason_of(&LlmError::new("p".into(), kind, text));
        assert_eq!(reason(LlmErrorKind::Auth, "401 no"), Some(FailoverReason::Auth));
        assert_eq!(reason(LlmErrorKind::AuthPermanent, "no"), Some(FailoverReason::AuthPermanent));
        assert_eq!(reason(LlmErrorKind::Quota, "no"), Some(FailoverReason::RateLimit));
        assert_eq!(reason(LlmErrorKind::ContextOverflow, "long"), None);
        assert_eq!(reason(LlmErrorKind::Protocol, "gibberish"), Some(FailoverReason::Unknown));
        assert_eq!(FailoverReason::parse("quota"), Some(FailoverReason::RateLimit));
    }
}
