//! The model registry: the built-in catalog, changed and extended by models.json and by extensions.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use pinch_llm::catalog::{Catalog, canonical_provider};
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_llm::oauth::OAuthFlow;
use pinch_llm::provider::Provider;
use pinch_stdx::host::Env;
use serde_json::{Map, Value};

use crate::auth::config_value::{self, ValueOrigin};
use crate::document::Problem;

mod compat_rules;
mod schema;
mod definition;
mod outline;
mod defined;
mod merge;
mod names;
mod shelf;
pub mod dynamic;
mod layers;
pub mod remote;
pub mod pattern;
pub mod scope;
pub mod initial;
pub mod local_servers;
pub mod request_auth;
pub mod dispatch;

pub use dynamic::{ProviderDefinition, RegisterError};
pub use request_auth::{AuthStatus, RegistryAuth};

use defined::ModelsDocument;
use definition::{FindingKind, ModelProblem};
use dynamic::DynamicProvider;
use layers::RegistryLayers;

/// All known models. Clones share the same registry.
///
/// Looking up a model loads only its provider's part of the catalog, and uses an index. Readers never wait for a change: they see all of it
/// or none.
#[derive(Clone, Debug)]
pub struct ModelRegistry(Arc<RegistryShared>);

#[derive(Debug)]
struct RegistryShared {
    /// The document that [`ModelRegistry::refresh`] reloads.
    file: Option<PathBuf>,
    layers: RwLock<Arc<RegistryLayers>>,
}

impl ModelRegistry {
    /// Creates a registry with only the built-in catalog.
    pub fn builtin() -> Self {
        Self::new(None, RegistryLayers::over(Some(Catalog::for_build())))
    }

    /// Creates a registry with only these models, until providers are registered.
    pub fn of_models(models: impl IntoIterator<Item = Arc<Model>>) -> Self {
        let mut layers = RegistryLayers::over(None);
        layers.put(models);
        Self::new(None, layers)
    }

    /// Loads the built-in catalog, newer records from a `models-store.json` next to models.json ([`remote`]), and models.json itself.
    /// Problems in the document are reported and skipped.
    ///
    /// If the document exceeds 256 KiB, the models of a provider are parsed and checked on first use, so that a program that uses one of
    /// them does not wait for thousands: see [`ModelRegistry::problems`].
    pub fn load(models_json: &Path) -> (Self, Vec<Problem>) {
        // The refresh loads the catalog.
        let registry = Self::new(Some(models_json.to_owned()), RegistryLayers::over(None));
        let problems = registry.refresh();
        (registry, problems)
    }

    /// Like [`ModelRegistry::load`], for a document in memory; `file` is named in problems.
    pub fn from_document(root: Map<String, Value>, file: &Path) -> (Self, Vec<Problem>) {
        let mut layers = RegistryLayers::over(Some(Catalog::for_build()));
        layers.define(ModelsDocument::of_value(Value::Object(root), layers.catalog.as_ref(), file));
        let problems = layers.document.problems_so_far();
        (Self::new(None, layers), problems)
    }

    fn new(file: Option<PathBuf>, layers: RegistryLayers) -> Self {
        Self(Arc::new(RegistryShared { file, layers: RwLock::new(Arc::new(layers)) }))
    }

    fn layers(&self) -> Arc<RegistryLayers> {
        Arc::clone(&self.0.layers.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut RegistryLayers) -> T) -> T {
        let mut layers = self.0.layers.write().unwrap_or_else(PoisonError::into_inner);
        let mut new = (**layers).clone();
        let done = change(&mut new);
        *layers = Arc::new(new);
        done
    }

    /// Reloads models.json and models-store.json, if present; registered providers are kept. If models.json cannot be read at all, its
    /// previous content stays in effect.
    pub fn refresh(&self) -> Vec<Problem> {
        let Some(file) = &self.0.file else { return Vec::new() };
        let (catalog, mut problems) = remote::laid_over(Catalog::for_build(), &file.with_file_name(remote::FILE));
        problems.extend(self.change(|layers| {
            layers.catalog = Some(catalog);
            Self::read_document(layers, file)
        }));
        problems
    }

    fn read_document(layers: &mut RegistryLayers, file: &Path) -> Vec<Problem> {
        match ModelsDocument::read(file, layers.catalog.as_ref()) {
            Ok(document) => {
                layers.define(document);
                layers.document.problems_so_far()
            }
            Err(problem) => {
                // Lay the earlier document over the catalog, which may be a new one.
                layers.define(layers.document.clone());
                let found = [ModelProblem { sort: FindingKind::Document, problem: problem.clone() }];
                layers.unread = definition::error_text(&found, file);
                vec![problem]
            }
        }
    }

    /// Returns all problems in models.json, including parts not used yet, which are read now.
    pub fn problems(&self) -> Vec<Problem> {
        self.layers().document.findings().into_iter().map(|finding| finding.problem).collect()
    }

    /// Returns problems of models requested since the last call, if a long models.json was not checked as a whole.
    pub fn take_new_problems(&self) -> Vec<Problem> {
        self.layers().document.new_problems()
    }

    /// Returns what prevents parts of models.json from being used, in pi's words. Reads the whole document.
    pub fn error(&self) -> Option<String> {
        let layers = self.layers();
        layers.unread.clone().or_else(|| layers.document.error())
    }

