//! Merging definitions into model records.

use std::sync::Arc;

use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use serde_json::{Map, Value};

use super::definition::Definition;

/// Members of an override that replace the record's own.
const REPLACED: [&str; 9] = [
    "name",
    "reasoning",
    "input",
    "contextWindow",
    "maxTokens",
    "samplingParams",
    "samplingParamsByThinkingLevel",
    "inputLimits",
    "promptCache",
];

/// Member of `compat.transcript`: whether the thinking of earlier turns is not replayed.
const DROP_EARLIER_THINKING: &str = "dropEarlierThinking";

/// Applies a definition of the provider and the model to a model from another source.
pub(super) fn change(definition: &Definition, model: &Arc<Model>) -> Arc<Model> {
    let own = definition.overrides.get(model.id.as_str()).and_then(Value::as_object);
    if own.is_none() && definition.base_url.is_none() && definition.compat.is_none() {
        return Arc::clone(model);
    }
    let mut record = model.to_record();
    if let Some(base_url) = &definition.base_url {
        record["baseUrl"] = base_url.as_str().into();
    }
    merge_compat(&mut record, definition.compat.as_ref());
    if let Some(own) = own {
        apply_override(&mut record, own);
    }
    changed(model, &record)
}

/// Applies only the overrides of a model whose provider is defined elsewhere.
pub(super) fn override_one(definition: &Definition, model: &Arc<Model>) -> Arc<Model> {
    let Some(own) = definition.overrides.get(model.id.as_str()).and_then(Value::as_object) else {
        return Arc::clone(model);
    };
    let mut record = model.to_record();
    apply_override(&mut record, own);
    changed(model, &record)
}

/// Returns the model of a changed record.
fn changed(model: &Arc<Model>, record: &Value) -> Arc<Model> {
    let Ok(mut changed) = Model::from_record(record) else { return Arc::clone(model) };
    if !model.dialect.history.transcript.forget_thinking {
        keep_thinking(&mut changed);
    }
    Arc::new(changed)
}

/// Replays the thinking of earlier turns to the model, unless its record says otherwise.
fn keep_thinking(model: &mut Model) {
    let is_set = |compat: &Map<String, Value>| compat.get("transcript")?.get(DROP_EARLIER_THINKING).cloned();
    if model.compat.as_deref().and_then(is_set).is_none() {
        model.dialect.history.transcript.forget_thinking = false;
    }
}

/// Builds a model from a definition: its own members, then the provider's, then those of a related model.
pub(super) fn build(
    provider: &ProviderId,
    definition: &Definition,
    own: &Map<String, Value>,
    beside: Option<&Model>,
) -> Option<Model> {
    let text = |name: &str| own.get(name).and_then(Value::as_str);
    let api = text("api").or(definition.api.as_deref()).or(beside.map(|model| model.api.as_str()))?;
    let base_url = text("baseUrl").or(definition.base_url.as_deref()).or(beside.map(|model| model.base_url.as_str()));
    // Headers may refer to variables and commands; they are resolved per request, not stored in the model.
    let members = own.iter().filter(|(name, _)| !matches!(name.as_str(), "headers" | "compat"));
    let mut record: Map<String, Value> = members.map(|(name, value)| (name.clone(), value.clone())).collect();
    record.insert("provider".into(), provider.as_str().into());
    record.insert("api".into(), api.into());
    record.insert("baseUrl".into(), base_url.unwrap_or_default().into());
    let mut record = Value::Object(record);
    merge_compat(&mut record, definition.compat.as_ref());
    merge_compat(&mut record, own.get("compat").and_then(Value::as_object));
    let mut model = Model::from_record(&record).ok()?;
    // Its owner says that it thinks, and so knows what its server accepts.
    if model.reasoning {
        keep_thinking(&mut model);
    }
    Some(model)
}

/// Merges `compat` members into a record's own; routing preferences are merged one level deeper.
fn merge_compat(record: &mut Value, over: Option<&Map<String, Value>>) {
    let (Some(over), Some(record)) = (over, record.as_object_mut()) else { return };
    let compat = record.entry("compat").or_insert_with(|| Value::Object(Map::new()));
    let Some(compat) = compat.as_object_mut() else { return };
    for (name, value) in over {
        match (compat.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new))
                if matches!(name.as_str(), "openRouterRouting" | "vercelGatewayRouting") =>
            {
                old.extend(new.clone());
            }
            _ => drop(compat.insert(name.clone(), value.clone())),
        }
    }
}

/// Applies one `modelOverrides` entry to a record.
fn apply_override(record: &mut Value, over: &Map<String, Value>) {
    for name in REPLACED {
        if let Some(value) = over.get(name) {
            record[name] = value.clone();
        }
    }
    for name in ["thinkingLevelMap", "cost"] {
        if let Some(Value::Object(new)) = over.get(name) {
            match record.get_mut(name) {
                Some(Value::Object(old)) => old.extend(new.clone()),
                _ => record[name] = Value::Object(new.clone()),
            }
        }
    }
    merge_compat(record, over.get("compat").and_then(Value::as_object));
}
