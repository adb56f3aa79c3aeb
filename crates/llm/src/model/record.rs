//! Model records: the JSON form of catalogs, models.json and events.

use std::sync::Arc;

use pinch_http::url_parts;
use serde_json::{Map, Value, json};

use super::cost::count;
use super::thinking::{LevelRule, ThinkingMap};

use super::{Model, PromptCache, Rates, compat, detect};
use crate::thinking::ThinkingLevel;

/// Default limit of tokens in request and answer together.
pub const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;
/// Default limit of tokens in the answer.
pub const DEFAULT_MAX_TOKENS: u64 = 16_384;

/// Members with their own fields; all others are preserved unchanged.
const KNOWN: [&str; 15] = [
    "id",
    "name",
    "api",
    "provider",
    "baseUrl",
    "reasoning",
    "thinkingLevelMap",
    "input",
    "cost",
    "contextWindow",
    "maxTokens",
    "headers",
    "promptCache",
    "samplingParams",
    "compat",
];

/// A record that is not a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The record is not a JSON object.
    #[error("a model record must be an object")]
    NotAnObject,
    /// A required member is missing or empty.
    #[error("a model record needs a non-empty \"{member}\"")]
    Missing {
        /// The member.
        member: &'static str,
    },
}

impl Model {
    /// Parses a model record. Members with a wrong type count as missing, and unknown ones are preserved.
    ///
    /// # Errors
    /// Returns an error if the value is not an object, or id, api or provider is missing.
    pub fn from_record(record: &Value) -> Result<Self, RecordError> {
        let map = record.as_object().ok_or(RecordError::NotAnObject)?;
        let text = |member: &'static str| map.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
        let need = |member: &'static str| text(member).ok_or(RecordError::Missing { member });
        let (id, api, provider) = (need("id")?, need("api")?, need("provider")?);
        let base_url = text("baseUrl").unwrap_or("");
        let compat = map.get("compat").and_then(Value::as_object);

        let reasoning = map.get("reasoning").and_then(Value::as_bool).unwrap_or(false);
        let mut dialect = detect::detect(detect::ModelFacts { api, provider, base_url, id, reasoning });
        if let Some(compat) = compat {
            compat::apply(&mut dialect, compat);
        }
        Ok(Self {
            id: id.into(),
            name: text("name").unwrap_or(id).to_owned(),
            api: api.into(),
            provider: provider.into(),
            base_url: base_url.to_owned(),
            reasoning,
            thinking: thinking_map(map.get("thinkingLevelMap"), compat),
            images: map.get("input").and_then(Value::as_array).is_some_and(|kinds| kinds.iter().any(|k| k == "image")),
            rates: Rates::from_record(&record["cost"]),
            context_window: count(map.get("contextWindow")).unwrap_or(DEFAULT_CONTEXT_WINDOW),
            max_tokens: count(map.get("maxTokens")).unwrap_or(DEFAULT_MAX_TOKENS),
            headers: headers(map.get("headers")),
            prompt_cache: PromptCache {
                short: count(record["promptCache"].get("short")),
                long: count(record["promptCache"].get("long")),
            },
            sampling_params: map.get("samplingParams").and_then(Value::as_object).cloned().map(Arc::new),
            dialect,
            compat: compat.cloned().map(Arc::new),
            extra: {
                let rest = map.iter().filter(|(name, _)| !KNOWN.contains(&name.as_str()));
                Arc::new(rest.map(|(name, value)| (name.clone(), value.clone())).collect())
            },
        })
    }

