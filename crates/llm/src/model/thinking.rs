//! Which thinking levels a model has, and how they are spelled on the wire.

use crate::thinking::ThinkingLevel;

/// What a model record says about one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LevelRule {
    /// Nothing: the wire format's own word is used.
    #[default]
    Default,
    /// The level does not exist.
    Unsupported,
    /// The word to send.
    Word(String),
}

/// What a model record says about each level (`thinkingLevelMap`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingMap([LevelRule; 7]);

impl ThinkingMap {
    /// The rule of a level.
    pub fn rule(&self, level: ThinkingLevel) -> &LevelRule {
        &self.0[level as usize]
    }

    /// Sets the rule of a level.
    pub fn set(&mut self, level: ThinkingLevel, rule: LevelRule) {
        self.0[level as usize] = rule;
    }

    /// The word a level is mapped to, when it is.
    pub fn word(&self, level: ThinkingLevel) -> Option<&str> {
        match self.rule(level) {
            LevelRule::Word(word) => Some(word),
            LevelRule::Default | LevelRule::Unsupported => None,
        }
    }

    /// Whether the record says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|rule| *rule == LevelRule::Default)
    }
}
