//! Credentials of a request, from the first source that has some.

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

/// In models.json: the server takes requests without a key.
const NO_KEY: &str = "none";

/// Looks for credentials in this order: given for this program run, stored in auth.json, named in models.json, set in the environment.
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
    /// The command line, for this program run.
    Runtime,
    /// A command that models.json names.
    ModelsJsonCommand,
    /// models.json.
    ModelsJsonKey,
    /// A variable, or files of a cloud.
    Environment,
}

impl AuthSource {
    /// The word for it in JSON.
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

/// What is known of a provider's credentials without sending a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthStatus {
    /// Where they come from; `None` = there are none.
    pub source: Option<AuthSource>,
    /// The variable or option they come from.
    pub label: Option<String>,
}

impl AuthStatus {
    /// Whether there are credentials.
    pub fn is_configured(&self) -> bool {
        self.source.is_some()
    }

    fn of(source: AuthSource, label: Option<String>) -> Self {
        Self { source: Some(source), label }
    }
}

impl RegistryAuth {
    /// Puts the sources together. `given` is a key from the command line and for one provider only.
    pub fn new(
        registry: Arc<ModelRegistry>,
        storage: AuthStorage,
        given: Option<(ProviderId, Secret)>,
        host: Host,
    ) -> Self {
        let logins = Arc::new(Logins::over_network(&host));
        Self { registry, storage, logins, given, host }
    }

    /// Renews logins in another way than over the network with the built-in flows.
    #[must_use]
    pub fn with_logins(self, logins: impl Into<Arc<Logins>>) -> Self {
        Self { logins: logins.into(), ..self }
    }

    /// The models that credentials are for.
    pub fn registry(&self) -> &Arc<ModelRegistry> {
        &self.registry
    }

    /// Clock, ids and environment of the look-up.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// What is stored.
    pub fn storage(&self) -> &AuthStorage {
        &self.storage
    }

    /// Whether a provider has credentials, as far as is known without running commands.
    pub fn is_configured(&self, provider: &ProviderId) -> bool {
        self.given_for(provider).is_some()
            || self.storage.has(provider)
            || self.registry.has_key(provider, &self.env(provider))
            || self.of_machine(provider).is_some()
    }

    /// The source of a provider's credentials, as far as is known without running commands or asking servers.
    pub fn status(&self, provider: &ProviderId) -> AuthStatus {
        // What is given for a run is used first.
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

    /// Whether requests of a provider carry the access of a login.
    pub fn is_using_oauth(&self, provider: &ProviderId) -> bool {
        self.given_for(provider).is_none() && self.storage.get(provider).is_some_and(|entry| entry["type"] == "oauth")
    }

    /// The way to renew logins.
    pub fn logins(&self) -> &Logins {
        &self.logins
    }

    /// What a person should know about a provider's key: a literal that is the name of a variable was meant to be the variable, most likely.
    pub fn hint(&self, provider: &ProviderId) -> Option<String> {
        let entry = self.storage.get(provider);
        let stored = entry.and_then(|entry| entry["key"].as_str().map(str::to_owned));
        let value = stored.or_else(|| self.registry.key_value(provider))?;
        config_value::is_old_variable(&value, &self.env(provider)).then(|| {
            format!("The key of {provider} is the text \"{value}\", and a variable of that name is set. Write \"${value}\" to use it")
        })
    }

    /// Key and headers for a model, also without a key; what the provider's server makes of that is its business.
    ///
    /// # Errors
    /// When a configured value resolves to nothing, a login cannot be renewed, or a header is to hold a key that is not there.
    pub async fn key_and_headers(&self, model: &Model, lookup: KeyLookup) -> Result<Option<Auth>, AuthError> {
        let found = self.key(&model.provider, lookup).await?;
        let has_key = found.is_some();
        let mut auth = self.complete(model, found.unwrap_or_default(), lookup).await?;
        auth.env = self.storage.has_env(&model.provider).then(|| self.env(&model.provider));
        Ok((has_key || !auth.headers.is_empty()).then_some(auth))
    }

    /// Completes credentials from another source: a key that has to be exchanged is, and the configured headers are added.
    ///
    /// # Errors
    /// As [`RegistryAuth::key_and_headers`].
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

    /// Renews the stored login of a provider after its server refused this access; whether there is another one now.
    pub async fn renew_login(&self, provider: &ProviderId, refused: &Secret) -> bool {
        self.given_for(provider).is_none() && self.logins.renew(provider, &self.storage, &self.host, refused).await
    }

    async fn find(&self, model: &Model, lookup: KeyLookup) -> Result<Auth, AuthError> {
        let found = self.key_and_headers(model, lookup).await?;
        let found = found.filter(|auth| auth.key.is_some() || auth.keyless);
        found.ok_or_else(|| AuthError::Missing { provider: model.provider.clone() })
    }

    /// The API key of a provider; `None` when there is none.
    ///
    /// # Errors
    /// When a configured value resolves to nothing, or a login cannot be renewed.
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

    /// What auth.json has for a provider; `None` when the next source is to be asked.
    async fn stored(&self, provider: &ProviderId, lookup: KeyLookup) -> Result<Option<StoredAuth>, AuthError> {
        let Some(entry) = self.storage.get(provider) else { return Ok(None) };
        if entry["type"] == "oauth" {
            let auth = match self.registry.flow_of(provider) {
                Some(flow) => self.logins.resolve_with(&flow, provider, &self.storage, &self.host).await?,
                None => self.logins.resolve(provider, &self.storage, &self.host).await?,
            };
            // A login that no one here can use is still what the user chose: no other source takes its place.
            let is_still_there = self.storage.get(provider).is_some_and(|entry| entry["type"] == "oauth");
            return Ok((auth.is_some() || is_still_there).then_some(StoredAuth { auth }));
        }
        let key = self.storage.api_key(provider, &self.host, lookup).await?;
        Ok(key.map(|key| StoredAuth { auth: Some(Auth::key(key)) }))
    }

    fn given_for(&self, provider: &ProviderId) -> Option<&Secret> {
        self.given.as_ref().filter(|(owner, _)| owner == provider).map(|(_, key)| key)
    }

    /// The environment of a provider: variables of its own entry win.
    fn env(&self, provider: &ProviderId) -> Env {
        self.storage.env_of(provider, self.host.env())
    }

    /// A key in the environment, or the sign that the machine has credentials for a cloud.
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

/// What a source has; perhaps nothing that can be used.
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
