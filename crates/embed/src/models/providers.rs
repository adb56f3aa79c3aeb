//! Configured providers as a layer of the model registry. Nothing is written: keys remain references until a request needs them.

use serde_json::{Map, Value};

use super::select::normalise_model;
use crate::config::models::{ModelsConfig, ModelsMode};
use crate::config::secrets::{SecretPlace, SecretRef};

/// Overlays the providers of a `models.json` with the configured ones, in the format of `models.json`. `implicit`: providers enabled by
/// their credentials; configured values take precedence.
pub fn provider_layer(
    models_json: Map<String, Value>,
    implicit: &Map<String, Value>,
    config: &ModelsConfig,
) -> Map<String, Value> {
    let mut root = match config.mode {
        ModelsMode::Merge => models_json,
        ModelsMode::Replace => Map::new(),
    };
    if config.providers.is_empty() && implicit.is_empty() {
        return root;
    }
    let providers = root.entry("providers").or_insert_with(|| Value::Object(Map::new()));
    let Some(providers) = providers.as_object_mut() else { return root };
    for (name, entry) in implicit {
        let is_configured = config.providers.iter().any(|provider| provider.id.as_str() == name);
        if !is_configured && !providers.contains_key(name) {
            providers.insert(name.clone(), entry.clone());
        }
    }
    for provider in &config.providers {
        let mut entry = provider.entry.clone();
        if let Some(implicit) = implicit.get(provider.id.as_str()).and_then(Value::as_object) {
            complete(&mut entry, implicit);
        }
        // A reference to a variable, in the form the registry understands.
        if let Some(reference) = entry.get("apiKey").and_then(SecretRef::read)
            && reference.source == SecretPlace::Env
        {
            entry.insert("apiKey".to_owned(), format!("${{{}}}", reference.id).into());
        }
        for model in entry.get_mut("models").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(id) = model["id"].as_str().map(|id| normalise_model(&provider.id, id)) {
                model["id"] = id.as_str().into();
            }
        }
        providers.insert(provider.id.to_string(), Value::Object(entry));
    }
    root
}

/// Adds what a configured provider lacks: members, and models with other ids.
fn complete(entry: &mut Map<String, Value>, implicit: &Map<String, Value>) {
    for (name, value) in implicit {
        match (entry.get_mut(name), value) {
            (Some(Value::Array(own)), Value::Array(others)) if name == "models" => {
                let is_new = |other: &&Value| own.iter().all(|model| model["id"] != other["id"]);
                let others: Vec<Value> = others.iter().filter(is_new).cloned().collect();
                own.extend(others);
            }
            (Some(_), _) => {}
            (None, value) => drop(entry.insert(name.clone(), value.clone())),
        }
    }
}
