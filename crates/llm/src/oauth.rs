//! Logins of subscriptions: from a person who signs in to credentials, and from old credentials to new ones.
//!
//! A flow signs in or refreshes, each with as few requests as it takes; when to refresh, where credentials are kept and who may write them is
//! for others. Tokens go to the servers they belong to and nowhere else: not into logs, and not into error texts.

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

/// What a login gave. Members that only the provider knows are kept as they are.
#[derive(Clone, PartialEq)]
pub struct OAuthCredential {
    /// Gives new access when the old one is over.
    pub refresh: Secret,
    /// What requests are sent with.
    pub access: Secret,
    /// When the access is over, Unix milliseconds.
    pub expires: i64,
    /// Everything else.
    pub extra: Map<String, Value>,
}

impl OAuthCredential {
    /// Reads a stored credential; `None` when it lacks one of the tokens.
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

    /// The stored form.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("type".into(), "oauth".into());
        map.insert("refresh".into(), self.refresh.reveal().into());
        map.insert("access".into(), self.access.reveal().into());
        map.insert("expires".into(), self.expires.into());
        map.extend(self.extra.clone());
        Value::Object(map)
    }

    /// The beginning of a login: nothing but what gives access.
    pub fn beginning(refresh: Secret) -> Self {
        Self { refresh, access: Secret::default(), expires: 0, extra: Map::new() }
    }

    /// Whether the access is over at this time.
    pub fn is_over(&self, now: i64) -> bool {
        self.access.is_empty() || now >= self.expires
    }
}

impl fmt::Debug for OAuthCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Members of the provider may be secrets too: names only.
        let extra: Vec<&String> = self.extra.keys().collect();
        f.debug_struct("Credential").field("expires", &self.expires).field("extra", &extra).finish_non_exhaustive()
    }
}

/// What flows work with.
#[derive(Clone, Copy)]
pub struct OAuthCx<'a> {
    /// Sends requests.
    pub transport: &'a dyn OAuthTransport,
    /// Clock, randomness and environment.
    pub host: &'a Host,
    /// Gives up.
    pub cancel: &'a Cancel,
}

/// One way to sign in.
pub trait OAuthFlow: Send + Sync {
    /// The provider whose credentials these are.
    fn id(&self) -> &str;

    /// The name that people know.
    fn name(&self) -> &str;

    /// Whether a browser on this machine ends the login by itself.
    fn uses_callback_server(&self) -> bool {
        false
    }

    /// Whether it signs people in; otherwise it refreshes stored logins only.
    fn signs_in(&self) -> bool {
        true
    }

    /// Signs a person in.
    fn login<'a>(&'a self, ui: &'a dyn LoginUi, cx: OAuthCx<'a>) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>>;

    /// New credentials for old ones, in one request.
    fn refresh<'a>(
        &'a self,
        credential: &'a OAuthCredential,
        cx: OAuthCx<'a>,
    ) -> BoxFuture<'a, Result<OAuthCredential, OAuthError>>;

    /// Whether a key that was found somewhere is what a login begins with: it is to be refreshed before requests can carry it.
    fn begins_with(&self, key: &Secret) -> bool {
        let _ = key;
        false
    }

    /// What requests carry.
    fn api_key(&self, credential: &OAuthCredential) -> Secret {
        credential.access.clone()
    }

    /// All that requests carry.
    fn auth(&self, credential: &OAuthCredential) -> Auth {
        Auth { key: Some(self.api_key(credential)), base_url: self.base_url(credential), ..Auth::default() }
    }

    /// Where requests go, when the credential decides that.
    fn base_url(&self, credential: &OAuthCredential) -> Option<String> {
        let _ = credential;
        None
    }
}

