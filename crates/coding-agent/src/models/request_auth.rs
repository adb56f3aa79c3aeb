//! Credentials of a request, from the first source that has some.

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use pinch_llm::ids::ProviderId;
use pinch_llm::keys;
use pinch_llm::model::Model;
use pinch_llm::request::Auth;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::secret::Secret;
use serde_json::{Map, Value};

use super::ModelRegistry;
use crate::auth::{AuthError, AuthStorage, Logins, RequestAuth, config_value};

/// Looks for credentials in this order: given for this program run, stored in auth.json, named in models.json, set in the environment.
pub struct RegistryAuth {
    registry: Arc<ModelRegistry>,
    storage: Arc<Mutex<AuthStorage>>,
    logins: Logins,
    given: Option<(ProviderId, Secret)>,
    host: Host,
}

impl RegistryAuth {
    /// Puts the sources together. `given` is a key from the command line and for one provider only.
    pub fn new(
        registry: Arc<ModelRegistry>,
        storage: AuthStorage,
        given: Option<(ProviderId, Secret)>,
        host: Host,
    ) -> Self {
        let logins = Logins::over_network(&host);
        Self { registry, storage: Arc::new(Mutex::new(storage)), logins, given, host }
    }

    /// Renews logins in another way than over the network with the built-in flows.
    #[must_use]
    pub fn with_logins(self, logins: Logins) -> Self {
        Self { logins, ..self }
    }

    /// What is stored now.
    fn storage(&self) -> AuthStorage {
        let mut storage = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        storage.reload();
        storage.clone()
    }

    /// Whether some source has credentials for a provider, as far as can be told without running commands.
    pub fn is_configured(&self, provider: &ProviderId) -> bool {
        self.given.as_ref().is_some_and(|(owner, _)| owner == provider)
            || self.storage().has(provider)
            || self.registry.has_key(provider, self.host.env())
            || self.of_machine(provider).is_some()
    }

    async fn find(&self, model: &Model) -> Result<Auth, AuthError> {
        let provider = &model.provider;
        let mut auth = match self.key(provider).await? {
            Some(auth) => auth,
            None => return Err(AuthError::Missing { provider: provider.clone() }),
        };
        if let Some(key) = &auth.key
            && let Some(exchanged) = self.logins.exchange(provider, key, &self.host).await?
        {
            auth = exchanged;
        }
        if let Some(config) = self.registry.config(provider) {
            let own = (config.get("models").and_then(Value::as_array).into_iter().flatten())
                .find(|own| own["id"] == model.id.as_str())
                .or_else(|| config.get("modelOverrides")?.get(model.id.as_str()));
            let named = |what: &str, name: &str| format!("{what} header \"{name}\"");
            self.add_headers(&mut auth, config.get("headers"), |name| named(&format!("provider \"{provider}\""), name))
                .await?;
            let own = own.and_then(|own| own.get("headers"));
            self.add_headers(&mut auth, own, |name| named(&format!("model \"{provider}/{}\"", model.id), name)).await?;
            if config.get("authHeader") == Some(&Value::Bool(true))
                && let Some(key) = &auth.key
            {
                auth.headers.push(("Authorization".into(), Some(format!("Bearer {}", key.reveal()))));
            }
        }
        Ok(auth)
    }

    async fn key(&self, provider: &ProviderId) -> Result<Option<Auth>, AuthError> {
        if let Some((owner, key)) = &self.given
            && owner == provider
        {
            return Ok(Some(Auth::key(key.clone())));
        }
        if let Some(auth) = self.logins.resolve(provider, &self.storage, &self.host).await? {
            return Ok(Some(auth));
        }
        if let Some(auth) = self.storage().resolve(provider, &self.host).await? {
            return Ok(Some(auth));
        }
        if let Some(value) = self.registry.key_value(provider) {
            if value == "none" {
                return Ok(Some(Auth::keyless()));
            }
            let key = config_value::resolve(value, self.host.env()).await.map_err(|how| AuthError::Unresolved {
                what: format!("API key for provider \"{provider}\""),
                how: how.to_string(),
            })?;
            return Ok(Some(Auth::key(key)));
        }
        Ok(self.of_machine(provider).map(Auth::key))
    }

    /// A key in the environment, or the sign that the machine has credentials for a cloud.
    fn of_machine(&self, provider: &ProviderId) -> Option<Secret> {
        let (env, home) = (self.host.env(), self.host.home());
        let has_file = || keys::credentials_files(provider.as_str(), env, home).iter().any(|file| file.is_file());
        keys::api_key(provider.as_str(), env).or_else(|| has_file().then(|| keys::AMBIENT.into()))
    }

    async fn add_headers(
        &self,
        auth: &mut Auth,
        headers: Option<&Value>,
        what: impl Fn(&str) -> String,
    ) -> Result<(), AuthError> {
        let empty = Map::new();
        for (name, value) in headers.and_then(Value::as_object).unwrap_or(&empty) {
            let value = match value.as_str() {
                None => None,
                Some(value) => Some(
                    config_value::resolve(value, self.host.env())
                        .await
                        .map_err(|how| AuthError::Unresolved { what: what(name), how: how.to_string() })?,
                ),
            };
            auth.headers.push((name.clone(), value));
        }
        Ok(())
    }
}

impl RequestAuth for RegistryAuth {
    fn for_model<'a>(&'a self, model: &'a Model, cancel: &'a Cancel) -> BoxFuture<'a, Result<Auth, AuthError>> {
        Box::pin(async { cancel.run(self.find(model)).await.map_err(|_| AuthError::Cancelled)? })
    }

    fn settle(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.logins.settle())
    }
}
