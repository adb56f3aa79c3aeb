//! Tool schemas for providers: an object at the root, and without unsupported keywords.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

mod gemini;
mod hints;
mod root;

/// Keywords that Gemini rejects.
const GEMINI_REFUSES: &[&str] = &[
    "patternProperties",
    "additionalProperties",
    "$schema",
    "$id",
    "$ref",
    "$defs",
    "definitions",
    "examples",
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
    "not",
];

/// Keywords that Kimi rejects: limits, but not references.
const KIMI_REFUSES: &[&str] = &[
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

/// Keywords that xAI rejects.
const XAI_REFUSES: &[&str] = &["minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"];

/// Providers that accept the same schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SchemaDialect {
    /// Accepts everything.
    #[default]
    Plain,
    /// Google's models, from any provider that offers them under Google's name.
    Gemini,
    /// xAI's models.
    Xai,
    /// Moonshot's models.
    Kimi,
}

/// Number of families.
const N_FAMILIES: usize = SchemaDialect::Kimi as usize + 1;

impl SchemaDialect {
    /// Parses the name used in models.json.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "plain" => Some(Self::Plain),
            "gemini" => Some(Self::Gemini),
            "xai" => Some(Self::Xai),
            "kimi" => Some(Self::Kimi),
            _ => None,
        }
    }

    /// Returns the family of a model, by provider id and model id.
    pub fn of(provider: &str, model: &str) -> Self {
        let (provider, model) = (provider.to_lowercase(), model.to_lowercase());
        let is_xai = ["xai", "x-ai"].iter().any(|name| provider.contains(name))
            || (provider == "openrouter" && model.starts_with("x-ai/"))
            || (provider == "venice" && model.starts_with("grok-"));
        let is_gemini = (provider.contains("google") || provider.contains("gemini")) && !provider.contains("anthropic");
        let is_kimi =
            provider.starts_with("moonshot") || model.starts_with("moonshotai/") || model.starts_with("kimi-");
        match (is_gemini, is_xai, is_kimi) {
            (true, ..) => Self::Gemini,
            (_, true, _) => Self::Xai,
            (.., true) => Self::Kimi,
            _ => Self::Plain,
        }
    }
}

/// The forms of one schema that were requested so far.
#[derive(Default)]
pub(super) struct Cleaned {
    /// By family, without and with hints.
    families: [[OnceLock<Box<Value>>; 2]; N_FAMILIES],
    without_const: OnceLock<Box<Value>>,
}

impl Cleaned {
    pub(super) fn get(&self, raw: &Value, family: SchemaDialect, hints: bool) -> &Value {
        self.families[family as usize][usize::from(hints)].get_or_init(|| Box::new(clean(raw, family, hints)))
    }

    pub(super) fn without_const(&self, raw: &Value) -> &Value {
        self.without_const.get_or_init(|| Box::new(without_const(raw)))
    }
}

/// Returns the schema in the family's form. An empty schema becomes that of an object.
fn clean(parameters: &Value, family: SchemaDialect, hints: bool) -> Value {
    let mut shaped = root::shaped(parameters);
    let refused = match family {
        SchemaDialect::Plain => return shaped,
        SchemaDialect::Gemini => GEMINI_REFUSES,
        SchemaDialect::Xai => XAI_REFUSES,
        SchemaDialect::Kimi => KIMI_REFUSES,
    };
    if hints {
        shaped = hints::described(&shaped, refused);
    }
    match family {
        SchemaDialect::Gemini => gemini::clean(&shaped),
        _ => without(&shaped, refused),
    }
}

/// Replaces each `const` with an `enum` of one value, in all subschemas: Google's models only support the latter.
pub fn without_const(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let fixed = members.get("const").map(|value| ("enum".to_owned(), Value::Array(vec![value.clone()])));
    let others = members.iter().filter(|(name, _)| *name != "const" && (fixed.is_none() || *name != "enum"));
    let others = others.map(|(name, value)| (name.clone(), at_schemas(name, value, &mut |inner| without_const(inner))));
    Value::Object(others.chain(fixed.clone()).collect())
}

/// Removes keywords from all subschemas; members with the same name that are not keywords stay.
fn without(schema: &Value, keywords: &[&str]) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let kept = members.iter().filter(|(name, _)| !keywords.contains(&name.as_str()));
    let cleaned =
        kept.map(|(name, value)| (name.clone(), at_schemas(name, value, &mut |inner| without(inner, keywords))));
    Value::Object(cleaned.collect())
}

/// Applies `change` to the schemas in a keyword's value; other values stay.
fn at_schemas(keyword: &str, value: &Value, change: &mut dyn FnMut(&Value) -> Value) -> Value {
    match (keyword, value) {
        ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(named)) => {
            Value::Object(named.iter().map(|(name, inner)| (name.clone(), change(inner))).collect::<Map<_, _>>())
        }
        ("items" | "prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(list)) => {
            list.iter().map(change).collect()
        }
        ("items" | "additionalProperties" | "not", Value::Object(_)) => change(value),
        _ => value.clone(),
    }
}

/// Returns the schema of a tool without parameters.
fn empty() -> Value {
    json!({"type": "object", "properties": {}})
}

#[cfg(test)]
mod tests;
