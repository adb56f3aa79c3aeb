//! The models of one provider, found by their names.

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
    /// Headers that documents give single models; they are resolved for each request.
    headers: HashMap<String, Map<String, Value>, foldhash::fast::RandomState>,
}

impl ProviderModels {
    /// Puts models in order; of two with one name the later one counts, in the place of the first.
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

    /// Remembers the headers that definitions give single models; those of the last one win.
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

    /// All models in order.
    pub(super) fn models(&self) -> &Arc<[Arc<Model>]> {
        &self.models
    }

    /// One model by its exact name.
    pub(super) fn find(&self, id: &str) -> Option<&Arc<Model>> {
        self.models.get(*self.by_id.get(id)?)
    }

    /// The headers of one model.
    pub(super) fn headers(&self, id: &str) -> Option<&Map<String, Value>> {
        self.headers.get(id)
    }
}
