//! Why a candidate failed, in the words that logs, stores and callers know.

use std::fmt;

use pinch_llm::error::{LlmError, LlmErrorKind};

/// Why a profile or a model could not do the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailoverReason {
    /// No money, no quota.
    Billing,
    /// Too many requests.
    RateLimit,
    /// The provider has no capacity.
    Overloaded,
    /// No or wrong credentials.
    Auth,
    /// Credentials that will never work again.
    AuthPermanent,
    /// No answer in time, or no connection.
    Timeout,
    /// The provider does not take the request.
    Format,
    /// The model does not exist for this account.
    ModelNotFound,
    /// The provider has forgotten the session.
    SessionExpired,
    /// The provider failed.
    ServerError,
    /// Something else.
    Unknown,
}

impl FailoverReason {
    /// All reasons.
    pub const ALL: [Self; 11] = [
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
        Self::Unknown,
    ];

    /// The word used in files and events.
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
            Self::Unknown => "unknown",
        }
    }

    /// Reads the word; `quota`, which some files hold, means [`Self::RateLimit`].
    pub fn parse(word: &str) -> Option<Self> {
        if word == "quota" {
            return Some(Self::RateLimit);
        }
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// The HTTP status that stands for the reason.
    pub fn status(self) -> Option<u16> {
        Some(match self {
            Self::Billing => 402,
            Self::RateLimit => 429,
            Self::Overloaded => 503,
            Self::Auth => 401,
            Self::AuthPermanent => 403,
            Self::Timeout => 408,
            Self::Format => 400,
            Self::ModelNotFound => 404,
            Self::SessionExpired => 410,
            Self::ServerError => 500,
            Self::Unknown => return None,
        })
    }
}

impl fmt::Display for FailoverReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason a failed call gives; `None` when another profile or model is no answer to it.
pub fn reason_of(error: &LlmError) -> Option<FailoverReason> {
    Some(match error.kind {
        LlmErrorKind::Aborted | LlmErrorKind::ContextOverflow => return None,
        LlmErrorKind::Connect | LlmErrorKind::Timeout | LlmErrorKind::StreamCut => FailoverReason::Timeout,
        LlmErrorKind::RateLimit => FailoverReason::RateLimit,
        LlmErrorKind::Overloaded => FailoverReason::Overloaded,
        LlmErrorKind::Server => FailoverReason::ServerError,
        LlmErrorKind::Billing => FailoverReason::Billing,
        LlmErrorKind::Auth => FailoverReason::Auth,
        LlmErrorKind::ModelNotFound => FailoverReason::ModelNotFound,
        LlmErrorKind::InvalidRequest => FailoverReason::Format,
        LlmErrorKind::ContentFiltered | LlmErrorKind::Protocol => return None,
    })
}
