//! The built-in catalog of models.
//!
//! The catalog is a compressed file inside the program with one member per provider, so looking up one provider's models unpacks and parses
//! only those. `cargo xtask codegen` generates the file.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

pub mod pack;

pub mod refreshed;

use crate::ids::ProviderId;
use crate::model::Model;

const BUILT_IN: &[u8] = include_bytes!("catalog/models.bin");
/// Models of Cloud Code Assist, which are not in the file.
#[cfg(feature = "cloud-code-assist")]
const CLOUD_CODE: &str = include_str!("catalog/cloud_code.json");
const DEFAULTS: &str = include_str!("catalog/defaults.txt");

/// Former names of providers in older files.
const OLD_NAMES: &[(&str, &str)] = &[("azure-openai-responses", "azure")];

/// Models by provider. Clones are cheap and share what has been parsed.
#[derive(Clone, Debug)]
pub struct Catalog(Arc<Vec<ProviderRecords>>);

#[derive(Debug)]
struct ProviderRecords {
    provider: ProviderId,
    n_models: usize,
    packed: Range<usize>,
    models: OnceLock<Vec<Arc<Model>>>,
}

impl ProviderRecords {
    /// Copies the slot without parsing what is still unparsed.
    fn share(&self) -> Self {
        Self {
            provider: self.provider.clone(),
            n_models: self.n_models,
            packed: self.packed.clone(),
            models: self.models.get().map_or_else(OnceLock::new, |models| OnceLock::from(models.clone())),
        }
    }
}

impl Default for Catalog {
    fn default() -> Self {
        Self::for_build()
    }
}

impl Catalog {
    /// Returns the catalog built into the program. It is unpacked lazily.
    pub fn built_in() -> Self {
        let entries = pack::index(BUILT_IN).unwrap_or_default();
        let shelf = |entry: pack::PackEntry| ProviderRecords {
            provider: entry.provider.as_str().into(),
            n_models: entry.n_models,
            packed: entry.place,
            models: OnceLock::new(),
        };
        Self(Arc::new(entries.into_iter().map(shelf).collect()))
    }

    /// Returns [`Catalog::built_in`] plus the models of wire formats enabled by features: those of Cloud Code Assist.
    pub fn for_build() -> Self {
        let catalog = Self::built_in();
        #[cfg(feature = "cloud-code-assist")]
        let catalog = catalog.with(cloud_code());
        catalog
    }

    /// Returns all providers in catalog order, including those without models.
    pub fn providers(&self) -> impl Iterator<Item = &ProviderId> {
        self.0.iter().map(|shelf| &shelf.provider)
    }

    /// Returns how many models a provider has, without unpacking them.
    pub fn n_models(&self, provider: &str) -> usize {
        self.shelf(provider).map_or(0, |shelf| shelf.n_models)
    }

    /// Returns the models of a provider in catalog order; empty for an unknown provider.
    pub fn models(&self, provider: &str) -> &[Arc<Model>] {
        self.shelf(provider).map_or(&[], |shelf| shelf.models.get_or_init(|| unpack(&shelf.packed)))
    }

    /// Returns one model of a provider.
    pub fn find(&self, provider: &str, id: &str) -> Option<&Arc<Model>> {
        self.models(provider).iter().find(|model| model.id == *id)
    }

    /// Returns the default model of a provider.
    pub fn default_model(&self, provider: &str) -> Option<&Arc<Model>> {
        let provider = canonical_provider(provider);
        self.find(provider, default_ids().find(|(name, _)| *name == provider)?.1)
    }
}

impl Catalog {
    /// Returns the catalog with other models for some providers.
    fn with(&self, newer: Vec<(String, Vec<Arc<Model>>)>) -> Self {
        let mut shelves: Vec<ProviderRecords> = self.0.iter().map(ProviderRecords::share).collect();
        for (provider, models) in newer {
            let provider = canonical_provider(&provider);
            let shelf = ProviderRecords {
                provider: provider.into(),
                n_models: models.len(),
                packed: 0..0,
                models: OnceLock::from(models),
            };
            match shelves.iter_mut().find(|known| known.provider == *provider) {
                Some(known) => *known = shelf,
                None => shelves.push(shelf),
            }
        }
        Self(Arc::new(shelves))
    }

