//! The models that the user cycles through.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinch_coding_agent::services::Services;
use pinch_coding_agent::session::ScopedModel;
use pinch_llm::thinking::ThinkingLevel;

use super::App;

impl App {
    /// Returns the models to cycle through.
    pub(crate) fn models_to_cycle(&self, services: &Services) -> Vec<ScopedModel> {
        if !self.scope.is_empty() {
            return self.scope.clone();
        }
        services.available_models().into_iter().map(|model| ScopedModel { model, thinking: None }).collect()
    }

    pub(crate) fn scope(&self) -> &[ScopedModel] {
        &self.scope
    }

    /// Returns the models to cycle through, as `provider/id`.
    pub(crate) fn scope_names(&self) -> Vec<String> {
        self.scope.iter().map(|scoped| format!("{}/{}", scoped.model.provider, scoped.model.id)).collect()
    }

    /// Sets the models to cycle through, given as `provider/id`.
    pub(crate) fn set_scope(&mut self, names: &[String], services: &Services) {
        let available = services.available_models();
        let levels: BTreeMap<String, Option<ThinkingLevel>> =
            self.scope_names().into_iter().zip(self.scope.iter().map(|scoped| scoped.thinking)).collect();
        let find = |name: &String| {
            let model = available.iter().find(|model| format!("{}/{}", model.provider, model.id) == *name)?;
            Some(ScopedModel { model: Arc::clone(model), thinking: levels.get(name).copied().flatten() })
        };
        self.scope = names.iter().filter_map(find).collect();
    }
}