/// Why a login or a refresh failed. No text holds a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// The person or the caller gave up.
    #[error("Login cancelled")]
    Cancelled,
    /// No login flow is registered for it.
    #[error("Unknown OAuth provider: {id}")]
    Unknown {
        /// The provider.
        id: String,
    },
    /// The access is over and could not be renewed.
    #[error("Failed to refresh OAuth token for {id}: {why}")]
    Refresh {
        /// The provider.
        id: String,
        /// What the flow said.
        why: String,
    },
    /// A server refused.
    #[error("{what} ({status}): {text}")]
    Refused {
        /// What was requested, and failed.
        what: String,
        /// The status.
        status: u16,
        /// The server's words.
        text: String,
    },
    /// A server could not be asked.
    #[error("{what}: {why}")]
    Network {
        /// What was requested.
        what: String,
        /// Why not.
        why: String,
    },
    /// An answer of a server or person is of no use.
    #[error("{0}")]
    Invalid(String),
}

impl OAuthError {
    /// Whether the server does not take the credential any more, so that only a new login helps.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 401 | 403, .. })
    }
}

/// Which flows there are. A value, not a global: each owner has its own.
#[derive(Clone)]
pub struct OAuthRegistry {
    flows: Vec<Arc<dyn OAuthFlow>>,
    /// Built-in flows that were replaced, to come back.
    built_in: Vec<Arc<dyn OAuthFlow>>,
}

impl Default for OAuthRegistry {
    fn default() -> Self {
        Self::built_in()
    }
}

impl OAuthRegistry {
    /// The flows of this crate.
    pub fn built_in() -> Self {
        let built_in: Vec<Arc<dyn OAuthFlow>> = vec![
            Arc::new(anthropic::AnthropicLogin::default()),
            Arc::new(copilot::Copilot::default()),
            Arc::new(codex::CodexLogin::default()),
        ];
        Self { flows: built_in.clone(), built_in }
    }

    /// Adds a flow, in place of an earlier one of the same provider.
    pub fn register(&mut self, flow: Arc<dyn OAuthFlow>) {
        match self.flows.iter_mut().find(|known| known.id() == flow.id()) {
            Some(known) => *known = flow,
            None => self.flows.push(flow),
        }
    }

    /// Removes the flow of a provider; a built-in one comes back.
    pub fn unregister(&mut self, id: &str) {
        let Some(at) = self.flows.iter().position(|flow| flow.id() == id) else { return };
        match self.built_in.iter().find(|flow| flow.id() == id) {
            Some(own) => self.flows[at] = Arc::clone(own),
            None => drop(self.flows.remove(at)),
        }
    }

    /// Forgets all changes.
    pub fn reset(&mut self) {
        self.flows.clone_from(&self.built_in);
    }

    /// All flows, built-in ones first.
    pub fn list(&self) -> &[Arc<dyn OAuthFlow>] {
        &self.flows
    }

    /// The flow of a provider.
    ///
    /// # Errors
    /// [`OAuthError::Unknown`].
    pub fn get(&self, id: &str) -> Result<&Arc<dyn OAuthFlow>, OAuthError> {
        self.flows.iter().find(|flow| flow.id() == id).ok_or_else(|| OAuthError::Unknown { id: id.to_owned() })
    }

    /// What requests carry, after a refresh if the access is over; then with the new credential, which is to be stored.
    ///
    /// # Errors
    /// [`OAuthError::Unknown`], [`OAuthError::Refresh`] or [`OAuthError::Cancelled`].
    pub async fn usable_key(
        &self,
        id: &str,
        credential: &OAuthCredential,
        cx: OAuthCx<'_>,
    ) -> Result<(Secret, Option<OAuthCredential>), OAuthError> {
        let flow = self.get(id)?;
        if !credential.is_over(cx.host.now_ms()) {
            return Ok((flow.api_key(credential), None));
        }
        match flow.refresh(credential, cx).await {
            Ok(fresh) => Ok((flow.api_key(&fresh), Some(fresh))),
            Err(OAuthError::Cancelled) => Err(OAuthError::Cancelled),
            Err(why) => Err(OAuthError::Refresh { id: id.to_owned(), why: why.to_string() }),
        }
    }

    /// Points a provider's models to where its credential wants requests to go.
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
