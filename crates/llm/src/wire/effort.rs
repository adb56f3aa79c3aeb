//! Converts thinking levels to the parameters of wire formats.

use crate::model::Model;
use crate::request::ThinkingBudgets;
use crate::thinking::ThinkingLevel;

/// Returns the word for a level: the model's own, else the level's name.
pub(crate) fn word(model: &Model, level: ThinkingLevel) -> &str {
    model.thinking.word(level).unwrap_or(level.as_str())
}

/// Returns the token budget for a level, for formats that need a number.
pub(crate) fn budget(budgets: &ThinkingBudgets, level: ThinkingLevel) -> u64 {
    match level {
        ThinkingLevel::Off => 0,
        ThinkingLevel::Minimal => budgets.minimal.unwrap_or(1_024),
        ThinkingLevel::Low => budgets.low.unwrap_or(2_048),
        ThinkingLevel::Medium => budgets.medium.unwrap_or(8_192),
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => budgets.high.unwrap_or(16_384),
    }
}
