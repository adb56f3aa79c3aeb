//! The models of one provider, indexed by id.

use std::collections::HashMap;
use std::sync::Arc;

use pinch_llm::model::Model;
use serde_json::{Map, Value};

use super::definition::Definition;

/// The models of one provider in order, with an index.
#[derive(Debug, Default)]
pub(super) struct ProviderModels {
    models: Arc<[Arc<Model>]>,
    by_id: HashMap<String, usize, foldhash::fast::RandomState>,
    /// Headers of single models from documents; resolved per request.
    headers: HashMap<String, Map<String, Value>, foldhash::fast::RandomState>,
}

impl ProviderModels {
    /// Indexes models; the later of two with the same id wins, at the position of the first.
    pub(super) fn of(models: impl IntoIterator<Item = Arc<Model>>) -> Self {
        let mut by_id = HashMap::default();
        let mut list: Vec<Arc<Model>> = Vec::new();
        for model in models {
            match by_id.get(model.id.as_str()) {
                Some(&at) => list[at] = model,
                None => {
                    by_id.insert(model.id.as_str().to_owned(), list.len());
                    list.push(model);
                }
            }
        }
        Self { models: list.into(), by_id, headers: HashMap::default() }
    }

    /// Adds the headers of single models from definitions; the last definition wins.
    pub(super) fn with_headers<'a>(mut self, definitions: impl Iterator<Item = &'a Definition>) -> Self {
        for definition in definitions {
            let overridden = definition.overrides.iter().map(|(id, own)| (id.as_str(), own.get("headers")));
            let own = definition.models.iter();
            let own = own.map(|own| (own.get("id").and_then(Value::as_str).unwrap_or_default(), own.get("headers")));
            for (id, headers) in overridden.chain(own) {
                if let Some(headers) = headers.and_then(Value::as_object).filter(|headers| !headers.is_empty()) {
                    self.headers.insert(id.to_owned(), headers.clone());
                }
            }
        }
        self
    }

    /// Returns all models in order.
    pub(super) fn models(&self) -> &Arc<[Arc<Model>]> {
        &self.models
    }

    /// Finds a model by its exact id.
    pub(super) fn find(&self, id: &str) -> Option<&Arc<Model>> {
        self.models.get(*self.by_id.get(id)?)
    }

    /// Returns the headers of a model.
    pub(super) fn headers(&self, id: &str) -> Option<&Map<String, Value>> {
        self.headers.get(id)
    }
}
