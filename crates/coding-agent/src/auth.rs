//! Credentials: where the key of a request comes from.

use futures::future::BoxFuture;
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_llm::request::Auth;
use pinch_stdx::cancel::Cancel;

pub mod authorised;
pub mod config_value;
pub mod storage;
pub mod refresh;

pub use authorised::Authorised;
pub use refresh::Logins;
pub use storage::AuthStorage;

/// Gives each request its credentials. Asked before every call, because tokens expire while tools run.
pub trait RequestAuth: Send + Sync {
    /// Credentials for one call of a model.
    fn for_model<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>>;

    /// Waits until what has begun is stored: to be called before a program ends.
    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Why there are no credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Nobody has one.
    #[error("No API key found for {provider}.")]
    Missing {
        /// Whose key is missing.
        provider: ProviderId,
    },
    /// A configured value gives nothing.
    #[error("Failed to resolve {what} {how}")]
    Unresolved {
        /// What the value is for.
        what: String,
        /// How it was to be found.
        how: String,
    },
    /// A login is over.
    #[error("Authentication failed for \"{provider}\". Credentials may have expired or network is unavailable.")]
    Expired {
        /// Whose login it was.
        provider: ProviderId,
    },
    /// A login is over and could not be renewed.
    #[error("Authentication failed for \"{provider}\": {why}{}", if *is_final { ". Sign in again." } else { "" })]
    Refresh {
        /// Whose login it was.
        provider: ProviderId,
        /// What the provider said.
        why: String,
        /// Only a new login helps.
        is_final: bool,
    },
    /// The file with credentials cannot be locked or written.
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

/// The same credentials for every call.
#[derive(Clone, Debug, Default)]
pub struct FixedAuth(pub Auth);

impl RequestAuth for FixedAuth {
    fn for_model<'a>(&'a self, _: &'a Model, _: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}
