use super::*;
use crate::schema::Schema;

#[track_caller]
fn check(family: SchemaDialect, schema: Value, expect: Value) {
    assert_eq!(clean(&schema, family, false), expect);
}

/// Checks the cleaned rule for one member of an object.
#[track_caller]
fn check_member(family: SchemaDialect, rule: Value, expect: Value) {
    let of = |rule: Value| json!({"type": "object", "properties": {"pattern": rule}});
    check(family, of(rule), of(expect));
}

#[test]
fn keywords_are_cleaned_by_model_family() {
    for (provider, model, family) in [
        ("google-vertex", "x", SchemaDialect::Gemini),
        ("xai", "grok-4", SchemaDialect::Xai),
        ("openrouter", "x-ai/grok-4", SchemaDialect::Xai),
        ("openrouter", "moonshotai/kimi-k3", SchemaDialect::Kimi),
        ("venice", "grok-41-fast", SchemaDialect::Xai),
        ("openrouter", "openai/gpt-5", SchemaDialect::Plain),
    ] {
        assert_eq!(SchemaDialect::of(provider, model), family, "{provider} {model}");
    }
}

#[test]
fn the_root_is_an_object() {
    check(SchemaDialect::Plain, json!({}), empty());
    check(SchemaDialect::Plain, json!(null), empty());
    check(SchemaDialect::Plain, json!({"required": ["a"]}), json!({"required": ["a"], "type": "object"}));
    let union = json!({"anyOf": [
        {"properties": {"k": {"const": "a"}, "x": {}}, "required": ["k", "x"]},
        {"properties": {"k": {"const": 1, "description": "d"}, "x": {"type": "string"}}, "required": ["k"]}]});
    check(
        SchemaDialect::Plain,
        union,
        json!({"type": "object", "properties": {"k": {"description": "d", "enum": ["a", 1]}, "x": {}}, "required": ["k"],
            "additionalProperties": true}),
    );
}

#[test]
fn keywords_are_removed_but_members_of_the_same_name_stay() {
    let rule = json!({"type": "array", "maxItems": 2, "items": {"type": "string", "pattern": "x", "maxLength": 3}});
    check_member(SchemaDialect::Plain, rule.clone(), rule.clone());
    check_member(SchemaDialect::Gemini, rule.clone(), json!({"type": "array", "items": {"type": "string"}}));
    check_member(SchemaDialect::Xai, rule, json!({"type": "array", "items": {"type": "string", "pattern": "x"}}));
}

#[test]
fn limits_that_are_removed_are_told_in_descriptions_if_asked() {
    let items = json!({"type": "string", "pattern": "^a", "format": "uri", "maxLength": 1});
    let properties = json!({
        "n": {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 9.5, "multipleOf": 2},
        "l": {"type": "array", "items": items, "minItems": 2, "uniqueItems": true, "maxItems": "x"},
        "minimum": {"type": "object", "maxProperties": 3, "additionalProperties": false},
    });
    let schema = json!({"type": "object", "properties": properties});
    let described = |family, hints| {
        let cleaned = clean(&schema, family, hints);
        let text = |path: &str| cleaned.pointer(&format!("/properties/{path}/description")).cloned();
        ["n", "l", "l/items", "minimum"]
            .map(|path| text(path).map_or(String::new(), |text| text.as_str().unwrap().to_owned()))
    };
    let untold = ["How many.", "", "", ""];
    let of_items = "(matches the regular expression ^a, format uri, at most 1 character)";
    let all = [
        "How many. (at least 1, at most 9.5, a multiple of 2)",
        "(at least 2 items, no item twice)",
        of_items,
        "(at most 3 members)",
    ];
    for family in [SchemaDialect::Gemini, SchemaDialect::Kimi] {
        assert_eq!(described(family, false), untold);
        assert_eq!(described(family, true), all);
    }
    // What is sent anyway is not repeated.
    let few = ["How many.", "(at least 2 items)", "(at most 1 character)", ""];
    assert_eq!(described(SchemaDialect::Xai, true), few);
    assert_eq!(clean(&schema, SchemaDialect::Plain, true), schema);
}

#[test]
fn a_schema_is_cleaned_once_for_each_form() {
    let schema = Schema::new(json!({"type": "object", "properties": {"p": {"const": 1, "minLength": 1}}}));
    let shared = schema.clone();
    for family in [SchemaDialect::Plain, SchemaDialect::Gemini, SchemaDialect::Xai, SchemaDialect::Kimi] {
        for hints in [false, true] {
            assert_eq!(*schema.cleaned(family, hints), clean(schema.raw(), family, hints));
            assert!(std::ptr::eq(schema.cleaned(family, hints), shared.cleaned(family, hints)));
        }
    }
    assert_eq!(*schema.without_const(), without_const(schema.raw()));
    assert!(std::ptr::eq(schema.without_const(), shared.without_const()));
}

#[test]
fn google_gets_const_as_a_list_of_one_value() {
    let schema = json!({"type": "object", "properties": {"const": {"const": 1, "enum": [1, 2]}, "l": {"items": {"const": "x"}}}, "required": ["const"]});
    assert_eq!(
        without_const(&schema),
        json!({"type": "object", "properties": {"const": {"enum": [1]}, "l": {"items": {"enum": ["x"]}}}, "required": ["const"]})
    );
}

#[test]
fn gemini_gets_no_references_and_no_null() {
    check_member(
        SchemaDialect::Gemini,
        json!({"type": ["string", "null"], "const": "v"}),
        json!({"type": "string", "enum": ["v"]}),
    );
    check_member(
        SchemaDialect::Gemini,
        json!({"anyOf": [{"const": "x", "type": "string"}, {"const": "y", "type": "string"}, {"type": "null"}], "title": "T"}),
        json!({"type": "string", "enum": ["x", "y"], "title": "T"}),
    );
    let schema = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/a~1b", "description": "mine"}, "u": {"$ref": "https://x"}},
        "$defs": {"a/b": {"type": "object", "description": "orig", "properties": {"next": {"$ref": "#/$defs/a~1b"}}}}});
    let node = json!({"type": "object", "description": "mine", "properties": {"next": {}}});
    check(SchemaDialect::Gemini, schema, json!({"type": "object", "properties": {"n": node, "u": {}}}));
}
