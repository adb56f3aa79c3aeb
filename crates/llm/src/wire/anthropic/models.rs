//! Parameters that are specific to Anthropic's models.

use crate::model::Model;
use crate::model::thinking::clamp;
use crate::thinking::ThinkingLevel;

/// Returns the effort for a level, for models with adaptive thinking.
pub(in crate::wire) fn effort_word(model: &Model, level: ThinkingLevel) -> &str {
    let level = clamp(model, level);
    model.thinking.word(level).unwrap_or(match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => "high",
    })
}
