//! Thinking parameters of models, and prices of service tiers.

use serde_json::{Map, Value, json};

use crate::model::Model;
use crate::model::thinking::{LevelRule, clamp};
use crate::request::{Request, ThinkingChoice};
use crate::thinking::ThinkingLevel;
use crate::wire::{address, effort, headers};

/// The recipient of request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Relative {
    /// OpenAI itself and compatible servers.
    OpenAi,
    /// Azure.
    Azure,
}

/// A request's thinking parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::wire) struct ReasoningEffort {
    /// The level, if it is one of ours.
    pub(in crate::wire) level: Option<ThinkingLevel>,
    /// The value to send; none if thinking is off or not mentioned.
    pub(in crate::wire) word: Option<String>,
    /// The reasoning summary requested by the caller, if any.
    pub(in crate::wire) summary: Option<String>,
}

impl ReasoningEffort {
    /// Returns the level's name for per-level options; off if none was requested.
    pub(in crate::wire) fn level_name(&self) -> Option<&'static str> {
        match (&self.word, self.level) {
            (None, _) => Some("off"),
            (Some(_), level) => level.map(ThinkingLevel::as_str),
        }
    }
}

/// Returns the effort of a request.
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

/// Effort of requests that announce their effort within the conversation. It never changes, so that cached prompts stay valid.
const FIXED_EFFORT: &str = "medium";

/// Returns the effort that a request announces at the end of its conversation, if the model accepts that. Subscriptions do not.
pub(super) fn announced_effort(request: &Request) -> Option<String> {
    let model = &*request.model;
    let is_wanted = model.dialect.wire.mid_convo_effort && model.api == *"openai-responses";
    let effort = effort_of(request).word.filter(|_| is_wanted)?;
    let is_openai = model.provider == *"openai" && address::base(request) == "https://api.openai.com/v1";
    let key = headers::key(request).ok().flatten();
    let is_subscription = is_openai && key.is_some_and(|key| !key.reveal().starts_with("sk-"));
    (!is_subscription).then_some(effort)
}

/// Encodes a change of the effort within a conversation.
pub(super) fn effort_item(effort: &str) -> Value {
    json!({"type": "configuration_update", "reasoning": {"effort": effort}})
}

/// Returns the effort to send with a request that announces it within the conversation.
pub(super) fn fixed_effort(effort: &ReasoningEffort) -> ReasoningEffort {
    ReasoningEffort { word: Some(FIXED_EFFORT.to_owned()), ..effort.clone() }
}

/// Writes the parameters that enable or disable thinking.
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
        // Such a model thinks anyway, and nothing is stored: its reasoning can only be replayed if it is included.
        if has_own_words && relative == Relative::OpenAi {
            body.insert("include".into(), encrypted());
        }
    } else if has_own_words && model.dialect.wire.reasoning_effort {
        let off = model.thinking.word(ThinkingLevel::Off).unwrap_or("none");
        body.insert("reasoning".into(), json!({"effort": off}));
    }
}

/// Returns the requested service tier.
pub(in crate::wire) fn service_tier(request: &Request) -> Option<&str> {
    request.options.native.get("serviceTier").and_then(Value::as_str).filter(|tier| !tier.is_empty())
}

/// Returns the price factor of a tier.
pub(in crate::wire) fn tier_factor(model: &Model, tier: &str) -> f64 {
    match tier {
        "flex" => 0.5,
        "priority" if model.id == *"gpt-5.5" => 2.5,
        "priority" => 2.0,
        _ => 1.0,
    }
}
