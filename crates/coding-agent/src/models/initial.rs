//! The model a session begins with, and the level it thinks at.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinch_llm::catalog::{canonical_provider, default_ids};
use pinch_llm::model::{Model, thinking};
use pinch_llm::thinking::ThinkingLevel;

use super::pattern::ModelMatch;

/// What a session begins with is chosen from.
#[derive(Clone, Copy, Debug, Default)]
pub struct InitialModelOptions<'a> {
    /// The model that was named for this run.
    pub named: Option<&'a ModelMatch>,
    /// The level that was named for this run.
    pub thinking: Option<ThinkingLevel>,
    /// The models to go through, in order.
    pub scope: &'a [ModelMatch],
    /// The session has a past: the scope does not choose its model.
    pub is_continued: bool,
    /// Provider and id of the configured model.
    pub default: Option<(&'a str, &'a str)>,
    /// The configured levels of single models, by `provider/id`.
    pub of_models: Option<&'a BTreeMap<String, ThinkingLevel>>,
    /// The configured level.
    pub default_thinking: Option<ThinkingLevel>,
}

/// What a session begins with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Initial {
    /// The model; `None` = there is none.
    pub model: Option<Arc<Model>>,
    /// The level, one that the model has.
    pub thinking: ThinkingLevel,
}

/// Chooses among the models that can be asked: the named one, the first of the scope, the configured one, the usual one of the preferred
/// provider, any.
pub fn choose(available: &[Arc<Model>], wishes: &InitialModelOptions<'_>) -> Initial {
    let in_scope = || if wishes.is_continued { None } else { wishes.scope.first() };
    let found = wishes.named.or_else(in_scope);
    let model = found.map(|found| Arc::clone(&found.model)).or_else(|| {
        let configured = wishes.default.and_then(|(provider, id)| find(available, provider, id));
        let usual = || default_ids().find_map(|(provider, id)| find(available, provider, id));
        configured.or_else(usual).or_else(|| available.first()).cloned()
    });
    let Some(model) = model else { return Initial { model: None, thinking: ThinkingLevel::Off } };
    let of_model =
        || wishes.of_models.and_then(|levels| levels.get(&format!("{}/{}", model.provider, model.id))).copied();
    let wanted = wishes.thinking.or_else(|| found?.thinking).or_else(of_model).or(wishes.default_thinking);
    let thinking = thinking::clamp(&model, wanted.unwrap_or(ThinkingLevel::Medium));
    Initial { model: Some(model), thinking }
}

fn find<'a>(available: &'a [Arc<Model>], provider: &str, id: &str) -> Option<&'a Arc<Model>> {
    available.iter().find(|model| model.provider == *canonical_provider(provider) && model.id == *id)
}

/// The note for a session that continues with another model.
pub fn not_restored(provider: &str, id: &str, using: Option<&Model>) -> String {
    let using = using.map(|model| format!(". Using {}/{}", model.provider, model.id)).unwrap_or_default();
    format!("Could not restore model {provider}/{id}{using}")
}
