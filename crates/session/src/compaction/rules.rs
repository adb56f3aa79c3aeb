//! Compaction settings with per-model overrides.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use pinch_llm::model::Model;

use super::{CompactionSettings, threshold};

/// Compaction settings for all models, with overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionRules {
    /// The settings that apply to all models.
    pub settings: CompactionSettings,
    /// Overrides, by `provider/id`.
    pub of_models: BTreeMap<String, ModelCompaction>,
    /// Limits what is reserved in small windows: to a half (2), a quarter (4), … of the window. `None` means no limit.
    pub reserve_divisor: Option<NonZeroU64>,
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
    /// Returns the settings for a model; each value falls back independently, the reserve is limited to its share of the window, and at most
    /// half of what triggers a compaction is kept: otherwise the next turn would trigger another one.
    pub fn for_model(&self, model: &Model) -> CompactionSettings {
        let mut settings = self.unlimited(model);
        if let Some(divisor) = self.reserve_divisor.filter(|_| model.context_window > 0) {
            settings.reserve_tokens = settings.reserve_tokens.min(model.context_window / divisor);
        }
        if model.context_window > 0 {
            let limit = threshold(&settings, model.context_window);
            settings.keep_recent_tokens = settings.keep_recent_tokens.min(limit / 2);
        }
        settings
    }

    /// Same as [`CompactionRules::for_model`], but with the values as configured, regardless of the window.
    pub fn unlimited(&self, model: &Model) -> CompactionSettings {
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
        Self { settings, ..Self::default() }
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

    #[test]
    fn half_of_what_triggers_a_compaction_is_kept_at_most() {
        let kept = |window: u64| {
            let record = json!({"id": "b", "provider": "p", "api": "x", "contextWindow": window});
            CompactionRules::default().for_model(&Model::from_record(&record).unwrap()).keep_recent_tokens
        };
        assert_eq!((kept(200_000), kept(64_000)), (20_000, 20_000));
        assert_eq!((kept(32_000), kept(16_000)), (8_000, 4_000));
        assert_eq!(kept(0), 20_000, "unknown window");
    }

    #[test]
    fn the_reserve_is_limited_to_its_share_of_the_window() {
        let reserve = |window: u64, divisor| {
            let record = json!({"id": "b", "provider": "p", "api": "x", "contextWindow": window});
            let settings = CompactionSettings { reserve_tokens: 20_000, ..CompactionSettings::default() };
            let rules = CompactionRules { reserve_divisor: NonZeroU64::new(divisor), ..settings.into() };
            rules.for_model(&Model::from_record(&record).unwrap()).reserve_tokens
        };
        assert_eq!(reserve(32_768, 4), 8_192);
        assert_eq!(reserve(200_000, 4), 20_000);
        assert_eq!(reserve(32_768, 0), 20_000, "no limit");
        assert_eq!(reserve(0, 4), 20_000, "unknown window");
    }
}
