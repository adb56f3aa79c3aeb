//! Credentials of a request, from the first source that has them.

use futures::future::BoxFuture;
use pinch_llm::ids::ProviderId;
use pinch_llm::keys;
use pinch_llm::model::Model;
use pinch_llm::request::Auth;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::{Env, Host};
use pinch_stdx::secret::Secret;
use serde_json::{Map, Value};
use std::sync::Arc;

use super::ModelRegistry;
use crate::auth::config_value::{self, ValueOrigin};
use crate::auth::{AuthError, AuthStorage, KeyLookup, Logins, RequestAuth};

/// Value in models.json for servers that need no key.
const NO_KEY: &str = "none";

/// Looks up credentials in this order: the command line, auth.json, models.json, the environment.
pub struct RegistryAuth {
    registry: Arc<ModelRegistry>,
    storage: AuthStorage,
    logins: Arc<Logins>,
    given: Option<(ProviderId, Secret)>,
    host: Host,
}

/// Where a provider's credentials come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthSource {
    /// auth.json.
    Stored,
    /// The command line, for this run.
    Runtime,
    /// A command in models.json.
    ModelsJsonCommand,
    /// A key in models.json.
    ModelsJsonKey,
    /// A variable, or files of a cloud provider.
    Environment,
}

impl AuthSource {
    /// Returns the name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Runtime => "runtime",
            Self::ModelsJsonCommand => "models_json_command",
            Self::ModelsJsonKey => "models_json_key",
            Self::Environment => "environment",
        }
    }
}

/// The status of a provider's credentials, determined without a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthStatus {
    /// Where they come from; `None` if there are none.
    pub source: Option<AuthSource>,
    /// The variable or option they come from.
    pub label: Option<String>,
}

impl AuthStatus {
    /// Returns whether there are credentials.
    pub fn is_configured(&self) -> bool {
        self.source.is_some()
    }

    fn of(source: AuthSource, label: Option<String>) -> Self {
        Self { source: Some(source), label }
    }
}

impl RegistryAuth {
    /// Combines the sources. `given` is a key from the command line, for one provider only.
    pub fn new(
        registry: Arc<ModelRegistry>,
        storage: AuthStorage,
        given: Option<(ProviderId, Secret)>,
        host: Host,
    ) -> Self {
        let logins = Arc::new(Logins::over_network(&host));
        Self { registry, storage, logins, given, host }
    }

    /// Sets how logins are refreshed, instead of the built-in flows with network access.
    #[must_use]
    pub fn with_logins(self, logins: impl Into<Arc<Logins>>) -> Self {
        Self { logins: logins.into(), ..self }
    }

    /// Returns the registry of models.
    pub fn registry(&self) -> &Arc<ModelRegistry> {
        &self.registry
    }

    /// Returns the host used for lookups.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the credential storage.
    pub fn storage(&self) -> &AuthStorage {
        &self.storage
    }

    /// Returns whether a provider has credentials, without running commands.
    pub fn is_configured(&self, provider: &ProviderId) -> bool {
        self.given_for(provider).is_some()
            || self.storage.has(provider)
            || self.registry.has_key(provider, &self.env(provider))
            || self.of_machine(provider).is_some()
    }

    /// Returns the status of a provider's credentials, without running commands or contacting servers.
    pub fn status(&self, provider: &ProviderId) -> AuthStatus {
        // Keys given for this run take precedence.
        if self.given_for(provider).is_some() {
            return AuthStatus::of(AuthSource::Runtime, None);
        }
        if self.storage.has(provider) {
            return AuthStatus::of(AuthSource::Stored, None);
        }
        let env = self.env(provider);
        if let Some(value) = self.registry.key_value(provider).filter(|value| config_value::is_set(value, &env)) {
            return match config_value::origin(&value) {
                ValueOrigin::Command => AuthStatus::of(AuthSource::ModelsJsonCommand, None),
                ValueOrigin::Literal => AuthStatus::of(AuthSource::ModelsJsonKey, None),
                ValueOrigin::Variables(names) => AuthStatus::of(AuthSource::Environment, Some(names.join(", "))),
            };
        }
        if self.of_machine(provider).is_none() {
            return AuthStatus::default();
        }
        let variable = keys::look_up(provider.as_str(), &env).and_then(|found| found.variable);
        AuthStatus::of(AuthSource::Environment, variable.map(str::to_owned))
    }