    /// Returns the record of a model, for catalogs and events.
    pub fn to_record(&self) -> Value {
        let input = if self.images { json!(["text", "image"]) } else { json!(["text"]) };
        let mut record = Map::new();
        let mut put = |name: &str, value: Value| drop(record.insert(name.to_owned(), value));
        put("id", self.id.as_str().into());
        put("name", self.name.as_str().into());
        put("api", self.api.as_str().into());
        put("provider", self.provider.as_str().into());
        put("baseUrl", self.base_url.as_str().into());
        put("reasoning", self.reasoning.into());
        if !self.thinking.is_empty() {
            put("thinkingLevelMap", thinking_record(&self.thinking));
        }
        put("input", input);
        put("cost", self.rates.to_record());
        put("contextWindow", self.context_window.into());
        put("maxTokens", self.max_tokens.into());
        if !self.headers.is_empty() {
            let headers = self.headers.iter().map(|(name, value)| (name.clone(), json!(value)));
            put("headers", Value::Object(headers.collect()));
        }
        let cache = [("short", self.prompt_cache.short), ("long", self.prompt_cache.long)];
        let cache: Map<_, _> = cache.iter().filter_map(|(name, s)| Some(((*name).to_owned(), (*s)?.into()))).collect();
        if !cache.is_empty() {
            put("promptCache", Value::Object(cache));
        }
        if let Some(params) = &self.sampling_params {
            put("samplingParams", Value::Object((**params).clone()));
        }
        if let Some(compat) = &self.compat {
            put("compat", Value::Object((**compat).clone()));
        }
        record.extend((*self.extra).clone());
        Value::Object(record)
    }

    /// Returns the record for display: its URL has no user, password and query.
    pub fn to_shown_record(&self) -> Value {
        let mut record = self.to_record();
        record["baseUrl"] = url_parts::without_secrets(&self.base_url).into();
        record
    }
}

fn headers(value: Option<&Value>) -> Vec<(String, Option<String>)> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    members
        .filter(|(_, value)| value.is_string() || value.is_null())
        .map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned)))
        .collect()
}

fn thinking_map(value: Option<&Value>, compat: Option<&Map<String, Value>>) -> ThinkingMap {
    let mut map = ThinkingMap::default();
    let rule = |value: &Value| match value {
        Value::Null => Some(LevelRule::Unsupported),
        Value::String(word) => Some(LevelRule::Word(word.clone())),
        _ => None,
    };
    // Version 0.58 had the words under `compat`; the record's own map takes precedence.
    let old = compat.and_then(|compat| compat.get("reasoningEffortMap"));
    for source in [old, value].into_iter().flatten().filter_map(Value::as_object) {
        for (name, value) in source {
            if let (Some(level), Some(rule)) = (ThinkingLevel::parse(name), rule(value)) {
                map.set(level, rule);
            }
        }
    }
    map
}

fn thinking_record(map: &ThinkingMap) -> Value {
    let entry = |level: ThinkingLevel| match map.rule(level) {
        LevelRule::Default => None,
        LevelRule::Unsupported => Some((level.as_str().to_owned(), Value::Null)),
        LevelRule::Word(word) => Some((level.as_str().to_owned(), word.as_str().into())),
    };
    Value::Object(ThinkingLevel::ALL.into_iter().filter_map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let record = json!({
            "id": "m", "name": "M", "api": "openai-completions", "provider": "p", "baseUrl": "http://h/v1", "reasoning": true,
            "thinkingLevelMap": {"off": null, "xhigh": "max"}, "input": ["text", "image"],
            "cost": {"input": 1.0, "output": 2.0, "cacheRead": 0.5, "cacheWrite": 0.0,
                     "tiers": [{"inputTokensAbove": 1000, "input": 2.0, "output": 4.0, "cacheRead": 1.0, "cacheWrite": 0.0}]},
            "contextWindow": 1000, "maxTokens": 10, "headers": {"x": "y"}, "promptCache": {"short": 300},
            "samplingParams": {"top_p": 1}, "compat": {"supportsStore": false}, "type": "chat"
        });
        let model = Model::from_record(&record).unwrap();
        assert_eq!(model.to_record(), record);
        assert!(!model.dialect.wire.store);
    }

    #[test]
    fn missing_members_get_defaults() {
        let model = Model::from_record(&json!({"id": "m", "api": "a", "provider": "p", "input": null})).unwrap();
        assert_eq!((model.context_window, model.max_tokens, model.images), (128_000, 16_384, false));
        assert_eq!(model.name, "m");
        let error = Model::from_record(&json!({"id": "m", "api": "", "provider": "p"}));
        assert_eq!(error, Err(RecordError::Missing { member: "api" }));
    }
}
