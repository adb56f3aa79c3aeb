//! Compiled schemas.

use std::sync::OnceLock;

use jsonschema::{Draft, Retrieve, Uri, Validator, ValidatorMap};
use serde_json::Value;

use super::Schema;

/// The validators of a schema, compiled on first use.
#[derive(Default)]
pub(super) struct Compiled {
    whole: OnceLock<Option<Validator>>,
    parts: OnceLock<Option<ValidatorMap>>,
}

impl Schema {
    /// Returns the compiled schema, or `None` if it cannot be compiled, in which case nothing is checked and the tool has to validate its
    /// arguments.
    pub(super) fn whole(&self) -> Option<&Validator> {
        let whole = &self.0.compiled.whole;
        whole.get_or_init(|| compile(&self.0.raw, |schema| options(schema).build(schema))).as_ref()
    }

    /// Returns whether a value fits the subschema at a JSON pointer; without a compiled schema every value does.
    pub(super) fn part_fits(&self, pointer: &str, value: &Value) -> bool {
        let parts = &self.0.compiled.parts;
        let parts = parts.get_or_init(|| compile(&self.0.raw, |schema| options(schema).build_map(schema)));
        let validator = parts.as_ref().and_then(|parts| parts.get(&format!("#{pointer}")));
        validator.is_none_or(|validator| validator.is_valid(value))
    }
}

/// Fetches nothing, because schemas are untrusted.
struct Offline;

impl Retrieve for Offline {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is outside of the schema, and references are not fetched").into())
    }
}

fn options(schema: &Value) -> jsonschema::ValidationOptions<'static> {
    let options = jsonschema::options().with_retriever(Offline).should_validate_formats(true);
    // Without an explicit version, a schema with a list of `items` schemas follows the older drafts.
    if schema.get("$schema").is_none() && has_tuple(schema) { options.with_draft(Draft::Draft201909) } else { options }
}

fn has_tuple(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.get("items").is_some_and(Value::is_array) || members.values().any(has_tuple),
        Value::Array(items) => items.iter().any(has_tuple),
        _ => false,
    }
}

/// Compiles; if that fails, tries again with unresolvable references replaced by "nothing fits here".
fn compile<T>(schema: &Value, build: impl Fn(&Value) -> Result<T, jsonschema::ValidationError<'static>>) -> Option<T> {
    let first = match build(schema) {
        Ok(compiled) => return Some(compiled),
        Err(error) => error,
    };
    let mut mended = schema.clone();
    cut_dangling(&mut mended, schema);
    match build(&mended) {
        Ok(compiled) => Some(compiled),
        Err(_) => {
            tracing::warn!(error = %first, "a tool's schema cannot be compiled; its arguments are not checked");
            None
        }
    }
}

fn cut_dangling(schema: &mut Value, root: &Value) {
    match schema {
        Value::Object(members) => {
            let dangles =
                members.get("$ref").and_then(Value::as_str).is_some_and(|target| resolve(root, target).is_none());
            if dangles {
                *schema = Value::Bool(false);
            } else {
                members.values_mut().for_each(|member| cut_dangling(member, root));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_dangling(item, root)),
        _ => {}
    }
}

/// Resolves a reference inside the same schema.
pub(super) fn resolve<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    root.pointer(target.strip_prefix('#')?)
}
