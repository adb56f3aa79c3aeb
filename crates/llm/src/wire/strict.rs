//! Strict schemas: tool schemas in the form that providers enforce.

use serde_json::{Map, Value, json};

use crate::message::ToolDecl;
use crate::wire::Encoding;

/// How strictly the arguments of a tool must follow its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Not enforced.
    Plain,
    /// Enforced where possible.
    Prefer,
    /// Enforced, or the request fails.
    Require,
}

/// A tool requires strict sampling, but its schema has no strict form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Tool \"{tool}\" requires strict sampling, but its schema cannot be expressed: {reason}")]
#[non_exhaustive]
pub struct Inexpressible {
    /// The tool's name.
    pub tool: String,
    /// Why there is no strict form.
    pub reason: &'static str,
}

/// Returns the strictness that a tool asks for.
pub fn strictness(tool: &ToolDecl) -> Strictness {
    let Some(sampling) = tool.constrained_sampling.as_ref().filter(|s| s["type"] == "json_schema") else {
        return Strictness::Plain;
    };
    match sampling["strict"].as_str() {
        Some("require") => Strictness::Require,
        Some("prefer") => Strictness::Prefer,
        _ => Strictness::Plain,
    }
}

/// Restrictions of a provider's strict mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrictDialect {
    /// OpenAI's.
    OpenAi,
    /// Anthropic's: bounds of numbers, texts and lists are not supported either.
    Anthropic,
}

/// Returns the strict form of a tool's schema, if strict sampling is requested.
///
/// # Errors
/// Returns an error if the tool requires it and its schema has no strict form.
pub fn schema_for(tool: &ToolDecl, limits: StrictDialect, supported: bool) -> Result<Option<Value>, Inexpressible> {
    let strictness = strictness(tool);
    if strictness == Strictness::Plain || !supported {
        return Ok(None);
    }
    let made = match tool.parameters.raw().as_object() {
        Some(root) if root.get("type").is_some_and(|t| t == "object") => strict_object(root, limits),
        _ => Err("the root is not an object"),
    };
    match made {
        Ok(schema) => Ok(Some(schema)),
        Err(reason) if strictness == Strictness::Require => Err(Inexpressible { tool: tool.name.clone(), reason }),
        Err(_) => Ok(None),
    }
}

/// Returns the strict form of a response's schema, or `None` if it has none.
pub(crate) fn response_schema(schema: &Value, limits: StrictDialect) -> Option<Value> {
    let root = schema.as_object().filter(|root| root.get("type").is_some_and(|kind| kind == "object"))?;
    strict_object(root, limits).ok()
}

/// Returns a schema without bounds of numbers, texts and lists.
pub(crate) fn without_bounds(schema: &Value) -> Value {
    let of_schemas = |name: &str| matches!(name, "properties" | "$defs" | "definitions" | "patternProperties");
    match schema {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !BOUNDS.contains(&name.as_str()));
            let kept = kept.map(|(name, value)| {
                let value = match value {
                    // Property names are arbitrary: one may be named like a bound.
                    Value::Object(named) if of_schemas(name) => {
                        named.iter().map(|(name, schema)| (name.clone(), without_bounds(schema))).collect()
                    }
                    Value::Array(_) if matches!(name.as_str(), "enum" | "required" | "examples") => value.clone(),
                    _ if matches!(name.as_str(), "const" | "default") => value.clone(),
                    value => without_bounds(value),
                };
                (name.clone(), value)
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(without_bounds).collect(),
        other => other.clone(),
    }
}

/// Like [`schema_for`], for an encoding of the request: after a rejection of strict schemas, only tools that require theirs keep it.
///
/// # Errors
/// Returns an error if the tool requires it and its schema has no strict form.
pub(crate) fn schema_in(
    encoding: Encoding,
    tool: &ToolDecl,
    limits: StrictDialect,
    supported: bool,
) -> Result<Option<Value>, Inexpressible> {
    let is_wanted = encoding != Encoding::PlainTools || strictness(tool) == Strictness::Require;
    schema_for(tool, limits, supported && is_wanted)
}

/// Returns whether a request with these tools would differ without the schemas that are merely preferred.
pub(crate) fn can_relax<'a>(
    tools: impl IntoIterator<Item = &'a ToolDecl>,
    limits: StrictDialect,
    supported: bool,
) -> bool {
    let is_held = |tool: &ToolDecl| schema_for(tool, limits, supported).is_ok_and(|schema| schema.is_some());
    tools.into_iter().any(|tool| strictness(tool) == Strictness::Prefer && is_held(tool))
}

const NEVER: [&str; 18] = [
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "dependentRequired",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "additionalItems",
    "not",
    "if",
    "then",
    "else",
];

const BOUNDS: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

