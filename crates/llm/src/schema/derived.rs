//! JSON Schemas derived from Rust types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Returns the JSON Schema of a type in a form that providers accept: nested types are inlined, and parts that matter only to programs
/// (`$schema`, the type name as `title`, formats of Rust's numbers) are omitted.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(members) = &mut schema {
        members.shift_remove("title");
        // The arguments of a tool are an object, even if there are none.
        if members.get("type").is_some_and(|kind| kind == "object") {
            members.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
    }
    remove_rust_formats(&mut schema);
    schema
}

const RUST_FORMATS: [&str; 14] = [
    "int", "int8", "int16", "int32", "int64", "int128", "uint", "uint8", "uint16", "uint32", "uint64", "uint128",
    "float", "double",
];

fn remove_rust_formats(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_rust = |format: &Value| format.as_str().is_some_and(|format| RUST_FORMATS.contains(&format));
            // A property may also be called `format`; then its value is a schema, not a string.
            if members.get("format").is_some_and(is_rust) {
                members.shift_remove("format");
            }
            members.values_mut().for_each(remove_rust_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_rust_formats),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Invoice {
        /// How many.
        count: u32,
        note: Option<String>,
        lines: Vec<OrderLine>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct OrderLine {
        price: f64,
    }

    #[test]
    fn derived_schemas_are_inlined_and_carry_no_rust_formats() {
        assert_eq!(
            schema_of::<Invoice>(),
            json!({
                "type": "object",
                "properties": {
                    "count": {"description": "How many.", "type": "integer", "minimum": 0},
                    "note": {"type": ["string", "null"]},
                    "lines": {"type": "array", "items": {
                        "type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]}},
                },
                "required": ["count", "lines"],
            })
        );
    }

    #[test]
    fn the_schema_of_a_unit_like_struct_is_an_object() {
        #[derive(JsonSchema)]
        struct NoArgs {}
        assert_eq!(schema_of::<NoArgs>(), json!({"type": "object", "properties": {}}));
    }
}
