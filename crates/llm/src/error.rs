//! Errors of calls, classified once, where status and headers are still available.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::StatusCode;

mod patterns;
mod words;
pub mod rate;
pub mod payment;
pub mod overflow;
pub mod rejection;
pub mod text;
mod signal;
pub mod classify;
pub mod retry;

pub use classify::classify;
pub use overflow::is_context_overflow;
pub use words::leading_status;

use crate::ids::ProviderId;

/// A failed call. `text` is shown to people and stored as `errorMessage` in session files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LlmError {
    /// The provider that was called.
    pub provider: ProviderId,
    /// The kind of failure.
    pub kind: LlmErrorKind,
    /// HTTP status, if there was a response.
    pub status: Option<StatusCode>,
    /// The provider's own code, e.g. `insufficient_quota`.
    pub code: Option<String>,
    /// The provider's request id, for support.
    pub request_id: Option<String>,
    /// The delay that the provider asks for before a retry.
    pub retry_after: Option<Duration>,
    /// The provider's advice on whether to retry (`x-should-retry`).
    pub should_retry: Option<bool>,
    /// What the caller had received before the failure: determines whether a retry would repeat text.
    pub emitted: Emitted,
    /// The message.
    pub text: String,
    /// The underlying error, if any.
    pub source: Option<std::sync::Arc<dyn Error + Send + Sync>>,
}

impl LlmError {
    /// Creates an error of a kind with a text.
    pub fn new(provider: ProviderId, kind: LlmErrorKind, text: impl Into<String>) -> Self {
        Self {
            provider,
            kind,
            status: None,
            code: None,
            request_id: None,
            retry_after: None,
            should_retry: None,
            emitted: Emitted::Nothing,
            text: text.into(),
            source: None,
        }
    }

    /// Creates an error reported by a provider, classified by status, code and text.
    pub fn refused(
        provider: ProviderId,
        status: Option<StatusCode>,
        code: Option<&str>,
        text: impl Into<String>,
    ) -> Self {
        let text = text.into();
        let kind = classify(status, code, &text);
        Self { status, code: code.map(str::to_owned), ..Self::new(provider, kind, text) }
    }

    /// Creates the error of a cancelled call. The text is the same everywhere.
    pub fn aborted(provider: ProviderId) -> Self {
        Self::new(provider, LlmErrorKind::Aborted, "Request was aborted")
    }

    /// Returns whether a retry may help (see [`retry::retryable`]).
    pub fn retryable(&self) -> bool {
        retry::retryable(self)
    }
}

impl fmt::Display for LlmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for LlmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// The kind of a failure.
///
/// Later versions may add kinds. [`LlmError::retryable`] and [`retry`] decide for kinds that a caller does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LlmErrorKind {
    /// The caller cancelled.
    Aborted,
    /// No connection: name resolution, TCP, TLS, or a reset before the headers.
    Connect,
    /// A deadline passed, or status 408.
    Timeout,
    /// The response broke off, or ended without its end marker.
    StreamCut,
    /// Too many requests.
    RateLimit,
    /// A quota that resets in hours or days is used up.
    Quota,
    /// The provider has no capacity.
    Overloaded,
    /// The provider failed.
    Server,
    /// The provider failed and reported it with a specific code.
    ServerFault,
    /// No credit left.
    Billing,
    /// Missing or invalid credentials.
    Auth,
    /// Credentials that were revoked, disabled, or never valid.
    AuthPermanent,
    /// The provider no longer has the conversation.
    SessionExpired,
    /// The model does not exist for this account.
    ModelNotFound,
    /// The conversation is too long for the model.
    ContextOverflow,
    /// The provider rejected the request.
    InvalidRequest,
    /// The provider refused because of the content.
    ContentFiltered,
    /// The provider reported a failure without any details.
    NoDetails,
    /// The response is invalid.
    Protocol,
}

/// What the caller had received before a call failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emitted {
    /// No event at all.
    #[default]
    Nothing,
    /// Events, but no text, thinking or call.
    Started,
    /// Text, thinking or a call.
    Content,
}
