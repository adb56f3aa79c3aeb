//! Thinking parameters of Google's models.

use serde_json::{Value, json};

use crate::model::Model;
use crate::model::dialect::GoogleThinking;
use crate::model::thinking::{LevelRule, clamp};
use crate::request::{NativeThinking, Request, ThinkingBudgets, ThinkingChoice};
use crate::thinking::ThinkingLevel;

/// The minimum budget of models that cannot stop thinking.
pub(super) const LEAST_BUDGET: u64 = 128;

/// Returns the parameters that enable or disable thinking, or nothing if the request does not mention it. `off_budget` is the budget that
/// means none.
pub(super) fn thinking_config(request: &Request, off_budget: u64) -> Option<Value> {
    let model = &*request.model;
    match &request.options.thinking {
        _ if !model.reasoning => None,
        ThinkingChoice::Unset => None,
        ThinkingChoice::Level(ThinkingLevel::Off) => Some(off(model, off_budget)),
        ThinkingChoice::Level(level) => Some(on(model, *level, &request.options.thinking_budgets)),
        ThinkingChoice::Native(native) => match native.enabled {
            None => None,
            Some(false) => Some(off(model, off_budget)),
            Some(true) => Some(native_on(native)),
        },
    }
}

fn native_on(native: &NativeThinking) -> Value {
    let mut config = json!({"includeThoughts": true});
    match (&native.effort, native.budget) {
        (Some(level), _) => config["thinkingLevel"] = level.to_uppercase().into(),
        (None, Some(budget)) => config["thinkingBudget"] = budget.into(),
        (None, None) => {}
    }
    config
}

fn on(model: &Model, wanted: ThinkingLevel, budgets: &ThinkingBudgets) -> Value {
    let level = match clamp(model, wanted) {
        ThinkingLevel::Off => ThinkingLevel::High,
        level => level,
    };
    let mut config = json!({"includeThoughts": true});
    put_level(&mut config, model, level, budgets);
    config
}

/// Disables thinking. Models that cannot stop thinking use their hidden minimum.
fn off(model: &Model, off_budget: u64) -> Value {
    let cannot_stop = *model.thinking.rule(ThinkingLevel::Off) == LevelRule::Unsupported
        || matches!(model.dialect.wire.google_thinking, GoogleThinking::LowHigh | GoogleThinking::Four);
    let mut config = json!({});
    if cannot_stop {
        put_level(&mut config, model, clamp(model, ThinkingLevel::Off), &ThinkingBudgets::default());
    } else {
        let needs_some = model.id.as_str().to_ascii_lowercase().contains("2.5-pro");
        config["thinkingBudget"] = if needs_some { off_budget.max(LEAST_BUDGET) } else { off_budget }.into();
    }
    config
}

fn put_level(config: &mut Value, model: &Model, level: ThinkingLevel, budgets: &ThinkingBudgets) {
    match level_word(model, level) {
        Some(word) => config["thinkingLevel"] = word.into(),
        None => config["thinkingBudget"] = budget(model, level, budgets),
    }
}

/// Returns the word for a level, for models with levels: the record's own, else that of the model's family.
fn level_word(model: &Model, level: ThinkingLevel) -> Option<String> {
    if let Some(word) = model.thinking.word(level).map(str::to_uppercase) {
        return Some(word);
    }
    let word = match (model.dialect.wire.google_thinking, level) {
        (GoogleThinking::LowHigh, ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low) => "LOW",
        (GoogleThinking::MinimalHigh | GoogleThinking::Four, ThinkingLevel::Off | ThinkingLevel::Minimal)
        | (GoogleThinking::MinimalHigh, ThinkingLevel::Low) => "MINIMAL",
        (GoogleThinking::Four, ThinkingLevel::Low) => "LOW",
        (GoogleThinking::Four, ThinkingLevel::Medium) => "MEDIUM",
        (GoogleThinking::LowHigh | GoogleThinking::MinimalHigh | GoogleThinking::Four, _) => "HIGH",
        (GoogleThinking::Budgets(_) | GoogleThinking::Dynamic, _) => return None,
    };
    Some(word.to_owned())
}

fn budget(model: &Model, level: ThinkingLevel, budgets: &ThinkingBudgets) -> Value {
    let (own, at) = match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => (budgets.minimal, 0),
        ThinkingLevel::Low => (budgets.low, 1),
        ThinkingLevel::Medium => (budgets.medium, 2),
        ThinkingLevel::High | ThinkingLevel::XHigh | ThinkingLevel::Max => (budgets.high, 3),
    };
    match (own, model.dialect.wire.google_thinking) {
        (Some(own), _) => own.into(),
        (None, GoogleThinking::Budgets(known)) => known[at].into(),
        (None, _) => (-1).into(),
    }
}
