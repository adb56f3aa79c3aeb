//! Logging in to providers and out again, for a user interface of any kind.
//!
//! [`log_in`] signs a person in with a subscription or takes an API key, and stores the result in auth.json. It asks and reports through a
//! [`LoginUi`]: a program implements that trait, or uses [`dialog`], which turns it into events and answers. [`LoginProvider::all`] lists what
//! there is to log in to, and [`status()`] says where a provider's credentials come from now.

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

/// What to log in to, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoginRequest {
    /// The provider, by its id.
    pub provider: String,
    /// The way to log in; without one the person chooses if there are several.
    pub method: Option<LoginMethod>,
    /// The API key, if it is known already.
    pub key: Option<Secret>,
    /// Whether the provider is asked if it accepts an API key before that is stored.
    pub check_key: bool,
}

impl LoginRequest {
    /// A login to a provider. An API key is checked.
    pub fn new(provider: impl Into<String>) -> Self {
        Self { provider: provider.into(), method: None, key: None, check_key: true }
    }

    /// The same in this way.
    #[must_use]
    pub fn with_method(self, method: Option<LoginMethod>) -> Self {
        Self { method, ..self }
    }

    /// The same with this API key.
    #[must_use]
    pub fn with_key(self, key: Secret) -> Self {
        Self { method: Some(LoginMethod::ApiKey), key: Some(key), ..self }
    }

    /// The same without a check of the API key.
    #[must_use]
    pub fn without_check(self) -> Self {
        Self { check_key: false, ..self }
    }
}

/// A login that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedIn {
    /// The provider.
    pub provider: ProviderId,
    /// Its display name.
    pub name: String,
    /// How the person logged in.
    pub method: LoginMethod,
    /// The file that has the credentials now.
    pub file: Option<PathBuf>,
    /// Why the API key could not be checked.
    pub unchecked: Option<String>,
    /// Problems of models.json, which was read again.
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

/// Why a login failed. Nothing was stored. No text has a key or a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The person or the caller gave up.
    #[error("Login cancelled")]
    Cancelled,
    /// There is no such provider.
    #[error("Unknown provider \"{name}\"")]
    UnknownProvider {
        /// The name that was given.
        name: String,
    },
    /// The provider's credentials are not kept in auth.json.
    #[error("{name} has no login{}", remedy.as_ref().map(|remedy| format!(". {remedy}")).unwrap_or_default())]
    NoMethod {
        /// The provider's display name.
        name: String,
        /// What to do instead.
        remedy: Option<String>,
    },
    /// The provider cannot be logged in to in this way.
    #[error("{name} has no {method} login")]
    UnsupportedMethod {
        /// The provider's display name.
        name: String,
        /// The way.
        method: LoginMethod,
    },
    /// The sign-in failed.
    #[error("Failed to log in to {name}: {source}")]
    Flow {
        /// The provider's display name.
        name: String,
        /// Why.
        #[source]
        source: OAuthError,
    },
    /// What was entered is no API key.
    #[error("Invalid API key: {why}")]
    InvalidKey {
        /// Why.
        why: String,
    },
    /// The provider does not accept the API key.
    #[error("{name} rejected the API key: {text}")]
    KeyRejected {
        /// The provider's display name.
        name: String,
        /// What the provider said.
        text: String,
    },
    /// Credentials cannot be stored.
    #[error("The credentials cannot be stored")]
    Store(#[from] StoreAuthError),
}

/// Logs a person in and stores the credentials under the lock that all programs use. Entries of other providers stay as they are. Then
/// models.json is read again, so that the provider's models can be used.
///
/// Cancelling ends it wherever it waits; the credentials are stored completely or not at all.
///
/// # Errors
/// [`LoginError`]; nothing is stored then.
pub async fn log_in(
    request: LoginRequest,
    auth: &RegistryAuth,
    ui: &dyn LoginUi,
    cancel: &Cancel,
) -> Result<LoggedIn, LoginError> {
    let login = async {
        let known = LoginProvider::find(auth, &request.provider);
        let provider = known.ok_or_else(|| LoginError::UnknownProvider { name: request.provider.clone() })?;
        // It is better known before a person signs in than after.
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

/// Takes an API key, checks and stores it. Returns why it could not be checked.
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
    let value = key_check::trimmed(&entered).map_err(|why| LoginError::InvalidKey { why: why.to_owned() })?;
    let mut unchecked = None;
    if request.check_key {
        ui.progress("Checking the API key…");
        match key_check::check(&provider.id, value, auth, cancel).await {
            KeyCheck::Accepted => {}
            KeyCheck::Unknown(why) => unchecked = Some(why),
            KeyCheck::Unresolved(why) => return Err(LoginError::InvalidKey { why }),
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
