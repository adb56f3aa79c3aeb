//! Selecting the initial model and thinking level of a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinch_llm::catalog::{canonical_provider, default_ids};
use pinch_llm::model::{Model, thinking};
use pinch_llm::thinking::ThinkingLevel;

use super::pattern::ModelMatch;

/// The inputs for selecting a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct InitialModelOptions<'a> {
    /// The model requested for this run.
    pub named: Option<&'a ModelMatch>,
    /// The thinking level requested for this run.
    pub thinking: Option<ThinkingLevel>,
    /// The scoped models, in order.
    pub scope: &'a [ModelMatch],
    /// Whether the session is resumed: then the scope does not determine its model.
    pub is_continued: bool,
    /// Provider and id of the default model in the settings.
    pub default: Option<(&'a str, &'a str)>,
    /// Default levels of single models, by `provider/id`.
    pub of_models: Option<&'a BTreeMap<String, ThinkingLevel>>,
    /// Default level in the settings.
    pub default_thinking: Option<ThinkingLevel>,
}

/// The initial model and thinking level.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Initial {
    /// The model, or `None` if none is available.
    pub model: Option<Arc<Model>>,
    /// The level, supported by the model.
    pub thinking: ThinkingLevel,
}

/// Selects among the available models: the requested one, the first of the scope, the configured default, the default of the preferred
/// provider, or any.
pub fn choose(available: &[Arc<Model>], options: &InitialModelOptions<'_>) -> Initial {
    let in_scope = || if options.is_continued { None } else { options.scope.first() };
    let found = options.named.or_else(in_scope);
    let model = found.map(|found| Arc::clone(&found.model)).or_else(|| {
        let configured = options.default.and_then(|(provider, id)| find(available, provider, id));
        let usual = || default_ids().find_map(|(provider, id)| find(available, provider, id));
        configured.or_else(usual).or_else(|| available.first()).cloned()
    });
    let Some(model) = model else { return Initial { model: None, thinking: ThinkingLevel::Off } };
    let of_model =
        || options.of_models.and_then(|levels| levels.get(&format!("{}/{}", model.provider, model.id))).copied();
    let wanted = options.thinking.or_else(|| found?.thinking).or_else(of_model).or(options.default_thinking);
    let thinking = thinking::clamp(&model, wanted.unwrap_or(ThinkingLevel::Medium));
    Initial { model: Some(model), thinking }
}

fn find<'a>(available: &'a [Arc<Model>], provider: &str, id: &str) -> Option<&'a Arc<Model>> {
    available.iter().find(|model| model.provider == *canonical_provider(provider) && model.id == *id)
}

/// Returns the note for a session resumed with another model.
pub fn not_restored(provider: &str, id: &str, using: Option<&Model>) -> String {
    let using = using.map(|model| format!(". Using {}/{}", model.provider, model.id)).unwrap_or_default();
    format!("Could not restore model {provider}/{id}{using}")
}
