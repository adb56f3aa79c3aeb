//! OAuth logins: sign-in and refreshing of credentials.
//!
//! A flow signs in or refreshes, each with as few requests as possible; when to refresh, where to store credentials and who may write them
//! is up to the caller. Tokens go only to the servers they belong to: never into logs or error texts.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::secret::Secret;
use serde_json::{Map, Value};

pub mod transport;

pub mod ui;

pub mod pkce;

pub mod paste;

mod callback;

mod browser;

pub mod anthropic;

pub mod codex;

pub mod copilot;

pub mod google;

pub use transport::OAuthTransport;
pub use ui::{LoginChoice, LoginOption, LoginPrompt, LoginUi, SignInPage};

use crate::model::Model;
use crate::request::Auth;

/// The result of a login. Provider-specific members are preserved unchanged.
#[derive(Clone, PartialEq)]
pub struct OAuthCredential {
    /// Token for refreshing the access token.
    pub refresh: Secret,
    /// Access token of requests.
    pub access: Secret,
    /// Expiry of the access token, in Unix milliseconds.
    pub expires: i64,
    /// All other members.
    pub extra: Map<String, Value>,
}

impl OAuthCredential {
    /// Parses a stored credential; returns `None` if one of the tokens is missing.
    pub fn from_value(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str();
        let expires = value["expires"].as_i64().or_else(|| value["expires"].as_f64().map(|ms| ms as i64));
        let known = ["type", "refresh", "access", "expires"];
        let extra = value.as_object()?.iter().filter(|(name, _)| !known.contains(&name.as_str()));
        Some(Self {
            refresh: text("refresh")?.into(),
            access: text("access")?.into(),
            expires: expires.unwrap_or(0),
            extra: extra.map(|(name, value)| (name.clone(), value.clone())).collect(),
        })
    }

    /// Returns the form for storage.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("type".into(), "oauth".into());
        map.insert("refresh".into(), self.refresh.reveal().into());
        map.insert("access".into(), self.access.reveal().into());
        map.insert("expires".into(), self.expires.into());
        map.extend(self.extra.clone());
        Value::Object(map)
    }

    /// Creates the initial state of a login: only the refresh token.
    pub fn beginning(refresh: Secret) -> Self {
        Self { refresh, access: Secret::default(), expires: 0, extra: Map::new() }
    }

    /// Returns whether the access token has expired at this time.
    pub fn is_expired(&self, now: i64) -> bool {
        self.access.is_empty() || now >= self.expires
    }
}

impl fmt::Debug for OAuthCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Provider-specific members may be secrets too, so show only their names.
        let extra: Vec<&String> = self.extra.keys().collect();
        f.debug_struct("Credential").field("expires", &self.expires).field("extra", &extra).finish_non_exhaustive()
    }
}

/// Context of a flow.
#[derive(Clone, Copy)]
pub struct OAuthCx<'a> {
    /// Sends requests.
    pub transport: &'a dyn OAuthTransport,
    /// Clock, randomness and environment.
    pub host: &'a Host,
    /// Cancels the flow.
    pub cancel: &'a Cancel,
}

/// A login flow of one provider.
pub trait OAuthFlow: Send + Sync {
    /// Returns the provider whose credentials these are.
    fn id(&self) -> &str;

    /// Returns the name shown to people.
    fn name(&self) -> &str;

    /// Returns whether a browser on this machine completes the login by itself.
    fn uses_callback_server(&self) -> bool {
        false
    }

    /// Returns whether the flow can sign in; otherwise it only refreshes stored logins.
    fn signs_in(&self) -> bool {
        true
    }

    /// Signs in.
    fn login<'a>(&'a self, ui: &'a dyn LoginUi, cx: OAuthCx<'a>) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>>;

    /// Refreshes credentials in one request.
    fn refresh<'a>(
        &'a self,
        credential: &'a OAuthCredential,
        cx: OAuthCx<'a>,
    ) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>>;

    /// Returns whether a key found elsewhere is the initial state of a login, which must be refreshed before use.
    fn is_initial_token(&self, key: &Secret) -> bool {
        let _ = key;
        false
    }

    /// Returns the key for requests.
    fn api_key(&self, credential: &OAuthCredential) -> Secret {
        credential.access.clone()
    }

    /// Returns all credentials for requests.
    fn auth(&self, credential: &OAuthCredential) -> Auth {
        Auth { key: Some(self.api_key(credential)), base_url: self.base_url(credential), ..Auth::default() }
    }

    /// Returns the base URL for requests, if the credential determines it.
    fn base_url(&self, credential: &OAuthCredential) -> Option<String> {
        let _ = credential;
        None
    }
}

