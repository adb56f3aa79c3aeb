//! Credentials: where the key of a request comes from.

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

/// Gives each request its credentials. Asked before every call, because tokens expire while tools run.
pub trait RequestAuth: Send + Sync {
    /// Credentials for one call of a model.
    fn for_model<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>>;

    /// Fails as [`RequestAuth::for_model`] would, as far as is known without running a command of the user: called before a prompt is
    /// accepted.
    fn check<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<(), AuthError>> {
        Box::pin(async move { self.for_model(model, cancel).await.map(drop) })
    }

    /// Gets other credentials after a server refused those of the last call. Returns whether there are others now: then the call may be made
    /// again.
    fn renew<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, bool> {
        let _ = (model, cancel);
        Box::pin(async { false })
    }

    /// Waits until refreshes that have started are stored: to be called before a program exits.
    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Why there are no credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// There are none.
    #[error("No API key found for {provider}.")]
    Missing {
        /// Whose key is missing.
        provider: ProviderId,
    },
    /// There are none, and a header needs one.
    #[error("No API key found for \"{provider}\"")]
    MissingForHeader {
        /// Whose key is missing.
        provider: ProviderId,
    },
    /// A configured value could not be resolved.
    #[error("Failed to resolve {what} {how}")]
    Unresolved {
        /// What the value is for.
        what: String,
        /// How it was to be found.
        how: String,
    },
    /// A login has expired.
    #[error("Authentication failed for \"{provider}\". Credentials may have expired or network is unavailable.")]
    Expired {
        /// Whose login it was.
        provider: ProviderId,
    },
    /// A login has expired and could not be refreshed.
    #[error("Authentication failed for \"{provider}\": {why}{}", if *is_final { ". Sign in again." } else { "" })]
    Refresh {
        /// Whose login it was.
        provider: ProviderId,
        /// What the provider said.
        why: String,
        /// Only a new login helps.
        is_final: bool,
    },
    /// The credentials file is locked by another program.
    #[error("The login of \"{provider}\" cannot be renewed: {why}")]
    Locked {
        /// Whose login it is.
        provider: ProviderId,
        /// Who holds what.
        why: String,
    },
    /// The credentials file cannot be written.
    #[error("The login of \"{provider}\" cannot be renewed: {why}")]
    Store {
        /// Whose login it is.
        provider: ProviderId,
        /// Why not.
        why: String,
    },
    /// The call was cancelled meanwhile.
    #[error("Request was aborted")]
    Cancelled,
}

impl AuthError {
    /// The configured value of a provider's key resolves to nothing.
    pub(crate) fn unresolved_key(provider: &ProviderId, how: &config_value::ValueError) -> Self {
        Self::Unresolved { what: format!("API key for provider \"{provider}\""), how: how.to_string() }
    }
}

/// The same credentials for every call.
#[derive(Clone, Debug, Default)]
pub struct FixedAuth(pub Auth);

impl RequestAuth for FixedAuth {
    fn for_model<'a>(&'a self, _: &'a Model, _: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}