    /// Returns whether requests to a provider use a login's access token.
    pub fn is_using_oauth(&self, provider: &ProviderId) -> bool {
        self.given_for(provider).is_none() && self.storage.get(provider).is_some_and(|entry| entry["type"] == "oauth")
    }

    /// Returns the refresher of logins.
    pub fn logins(&self) -> &Logins {
        &self.logins
    }

    /// Returns a hint about a provider's key: a literal that is a variable's name was most likely meant as the variable.
    pub fn hint(&self, provider: &ProviderId) -> Option<String> {
        let entry = self.storage.get(provider);
        let stored = entry.and_then(|entry| entry["key"].as_str().map(str::to_owned));
        let value = stored.or_else(|| self.registry.key_value(provider))?;
        config_value::is_legacy_variable(&value, &self.env(provider)).then(|| {
            format!(
                "The key of {provider} is the literal text \"{value}\", but a variable of that name is set. \
                 Write \"${value}\" to use it"
            )
        })
    }

    /// Returns key and headers for a model, even without a key, which the server may or may not accept.
    ///
    /// # Errors
    /// Fails if a configured value cannot be resolved, a login cannot be refreshed, or a header requires a missing key.
    pub async fn key_and_headers(&self, model: &Model, lookup: KeyLookup) -> Result<Option<Auth>, AuthError> {
        let found = self.key(&model.provider, lookup).await?;
        let has_key = found.is_some();
        let mut auth = self.complete(model, found.unwrap_or_default(), lookup).await?;
        auth.env = self.storage.has_env(&model.provider).then(|| self.env(&model.provider));
        Ok((has_key || !auth.headers.is_empty()).then_some(auth))
    }

    /// Completes credentials from another source: exchanges a key if required, and adds the configured headers.
    ///
    /// # Errors
    /// Same as [`RegistryAuth::key_and_headers`].
    pub async fn complete(&self, model: &Model, auth: Auth, lookup: KeyLookup) -> Result<Auth, AuthError> {
        let (provider, mut auth) = (&model.provider, auth);
        if let Some(key) = auth.key.as_ref().filter(|key| !key.is_empty())
            && let Some(exchanged) = self.logins.exchange(provider, key, &self.host).await?
        {
            auth = exchanged;
        }
        let (of_provider, of_model, with_key) = self.registry.request_headers(provider, model.id.as_str());
        let whose = format!("provider \"{provider}\"");
        self.add_headers(&mut auth, provider, &of_provider, &whose, lookup).await?;
        let whose = format!("model \"{provider}/{}\"", model.id);
        self.add_headers(&mut auth, provider, &of_model, &whose, lookup).await?;
        if with_key {
            let Some(key) = &auth.key else { return Err(AuthError::MissingForHeader { provider: provider.clone() }) };
            auth.headers.push(("Authorization".into(), Some(format!("Bearer {}", key.reveal()))));
        }
        Ok(auth)
    }

    /// Refreshes a provider's stored login after its server rejected this access token. Returns whether there is a different token now.
    pub async fn renew_login(&self, provider: &ProviderId, refused: &Secret) -> bool {
        self.given_for(provider).is_none() && self.logins.renew(provider, &self.storage, &self.host, refused).await
    }

    async fn find(&self, model: &Model, lookup: KeyLookup) -> Result<Auth, AuthError> {
        let found = self.key_and_headers(model, lookup).await?;
        let found = found.filter(|auth| auth.key.is_some() || auth.keyless);
        found.ok_or_else(|| AuthError::Missing { provider: model.provider.clone() })
    }

