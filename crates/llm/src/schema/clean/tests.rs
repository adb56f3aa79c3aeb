use super::*;

#[track_caller]
fn check(family: Family, schema: Value, expect: Value) {
    assert_eq!(clean(&schema, family), expect);
}

/// What becomes of one member of an object.
#[track_caller]
fn check_member(family: Family, rule: Value, expect: Value) {
    let of = |rule: Value| json!({"type": "object", "properties": {"pattern": rule}});
    check(family, of(rule), of(expect));
}

#[test]
fn keywords_are_cleaned_by_model_family() {
    for (provider, model, family) in [
        ("google-vertex", "x", Family::Gemini),
        ("xai", "grok-4", Family::Xai),
        ("openrouter", "x-ai/grok-4", Family::Xai),
        ("openrouter", "moonshotai/kimi-k3", Family::Kimi),
        ("venice", "grok-41-fast", Family::Xai),
        ("openrouter", "openai/gpt-5", Family::Plain),
    ] {
        assert_eq!(Family::of(provider, model), family, "{provider} {model}");
    }
}

#[test]
fn the_root_is_an_object() {
    check(Family::Plain, json!({}), empty());
    check(Family::Plain, json!(null), empty());
    check(Family::Plain, json!({"required": ["a"]}), json!({"required": ["a"], "type": "object"}));
    let union = json!({"anyOf": [
        {"properties": {"k": {"const": "a"}, "x": {}}, "required": ["k", "x"]},
        {"properties": {"k": {"const": 1, "description": "d"}, "x": {"type": "string"}}, "required": ["k"]}]});
    check(
        Family::Plain,
        union,
        json!({"type": "object", "properties": {"k": {"description": "d", "enum": ["a", 1]}, "x": {}}, "required": ["k"],
            "additionalProperties": true}),
    );
}

#[test]
fn keywords_go_and_members_of_the_same_name_stay() {
    let rule = json!({"type": "array", "maxItems": 2, "items": {"type": "string", "pattern": "x", "maxLength": 3}});
    check_member(Family::Plain, rule.clone(), rule.clone());
    check_member(Family::Gemini, rule.clone(), json!({"type": "array", "items": {"type": "string"}}));
    check_member(Family::Xai, rule, json!({"type": "array", "items": {"type": "string", "pattern": "x"}}));
}

#[test]
fn one_value_in_a_list_for_google() {
    let schema = json!({"type": "object", "properties": {"const": {"const": 1, "enum": [1, 2]}, "l": {"items": {"const": "x"}}}, "required": ["const"]});
    assert_eq!(
        without_const(&schema),
        json!({"type": "object", "properties": {"const": {"enum": [1]}, "l": {"items": {"enum": ["x"]}}}, "required": ["const"]})
    );
}

#[test]
fn gemini_gets_no_references_and_no_null() {
    check_member(
        Family::Gemini,
        json!({"type": ["string", "null"], "const": "v"}),
        json!({"type": "string", "enum": ["v"]}),
    );
    check_member(
        Family::Gemini,
        json!({"anyOf": [{"const": "x", "type": "string"}, {"const": "y", "type": "string"}, {"type": "null"}], "title": "T"}),
        json!({"type": "string", "enum": ["x", "y"], "title": "T"}),
    );
    let schema = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/a~1b", "description": "mine"}, "u": {"$ref": "https://x"}},
        "$defs": {"a/b": {"type": "object", "description": "orig", "properties": {"next": {"$ref": "#/$defs/a~1b"}}}}});
    let node = json!({"type": "object", "description": "mine", "properties": {"next": {}}});
    check(Family::Gemini, schema, json!({"type": "object", "properties": {"n": node, "u": {}}}));
}
