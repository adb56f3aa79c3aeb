//! Removing stored credentials.

use std::fmt;

use pinch_llm::ids::ProviderId;

use crate::auth::storage::StoreAuthError;
use crate::models::RegistryAuth;

/// What a logout does not change.
const ELSEWHERE: &str = "Environment variables and models.json config are unchanged.";

/// The result of a logout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogoutOutcome {
    /// The login of this provider (its display name) was removed.
    LoggedOut(String),
    /// The API key of this provider was removed.
    KeyRemoved(String),
    /// Nothing was stored for this provider.
    NothingStored(String),
}

impl fmt::Display for LogoutOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedOut(name) => write!(f, "Logged out of {name}."),
            Self::KeyRemoved(name) => write!(f, "Removed stored API key for {name}. {ELSEWHERE}"),
            Self::NothingStored(name) => write!(f, "No stored credentials for {name}. {ELSEWHERE}"),
        }
    }
}

/// Removes the stored credentials of a provider.
///
/// # Errors
/// [`StoreAuthError`]; nothing has changed.
pub async fn log_out(auth: &RegistryAuth, provider: &ProviderId) -> Result<LogoutOutcome, StoreAuthError> {
    let name = auth.registry().display_name(provider);
    let Some(entry) = auth.storage().get(provider) else { return Ok(LogoutOutcome::NothingStored(name)) };
    auth.storage().remove(provider, auth.host()).await?;
    auth.registry().refresh();
    Ok(if entry["type"] == "oauth" { LogoutOutcome::LoggedOut(name) } else { LogoutOutcome::KeyRemoved(name) })
}