/// Reasons why a login or a refresh failed. No text contains a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// The user or the caller cancelled.
    #[error("Login cancelled")]
    Cancelled,
    /// No login flow is registered for the provider.
    #[error("Unknown OAuth provider: {id}")]
    Unknown {
        /// The provider.
        id: String,
    },
    /// The access token expired and could not be refreshed.
    #[error("Failed to refresh OAuth token for {id}: {reason}")]
    Refresh {
        /// The provider.
        id: String,
        /// The flow's error.
        reason: String,
    },
    /// A server refused the request.
    #[error("{what} ({status}): {text}")]
    Refused {
        /// The action that failed.
        what: String,
        /// The status.
        status: u16,
        /// The server's message.
        text: String,
    },
    /// A server could not be reached.
    #[error("{what}: {reason}")]
    Network {
        /// The action that failed.
        what: String,
        /// The cause.
        reason: String,
    },
    /// A server or user returned something unusable.
    #[error("{0}")]
    Invalid(String),
}

impl OAuthError {
    /// Returns whether the server permanently rejects the credential, so that a new login is required.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 401 | 403, .. })
    }
}

/// Registered login flows. A value, not a global: each owner has its own.
#[derive(Clone)]
pub struct OAuthRegistry {
    flows: Vec<Arc<dyn OAuthFlow>>,
    /// Built-in flows that were replaced and can be restored.
    built_in: Vec<Arc<dyn OAuthFlow>>,
}

impl Default for OAuthRegistry {
    fn default() -> Self {
        Self::built_in()
    }
}

impl OAuthRegistry {
    /// Creates a registry with the flows of this crate.
    pub fn built_in() -> Self {
        let built_in: Vec<Arc<dyn OAuthFlow>> = vec![
            Arc::new(anthropic::AnthropicLogin::default()),
            Arc::new(copilot::Copilot::default()),
            Arc::new(codex::CodexLogin::default()),
        ];
        Self { flows: built_in.clone(), built_in }
    }

    /// Adds a flow, replacing an earlier one of the same provider.
    pub fn register(&mut self, flow: Arc<dyn OAuthFlow>) {
        match self.flows.iter_mut().find(|known| known.id() == flow.id()) {
            Some(known) => *known = flow,
            None => self.flows.push(flow),
        }
    }

    /// Removes the flow of a provider; a built-in one is restored.
    pub fn unregister(&mut self, id: &str) {
        let Some(at) = self.flows.iter().position(|flow| flow.id() == id) else { return };
        match self.built_in.iter().find(|flow| flow.id() == id) {
            Some(own) => self.flows[at] = Arc::clone(own),
            None => drop(self.flows.remove(at)),
        }
    }

    /// Undoes all changes.
    pub fn reset(&mut self) {
        self.flows.clone_from(&self.built_in);
    }

    /// Returns all flows, built-in ones first.
    pub fn list(&self) -> &[Arc<dyn OAuthFlow>] {
        &self.flows
    }

    /// Returns the flow of a provider.
    ///
    /// # Errors
    /// Returns [`OAuthError::Unknown`] if there is none.
    pub fn get(&self, id: &str) -> Result<&Arc<dyn OAuthFlow>, OAuthError> {
        self.flows.iter().find(|flow| flow.id() == id).ok_or_else(|| OAuthError::Unknown { id: id.to_owned() })
    }

    /// Returns the key for requests, after a refresh if the access token has expired; in that case also the new credential, which must be
    /// stored.
    ///
    /// # Errors
    /// Returns [`OAuthError::Unknown`], [`OAuthError::Refresh`] or [`OAuthError::Cancelled`].
    pub async fn usable_key(
        &self,
        id: &str,
        credential: &OAuthCredential,
        cx: OAuthCx<'_>,
    ) -> Result<(Secret, Option<OAuthCredential>), OAuthError> {
        let flow = self.get(id)?;
        if !credential.is_expired(cx.host.now_ms()) {
            return Ok((flow.api_key(credential), None));
        }
        match flow.refresh(credential, cx).await {
            Ok(fresh) => Ok((flow.api_key(&fresh), Some(fresh))),
            Err(OAuthError::Cancelled) => Err(OAuthError::Cancelled),
            Err(reason) => Err(OAuthError::Refresh { id: id.to_owned(), reason: reason.to_string() }),
        }
    }

    /// Sets the base URL of a provider's models to the one that its credential determines.
    pub fn modify_models(&self, id: &str, credential: &OAuthCredential, models: &mut [Model]) {
        let Some(url) = self.get(id).ok().and_then(|flow| flow.base_url(credential)) else { return };
        for model in models.iter_mut().filter(|model| model.provider == *id) {
            model.base_url.clone_from(&url);
        }
    }
}

impl fmt::Debug for OAuthRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.flows.iter().map(|flow| flow.id())).finish()
    }
}
