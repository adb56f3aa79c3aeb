//! Logging in to providers and out again, independent of the user interface.
//!
//! [`log_in`] signs a user in with a subscription or takes an API key, and stores the result in auth.json. It asks and reports through a
//! [`LoginUi`]: implement that trait, or use [`dialog`], which turns it into events and answers. [`LoginProvider::all`] lists the supported
//! providers, and [`status()`] returns where a provider's current credentials come from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_llm::ids::ProviderId;
use pinch_llm::oauth::{LoginChoice, LoginOption, LoginPrompt, LoginUi, OAuthError, OAuthFlow};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::secret::Secret;

pub mod methods;
pub mod status;
pub mod key_check;
pub mod dialog;
pub mod logout;

pub use dialog::{LoginDialog, LoginEvent, LoginQuestion};
pub use logout::{LogoutOutcome, log_out};
pub use methods::{LoginMethod, LoginProvider};
pub use status::{LoginStatus, status};

use crate::auth::storage::{NewCredential, StoreAuthError};
use crate::document::Problem;
use crate::models::RegistryAuth;
use key_check::KeyCheck;

/// The provider to log in to, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoginRequest {
    /// Id of the provider.
    pub provider: String,
    /// The login method; by default the user chooses if there are several.
    pub method: Option<LoginMethod>,
    /// The API key, if already known.
    pub key: Option<Secret>,
    /// Whether to check an API key with the provider before storing it.
    pub check_key: bool,
}

impl LoginRequest {
    /// Creates a request to log in to a provider. API keys are checked.
    pub fn new(provider: impl Into<String>) -> Self {
        Self { provider: provider.into(), method: None, key: None, check_key: true }
    }

    /// Sets the login method.
    #[must_use]
    pub fn with_method(self, method: Option<LoginMethod>) -> Self {
        Self { method, ..self }
    }

    /// Sets the API key.
    #[must_use]
    pub fn with_key(self, key: Secret) -> Self {
        Self { method: Some(LoginMethod::ApiKey), key: Some(key), ..self }
    }

    /// Disables the check of the API key.
    #[must_use]
    pub fn without_check(self) -> Self {
        Self { check_key: false, ..self }
    }
}

/// A stored login.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedIn {
    /// The provider.
    pub provider: ProviderId,
    /// Its display name.
    pub name: String,
    /// The login method used.
    pub method: LoginMethod,
    /// The file with the credentials.
    pub file: Option<PathBuf>,
    /// Why the API key could not be checked.
    pub unchecked: Option<String>,
    /// Problems in models.json, which was reloaded.
    pub problems: Vec<Problem>,
}

impl fmt::Display for LoggedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.method {
            LoginMethod::Subscription => write!(f, "Logged in to {}.", self.name)?,
            LoginMethod::ApiKey => write!(f, "Saved API key for {}.", self.name)?,
        }
        match &self.file {
            Some(file) => write!(f, " Credentials saved to {}", file.display()),
            None => Ok(()),
        }
    }
}

/// Why a login failed. Nothing was stored. Messages never contain a key or token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The user or the caller cancelled.
    #[error("Login cancelled")]
    Cancelled,
    /// The provider is unknown.
    #[error("Unknown provider \"{name}\"")]
    UnknownProvider {
        /// The name given.
        name: String,
    },
    /// The provider's credentials are not stored in auth.json.
    #[error("{name} has no login{}", remedy.as_ref().map(|remedy| format!(". {remedy}")).unwrap_or_default())]
    NoMethod {
        /// The provider's display name.
        name: String,
        /// What to do instead.
        remedy: Option<String>,
    },
    /// The provider does not support this login method.
    #[error("{name} has no {method} login")]
    UnsupportedMethod {
        /// The provider's display name.
        name: String,
        /// The login method.
        method: LoginMethod,
    },
    /// The sign-in failed.
    #[error("Failed to log in to {name}: {source}")]
    Flow {
        /// The provider's display name.
        name: String,
        /// The cause.
        #[source]
        source: OAuthError,
    },
    /// The input is not a valid API key.
    #[error("Invalid API key: {reason}")]
    InvalidKey {
        /// The reason.
        reason: String,
    },
    /// The provider rejected the API key.
    #[error("{name} rejected the API key: {text}")]
    KeyRejected {
        /// The provider's display name.
        name: String,
        /// The provider's message.
        text: String,
    },
    /// The credentials could not be stored.
    #[error("The credentials cannot be stored")]
    Store(#[from] StoreAuthError),
}

