//! What a models.json may say, and how it changes model records.

use std::path::Path;
use std::sync::Arc;

use pinch_llm::catalog::Catalog;
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use serde_json::{Map, Value};

use super::ProviderEntry;
use crate::document::Problem;

/// Members of an override that replace the record's own.
const REPLACED: [&str; 6] = ["name", "reasoning", "input", "contextWindow", "maxTokens", "samplingParams"];

/// Reads one provider of the document. What is wrong is reported; a broken model costs only itself.
pub(super) fn read_provider(
    catalog: &Catalog,
    id: &ProviderId,
    config: &Value,
    file: &Path,
    problems: &mut Vec<Problem>,
) -> Option<ProviderEntry> {
    let place = format!("providers.{id}");
    let Some(config) = config.as_object() else {
        problems.push(Problem::new(file, "must be an object").at(place));
        return None;
    };
    for name in ["name", "baseUrl", "apiKey", "api"] {
        match config.get(name) {
            None => {}
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(_) => {
                problems.push(Problem::new(file, "must be a non-empty string").at(format!("{place}.{name}")));
                return None;
            }
        }
    }
    let models = config.get("models").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_builtin = catalog.n_models(id.as_str()) > 0;
    let has = |name: &str| config.contains_key(name);
    let says_nothing = !["baseUrl", "headers", "compat", "apiKey"].iter().any(|name| has(name))
        && config.get("modelOverrides").and_then(Value::as_object).is_none_or(Map::is_empty);
    if models.is_empty() && says_nothing {
        let what = format!(
            "Provider {id}: must specify \"baseUrl\", \"headers\", \"compat\", \"modelOverrides\", or \"models\"."
        );
        problems.push(Problem::new(file, what));
        return None;
    }
    if !models.is_empty() && !is_builtin {
        for name in ["baseUrl", "apiKey"] {
            if !has(name) {
                let what = format!("Provider {id}: \"{name}\" is required when defining custom models.");
                problems.push(Problem::new(file, what).remedy(remedy(name)));
                return None;
            }
        }
    }
    let mut entry = ProviderEntry { config: config.clone(), models: Vec::new() };
    for (at, model) in models.iter().enumerate() {
        match read_model(catalog, id, config, model) {
            Ok(model) => entry.models.push(Arc::new(model)),
            Err(what) => problems.push(Problem::new(file, what).at(format!("{place}.models[{at}]"))),
        }
    }
    Some(entry)
}

fn remedy(member: &str) -> &'static str {
    if member == "apiKey" { "A server without keys takes \"apiKey\": \"none\"" } else { "Name the server's URL" }
}

/// A model that models.json defines: its own members over those of the provider.
fn read_model(
    catalog: &Catalog,
    provider: &ProviderId,
    config: &Map<String, Value>,
    model: &Value,
) -> Result<Model, String> {
    let Some(own) = model.as_object() else { return Err("must be an object".into()) };
    let Some(id) = own.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
        return Err("must have a non-empty \"id\"".into());
    };
    // A provider of the catalog lends what the document leaves out.
    let sample = catalog.models(provider.as_str()).first();
    let from = |name: &str| own.get(name).or_else(|| config.get(name)).cloned();
    let Some(api) = from("api").or_else(|| sample.map(|m| m.api.as_str().into())) else {
        return Err(format!("Provider {provider}, model {id}: no \"api\" specified. Set at provider or model level."));
    };
    let base_url = from("baseUrl").or_else(|| sample.map(|m| m.base_url.as_str().into()));
    for name in ["contextWindow", "maxTokens"] {
        if own.get(name).is_some_and(|value| value.as_f64().is_none_or(|n| n <= 0.0)) {
            return Err(format!("Provider {provider}, model {id}: invalid {name}"));
        }
    }
    let mut record = own.clone();
    record.insert("provider".into(), provider.as_str().into());
    record.insert("api".into(), api);
    record.insert("baseUrl".into(), base_url.unwrap_or_default());
    // Headers may name variables and commands; they are resolved for each request, not kept in the model.
    record.remove("headers");
    let mut record = Value::Object(record);
    let own_compat = record.as_object_mut().and_then(|record| record.remove("compat"));
    merge_compat(&mut record, config.get("compat"));
    merge_compat(&mut record, own_compat.as_ref());
    Model::from_record(&record).map_err(|error| error.to_string())
}

/// Lays peculiarities over a record's own; routing preferences merge one level deeper.
pub(super) fn merge_compat(record: &mut Value, over: Option<&Value>) {
    let Some(over) = over.and_then(Value::as_object) else { return };
    let Some(record) = record.as_object_mut() else { return };
    let compat = record.entry("compat").or_insert_with(|| Value::Object(Map::new()));
    let Some(compat) = compat.as_object_mut() else { return };
    for (name, value) in over {
        match (compat.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new))
                if matches!(name.as_str(), "openRouterRouting" | "vercelGatewayRouting") =>
            {
                old.extend(new.clone());
            }
            _ => drop(compat.insert(name.clone(), value.clone())),
        }
    }
}

/// Lays one `modelOverrides` entry over a record.
pub(super) fn apply_override(record: &mut Value, over: &Map<String, Value>) {
    for name in REPLACED {
        if let Some(value) = over.get(name) {
            record[name] = value.clone();
        }
    }
    for name in ["thinkingLevelMap", "cost"] {
        if let Some(Value::Object(new)) = over.get(name) {
            match record.get_mut(name) {
                Some(Value::Object(old)) => old.extend(new.clone()),
                _ => record[name] = Value::Object(new.clone()),
            }
        }
    }
    merge_compat(record, over.get("compat"));
}
