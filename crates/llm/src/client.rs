//! The main entry point: send a request to a model by name and get its reply.
//!
//! ```no_run
//! use pinch_llm::client::Client;
//! use pinch_llm::ids::ApiId;
//!
//! # async fn example() -> Result<(), pinch_llm::error::LlmError> {
//! let local = "http://127.0.0.1:8000/v1";
//! let client = Client::builder().key("anthropic", "sk-...").server("local", local, ApiId::OPENAI_COMPLETIONS).build();
//! let reply = client.chat("local/any-model").system("Be brief.").user("What is a crab?").send().await?;
//! println!("{} ({} tokens, ${})", reply.text(), reply.usage.total_tokens, reply.cost.total);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Client`] has the models of the built-in [`Catalog`], your own servers, and the credentials you give it; one client serves a whole
//! program and keeps its connections open. [`Chat`] builds one request, [`Reply`] is a complete answer. Programs that need the layer below
//! (custom providers, prompts in sections, observers) build a [`Request`](crate::request::Request) and stream it with a [`Provider`];
//! [`Chat::to_request`] connects the two layers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use pinch_stdx::host::{Env, Host};
use pinch_stdx::secret::Secret;
use serde_json::json;

mod reply;

mod chat;

pub use chat::Chat;
pub use reply::Reply;

use crate::catalog::{Catalog, canonical_provider};
use crate::error::{LlmError, LlmErrorKind};
use crate::ids::{ApiId, ProviderId};
use crate::keys;
use crate::model::Model;
use crate::provider::{Provider, ProviderRegistry, UnknownApi};
use crate::request::Auth;

/// Models by name, their credentials, and open connections. Clones are cheap and share all of it.
#[derive(Clone)]
pub struct Client(Arc<ClientInner>);

struct ClientInner {
    host: Host,
    catalog: Catalog,
    registry: ProviderRegistry,
    servers: HashMap<ProviderId, CustomServer>,
    models: Vec<Arc<Model>>,
    auth: HashMap<ProviderId, Auth>,
}

/// A server added by the caller.
struct CustomServer {
    base_url: String,
    api: ApiId,
}

/// Builds a [`Client`] part by part.
pub struct ClientBuilder {
    host: Host,
    keys_from_env: bool,
    catalog: Catalog,
    registry: ProviderRegistry,
    servers: HashMap<ProviderId, CustomServer>,
    models: Vec<Arc<Model>>,
    auth: HashMap<ProviderId, Auth>,
}