fn strict(schema: &Value, limits: StrictDialect) -> Result<Value, &'static str> {
    let map = schema.as_object().ok_or("a boolean schema")?;
    if map.contains_key("properties") || map.get("type").is_some_and(|t| t == "object") {
        return strict_object(map, limits);
    }
    check_keywords(map, limits)?;
    let mut made = map.clone();
    if let Some(items) = map.get("items") {
        if items.is_array() {
            return Err("tuple items");
        }
        made.insert("items".into(), strict(items, limits)?);
    }
    if let Some(arms) = map.get("anyOf") {
        let arms = arms.as_array().ok_or("anyOf without a list")?;
        if arms.iter().any(is_container) {
            return Err("a union with object or array arms");
        }
        let arms = arms.iter().map(|arm| strict(arm, limits)).collect::<Result<Vec<_>, _>>()?;
        made.insert("anyOf".into(), arms.into());
    }
    if map
        .get("type")
        .and_then(Value::as_array)
        .is_some_and(|types| types.iter().any(|t| t == "object" || t == "array"))
    {
        return Err("a union with object or array arms");
    }
    Ok(Value::Object(made))
}

fn strict_object(map: &Map<String, Value>, limits: StrictDialect) -> Result<Value, &'static str> {
    check_keywords(map, limits)?;
    if map.get("type").is_none_or(|t| t != "object") {
        return Err("properties without type object");
    }
    if map.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) {
        return Err("additional properties");
    }
    if map.contains_key("anyOf") {
        return Err("a union with object or array arms");
    }
    let empty = Map::new();
    let properties = match map.get("properties") {
        None => &empty,
        Some(properties) => properties.as_object().ok_or("properties that are not an object")?,
    };
    let required: Vec<&str> =
        map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if required.iter().any(|name| !properties.contains_key(*name)) {
        return Err("required names that do not exist");
    }
    let mut made_properties = Map::new();
    for (name, schema) in properties {
        let made = strict(schema, limits)?;
        let optional = !required.contains(&name.as_str()) && !allows_null(schema);
        let made = if optional { json!({"anyOf": [made, {"type": "null"}]}) } else { made };
        made_properties.insert(name.clone(), made);
    }
    let mut made = map.clone();
    made.insert("required".into(), properties.keys().cloned().collect());
    made.insert("properties".into(), Value::Object(made_properties));
    made.insert("additionalProperties".into(), false.into());
    Ok(Value::Object(made))
}

fn check_keywords(map: &Map<String, Value>, limits: StrictDialect) -> Result<(), &'static str> {
    if map.keys().any(|key| NEVER.contains(&key.as_str())) {
        return Err("a keyword that strict schemas do not have");
    }
    if limits == StrictDialect::Anthropic && map.keys().any(|key| BOUNDS.contains(&key.as_str())) {
        return Err("bounds");
    }
    Ok(())
}

fn is_container(schema: &Value) -> bool {
    matches!(schema["type"].as_str(), Some("object" | "array")) || schema.get("properties").is_some()
}

fn allows_null(schema: &Value) -> bool {
    match &schema["type"] {
        Value::String(name) if name == "null" => return true,
        Value::Array(types) if types.iter().any(|t| t == "null") => return true,
        _ => {}
    }
    let in_enum = schema["enum"].as_array().is_some_and(|values| values.contains(&Value::Null));
    in_enum || schema["anyOf"].as_array().is_some_and(|arms| arms.iter().any(allows_null))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(parameters: Value, strict: &str) -> ToolDecl {
        ToolDecl {
            name: "t".into(),
            description: String::new(),
            parameters: parameters.into(),
            constrained_sampling: Some(json!({"type": "json_schema", "strict": strict})),
        }
    }

    #[test]
    fn optional_members_become_nullable_and_required() {
        let read = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "limit": {"type": "number"}, "mode": {"type": ["string", "null"]}}});
        assert_eq!(
            schema_for(&tool(read, "prefer"), StrictDialect::Anthropic, true).unwrap().unwrap(),
            json!({"type": "object", "required": ["path", "limit", "mode"], "additionalProperties": false, "properties": {
                "path": {"type": "string"}, "limit": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "mode": {"type": ["string", "null"]}}})
        );
    }

    #[test]
    fn only_preferred_schemas_can_be_relaxed() {
        let plain = json!({"type": "object", "properties": {}});
        let can = |tools: &[ToolDecl], supported: bool| can_relax(tools, StrictDialect::Anthropic, supported);
        let [preferred, required] = ["prefer", "require"].map(|strictness| tool(plain.clone(), strictness));
        let inexpressible = tool(json!({"type": "object", "additionalProperties": true}), "prefer");
        assert!(can(&[required.clone(), preferred.clone()], true));
        assert!(!can(&[required, inexpressible], true));
        assert!(!can(&[preferred], false));
    }

    #[test]
    fn inexpressible_schemas_are_sent_plain_or_rejected() {
        let bounded = json!({"type": "object", "properties": {"n": {"type": "number", "minimum": 1}}});
        assert_eq!(schema_for(&tool(bounded.clone(), "prefer"), StrictDialect::Anthropic, true), Ok(None));
        assert!(schema_for(&tool(bounded.clone(), "prefer"), StrictDialect::OpenAi, true).unwrap().is_some());
        assert!(schema_for(&tool(bounded.clone(), "require"), StrictDialect::Anthropic, true).is_err());
        assert_eq!(schema_for(&tool(bounded, "require"), StrictDialect::Anthropic, false), Ok(None));
        let open = json!({"type": "object", "properties": {}, "additionalProperties": true});
        assert_eq!(schema_for(&tool(open, "prefer"), StrictDialect::OpenAi, true), Ok(None));
    }
}