/// Logs a user in and stores the credentials under the lock that all programs use. Entries of other providers are kept. Then reloads
/// models.json, so that the provider's models become available.
///
/// Can be cancelled at any point; the credentials are stored completely or not at all.
///
/// # Errors
/// [`LoginError`]; nothing is stored.
pub async fn log_in(
    request: LoginRequest,
    auth: &RegistryAuth,
    ui: &dyn LoginUi,
    cancel: &Cancel,
) -> Result<LoggedIn, LoginError> {
    let login = async {
        let known = LoginProvider::find(auth, &request.provider);
        let provider = known.ok_or_else(|| LoginError::UnknownProvider { name: request.provider.clone() })?;
        // Better to find out before the user signs in than after.
        auth.storage().check_writable(auth.host()).await?;
        let method = choose_method(&provider, request.method, ui).await?;
        let unchecked = match (method, methods::flow(auth, &provider.id)) {
            (LoginMethod::Subscription, Some(flow)) => {
                sign_in(&provider, &flow, auth, ui, cancel).await?;
                None
            }
            _ => save_key(&provider, &request, auth, ui, cancel).await?,
        };
        let LoginProvider { id, name, .. } = provider;
        let file = auth.storage().path().map(ToOwned::to_owned);
        Ok(LoggedIn { provider: id, name, method, file, unchecked, problems: auth.registry().refresh() })
    };
    cancel.run(login).await.unwrap_or(Err(LoginError::Cancelled))
}

async fn choose_method(
    provider: &LoginProvider,
    requested: Option<LoginMethod>,
    ui: &dyn LoginUi,
) -> Result<LoginMethod, LoginError> {
    let name = || provider.name.clone();
    match (requested, &provider.methods[..]) {
        (_, []) => Err(LoginError::NoMethod { name: name(), remedy: pinch_llm::keys::remedy(provider.id.as_str()) }),
        (Some(method), offered) if offered.contains(&method) => Ok(method),
        (Some(method), _) => Err(LoginError::UnsupportedMethod { name: name(), method }),
        (None, [only]) => Ok(*only),
        (None, offered) => {
            let option =
                |method: &LoginMethod| LoginOption { id: method.as_str().into(), label: method.label().into() };
            let options = offered.iter().map(option).collect();
            let choice = LoginChoice::new(format!("How to log in to {}", provider.name), options);
            let chosen = ui.select(&choice).await.ok_or(LoginError::Cancelled)?;
            let chosen = offered.iter().copied().find(|method| method.as_str() == chosen);
            chosen.ok_or(LoginError::Cancelled)
        }
    }
}

async fn sign_in(
    provider: &LoginProvider,
    flow: &Arc<dyn OAuthFlow>,
    auth: &RegistryAuth,
    ui: &dyn LoginUi,
    cancel: &Cancel,
) -> Result<(), LoginError> {
    let signed_in = auth.logins().sign_in(&**flow, ui, auth.host(), cancel).await;
    let login = signed_in.map_err(|error| match error {
        OAuthError::Cancelled => LoginError::Cancelled,
        source => LoginError::Flow { name: provider.name.clone(), source },
    })?;
    store(provider, NewCredential::Login(&login), auth, ui).await
}

/// Asks for an API key, checks it and stores it. Returns why it could not be checked.
async fn save_key(
    provider: &LoginProvider,
    request: &LoginRequest,
    auth: &RegistryAuth,
    ui: &dyn LoginUi,
    cancel: &Cancel,
) -> Result<Option<String>, LoginError> {
    let entered = match &request.key {
        Some(key) => key.clone(),
        None => {
            let prompt = LoginPrompt::new(format!("API key for {}", provider.name)).secret();
            ui.prompt(&prompt).await.ok_or(LoginError::Cancelled)?.into()
        }
    };
    let value = key_check::trimmed(&entered).map_err(|why| LoginError::InvalidKey { reason: why.to_owned() })?;
    let mut unchecked = None;
    if request.check_key {
        ui.progress("Checking the API key…");
        match key_check::check(&provider.id, value, auth, cancel).await {
            KeyCheck::Accepted => {}
            KeyCheck::Unknown(why) => unchecked = Some(why),
            KeyCheck::Unresolved(why) => return Err(LoginError::InvalidKey { reason: why }),
            KeyCheck::Rejected(text) => return Err(LoginError::KeyRejected { name: provider.name.clone(), text }),
        }
    }
    store(provider, NewCredential::Key(value), auth, ui).await?;
    Ok(unchecked)
}

async fn store(
    provider: &LoginProvider,
    credential: NewCredential<'_>,
    auth: &RegistryAuth,
    ui: &dyn LoginUi,
) -> Result<(), LoginError> {
    let on_wait = || ui.progress("Waiting for another process that holds the lock of the credentials…");
    Ok(auth.storage().store_new(&provider.id, credential, auth.host(), &on_wait).await?)
}
