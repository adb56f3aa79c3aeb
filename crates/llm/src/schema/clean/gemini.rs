//! Schemas for Gemini: no references, no limits, and unions only if they are meaningful.

use serde_json::{Map, Value};

use super::{GEMINI_REFUSES, at_schemas};

/// Members that describe an adjacent reference or union.
const DESCRIBING: [&str; 3] = ["title", "description", "default"];

/// Maximum number of references replaced in one schema, because definitions that use each other repeatedly multiply.
const MAX_REFERENCES: usize = 10_000;

/// The references being replaced, and how many more may be.
struct OpenReferences {
    references: Vec<String>,
    n_left: usize,
}

/// Returns the schema without anything that Gemini rejects; references are replaced by their targets.
pub(super) fn clean(schema: &Value) -> Value {
    cleaned(schema, &Map::new(), &mut OpenReferences { references: Vec::new(), n_left: MAX_REFERENCES })
}

/// Cleans a schema; `scope` has the definitions by reference.
fn cleaned(schema: &Value, scope: &Map<String, Value>, open: &mut OpenReferences) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut wider;
    let mut scope = scope;
    if members.contains_key("$defs") || members.contains_key("definitions") {
        wider = scope.clone();
        for place in ["$defs", "definitions"] {
            for (name, definition) in members.get(place).and_then(Value::as_object).into_iter().flatten() {
                wider.insert(format!("#/{place}/{name}"), definition.clone());
            }
        }
        scope = &wider;
    }
    if let Some(target) = members.get("$ref").and_then(Value::as_str) {
        return followed(target, members, scope, open);
    }
    let mut out = Map::new();
    let is_union = members.contains_key("anyOf") || members.contains_key("oneOf");
    for (name, value) in members {
        match (name.as_str(), value) {
            ("const", value) => drop(out.insert("enum".into(), Value::Array(vec![value.clone()]))),
            ("type", _) if is_union => {}
            ("type", Value::Array(types)) => {
                let mut types: Vec<Value> = types.iter().filter(|kind| *kind != "null").cloned().collect();
                let kind = if types.len() == 1 { types.remove(0) } else { Value::Array(types) };
                out.insert("type".into(), kind);
            }
            ("anyOf" | "oneOf", Value::Array(variants)) => {
                let rest: Vec<&Value> = variants.iter().filter(|variant| !is_null(variant)).collect();
                let had_null = rest.len() < variants.len();
                let mut rest: Vec<Value> = rest.into_iter().map(|variant| cleaned(variant, scope, open)).collect();
                if let Some(literals) = as_literals(&rest) {
                    return described(literals, members);
                }
                if had_null && rest.len() == 1 {
                    return match rest.remove(0) {
                        Value::Object(only) => described(only, members),
                        other => other,
                    };
                }
                out.insert(name.clone(), Value::Array(rest));
            }
            (refused, _) if GEMINI_REFUSES.contains(&refused) => {}
            (_, value) => {
                out.insert(name.clone(), at_schemas(name, value, &mut |inner| cleaned(inner, scope, open)));
            }
        }
    }
    Value::Object(out)
}

/// Returns the target of a reference, with the description at the referring location. A cycle ends in a schema that accepts everything.
fn followed(
    target: &str,
    members: &Map<String, Value>,
    scope: &Map<String, Value>,
    open: &mut OpenReferences,
) -> Value {
    if open.n_left == 0 || open.references.iter().any(|known| known == target) {
        return Value::Object(Map::new());
    }
    let Some(definition) = scope.get(&target.replace("~1", "/").replace("~0", "~")) else {
        return described(Map::new(), members);
    };
    open.n_left -= 1;
    open.references.push(target.to_owned());
    let result = cleaned(definition, scope, open);
    open.references.pop();
    match result {
        Value::Object(result) => described(result, members),
        other => other,
    }
}

fn described(mut schema: Map<String, Value>, by: &Map<String, Value>) -> Value {
    for name in DESCRIBING {
        if let Some(value) = by.get(name) {
            schema.insert(name.into(), value.clone());
        }
    }
    Value::Object(schema)
}

/// Returns whether a variant accepts only null.
fn is_null(variant: &Value) -> bool {
    let is_kind =
        |kind: &Value| kind == "null" || kind.as_array().is_some_and(|kinds| kinds.len() == 1 && kinds[0] == "null");
    let is_only = |values: &Value| values.as_array().is_some_and(|values| values.len() == 1 && values[0].is_null());
    variant.get("const").is_some_and(Value::is_null)
        || variant.get("enum").is_some_and(is_only)
        || variant.get("type").is_some_and(is_kind)
}

/// Returns a list of values instead of variants with one value each, all of one type.
fn as_literals(variants: &[Value]) -> Option<Map<String, Value>> {
    let kind = variants.first()?.get("type")?.as_str()?;
    let mut values = Vec::with_capacity(variants.len());
    for variant in variants {
        let listed = variant.get("enum")?.as_array()?;
        if listed.len() != 1 || variant.get("type")?.as_str()? != kind {
            return None;
        }
        values.extend(listed.iter().cloned());
    }
    let mut literals = Map::new();
    literals.insert("type".into(), kind.into());
    literals.insert("enum".into(), Value::Array(values));
    Some(literals)
}
