//! Compaction settings with per-model overrides.

use std::collections::BTreeMap;

use pinch_llm::model::Model;

use super::CompactionSettings;

/// Compaction settings for all models, with overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionRules {
    /// The settings that apply to all models.
    pub settings: CompactionSettings,
    /// Overrides, by `provider/id`.
    pub of_models: BTreeMap<String, ModelCompaction>,
}

/// Overrides for one model; `None` uses the general value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelCompaction {
    /// Tokens of the window reserved for the next answer.
    pub reserve_tokens: Option<u64>,
    /// Tokens of recent messages that are kept verbatim.
    pub keep_recent_tokens: Option<u64>,
}

impl CompactionRules {
    /// Returns the settings for a model; each value falls back independently.
    pub fn for_model(&self, model: &Model) -> CompactionSettings {
        let mut settings = self.settings;
        if let Some(of_model) = self.of_models.get(&format!("{}/{}", model.provider, model.id)) {
            settings.reserve_tokens = of_model.reserve_tokens.unwrap_or(settings.reserve_tokens);
            settings.keep_recent_tokens = of_model.keep_recent_tokens.unwrap_or(settings.keep_recent_tokens);
        }
        settings
    }
}

impl From<CompactionSettings> for CompactionRules {
    fn from(settings: CompactionSettings) -> Self {
        Self { settings, of_models: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_value_falls_back_independently() {
        let model = Model::from_record(&json!({"id": "a/b", "provider": "p", "api": "x"})).unwrap();
        let mut rules = CompactionRules::default();
        rules.of_models.insert("p/a/b".into(), ModelCompaction { reserve_tokens: Some(7), keep_recent_tokens: None });
        let own = rules.for_model(&model);
        assert_eq!((own.reserve_tokens, own.keep_recent_tokens), (7, 20_000));
        let other = Model::from_record(&json!({"id": "b", "provider": "p", "api": "x"})).unwrap();
        assert_eq!(rules.for_model(&other), CompactionSettings::default());
    }
}
