//! Which models there are: those of the built-in catalog, changed and extended by models.json.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pinch_llm::catalog::Catalog;
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_stdx::host::Env;
use serde_json::{Map, Value};

use crate::auth::config_value;
use crate::document::{self, Problem};

mod document_rules;
pub mod pattern;
pub mod request_auth;

pub use request_auth::RegistryAuth;

/// All models this program can use. Looking one up reads no more of the catalog than its provider.
#[derive(Clone, Debug)]
pub struct ModelRegistry {
    catalog: Arc<Catalog>,
    providers: BTreeMap<ProviderId, ProviderEntry>,
}

/// What models.json says about one provider.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProviderEntry {
    /// The document's own words.
    config: Map<String, Value>,
    /// Models it defines, ready to use.
    models: Vec<Arc<Model>>,
}

impl ModelRegistry {
    /// The built-in catalog alone.
    pub fn builtin() -> Self {
        Self { catalog: Arc::new(Catalog::built_in()), providers: BTreeMap::new() }
    }

    /// The built-in catalog with what a models.json says. Whatever is wrong in the document is reported and left out; the rest counts.
    pub fn load(models_json: &Path) -> (Self, Vec<Problem>) {
        match document::read_object(models_json) {
            Ok(root) if root.is_empty() => (Self::builtin(), Vec::new()),
            Ok(root) => Self::from_document(&root, models_json),
            Err(problem) => (Self::builtin(), vec![problem]),
        }
    }

    /// Like [`ModelRegistry::load`], for a document that is in memory already; `file` is named in problems.
    pub fn from_document(root: &Map<String, Value>, file: &Path) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let Some(providers) = root.get("providers").and_then(Value::as_object) else {
            let what = "must have an object \"providers\"";
            let remedy = "Write {\"providers\": {\"name\": {…}}}";
            return (Self::builtin(), vec![Problem::new(file, what).remedy(remedy)]);
        };
        let mut registry = Self::builtin();
        for (name, config) in providers {
            let id = ProviderId::new(name);
            if let Some(entry) = document_rules::read_provider(&registry.catalog, &id, config, file, &mut problems) {
                registry.providers.insert(id, entry);
            }
        }
        (registry, problems)
    }

    /// All providers by name.
    pub fn providers(&self) -> Vec<ProviderId> {
        let mut all: Vec<ProviderId> = self.catalog.providers().chain(self.providers.keys()).cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// The models of a provider, those of the catalog first.
    pub fn models(&self, provider: &ProviderId) -> Vec<Arc<Model>> {
        let builtin = self.catalog.models(provider.as_str());
        match self.providers.get(provider) {
            None => builtin.to_vec(),
            Some(entry) => {
                let own = |id: &str| entry.models.iter().find(|model| model.id == *id);
                let mut models: Vec<Arc<Model>> = (builtin.iter())
                    .map(|model| own(model.id.as_str()).cloned().unwrap_or_else(|| entry.change(model)))
                    .collect();
                let is_new = |model: &&Arc<Model>| builtin.iter().all(|old| old.id != model.id);
                models.extend(entry.models.iter().filter(is_new).cloned());
                models
            }
        }
    }

    /// One model by its exact name.
    pub fn find(&self, provider: &ProviderId, id: &str) -> Option<Arc<Model>> {
        let entry = self.providers.get(provider);
        let own = entry.and_then(|entry| entry.models.iter().find(|model| model.id == *id));
        own.cloned().or_else(|| {
            let model = self.catalog.find(provider.as_str(), id)?;
            Some(entry.map_or_else(|| Arc::clone(model), |entry| entry.change(model)))
        })
    }

    /// The model a provider is used with when nobody names one.
    pub fn default_model(&self, provider: &ProviderId) -> Option<Arc<Model>> {
        let default = self.catalog.default_model(provider.as_str()).cloned();
        default
            .and_then(|model| self.find(provider, model.id.as_str()))
            .or_else(|| self.models(provider).into_iter().next())
    }

    /// Whether models.json gives a provider a key, as far as can be told without running commands.
    pub fn has_key(&self, provider: &ProviderId, env: &Env) -> bool {
        self.key_value(provider).is_some_and(|value| config_value::is_set(value, env))
    }

    pub(crate) fn key_value(&self, provider: &ProviderId) -> Option<&str> {
        self.providers.get(provider)?.config.get("apiKey")?.as_str()
    }

    pub(crate) fn config(&self, provider: &ProviderId) -> Option<&Map<String, Value>> {
        self.providers.get(provider).map(|entry| &entry.config)
    }
}

impl ProviderEntry {
    /// A model of the catalog with the provider's and its own overrides.
    fn change(&self, model: &Arc<Model>) -> Arc<Model> {
        let overrides = self.config.get("modelOverrides").and_then(|all| all.get(model.id.as_str()));
        let keys = ["baseUrl", "compat"];
        if overrides.is_none() && !keys.iter().any(|key| self.config.contains_key(*key)) {
            return Arc::clone(model);
        }
        let mut record = model.to_record();
        if let Some(base_url) = self.config.get("baseUrl") {
            record["baseUrl"] = base_url.clone();
        }
        document_rules::merge_compat(&mut record, self.config.get("compat"));
        if let Some(overrides) = overrides.and_then(Value::as_object) {
            document_rules::apply_override(&mut record, overrides);
        }
        Model::from_record(&record).map_or_else(|_| Arc::clone(model), Arc::new)
    }
}