    /// Returns the API key of a provider, or `None` if there is none.
    ///
    /// # Errors
    /// Fails if a configured value cannot be resolved, or a login cannot be refreshed.
    pub async fn key(&self, provider: &ProviderId, lookup: KeyLookup) -> Result<Option<Auth>, AuthError> {
        if let Some(key) = self.given_for(provider) {
            return Ok(Some(Auth::key(key.clone())));
        }
        if let Some(found) = self.stored(provider, lookup).await? {
            return Ok(found.auth);
        }
        let env = self.env(provider);
        if let Some(value) = self.registry.key_value(provider) {
            if value == NO_KEY {
                return Ok(Some(Auth::keyless()));
            }
            if lookup == KeyLookup::Presence && value.starts_with('!') {
                return Ok(Some(Auth::key("")));
            }
            let key = config_value::resolve(&value, &env).await;
            return key.map(|key| Some(Auth::key(key))).map_err(|how| AuthError::unresolved_key(provider, &how));
        }
        Ok(self.of_machine(provider).map(Auth::key))
    }

    /// Returns the credentials in auth.json for a provider, or `None` to continue with the next source.
    async fn stored(&self, provider: &ProviderId, lookup: KeyLookup) -> Result<Option<StoredAuth>, AuthError> {
        let Some(entry) = self.storage.get(provider) else { return Ok(None) };
        if entry["type"] == "oauth" {
            let auth = match self.registry.flow_of(provider) {
                Some(flow) => self.logins.resolve_with(&flow, provider, &self.storage, &self.host).await?,
                None => self.logins.resolve(provider, &self.storage, &self.host).await?,
            };
            // An unusable login is still the user's choice, so no other source replaces it.
            let is_still_there = self.storage.get(provider).is_some_and(|entry| entry["type"] == "oauth");
            return Ok((auth.is_some() || is_still_there).then_some(StoredAuth { auth }));
        }
        let key = self.storage.api_key(provider, &self.host, lookup).await?;
        Ok(key.map(|key| StoredAuth { auth: Some(Auth::key(key)) }))
    }

    fn given_for(&self, provider: &ProviderId) -> Option<&Secret> {
        self.given.as_ref().filter(|(owner, _)| owner == provider).map(|(_, key)| key)
    }

    /// Returns the environment for a provider, with the variables of its entry taking precedence.
    fn env(&self, provider: &ProviderId) -> Env {
        self.storage.env_of(provider, self.host.env())
    }

    /// Returns a key from the environment, or a marker for cloud credentials on this machine.
    fn of_machine(&self, provider: &ProviderId) -> Option<Secret> {
        let env = self.env(provider);
        let has_file =
            || keys::credentials_files(provider.as_str(), &env, self.host.home()).iter().any(|file| file.is_file());
        keys::api_key(provider.as_str(), &env).or_else(|| has_file().then(|| keys::AMBIENT.into()))
    }

    async fn add_headers(
        &self,
        auth: &mut Auth,
        provider: &ProviderId,
        headers: &Map<String, Value>,
        whose: &str,
        lookup: KeyLookup,
    ) -> Result<(), AuthError> {
        let env = self.env(provider);
        for (name, value) in headers {
            let value = match value.as_str() {
                None => None,
                Some(value) if lookup == KeyLookup::Presence && value.starts_with('!') => Some(String::new()),
                Some(value) => Some(config_value::resolve(value, &env).await.map_err(|how| AuthError::Unresolved {
                    what: format!("{whose} header \"{name}\""),
                    how: how.to_string(),
                })?),
            };
            auth.headers.push((name.clone(), value));
        }
        Ok(())
    }
}

/// The result of a source, possibly unusable.
struct StoredAuth {
    auth: Option<Auth>,
}

impl RequestAuth for RegistryAuth {
    fn for_model<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>> {
        Box::pin(async { cancel.run(self.find(model, KeyLookup::Value)).await.map_err(|_| AuthError::Cancelled)? })
    }

    fn check<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<(), AuthError>> {
        Box::pin(async {
            cancel.run(self.find(model, KeyLookup::Presence)).await.map_err(|_| AuthError::Cancelled)?.map(drop)
        })
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.logins.settle())
    }
}
