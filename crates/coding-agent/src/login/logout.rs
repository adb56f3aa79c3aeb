//! Removing stored credentials.

use std::fmt;

use pinch_llm::ids::ProviderId;

use crate::auth::storage::StoreAuthError;
use crate::models::RegistryAuth;

/// What a logout leaves alone.
const ELSEWHERE: &str = "Environment variables and models.json config are unchanged.";

/// What a logout removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogoutOutcome {
    /// A login of this provider, by its display name.
    LoggedOut(String),
    /// An API key of this provider.
    KeyRemoved(String),
    /// Nothing: there was nothing stored for this provider.
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
/// [`StoreAuthError`]; nothing has changed then.
pub async fn log_out(auth: &RegistryAuth, provider: &ProviderId) -> Result<LogoutOutcome, StoreAuthError> {
    let name = auth.registry().display_name(provider);
    let Some(entry) = auth.storage().get(provider) else { return Ok(LogoutOutcome::NothingStored(name)) };
    auth.storage().remove(provider, auth.host()).await?;
    auth.registry().refresh();
    Ok(if entry["type"] == "oauth" { LogoutOutcome::LoggedOut(name) } else { LogoutOutcome::KeyRemoved(name) })
}
