//! Newer records on top of the built-in ones, from a file of the same shape as the catalog's source.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Catalog;
use crate::model::Model;

/// Result of refreshing a catalog.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refreshed {
    /// The catalog with all readable records.
    pub catalog: Catalog,
    /// Errors of unreadable records, with their positions in the file.
    pub problems: Vec<String>,
}

impl Catalog {
    /// Merges newer records over these: `text` is JSON, an object of providers, each an object of records by id. A record replaces the one
    /// with the same id; new ones are appended. Unreadable records change nothing and are reported.
    pub fn refreshed(&self, text: &str) -> Refreshed {
        let mut problems = Vec::new();
        let providers = match serde_json::from_str::<Map<String, Value>>(text.trim_start_matches('\u{feff}')) {
            Ok(providers) => providers,
            Err(why) => {
                problems.push(format!("the refreshed catalog is not a JSON object of providers: {why}"));
                Map::new()
            }
        };
        let mut newer = Vec::new();
        for (provider, records) in providers {
            let Some(records) = records.as_object() else {
                problems.push(format!("/{provider} is not an object of models"));
                continue;
            };
            let mut models = self.models(&provider).to_vec();
            let mut seen = BTreeSet::new();
            for (id, record) in records.iter().filter(|(_, record)| super::is_chat(record)) {
                match Model::from_record(record) {
                    Ok(model) if model.provider != *super::canonical_provider(&provider) => {
                        problems.push(format!("/{provider}/{id}: its provider is {}", model.provider));
                    }
                    Ok(model) if !seen.insert(model.id.clone()) => {
                        problems.push(format!("/{provider}/{id}: {} is there twice", model.id));
                    }
                    Ok(model) => match models.iter_mut().find(|known| known.id == model.id) {
                        Some(known) => *known = Arc::new(model),
                        None => models.push(Arc::new(model)),
                    },
                    Err(why) => problems.push(format!("/{provider}/{id}: {why}")),
                }
            }
            newer.push((provider, models));
        }
        Refreshed { catalog: self.with(newer), problems }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(provider: &str, id: &str, window: u64) -> Value {
        json!({"id": id, "api": "openai-completions", "provider": provider, "baseUrl": "https://x", "contextWindow": window})
    }

    #[test]
    fn newer_records_replace_old_ones_and_new_ones_are_added() {
        let old = Catalog::built_in();
        let text = json!({
            "groq": {"a": record("groq", "brand-new", 7)},
            "anthropic": {"x": record("anthropic", "claude-opus-4-6", 9)},
            "newcomer": {"m": record("newcomer", "m", 5)},
        });
        let Refreshed { catalog, problems } = old.refreshed(&text.to_string());
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(catalog.find("groq", "brand-new").map(|model| model.context_window), Some(7));
        assert_eq!(catalog.find("anthropic", "claude-opus-4-6").map(|model| model.context_window), Some(9));
        assert_eq!(catalog.models("newcomer").len(), 1);
        assert_eq!(catalog.n_models("groq"), old.n_models("groq") + 1);
        assert_eq!(catalog.n_models("anthropic"), old.n_models("anthropic"));
        assert_eq!(catalog.models("xai").len(), old.models("xai").len());
        assert!(old.find("groq", "brand-new").is_none(), "the other catalog stays as it is");
    }

    #[test]
    fn broken_records_leave_the_others_unchanged() {
        let old = Catalog::built_in();
        for (text, n_problems) in [
            ("{", 1),
            ("[]", 1),
            (r#"{"groq": 7, "xai": {"a": 7}}"#, 2),
            (r#"{"groq": {"a": {"id": "a", "api": "x", "provider": "other", "baseUrl": ""}}}"#, 1),
        ] {
            let Refreshed { catalog, problems } = old.refreshed(text);
            assert_eq!(problems.len(), n_problems, "{text}: {problems:?}");
            for provider in old.providers() {
                assert_eq!(catalog.n_models(provider.as_str()), old.n_models(provider.as_str()), "{text}: {provider}");
            }
        }
    }
}
