//! Which models there are: those of the built-in catalog, changed and extended by models.json and by extensions.

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

/// All models this program can use. Cloning is cheap: all clones are the same registry.
///
/// Looking a model up reads no more of the catalog than its provider, and finds it by an index. Readers never wait for a change: they see all of
/// it or nothing.
#[derive(Clone, Debug)]
pub struct ModelRegistry(Arc<RegistryShared>);

#[derive(Debug)]
struct RegistryShared {
    /// Where the document lies that [`ModelRegistry::refresh`] reads again.
    file: Option<PathBuf>,
    layers: RwLock<Arc<RegistryLayers>>,
}

impl ModelRegistry {
    /// The built-in catalog alone.
    pub fn builtin() -> Self {
        Self::new(None, RegistryLayers::over(Some(Catalog::of_build())))
    }

    /// These models and no others, until providers are registered.
    pub fn of_models(models: impl IntoIterator<Item = Arc<Model>>) -> Self {
        let mut layers = RegistryLayers::over(None);
        layers.put(models);
        Self::new(None, layers)
    }

    /// The built-in catalog, with the newer records of a `models-store.json` beside it ([`remote`]), and with what a models.json says. Whatever
    /// is wrong in the document is reported and left out; the rest counts.
    ///
    /// Of a document of more than 256 KiB the models of a provider are read and checked on first use, so that a program that
    /// uses one of them does not wait for thousands: see [`ModelRegistry::problems`].
    pub fn load(models_json: &Path) -> (Self, Vec<Problem>) {
        // The catalog comes with the refresh.
        let registry = Self::new(Some(models_json.to_owned()), RegistryLayers::over(None));
        let problems = registry.refresh();
        (registry, problems)
    }