impl Client {
    /// Starts building a client with the built-in catalog and no credentials. The environment is not read unless you call
    /// [`ClientBuilder::keys_from_env`].
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            host: Host::builder().build(),
            keys_from_env: false,
            catalog: Catalog::for_build(),
            registry: ProviderRegistry::builtin(),
            servers: HashMap::new(),
            models: Vec::new(),
            auth: HashMap::new(),
        }
    }

    /// Creates a client that looks up API keys in a host's environment, e.g. `ANTHROPIC_API_KEY` in that of
    /// [`Host::system`](pinch_stdx::host::Host::system).
    pub fn from_env(host: &Host) -> Self {
        Self::builder().host(host.clone()).keys_from_env().build()
    }

    /// Starts a request to a model, named as `provider/model`, e.g. `anthropic/claude-sonnet-4-5`.
    ///
    /// An unknown name is reported when the request is sent, as [`LlmErrorKind::ModelNotFound`].
    pub fn chat(&self, model: impl Into<String>) -> Chat {
        Chat::new(self.clone(), model.into())
    }

    /// Finds a model by its name, `provider/model`: one added with [`ClientBuilder::model`], else one of your own servers, else one of the
    /// catalog.
    ///
    /// # Errors
    /// Returns [`LlmErrorKind::ModelNotFound`] if there is none.
    pub fn model(&self, name: &str) -> Result<Arc<Model>, LlmError> {
        let ClientInner { models, servers, catalog, .. } = &*self.0;
        let missing =
            |provider: &str, text: String| Err(LlmError::new(provider.into(), LlmErrorKind::ModelNotFound, text));
        let Some((provider, id)) = name.split_once('/').filter(|(provider, id)| !provider.is_empty() && !id.is_empty())
        else {
            return missing("", format!("\"{name}\" does not name a model: write it as provider/model"));
        };
        let provider = canonical_provider(provider);
        if let Some(model) = models.iter().find(|model| model.provider == *provider && model.id == *id) {
            return Ok(Arc::clone(model));
        }
        if let Some(CustomServer { base_url, api }) = servers.get(provider) {
            let record = json!({"id": id, "api": api.as_str(), "provider": provider, "baseUrl": base_url});
            let model = Model::from_record(&record);
            return model.map(Arc::new).map_err(|why| {
                LlmError::new(
                    provider.into(),
                    LlmErrorKind::InvalidRequest,
                    format!("invalid server \"{provider}\": {why}"),
                )
            });
        }
        if let Some(model) = catalog.find(provider, id) {
            return Ok(Arc::clone(model));
        }
        if catalog.providers().any(|known| *known == *provider) {
            return missing(
                provider,
                format!(
                    "provider \"{provider}\" has no model \"{id}\" in the catalog: add it with ClientBuilder::model"
                ),
            );
        }
        missing(
            provider,
            format!("unknown provider \"{provider}\": add it with ClientBuilder::server or ClientBuilder::model"),
        )
    }

    /// Returns the host whose clock, ids and environment requests use.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// Returns the credentials for a provider: those given to the builder, else, except for your own servers, those in the environment of
    /// [`Client::host`].
    pub fn auth(&self, provider: &ProviderId) -> Auth {
        let given = self.0.auth.get(provider).cloned();
        given.unwrap_or_else(|| if self.is_custom_server(provider) { Auth::keyless() } else { Auth::default() })
    }

    fn is_custom_server(&self, provider: &ProviderId) -> bool {
        self.0.servers.contains_key(provider)
    }

    /// Returns the provider that serves a model's wire format.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn provider(&self, model: &Model) -> Result<Arc<dyn Provider>, UnknownApi> {
        self.0.registry.get(&model.api)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("servers", &self.0.servers.keys())
            .field("auth", &self.0.auth.keys())
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Uses this host for clock and ids, its environment for proxies and cloud settings, and its home directory for cloud credential files.
    /// The default has a clock and ids, but no environment and no home directory.
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// Looks up API keys in the host's environment for providers without credentials in this builder, in the variables listed by
    /// [`keys::variables`].
    #[must_use]
    pub fn keys_from_env(mut self) -> Self {
        self.keys_from_env = true;
        self
    }

    /// Uses an API key for a provider.
    #[must_use]
    pub fn key(self, provider: impl AsRef<str>, key: impl Into<Secret>) -> Self {
        self.auth(provider, Auth::key(key))
    }

    /// Uses credentials for a provider: a key with headers, a base URL, AWS keys.
    #[must_use]
    pub fn auth(mut self, provider: impl AsRef<str>, auth: Auth) -> Self {
        self.auth.insert(ProviderId::new(canonical_provider(provider.as_ref())), auth);
        self
    }

    /// Adds your own server under a name, with its wire format: [`ApiId::OPENAI_COMPLETIONS`] for most local ones. Its models are then
    /// named `name/any-id`. No key is sent unless one is given under the same name.
    #[must_use]
    pub fn server(mut self, name: impl AsRef<str>, base_url: impl Into<String>, api: impl Into<ApiId>) -> Self {
        let server = CustomServer { base_url: base_url.into(), api: api.into() };
        self.servers.insert(ProviderId::new(name), server);
        self
    }

    /// Adds a model that the catalog does not contain, or replaces one that it does.
    #[must_use]
    pub fn model(mut self, model: Model) -> Self {
        self.models.insert(0, Arc::new(model));
        self
    }

    /// Uses this catalog instead of the built-in one.
    #[must_use]
    pub fn catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = catalog;
        self
    }

    /// Uses this provider for a wire format: a scripted one in a test, or one that records or caches.
    #[must_use]
    pub fn provider(mut self, api: impl Into<ApiId>, provider: Arc<dyn Provider>) -> Self {
        self.registry.register(api, provider);
        self
    }

    /// Uses this registry instead of the built-in wire formats, e.g. to share connections with other clients.
    #[must_use]
    pub fn registry(mut self, registry: ProviderRegistry) -> Self {
        self.registry = registry;
        self
    }

    /// Builds the client.
    pub fn build(self) -> Client {
        let Self { host, keys_from_env, catalog, registry, servers, models, auth } = self;
        let host = if keys_from_env {
            host
        } else {
            let others = host.env().iter().filter(|(name, _)| !keys::is_credential(name));
            let env: Env = others.collect();
            host.with_env(env)
        };
        Client(Arc::new(ClientInner { host, catalog, registry, servers, models, auth }))
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("keys_from_env", &self.keys_from_env)
            .field("servers", &self.servers.keys())
            .field("auth", &self.auth.keys())
            .finish_non_exhaustive()
    }
}
