//! How models are asked to think, and what a tier of service costs.

use serde_json::{Map, Value, json};

use crate::model::Model;
use crate::model::thinking::{LevelRule, clamp};
use crate::request::{Request, ThinkingChoice};
use crate::thinking::ThinkingLevel;
use crate::wire::effort;

/// Who takes the bodies that are written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Relative {
    /// OpenAI itself and its imitations.
    OpenAi,
    /// Azure.
    Azure,
}

/// What a request says about thinking.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::wire) struct ReasoningEffort {
    /// The level, where it is one of ours.
    pub(in crate::wire) level: Option<ThinkingLevel>,
    /// The word to send; none when thinking is off or not spoken of.
    pub(in crate::wire) word: Option<String>,
    /// How the reasoning is summarised, where the caller says so.
    pub(in crate::wire) summary: Option<String>,
}

impl ReasoningEffort {
    /// Name of the level for settings by level; off when none was requested.
    pub(in crate::wire) fn level_name(&self) -> Option<&'static str> {
        match (&self.word, self.level) {
            (None, _) => Some("off"),
            (Some(_), level) => level.map(ThinkingLevel::as_str),
        }
    }
}

/// The effort of a request.
pub(in crate::wire) fn effort_of(request: &Request) -> ReasoningEffort {
    let model = &*request.model;
    let of_level = |level: ThinkingLevel| match clamp(model, level) {
        ThinkingLevel::Off => ReasoningEffort::default(),
        level => {
            ReasoningEffort { level: Some(level), word: Some(effort::word(model, level).to_owned()), summary: None }
        }
    };
    match &request.options.thinking {
        _ if !model.reasoning => ReasoningEffort::default(),
        ThinkingChoice::Unset | ThinkingChoice::Level(ThinkingLevel::Off) => ReasoningEffort::default(),
        ThinkingChoice::Level(level) => of_level(*level),
        ThinkingChoice::Native(native) if native.enabled == Some(false) => ReasoningEffort::default(),
        ThinkingChoice::Native(native) => {
            let effort = match native.effort.as_deref().map(|word| (word, ThinkingLevel::parse(word))) {
                None if native.enabled == Some(true) => of_level(ThinkingLevel::Medium),
                None | Some((_, Some(ThinkingLevel::Off))) => ReasoningEffort::default(),
                Some((_, Some(level))) => ReasoningEffort {
                    level: Some(level),
                    word: Some(effort::word(model, level).to_owned()),
                    summary: None,
                },
                Some((word, None)) => ReasoningEffort { level: None, word: Some(word.to_owned()), summary: None },
            };
            ReasoningEffort { summary: native.display.clone(), ..effort }
        }
    }
}

/// Writes what asks for thinking, or for none.
pub(in crate::wire) fn put_thinking(
    body: &mut Map<String, Value>,
    model: &Model,
    effort: &ReasoningEffort,
    relative: Relative,
) {
    if !model.reasoning {
        return;
    }
    let has_own_words = model.dialect.wire.says_thinking_off;
    let encrypted = || json!(["reasoning.encrypted_content"]);
    if effort.word.is_some() || effort.summary.is_some() {
        let summary = effort.summary.as_deref().unwrap_or("auto");
        let mut reasoning = Map::new();
        if model.dialect.wire.reasoning_effort {
            reasoning.insert("effort".into(), effort.word.as_deref().unwrap_or("medium").into());
        }
        reasoning.insert("summary".into(), summary.into());
        body.insert("reasoning".into(), Value::Object(reasoning));
        body.insert("include".into(), encrypted());
    } else if *model.thinking.rule(ThinkingLevel::Off) == LevelRule::Unsupported {
        // Such a model thinks all the same, and nothing is stored: its reasoning can only be given back when it is sent along.
        if has_own_words && relative == Relative::OpenAi {
            body.insert("include".into(), encrypted());
        }
    } else if has_own_words && model.dialect.wire.reasoning_effort {
        let off = model.thinking.word(ThinkingLevel::Off).unwrap_or("none");
        body.insert("reasoning".into(), json!({"effort": off}));
    }
}

/// The tier of service that a request asks for.
pub(in crate::wire) fn service_tier(request: &Request) -> Option<&str> {
    request.options.native.get("serviceTier").and_then(Value::as_str).filter(|tier| !tier.is_empty())
}

/// By what prices are multiplied in a tier.
pub(in crate::wire) fn tier_factor(model: &Model, tier: &str) -> f64 {
    match tier {
        "flex" => 0.5,
        "priority" if model.id == *"gpt-5.5" => 2.5,
        "priority" => 2.0,
        _ => 1.0,
    }
}