    /// Like [`ModelRegistry::load`], for a document that is in memory already; `file` is named in problems.
    pub fn from_document(root: Map<String, Value>, file: &Path) -> (Self, Vec<Problem>) {
        let mut layers = RegistryLayers::over(Some(Catalog::of_build()));
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

    /// Reads models.json and models-store.json again, if there are any; registered providers stay. Where models.json cannot be
    /// read at all, what it said before still counts.
    pub fn refresh(&self) -> Vec<Problem> {
        let Some(file) = &self.0.file else { return Vec::new() };
        let (catalog, mut problems) = remote::laid_over(Catalog::of_build(), &file.with_file_name(remote::FILE));
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
                // What was read of it before is laid over the catalog, which may be a new one.
                layers.define(layers.document.clone());
                let found = [ModelProblem { sort: FindingKind::Document, problem: problem.clone() }];
                layers.unread = definition::error_text(&found, file);
                vec![problem]
            }
        }
    }

    /// All problems of models.json, including parts that were not used yet: they are read now.
    pub fn problems(&self) -> Vec<Problem> {
        self.layers().document.findings().into_iter().map(|finding| finding.problem).collect()
    }

    /// Problems of models requested since the last call, where a long models.json was not checked as a whole.
    pub fn take_new_problems(&self) -> Vec<Problem> {
        self.layers().document.new_problems()
    }

    /// What stops something in models.json from being used, in pi's words. All of it is read for that.
    pub fn error(&self) -> Option<String> {
        let layers = self.layers();
        layers.unread.clone().or_else(|| layers.document.error())
    }

    /// Adds a provider or changes one: with models it takes the place of all of that name, without them it moves those that are there to
    /// another URL. What was said of it before still holds where nothing new is said.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing has changed then.
    pub fn register_provider(&self, name: &str, config: ProviderDefinition) -> Result<(), RegisterError> {
        let id = ProviderId::new(canonical_provider(name));
        self.change(|layers| {
            let registered = DynamicProvider::new(&id, layers.registered.get(&id).map(|known| &**known), config)?;
            layers.registered.insert(id.clone(), Arc::new(registered));
            layers.forget(&id);
            Ok(())
        })
    }

    /// Takes a registered provider away; what the catalog and models.json say of it holds again.
    pub fn unregister_provider(&self, name: &str) {
        let id = ProviderId::new(canonical_provider(name));
        self.change(|layers| {
            layers.registered.remove(&id);
            layers.forget(&id);
        });
    }

    /// All providers: those of the catalog, then those of models.json, then registered ones.
    pub fn providers(&self) -> Vec<ProviderId> {
        let layers = self.layers();
        let mut seen = HashSet::new();
        layers.providers().filter(|id| seen.insert((*id).clone())).cloned().collect()
    }

    /// A provider by its name in any spelling of capitals.
    pub fn provider(&self, name: &str) -> Option<ProviderId> {
        let layers = self.layers();
        let name = canonical_provider(name);
        layers.providers().find(|id| id.as_str().eq_ignore_ascii_case(name)).cloned()
    }

    /// The models of a provider, those of the catalog first.
    pub fn models(&self, provider: &ProviderId) -> Arc<[Arc<Model>]> {
        self.layers().shelf(provider).map(|shelf| Arc::clone(shelf.models())).unwrap_or_default()
    }

    /// All models of all providers in order. Reads the whole catalog.
    pub fn all(&self) -> Vec<Arc<Model>> {
        self.available(&|_| true)
    }

    /// The models of the providers that can be asked.
    pub fn available(&self, has_auth: &dyn Fn(&ProviderId) -> bool) -> Vec<Arc<Model>> {
        let providers = self.providers().into_iter().filter(|provider| has_auth(provider));
        providers.flat_map(|provider| self.models(&provider).to_vec()).collect()
    }

    /// One model by its exact name.
    pub fn find(&self, provider: &ProviderId, id: &str) -> Option<Arc<Model>> {
        self.layers().shelf(provider)?.find(id).cloned()
    }

    /// The default model of a provider.
    pub fn default_model(&self, provider: &ProviderId) -> Option<Arc<Model>> {
        let layers = self.layers();
        let shelf = layers.shelf(provider)?;
        let default =
            pinch_llm::catalog::default_ids().find(|(name, _)| *name == canonical_provider(provider.as_str()));
        default.and_then(|(_, id)| shelf.find(id)).or_else(|| shelf.models().first()).cloned()
    }

    /// The name of a provider for people.
    pub fn display_name(&self, provider: &ProviderId) -> String {
        let layers = self.layers();
        let registered = layers.registered.get(provider);
        let oauth = registered.and_then(|known| known.config.oauth.as_ref()).map(|flow| flow.name().to_owned());
        let given = layers.definitions(provider).rev().find_map(|definition| definition.name.clone());
        let known = || names::of(canonical_provider(provider.as_str())).map(str::to_owned);
        given.or(oauth).or_else(known).unwrap_or_else(|| provider.to_string())
    }

    /// The provider that an extension registered for these models.
    pub fn stream_of(&self, provider: &ProviderId) -> Option<Arc<dyn Provider>> {
        self.layers().registered.get(provider)?.config.stream.clone()
    }

    /// The login flow that an extension registered for a provider.
    pub fn flow_of(&self, provider: &ProviderId) -> Option<Arc<dyn OAuthFlow>> {
        self.layers().registered.get(provider)?.config.oauth.clone()
    }

    /// Whether models.json or an extension has a key for a provider, as far as is known without running commands.
    pub fn has_key(&self, provider: &ProviderId, env: &Env) -> bool {
        self.key_value(provider).is_some_and(|value| config_value::is_set(&value, env))
    }

    /// The configured value of a provider's key.
    fn key_value(&self, provider: &ProviderId) -> Option<String> {
        self.layers().definitions(provider).rev().find_map(|definition| definition.api_key.clone())
    }

    /// The variables that models.json and extensions take keys from.
    pub fn key_variables(&self) -> BTreeSet<String> {
        let names = |value: String| match config_value::origin(&value) {
            ValueOrigin::Variables(names) => names,
            // Older files name the variable without a dollar sign.
            ValueOrigin::Literal => vec![value],
            ValueOrigin::Command => Vec::new(),
        };
        self.providers().iter().filter_map(|provider| self.key_value(provider)).flat_map(names).collect()
    }

    /// What requests to a model carry besides the key: headers of the provider, headers of the model, and whether the key is one of them.
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

/// Providers with what belongs to them, by name.
type ByProvider<T> = BTreeMap<ProviderId, T>;
