//! What servers require of the tools in a request.

use serde_json::Value;

use super::{Broken, check, is_word, list, text};

/// A server, by how it validates tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolServer {
    /// Anthropic: names of 128 characters; the root is a plain object.
    Anthropic,
    /// OpenAI and servers like it: names of 64 characters, descriptions of 1 024.
    OpenAi,
    /// Google: names start with a letter or `_`; only some keywords.
    Google,
    /// xAI: as OpenAI, without limits of lengths.
    Xai,
    /// Moonshot: as OpenAI, without any limits.
    Kimi,
}

/// The keywords that Google documents for `parametersJsonSchema`.
const GOOGLE_KEYWORDS: [&str; 21] = [
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
];

/// Keywords that xAI rejects.
const XAI_REJECTS: [&str; 6] = ["minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"];

/// Keywords that Moonshot rejects.
const KIMI_REJECTS: [&str; 12] = [
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "multipleOf",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Keywords that combine or refer to schemas, which no server accepts at the root.
const NOT_AT_ROOT: [&str; 6] = ["oneOf", "anyOf", "allOf", "enum", "not", "$ref"];

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Checks one tool: its name, its description, and the schema of its arguments.
///
/// # Errors
/// Returns the violated rule and its cause.
pub fn tool(server: ToolServer, name: &str, description: &str, schema: &Value) -> Result<(), Broken> {
    let at = Value::from(name);
    let longest = if server == ToolServer::Anthropic { 128 } else { 64 };
    check(is_word(name, longest), "a tool's name", &at)?;
    let starts_well = !name.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    check(server != ToolServer::Google || starts_well, "the start of a tool's name", &at)?;
    check(!description.trim().is_empty(), "a tool without a description", &at)?;
    let is_short = server == ToolServer::Anthropic || description.chars().count() <= 1_024;
    check(is_short, "a long description", &at)?;
    check(schema["type"] == "object" && schema["properties"].is_object(), "the root is not an object", schema)?;
    check(NOT_AT_ROOT.iter().all(|keyword| schema.get(keyword).is_none()), "a choice at the root", schema)?;
    walk(server, schema).map_err(|broken| format!("{name}: {broken}"))
}

fn walk(server: ToolServer, schema: &Value) -> Result<(), Broken> {
    let members = schema.as_object().ok_or_else(|| format!("no schema: {schema}"))?;
    for keyword in members.keys().map(String::as_str) {
        let is_known = match server {
            ToolServer::Google => GOOGLE_KEYWORDS.contains(&keyword),
            ToolServer::Xai => !XAI_REJECTS.contains(&keyword),
            ToolServer::Kimi => !KIMI_REJECTS.contains(&keyword),
            ToolServer::Anthropic | ToolServer::OpenAi => true,
        };
        check(is_known, &format!("the keyword {keyword}"), schema)?;
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(text).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    check(kinds.iter().all(|kind| TYPES.contains(kind)), "an unknown type", schema)?;
    let has_meaning = !kinds.is_empty() || schema.get("anyOf").is_some() || schema.get("enum").is_some();
    check(has_meaning, "a schema without a type", schema)?;
    check(!kinds.contains(&"array") || schema["items"].is_object(), "an array without items", schema)?;
    let are_plain = list(&schema["enum"]).iter().all(|value| value.is_string() || value.is_number());
    check(server != ToolServer::Google || are_plain, "an enum of other values than strings and numbers", schema)?;
    let properties = schema["properties"].as_object();
    for name in list(&schema["required"]) {
        check(properties.is_some_and(|known| known.contains_key(text(name))), "an unknown required property", schema)?;
    }
    let inner = properties.into_iter().flat_map(|known| known.values()).chain(list(&schema["anyOf"]));
    inner.chain(schema.get("items")).try_for_each(|inner| walk(server, inner))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_reject_what_they_do_not_know() {
        let schema = |property: Value| json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
        let is_accepted = |server, property| tool(server, "t", "Does it", &schema(property)).is_ok();
        let limited = json!({"type": "string", "minLength": 1});
        assert!(
            is_accepted(ToolServer::Anthropic, limited.clone()) && is_accepted(ToolServer::OpenAi, limited.clone())
        );
        for server in [ToolServer::Google, ToolServer::Xai, ToolServer::Kimi] {
            assert!(!is_accepted(server, limited.clone()), "{server:?}");
            assert!(is_accepted(server, json!({"type": "string", "enum": ["b"]})), "{server:?}");
        }
        assert!(!is_accepted(ToolServer::Google, json!({"enum": [true]})));
        assert!(is_accepted(ToolServer::OpenAi, json!({"enum": [true]})));
        for broken in [json!({}), json!({"type": "text"}), json!({"type": "array"}), json!("string")] {
            assert!(!is_accepted(ToolServer::OpenAi, broken.clone()), "{broken}");
        }
        let good = schema(json!({"type": "string"}));
        assert!(tool(ToolServer::OpenAi, &"n".repeat(65), "d", &good).is_err());
        assert!(tool(ToolServer::Anthropic, &"n".repeat(65), "d", &good).is_ok());
        assert!(tool(ToolServer::OpenAi, "n", &"d".repeat(1_025), &good).is_err());
        assert!(
            tool(ToolServer::OpenAi, "n", " ", &good).is_err() && tool(ToolServer::OpenAi, "n m", "d", &good).is_err()
        );
        assert!(tool(ToolServer::Google, "1n", "d", &good).is_err());
        let unknown = json!({"type": "object", "properties": {}, "required": ["b"]});
        let choice = json!({"type": "object", "properties": {}, "anyOf": []});
        assert!([unknown, choice].iter().all(|schema| tool(ToolServer::OpenAi, "n", "d", schema).is_err()));
    }
}
