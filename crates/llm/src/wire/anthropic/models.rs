//! What Anthropic's models are told in their own way.

use crate::model::Model;
use crate::model::thinking::clamp;
use crate::thinking::ThinkingLevel;

/// Claude Code, as a subscription's requests name it.
pub(super) const CLAUDE_CODE_VERSION: &str = "claude-cli/2.1.280";
/// What a subscription's prompt begins with.
pub(super) const CLAUDE_CODE_IDENTITY: &str = "You are Claude Code, Anthropic's official CLI for Claude.";

/// The effort's word for a level, on models that think as they see fit.
pub(super) fn effort_word(model: &Model, level: ThinkingLevel) -> &str {
    let level = clamp(model, level);
    model.thinking.word(level).unwrap_or(match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => "high",
    })
}
