//! An object at the root, which some providers require.

use serde_json::{Map, Value, json};

/// Returns the schema with an object at its root: a union of objects becomes one object with the members of all.
pub(super) fn shaped(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return super::empty() };
    let has = |name: &str| members.contains_key(name);
    let union = ["anyOf", "oneOf"].into_iter().find_map(|name| members.get(name)?.as_array());
    if members.is_empty() {
        super::empty()
    } else if has("type") && has("properties") && !has("anyOf") {
        schema.clone()
    } else if let Some(variants) = union {
        flattened(members, variants)
    } else if !has("type") && (has("properties") || has("required")) {
        let mut shaped = members.clone();
        shaped.insert("type".into(), "object".into());
        Value::Object(shaped)
    } else {
        schema.clone()
    }
}

/// Returns one object instead of a union, with the members of all variants; required are those of the root or of every variant.
fn flattened(root: &Map<String, Value>, variants: &[Value]) -> Value {
    let mut properties: Map<String, Value> = Map::new();
    let objects: Vec<&Map<String, Value>> = variants
        .iter()
        .filter_map(Value::as_object)
        .filter(|v| v.get("properties").is_some_and(Value::is_object))
        .collect();
    for (name, rule) in objects.iter().filter_map(|v| v["properties"].as_object()).flatten() {
        let merged = match properties.get(name) {
            Some(known) => merged(known, rule),
            None => rule.clone(),
        };
        properties.insert(name.clone(), merged);
    }
    if properties.is_empty() {
        properties = root.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    }
    let requires = |object: &Map<String, Value>| -> Vec<Value> {
        object.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut required = requires(root);
    if required.is_empty() {
        required = objects.first().map(|first| requires(first)).unwrap_or_default();
        required.retain(|name| objects.iter().all(|object| requires(object).contains(name)));
    }
    let mut flat = Map::new();
    flat.insert("type".into(), "object".into());
    for name in ["title", "description"] {
        if let Some(text) = root.get(name).filter(|text| text.is_string()) {
            flat.insert(name.into(), text.clone());
        }
    }
    flat.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        flat.insert("required".into(), Value::Array(required));
    }
    flat.insert("additionalProperties".into(), root.get("additionalProperties").cloned().unwrap_or(json!(true)));
    // References in the variants point to definitions at the root.
    for name in ["$defs", "definitions"] {
        if let Some(definitions) = root.get(name) {
            flat.insert(name.into(), definitions.clone());
        }
    }
    Value::Object(flat)
}

/// Merges the rules for a member of two variants: all values of both if they list values, else the first rule.
fn merged(first: &Value, second: &Value) -> Value {
    let (mut values, more) = match (values_of(first), values_of(second)) {
        (None, None) => return first.clone(),
        (first, second) => (first.unwrap_or_default(), second.unwrap_or_default()),
    };
    values.extend(more);
    let mut unique: Vec<Value> = Vec::new();
    values.into_iter().for_each(|value| {
        if !unique.contains(&value) {
            unique.push(value);
        }
    });
    let mut rule = Map::new();
    for name in ["title", "description", "default"] {
        if let Some(value) = first.get(name).or_else(|| second.get(name)) {
            rule.insert(name.into(), value.clone());
        }
    }
    let kind = unique.first().map(type_of);
    if let Some(kind) = kind.filter(|kind| unique.iter().all(|value| type_of(value) == *kind)) {
        rule.insert("type".into(), kind.into());
    }
    rule.insert("enum".into(), Value::Array(unique));
    Value::Object(rule)
}

/// Returns the values listed by a rule, or `None` if it lists none.
fn values_of(rule: &Value) -> Option<Vec<Value>> {
    if let Some(values) = rule.get("enum").and_then(Value::as_array) {
        return Some(values.clone());
    }
    if let Some(value) = rule.get("const") {
        return Some(vec![value.clone()]);
    }
    let variants = ["anyOf", "oneOf"].into_iter().find_map(|name| rule.get(name)?.as_array())?;
    let values: Vec<Value> = variants.iter().filter_map(values_of).flatten().collect();
    (!values.is_empty()).then_some(values)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Array(_) => "array",
        Value::Null | Value::Object(_) => "object",
    }
}
