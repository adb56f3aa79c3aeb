//! The status of a provider's credentials, as shown in lists.

use std::fmt;

use super::{LoginMethod, LoginProvider};
use crate::auth::KeyLookup;
use crate::models::RegistryAuth;
use crate::models::request_auth::AuthSource;

/// Where the credentials of a provider come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginStatus {
    /// auth.json has matching credentials.
    Configured,
    /// auth.json has credentials for the other method.
    OtherMethod(LoginMethod),
    /// One or more environment variables.
    Environment(String),
    /// Files or the environment of a cloud provider.
    Machine,
    /// A key in models.json.
    ModelsJsonKey,
    /// A command in models.json.
    ModelsJsonCommand,
    /// A key given for this run.
    Runtime,
    /// There are credentials, but they are unusable for this reason.
    Unusable(String),
    /// There are none.
    Unconfigured,
}

impl fmt::Display for LoginStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("✓ configured"),
            Self::OtherMethod(method) => write!(f, "• {method} configured"),
            Self::Environment(variable) => write!(f, "✓ env: {variable}"),
            Self::Machine => f.write_str("✓ credentials of this machine"),
            Self::ModelsJsonKey => f.write_str("✓ key in models.json"),
            Self::ModelsJsonCommand => f.write_str("✓ command in models.json"),
            Self::Runtime => f.write_str("✓ runtime API key"),
            Self::Unusable(why) => write!(f, "✗ {why}"),
            Self::Unconfigured => f.write_str("• unconfigured"),
        }
    }
}

/// Returns the status of a provider for a list of one login method, or of all. Runs no command and contacts no server.
pub async fn status(auth: &RegistryAuth, provider: &LoginProvider, method: Option<LoginMethod>) -> LoginStatus {
    let id = &provider.id;
    let is_login = auth.is_using_oauth(id);
    // Looking up a login might refresh it.
    if !is_login && let Err(error) = auth.key(id, KeyLookup::Presence).await {
        return LoginStatus::Unusable(error.to_string());
    }
    let found = auth.status(id);
    let Some(source) = found.source else { return LoginStatus::Unconfigured };
    match (source, found.label) {
        (AuthSource::Stored, _) => {
            let stored = if is_login { LoginMethod::Subscription } else { LoginMethod::ApiKey };
            match method {
                Some(method) if method != stored => LoginStatus::OtherMethod(stored),
                _ => LoginStatus::Configured,
            }
        }
        (AuthSource::Runtime, _) => LoginStatus::Runtime,
        (AuthSource::ModelsJsonCommand, _) => LoginStatus::ModelsJsonCommand,
        (AuthSource::ModelsJsonKey, _) => LoginStatus::ModelsJsonKey,
        (AuthSource::Environment, Some(variable)) => LoginStatus::Environment(variable),
        (AuthSource::Environment, None) => LoginStatus::Machine,
    }
}
