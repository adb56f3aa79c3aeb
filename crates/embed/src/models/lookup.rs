//! Finds the model for a reference, including models newer than the catalog.

use std::sync::Arc;

use pinch_coding_agent::models::ModelRegistry;
use pinch_coding_agent::models::pattern::{self, NotFound};
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use serde_json::{Map, Value, json};

use super::select::ModelRef;
use crate::config::ModelsConfig;
use crate::config::cli::CliBackends;

/// Wire format of a configured provider that names none.
const DEFAULT_API: &str = "openai-responses";
/// Context window and maximum output of an unknown model, in tokens.
const UNKNOWN_WINDOW: u64 = 200_000;
const UNKNOWN_ANSWER: u64 = 8_192;

/// Finds a model by its exact name, else as a model of a known provider that is newer than the catalog, else by the most similar name.
///
/// # Errors
/// [`NotFound`].
pub(crate) fn find(
    registry: &ModelRegistry,
    config: &ModelsConfig,
    provider: Option<&str>,
    name: &str,
    has_auth: &dyn Fn(&ProviderId) -> bool,
) -> Result<Arc<Model>, NotFound> {
    let name = name.trim();
    let parts = match provider {
        Some(provider) => Some((provider, name)),
        None => name.split_once('/'),
    };
    let known = parts.and_then(|(provider, id)| {
        let wanted = ModelRef::new(provider, id);
        Some((registry.provider(wanted.provider.as_str())?, wanted.model))
    });
    if let Some((provider, id)) = &known {
        if let Some(model) = registry.find(provider, id.as_str()) {
            return Ok(model);
        }
        if is_whole_id(id.as_str()) && !is_id_elsewhere(registry, provider, name, id.as_str()) {
            let new = newer(registry, provider, id.as_str()).or_else(|| generic(config, provider, id.as_str()));
            if let Some(model) = new {
                return Ok(Arc::new(model));
            }
        }
    }
    let found = pattern::resolve(registry, provider, name, has_auth);
    match (found, known) {
        (Ok(found), _) => Ok(found.model),
        (Err(error), Some((provider, id))) => generic(config, &provider, id.as_str()).map(Arc::new).ok_or(error),
        (Err(error), None) => Err(error),
    }
}

/// Returns the model of a command-line agent, or `None` if the provider is not one. The agent itself knows its models.
pub(crate) fn of_cli(backends: &CliBackends, provider: Option<&str>, name: &str) -> Option<Model> {
    let (provider, id) = match provider {
        Some(provider) => (provider, name.trim()),
        None => name.trim().split_once('/')?,
    };
    let provider = provider.trim().to_lowercase();
    backends.get(&provider)?;
    let record = json!({
        "id": id, "name": id, "provider": provider, "api": "cli", "baseUrl": "", "input": ["text", "image"],
        "contextWindow": UNKNOWN_WINDOW, "maxTokens": UNKNOWN_ANSWER,
    });
    Model::from_record(&record).ok()
}

/// Returns whether a name looks like a full model id: ids contain versions or sizes, short names do not. A `:` followed by a level is not
/// part of an id.
fn is_whole_id(id: &str) -> bool {
    id.bytes().any(|b| b.is_ascii_digit()) && !id.contains(':')
}

/// Returns whether the name is an id in another spelling, or the full id of another provider's model.
fn is_id_elsewhere(registry: &ModelRegistry, provider: &ProviderId, name: &str, id: &str) -> bool {
    registry.models(provider).iter().any(|model| model.id.as_str().eq_ignore_ascii_case(id))
        || registry.all().iter().any(|model| model.id.as_str().eq_ignore_ascii_case(name))
}

/// Returns a model newer than the catalog, based on the model with the most similar id.
fn newer(registry: &ModelRegistry, provider: &ProviderId, id: &str) -> Option<Model> {
    /// Ids with a shorter common prefix belong to different families.
    const MIN_SHARED: usize = 4;
    let shared = |model: &Arc<Model>| model.id.as_str().bytes().zip(id.bytes()).take_while(|(a, b)| a == b).count();
    let models = registry.models(provider);
    let like = models.iter().max_by_key(|model| shared(model)).filter(|model| shared(model) >= MIN_SHARED);
    let mut model = like
        .map(|like| Model::clone(like))
        .or_else(|| registry.default_model(provider).map(|like| Model::clone(&like)))?;
    model.id = id.into();
    model.name = id.to_owned();
    Some(model)
}

/// Returns a model of a configured provider that lists none.
fn generic(config: &ModelsConfig, provider: &ProviderId, id: &str) -> Option<Model> {
    let entry = &config.providers.iter().find(|entry| entry.id == *provider)?.entry;
    let mut record = Map::from_iter([
        ("id".to_owned(), Value::from(id)),
        ("name".to_owned(), id.into()),
        ("provider".to_owned(), provider.as_str().into()),
        ("baseUrl".to_owned(), entry.get("baseUrl")?.clone()),
    ]);
    record.insert("api".to_owned(), entry.get("api").cloned().unwrap_or_else(|| DEFAULT_API.into()));
    record.insert("input".to_owned(), json!(["text"]));
    record.insert("contextWindow".to_owned(), UNKNOWN_WINDOW.into());
    record.insert("maxTokens".to_owned(), UNKNOWN_ANSWER.into());
    Model::from_record(&Value::Object(record)).ok()
}
