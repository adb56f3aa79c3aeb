//! Names of the properties in a JSON schema.

use serde_json::Value;

/// Maximum number of names.
const MAX_NAMES: usize = 300;
/// Maximum number of schemas to look at, so that references in circles end.
const MAX_SCHEMAS: usize = 2_000;

/// Members of a schema that contain one more schema, a list of them, or an object of them.
const NESTED: [&str; 9] =
    ["items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf", "if", "then", "else"];

/// Returns the names of a schema's properties, those of nested and [referenced](https://json-schema.org/understanding-json-schema/structuring)
/// schemas included. References to other documents are not followed.
pub(super) fn property_names(schema: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut open = vec![schema];
    let mut n_schemas = 0;
    while let Some(part) = open.pop() {
        n_schemas += 1;
        if n_schemas > MAX_SCHEMAS || names.len() >= MAX_NAMES {
            break;
        }
        let Some(members) = part.as_object() else { continue };
        for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if !names.contains(&name.as_str()) && names.len() < MAX_NAMES {
                names.push(name);
            }
            open.push(property);
        }
        for nested in NESTED.iter().filter_map(|name| members.get(*name)) {
            match nested {
                Value::Array(schemas) => open.extend(schemas),
                schema => open.push(schema),
            }
        }
        let reference = members.get("$ref").and_then(Value::as_str).filter(|reference| !seen.contains(reference));
        if let Some(reference) = reference {
            seen.push(reference);
            open.extend(reference.strip_prefix('#').and_then(|pointer| schema.pointer(pointer)));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sorted(schema: &Value) -> Vec<&str> {
        let mut names = property_names(schema);
        names.sort_unstable();
        names
    }

    #[test]
    fn names_of_nested_and_referenced_schemas_are_found() {
        let schema = json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "array", "items": {"type": "object", "properties": {"date": {}}}},
                "unit": {"$ref": "#/$defs/unit"},
            },
            "anyOf": [{"properties": {"country": {}}}],
            "$defs": {
                "unit": {"properties": {"scale": {"$ref": "#/$defs/unit"}, "remote": {"$ref": "https://example.com/x"}}},
                "unused": {"properties": {"nothing": {}}},
            },
        });
        assert_eq!(sorted(&schema), ["city", "country", "date", "days", "remote", "scale", "unit"]);
    }

    #[test]
    fn circles_and_large_schemas_end() {
        let circle = json!({"$ref": "#"});
        assert_eq!(property_names(&circle), [""; 0]);
        let many: serde_json::Map<String, Value> = (0..5000).map(|n| (format!("p{n}"), json!({}))).collect();
        assert_eq!(property_names(&json!({"properties": many})).len(), MAX_NAMES);
        assert_eq!(property_names(&json!([1, 2])), [""; 0]);
    }
}
