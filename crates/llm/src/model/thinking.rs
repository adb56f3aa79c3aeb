//! Thinking levels of models, and their spelling on the wire.

use super::Model;
use crate::thinking::ThinkingLevel;

/// A model record's rule for one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LevelRule {
    /// The wire format's own word.
    #[default]
    Default,
    /// The level does not exist.
    Unsupported,
    /// This word.
    Word(String),
}

/// A model record's rules for each level (`thinkingLevelMap`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingMap([LevelRule; 7]);

impl ThinkingMap {
    /// Returns the rule of a level.
    pub fn rule(&self, level: ThinkingLevel) -> &LevelRule {
        &self.0[level as usize]
    }

    /// Sets the rule of a level.
    pub fn set(&mut self, level: ThinkingLevel, rule: LevelRule) {
        self.0[level as usize] = rule;
    }

    /// Returns the word that a level is mapped to, if any.
    pub fn word(&self, level: ThinkingLevel) -> Option<&str> {
        match self.rule(level) {
            LevelRule::Word(word) => Some(word),
            LevelRule::Default | LevelRule::Unsupported => None,
        }
    }

    /// Returns whether the record has no rules.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|rule| *rule == LevelRule::Default)
    }
}

/// Returns the levels a model supports, from lowest to highest. A model that cannot think supports only `off`; one that can supports all
/// levels that its record does not exclude, but `xhigh` and `max` only if the record maps them. May be empty.
pub fn supported(model: &Model) -> Vec<ThinkingLevel> {
    if !model.reasoning {
        return vec![ThinkingLevel::Off];
    }
    let has = |level: &ThinkingLevel| match (model.thinking.rule(*level), level) {
        (LevelRule::Unsupported, _) | (LevelRule::Default, ThinkingLevel::Max) => false,
        (LevelRule::Word(_), _) => true,
        (LevelRule::Default, ThinkingLevel::XHigh) => model.thinking.is_empty() && had_xhigh(model.id.as_str()),
        (LevelRule::Default, _) => true,
    };
    ThinkingLevel::ALL.into_iter().filter(has).collect()
}

/// Returns the level to use if `wanted` is requested: the level itself, else the next higher one, else the next lower one, else `off`.
pub fn clamp(model: &Model, wanted: ThinkingLevel) -> ThinkingLevel {
    let levels = supported(model);
    let above = levels.iter().find(|level| **level >= wanted);
    above.or(levels.last()).copied().unwrap_or(ThinkingLevel::Off)
}

/// Returns the level for a word; an unknown word gives the model's first level.
pub fn clamp_word(model: &Model, word: &str) -> ThinkingLevel {
    match ThinkingLevel::parse(word) {
        Some(level) => clamp(model, level),
        None => supported(model).first().copied().unwrap_or(ThinkingLevel::Off),
    }
}

/// Returns whether a model supported `xhigh` before records had a map; old models.json files rely on it.
fn had_xhigh(id: &str) -> bool {
    ["gpt-5.1-codex-max", "gpt-5.2", "gpt-5.3", "gpt-5.4", "opus-4-6", "opus-4.6"].iter().any(|part| id.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Renders the supported levels, and the clamped value of each of the seven.
    #[track_caller]
    fn check(record: Value, expect: &str) {
        let mut whole = json!({"id": "m", "api": "a", "provider": "p", "reasoning": true});
        whole.as_object_mut().unwrap().extend(record.as_object().unwrap().clone());
        let model = Model::from_record(&whole).unwrap();
        let words = |levels: Vec<ThinkingLevel>| levels.iter().map(|l| l.as_str()).collect::<Vec<_>>().join(" ");
        let clamped = ThinkingLevel::ALL.into_iter().map(|level| clamp(&model, level)).collect();
        assert_eq!(format!("{} | {}", words(supported(&model)), words(clamped)), expect);
    }

    #[test]
    fn levels_are_clamped_to_what_the_model_supports() {
        check(json!({"reasoning": false}), "off | off off off off off off off");
        check(json!({}), "off minimal low medium high | off minimal low medium high high high");
        check(
            json!({"thinkingLevelMap": {"off": null, "minimal": null, "low": "LOW", "medium": null, "high": "HIGH"}}),
            "low high | low low low high high high high",
        );
        check(
            json!({"thinkingLevelMap": {"minimal": null, "low": null, "medium": null, "max": "max"}}),
            "off high max | off high high high high max max",
        );
        check(
            json!({"thinkingLevelMap": {"off": null, "minimal": null, "low": null, "medium": null, "high": null}}),
            " | off off off off off off off",
        );
        check(
            json!({"id": "openai/gpt-5.2"}),
            "off minimal low medium high xhigh | off minimal low medium high xhigh xhigh",
        );
    }

    #[test]
    fn an_unknown_word_is_the_first_level() {
        let record =
            json!({"id": "m", "api": "a", "provider": "p", "reasoning": true, "thinkingLevelMap": {"off": null}});
        assert_eq!(clamp_word(&Model::from_record(&record).unwrap(), "huge"), ThinkingLevel::Minimal);
    }
}
