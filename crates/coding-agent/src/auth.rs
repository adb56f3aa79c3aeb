//! Credentials: resolving the key for a request.

use futures::future::BoxFuture;
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_llm::request::Auth;
use pinch_stdx::cancel::Cancel;

pub mod authorised;
pub mod config_value;
pub mod backend;
pub mod storage;
pub mod refresh;

pub use authorised::Authorised;
pub use backend::{AuthBackend, OpenAuth};
pub use refresh::Logins;
pub use storage::{AuthStorage, KeyLookup};

/// Supplies the credentials of each request. Called before every request, because tokens expire while tools run.
pub trait RequestAuth: Send + Sync {
    /// Returns the credentials for one request to a model.
    fn for_model<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>>;

    /// Fails as [`RequestAuth::for_model`] would, as far as can be determined without running user commands. Called before a prompt is
    /// accepted.
    fn check<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<(), AuthError>> {
        Box::pin(async move { self.for_model(model, cancel).await.map(drop) })
    }

    /// Obtains new credentials after a server rejected those of the last request. Returns whether they changed, so that the request may be
    /// retried.
    fn renew<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, bool> {
        let _ = (model, cancel);
        Box::pin(async { false })
    }

    /// Waits until pending refreshes are stored. Call it before the program exits.
    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Why there are no credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// No credentials are configured.
    #[error("No API key found for {provider}.")]
    Missing {
        /// Provider whose key is missing.
        provider: ProviderId,
    },
    /// No credentials are configured, but a header requires them.
    #[error("No API key found for \"{provider}\"")]
    MissingForHeader {
        /// Provider whose key is missing.
        provider: ProviderId,
    },
    /// A configured value could not be resolved.
    #[error("Failed to resolve {what} {how}")]
    Unresolved {
        /// What the value is for.
        what: String,
        /// The unresolved reference.
        how: String,
    },
    /// A login has expired.
    #[error("Authentication failed for \"{provider}\". Credentials may have expired or network is unavailable.")]
    Expired {
        /// Provider of the login.
        provider: ProviderId,
    },
    /// A login has expired and could not be refreshed.
    #[error("Authentication failed for \"{provider}\": {reason}{}", if *is_final { ". Sign in again." } else { "" })]
    Refresh {
        /// Provider of the login.
        provider: ProviderId,
        /// The provider's error message.
        reason: String,
        /// Whether only a new login helps.
        is_final: bool,
    },
    /// Another program holds the lock of the credentials file.
    #[error("The login of \"{provider}\" cannot be refreshed: {reason}")]
    Locked {
        /// Provider of the login.
        provider: ProviderId,
        /// Who holds the lock.
        reason: String,
    },
    /// The credentials file cannot be written.
    #[error("The login of \"{provider}\" cannot be refreshed: {reason}")]
    Store {
        /// Provider of the login.
        provider: ProviderId,
        /// The cause.
        reason: String,
    },
    /// The request was cancelled in the meantime.
    #[error("Request was aborted")]
    Cancelled,
}

impl AuthError {
    /// Returns the error for a provider's key that cannot be resolved.
    pub(crate) fn unresolved_key(provider: &ProviderId, how: &config_value::ValueError) -> Self {
        Self::Unresolved { what: format!("API key for provider \"{provider}\""), how: how.to_string() }
    }
}

/// A [`RequestAuth`] with the same credentials for every request.
#[derive(Clone, Debug, Default)]
pub struct FixedAuth(pub Auth);

impl RequestAuth for FixedAuth {
    fn for_model<'a>(&'a self, _: &'a Model, _: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}
