use super::*;

#[track_caller]
fn check(family: SchemaDialect, schema: Value, expect: Value) {
    assert_eq!(clean(&schema, family), expect);
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
