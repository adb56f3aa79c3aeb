//! Thinking parameters of models, in the terms of their servers.

use serde_json::{Map, Value, json};

use crate::model::Model;
use crate::model::dialect::ThinkingFormat;
use crate::model::thinking::{LevelRule, clamp};
use crate::request::{Request, ThinkingChoice};
use crate::thinking::ThinkingLevel;
use crate::wire::effort;

/// The requested effort; off if there is none.
pub(super) struct EffortField {
    /// The level, if it is one of ours.
    pub(super) level: Option<ThinkingLevel>,
    /// The value to send.
    word: String,
    /// Token budget, for servers that need a number.
    budget: Option<u64>,
}

/// Tokens that thinking leaves for the answer, which shares its limit. As in pi 1.5.2.
const ANSWER_ROOM: u64 = 1_024;

impl EffortField {
    /// Limits the budget of an answer with this limit; a budget of nothing is left out.
    pub(super) fn within(self, limit: u64) -> Self {
        let room = limit.saturating_sub(ANSWER_ROOM);
        Self { budget: self.budget.map(|budget| budget.min(room)).filter(|budget| *budget > 0), ..self }
    }
}

/// Returns the effort of a request, or none if it is off or the model cannot think.
pub(super) fn effort_of(request: &Request) -> Option<EffortField> {
    let model = &*request.model;
    let of_level = |level: ThinkingLevel| {
        let level = clamp(model, level);
        (level != ThinkingLevel::Off).then(|| EffortField {
            level: Some(level),
            word: effort::word(model, level).to_owned(),
            budget: Some(effort::budget(&request.options.thinking_budgets, level)),
        })
    };
    match &request.options.thinking {
        _ if !model.reasoning => None,
        ThinkingChoice::Unset | ThinkingChoice::Level(ThinkingLevel::Off) => None,
        ThinkingChoice::Level(level) => of_level(*level),
        ThinkingChoice::Native(native) if native.enabled == Some(false) => None,
        ThinkingChoice::Native(native) => {
            let effort = match native.effort.as_deref().map(|word| (word, ThinkingLevel::parse(word))) {
                None if native.enabled == Some(true) => of_level(ThinkingLevel::Medium),
                None | Some((_, Some(ThinkingLevel::Off))) => None,
                Some((_, Some(level))) => Some(EffortField {
                    level: Some(level),
                    word: effort::word(model, level).to_owned(),
                    budget: Some(effort::budget(&request.options.thinking_budgets, level)),
                }),
                Some((word, None)) => Some(EffortField { level: None, word: word.to_owned(), budget: None }),
            };
            effort.map(|effort| EffortField { budget: native.budget.or(effort.budget), ..effort })
        }
    }
}

/// Writes the parameters that enable or disable thinking.
pub(super) fn put_thinking(body: &mut Map<String, Value>, model: &Model, effort: Option<&EffortField>) {
    if !model.reasoning {
        return;
    }
    let wire = &model.dialect.wire;
    let off = model.thinking.rule(ThinkingLevel::Off);
    let off_word = model.thinking.word(ThinkingLevel::Off);
    // Nothing is sent to a model whose thinking cannot be disabled.
    let silent = effort.is_none() && *off == LevelRule::Unsupported;
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    let enabled = effort.is_some();
    let word = effort.map(|effort| effort.word.as_str());
    let kind = if enabled { "enabled" } else { "disabled" };
    let mut send_effort = wire.reasoning_effort;
    match wire.thinking_format {
        ThinkingFormat::OpenAi => {
            if let Some(off) = off_word.filter(|_| !enabled && send_effort) {
                put("reasoning_effort", off.into());
            }
        }
        _ if silent => send_effort = false,
        ThinkingFormat::OpenRouter => {
            put("reasoning", json!({"effort": word.or(off_word).unwrap_or("none")}));
            send_effort = false;
        }
        ThinkingFormat::DeepSeek => put("thinking", json!({"type": kind})),
        ThinkingFormat::Zai if enabled => put("thinking", json!({"type": kind, "clear_thinking": false})),
        ThinkingFormat::Zai => put("thinking", json!({"type": kind})),
        ThinkingFormat::Qwen => put("enable_thinking", enabled.into()),
        ThinkingFormat::QwenChatTemplate => {
            put("chat_template_kwargs", json!({"enable_thinking": enabled, "preserve_thinking": true}));
            send_effort = false;
        }
        ThinkingFormat::Together => put("reasoning", json!({"enabled": enabled})),
        // What they send is in the model's templates.
        ThinkingFormat::Baseten => {
            if let Some(off) = off_word.filter(|_| !enabled && send_effort) {
                put("reasoning_effort", off.into());
            }
        }
        ThinkingFormat::ChatTemplate => send_effort = false,
        ThinkingFormat::StringThinking => {
            put("thinking", word.or(off_word).unwrap_or("none").into());
            send_effort = false;
        }
        ThinkingFormat::AntLing => {
            let mapped = effort.and_then(|effort| model.thinking.word(effort.level?)).or(off_word.filter(|_| !enabled));
            if let Some(mapped) = mapped {
                put("reasoning", json!({"effort": mapped}));
            }
            send_effort = false;
        }
    }
    if let Some(word) = word.filter(|_| send_effort) {
        put("reasoning_effort", word.into());
    }
    if let (Some(field), Some(budget)) = (&wire.thinking_budget_field, effort.and_then(|effort| effort.budget)) {
        put(field, budget.into());
    }
    let templates =
        [("chat_template_kwargs", &wire.chat_template_kwargs), ("chat_template_args", &wire.chat_template_args)];
    for (member, template) in templates {
        if let Some(template) = template {
            let filled =
                template.iter().filter_map(|(name, value)| Some((name.clone(), fill(value, effort, off_word)?)));
            let filled: Map<String, Value> = filled.collect();
            if !filled.is_empty() {
                put(member, filled.into());
            }
        }
    }
}

/// Fills in the variable in a template member; returns none if it is omitted.
fn fill(value: &Value, effort: Option<&EffortField>, off_word: Option<&str>) -> Option<Value> {
    let Some(variable) = value.get("$var").and_then(Value::as_str) else { return Some(value.clone()) };
    if effort.is_none() && value["omitWhenOff"] == true {
        return None;
    }
    match variable {
        "thinking.enabled" => Some(effort.is_some().into()),
        "thinking.effort" => effort.map(|effort| effort.word.as_str()).or(off_word).map(Value::from),
        "thinking.budget" => effort.and_then(|effort| effort.budget).map(Value::from),
        _ => None,
    }
}
