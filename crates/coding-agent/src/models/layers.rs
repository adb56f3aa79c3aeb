//! The layers of the registry: catalog, models.json, registered providers.

use std::sync::{Arc, OnceLock};

use pinch_llm::catalog::{Catalog, canonical_provider};
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;

use super::ByProvider;
use super::defined::{Defined, ModelsDocument};
use super::definition::Definition;
use super::dynamic::DynamicProvider;
use super::merge;
use super::shelf::ProviderModels;

/// A version of the registry. Models of a provider are loaded on first use.
#[derive(Clone, Debug)]
pub(super) struct RegistryLayers {
    pub(super) catalog: Option<Catalog>,
    /// The document's definitions, by provider.
    defined: ByProvider<Arc<Defined>>,
    order: Vec<ProviderId>,
    pub(super) registered: ByProvider<Arc<DynamicProvider>>,
    shelves: ByProvider<OnceLock<Arc<ProviderModels>>>,
    pub(super) document: ModelsDocument,
    /// Why the document could not be reloaded; its previous content stays in effect.
    pub(super) unread: Option<String>,
}

impl RegistryLayers {
    /// Creates a registry with only a catalog, or an empty one.
    pub(super) fn over(catalog: Option<Catalog>) -> Self {
        let mut layers = Self {
            catalog,
            defined: ByProvider::new(),
            order: Vec::new(),
            registered: ByProvider::new(),
            shelves: ByProvider::new(),
            document: ModelsDocument::default(),
            unread: None,
        };
        layers.define(ModelsDocument::default());
        layers
    }

    /// Adds complete models of providers that are not in the catalog.
    pub(super) fn put(&mut self, models: impl IntoIterator<Item = Arc<Model>>) {
        let mut by_provider: Vec<(ProviderId, Vec<Arc<Model>>)> = Vec::new();
        for model in models {
            match by_provider.iter_mut().find(|(id, _)| *id == model.provider) {
                Some((_, models)) => models.push(model),
                None => by_provider.push((model.provider.clone(), vec![model])),
            }
        }
        for (id, models) in by_provider {
            self.order.push(id.clone());
            self.shelves.insert(id, OnceLock::from(Arc::new(ProviderModels::of(models))));
        }
    }

    /// Replaces the document.
    pub(super) fn define(&mut self, document: ModelsDocument) {
        self.order = document.providers.iter().map(|(id, _)| id.clone()).collect();
        self.defined = document.providers.iter().cloned().collect();
        (self.document, self.unread) = (document, None);
        let all: Vec<ProviderId> = self.providers().cloned().collect();
        self.shelves = all.into_iter().map(|id| (id, OnceLock::new())).collect();
    }

    /// Drops the cached models of a provider that has changed.
    pub(super) fn forget(&mut self, id: &ProviderId) {
        self.shelves.insert(id.clone(), OnceLock::new());
    }

    /// Returns all providers, possibly with duplicates.
    pub(super) fn providers(&self) -> impl Iterator<Item = &ProviderId> {
        let known = self.catalog.iter().flat_map(Catalog::providers);
        known.chain(&self.order).chain(self.registered.keys())
    }

    /// Returns the definitions of a provider, without models; the last one has precedence.
    pub(super) fn definitions(&self, provider: &ProviderId) -> impl DoubleEndedIterator<Item = &Definition> {
        let id = ProviderId::new(canonical_provider(provider.as_str()));
        let registered = self.registered.get(&id).map(|registered| &registered.definition);
        self.defined.get(&id).map(|defined| defined.head()).into_iter().chain(registered)
    }

    /// Returns the models of a provider.
    pub(super) fn shelf(&self, provider: &ProviderId) -> Option<&Arc<ProviderModels>> {
        let shelf = match self.shelves.get(provider) {
            Some(shelf) => shelf,
            None => self.shelves.get(&ProviderId::new(canonical_provider(provider.as_str())))?,
        };
        Some(shelf.get_or_init(|| Arc::new(self.fill(&ProviderId::new(canonical_provider(provider.as_str()))))))
    }

    fn fill(&self, id: &ProviderId) -> ProviderModels {
        let built_in: &[Arc<Model>] = self.catalog.as_ref().map_or(&[], |catalog| catalog.models(id.as_str()));
        let defined = self.defined.get(id).map(|defined| defined.whole());
        let registered = self.registered.get(id);
        let override_one = |model: Arc<Model>| match defined {
            Some(definition) => merge::override_one(definition, &model),
            None => model,
        };
        let build = |definition: &Definition, beside: Option<&Model>| {
            let models = definition.models.iter().filter_map(|own| merge::build(id, definition, own, beside));
            models.map(Arc::new).collect::<Vec<_>>()
        };
        let models: Vec<Arc<Model>> = match registered {
            Some(registered) if registered.replaces => {
                build(&registered.definition, None).into_iter().map(override_one).collect()
            }
            _ => {
                let changed = built_in.iter().map(|model| match defined {
                    Some(definition) => merge::change(definition, model),
                    None => Arc::clone(model),
                });
                let beside = built_in.first().map(|model| &**model);
                let own = defined.map(|definition| build(definition, beside)).unwrap_or_default();
                let all = changed.chain(own);
                match registered {
                    Some(registered) => all.map(|model| merge::change(&registered.definition, &model)).collect(),
                    None => all.collect(),
                }
            }
        };
        let whole = defined.into_iter().chain(registered.map(|registered| &registered.definition));
        ProviderModels::of(models).with_headers(whole)
    }
}