    fn shelf(&self, provider: &str) -> Option<&ProviderRecords> {
        self.0.iter().find(|shelf| shelf.provider == *canonical_provider(provider))
    }
}

/// Returns the current name of a provider, given its current or a former name.
pub fn canonical_provider(provider: &str) -> &str {
    OLD_NAMES.iter().find(|(old, _)| *old == provider).map_or(provider, |(_, new)| new)
}

/// Returns providers and the ids of their default models, in order of preference.
pub fn default_ids() -> impl Iterator<Item = (&'static str, &'static str)> {
    let listed = DEFAULTS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let cloud_code = [("google-gemini-cli", "gemini-3-pro-preview"), ("google-antigravity", "gemini-3-pro-high")];
    listed.chain(cloud_code.into_iter().filter(|_| cfg!(feature = "cloud-code-assist")))
}

/// Returns the models of Cloud Code Assist by provider.
#[cfg(feature = "cloud-code-assist")]
fn cloud_code() -> Vec<(String, Vec<Arc<Model>>)> {
    let providers: serde_json::Map<String, Value> = serde_json::from_str(CLOUD_CODE).unwrap_or_default();
    let shelf = |(provider, records): (&String, &Value)| {
        let records = records.as_array().into_iter().flatten();
        let models = records.filter_map(|record| Model::from_record(record).ok()).map(Arc::new).collect();
        (provider.clone(), models)
    };
    providers.iter().map(shelf).collect()
}

/// Returns whether a record is a chat model; others are skipped.
fn is_chat(record: &Value) -> bool {
    record.get("type").is_none_or(|kind| kind == "chat")
}

/// Unpacks the models of one provider; broken records are skipped.
fn unpack(packed: &Range<usize>) -> Vec<Arc<Model>> {
    let records = BUILT_IN.get(packed.clone()).and_then(|packed| pack::unpack(packed).ok()).unwrap_or_default();
    records
        .iter()
        .filter(|record| is_chat(record))
        .filter_map(|record| Model::from_record(record).ok())
        .map(Arc::new)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_unpacks_and_contains_its_default_model() {
        let catalog = Catalog::for_build();
        let mut n_models = 0;
        for provider in catalog.providers() {
            assert_eq!(catalog.models(provider.as_str()).len(), catalog.n_models(provider.as_str()), "{provider}");
            assert!(catalog.models(provider.as_str()).iter().all(|model| model.provider == *provider));
            n_models += catalog.n_models(provider.as_str());
        }
        assert!(catalog.providers().count() > 40 && n_models > 1000);
        for (provider, id) in default_ids() {
            assert!(catalog.find(provider, id).is_some(), "{provider} {id}");
        }
        let with_models = catalog.providers().filter(|provider| catalog.n_models(provider.as_str()) > 0);
        // The gateway of pi's authors has its own wire format.
        let without: Vec<&str> = with_models
            .map(ProviderId::as_str)
            .filter(|provider| catalog.default_model(provider).is_none() && *provider != "radius")
            .collect();
        assert_eq!(without, [""; 0]);
    }

    #[test]
    fn models_are_found_under_current_and_former_provider_names() {
        let catalog = Catalog::built_in();
        let model = catalog.find("anthropic", "claude-opus-4-6").unwrap();
        assert_eq!((model.context_window, model.rates.input), (1_000_000, 5.0));
        assert!(catalog.find("azure-openai-responses", "gpt-5.1").is_some());
        assert!(catalog.models("nobody").is_empty());
        assert!(catalog.find("anthropic", "nothing").is_none());
    }
}