    /// Adds or changes a provider: with models, it replaces all models of that provider; without, it moves existing ones to another URL.
    /// Earlier values remain in effect unless overridden.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing has changed.
    pub fn register_provider(&self, name: &str, config: ProviderDefinition) -> Result<(), RegisterError> {
        let id = ProviderId::new(canonical_provider(name));
        self.change(|layers| {
            let registered = DynamicProvider::new(&id, layers.registered.get(&id).map(|known| &**known), config)?;
            layers.registered.insert(id.clone(), Arc::new(registered));
            layers.forget(&id);
            Ok(())
        })
    }

    /// Removes a registered provider, restoring the definitions of the catalog and models.json.
    pub fn unregister_provider(&self, name: &str) {
        let id = ProviderId::new(canonical_provider(name));
        self.change(|layers| {
            layers.registered.remove(&id);
            layers.forget(&id);
        });
    }

    /// Returns all providers: those of the catalog, then those of models.json, then registered ones.
    pub fn providers(&self) -> Vec<ProviderId> {
        let layers = self.layers();
        let mut seen = HashSet::new();
        layers.providers().filter(|id| seen.insert((*id).clone())).cloned().collect()
    }

    /// Finds a provider by name, ignoring case.
    pub fn provider(&self, name: &str) -> Option<ProviderId> {
        let layers = self.layers();
        let name = canonical_provider(name);
        layers.providers().find(|id| id.as_str().eq_ignore_ascii_case(name)).cloned()
    }

    /// Returns the models of a provider, those of the catalog first.
    pub fn models(&self, provider: &ProviderId) -> Arc<[Arc<Model>]> {
        self.layers().shelf(provider).map(|shelf| Arc::clone(shelf.models())).unwrap_or_default()
    }

    /// Returns all models of all providers in order. Loads the whole catalog.
    pub fn all(&self) -> Vec<Arc<Model>> {
        self.available(&|_| true)
    }

    /// Returns the models of providers with credentials.
    pub fn available(&self, has_auth: &dyn Fn(&ProviderId) -> bool) -> Vec<Arc<Model>> {
        let providers = self.providers().into_iter().filter(|provider| has_auth(provider));
        providers.flat_map(|provider| self.models(&provider).to_vec()).collect()
    }

    /// Finds a model by its exact name.
    pub fn find(&self, provider: &ProviderId, id: &str) -> Option<Arc<Model>> {
        self.layers().shelf(provider)?.find(id).cloned()
    }

    /// Returns the default model of a provider.
    pub fn default_model(&self, provider: &ProviderId) -> Option<Arc<Model>> {
        let layers = self.layers();
        let shelf = layers.shelf(provider)?;
        let default =
            pinch_llm::catalog::default_ids().find(|(name, _)| *name == canonical_provider(provider.as_str()));
        default.and_then(|(_, id)| shelf.find(id)).or_else(|| shelf.models().first()).cloned()
    }

    /// Returns the display name of a provider.
    pub fn display_name(&self, provider: &ProviderId) -> String {
        let layers = self.layers();
        let registered = layers.registered.get(provider);
        let oauth = registered.and_then(|known| known.config.oauth.as_ref()).map(|flow| flow.name().to_owned());
        let given = layers.definitions(provider).rev().find_map(|definition| definition.name.clone());
        let known = || names::of(canonical_provider(provider.as_str())).map(str::to_owned);
        given.or(oauth).or_else(known).unwrap_or_else(|| provider.to_string())
    }

    /// Returns the implementation that an extension registered for a provider.
    pub fn stream_of(&self, provider: &ProviderId) -> Option<Arc<dyn Provider>> {
        self.layers().registered.get(provider)?.config.stream.clone()
    }

    /// Returns the login flow that an extension registered for a provider.
    pub fn flow_of(&self, provider: &ProviderId) -> Option<Arc<dyn OAuthFlow>> {
        self.layers().registered.get(provider)?.config.oauth.clone()
    }

    /// Returns whether models.json or an extension has a key for a provider, without running commands.
    pub fn has_key(&self, provider: &ProviderId, env: &Env) -> bool {
        self.key_value(provider).is_some_and(|value| config_value::is_set(&value, env))
    }

    /// Returns the configured value of a provider's key.
    fn key_value(&self, provider: &ProviderId) -> Option<String> {
        self.layers().definitions(provider).rev().find_map(|definition| definition.api_key.clone())
    }

    /// Returns the variables that models.json and extensions read keys from.
    pub fn key_variables(&self) -> BTreeSet<String> {
        let names = |value: String| match config_value::origin(&value) {
            ValueOrigin::Variables(names) => names,
            // Older files name the variable without a dollar sign.
            ValueOrigin::Literal => vec![value],
            ValueOrigin::Command => Vec::new(),
        };
        self.providers().iter().filter_map(|provider| self.key_value(provider)).flat_map(names).collect()
    }

    /// Returns the extra headers of requests to a model: those of the provider, those of the model, and whether the key is sent as one.
    fn request_headers(&self, provider: &ProviderId, model: &str) -> (Map<String, Value>, Map<String, Value>, bool) {
        let layers = self.layers();
        let (mut headers, mut with_key) = (Map::new(), false);
        for definition in layers.definitions(provider) {
            headers.extend(definition.headers.clone());
            with_key = definition.auth_header.unwrap_or(with_key);
        }
        let own = layers.shelf(provider).and_then(|shelf| shelf.headers(model).cloned());
        (headers, own.unwrap_or_default(), with_key)
    }
}

/// Values by provider.
type ByProvider<T> = BTreeMap<ProviderId, T>;
