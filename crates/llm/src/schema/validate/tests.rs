use serde_json::{Value, json};

use super::*;

fn run(schema: &Schema, arguments: Value) -> Result<Value, String> {
    let Value::Object(arguments) = arguments else { panic!("arguments are objects") };
    validate_tool_arguments("t", schema, &arguments).map(Value::Object).map_err(|error| error.text)
}

#[track_caller]
fn check_ok(schema: Value, arguments: Value, expect: Value) {
    assert_eq!(run(&Schema::new(schema), arguments), Ok(expect));
}

/// Checks the lines of the error.
#[track_caller]
fn check_lines(schema: Value, arguments: Value, expect: &[&str]) {
    let text = run(&Schema::new(schema), arguments).unwrap_err();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  - ")).collect();
    assert_eq!(lines, expect);
}

fn of(name: &str, rule: Value) -> Value {
    json!({"type": "object", "properties": {name: rule}})
}

#[test]
fn the_error_lists_every_violation_and_the_arguments() {
    let schema =
        Schema::new(json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}));
    let text = "Validation failed for tool \"t\":\n  - path: must have required properties path\n\nReceived arguments:\n{\n  \"path2\": 1\n}";
    assert_eq!(run(&schema, json!({"path2": 1.0})), Err(text.into()));
}

#[test]
fn single_values_are_converted_without_guessing() {
    for (wanted, from, to) in [
        ("number", json!("1e3"), json!(1000)),
        ("number", json!(" 0x10 "), json!(16)),
        ("number", json!(true), json!(1)),
        ("integer", json!("5.0"), json!(5)),
        ("boolean", json!("TRUE"), json!(true)),
        ("boolean", json!("0"), json!(false)),
        ("boolean", json!(1), json!(true)),
        ("string", json!(1.0), json!("1")),
        ("string", json!(0.000_003), json!("0.000003")),
        ("string", json!(false), json!("false")),
        ("null", json!(0), json!(null)),
    ] {
        check_ok(of("v", json!({"type": wanted})), json!({"v": from}), json!({"v": to}));
    }
    for (wanted, from) in
        [("integer", json!(5.7)), ("number", json!("")), ("number", json!("NaN")), ("boolean", json!("yes"))]
    {
        check_lines(of("v", json!({"type": wanted})), json!({"v": from}), &[&format!("v: must be {wanted}")]);
    }
}

#[test]
fn null_for_an_optional_member_means_absent() {
    let schema = json!({"type": "object", "required": ["r"],
        "properties": {"r": {"type": "string"}, "o": {"type": "string"}, "n": {"type": ["string", "null"]}, "x": {}}});
    check_ok(schema, json!({"r": null, "o": null, "n": null, "x": null}), json!({"r": "", "n": null, "x": null}));
}

#[test]
fn a_value_that_fits_a_union_is_unchanged() {
    let union = json!({"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "null"}]});
    let schema = json!({"type": "object", "properties": {"v": union, "n": {"type": "number"}}});
    check_ok(schema.clone(), json!({"v": "5", "n": "5"}), json!({"v": "5", "n": 5}));
    check_ok(schema, json!({"v": null, "n": "5"}), json!({"v": null, "n": 5}));
    let objects = json!({"oneOf": [
        {"type": "object", "properties": {"k": {"const": "a"}, "n": {"type": "number"}}, "required": ["k", "n"]},
        {"type": "object", "properties": {"k": {"const": "b"}, "s": {"type": "string"}}, "required": ["k", "s"]}]});
    check_ok(of("v", objects), json!({"v": {"k": "b", "s": 1}}), json!({"v": {"k": "b", "s": "1"}}));
}

#[test]
fn references_patterns_tuples_and_recursion_are_followed() {
    check_ok(
        json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "number"}}}),
        json!({"v": "5"}),
        json!({"v": 5}),
    );
    check_ok(
        json!({"type": "object", "patternProperties": {"^n/": {"type": "number"}}}),
        json!({"n/1": "5"}),
        json!({"n/1": 5}),
    );
    check_ok(
        of("v", json!({"type": "array", "items": [{"type": "number"}, {"type": "string"}]})),
        json!({"v": ["1", 2]}),
        json!({"v": [1, "2"]}),
    );
    check_ok(
        of("v", json!({"prefixItems": [{"type": "number"}], "items": {"type": "string"}})),
        json!({"v": ["1", 2]}),
        json!({"v": [1, "2"]}),
    );
    let tree = json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object",
        "properties": {"n": {"type": "number"}, "next": {"$ref": "#/$defs/tree"}}}}});
    check_ok(
        tree,
        json!({"n": "1", "next": {"n": "2", "next": {"n": "3"}}}),
        json!({"n": 1, "next": {"n": 2, "next": {"n": 3}}}),
    );
    let circle = json!({"type": "object", "properties": {"v": {"$ref": "#/properties/v"}, "n": {"type": "number"}}});
    check_ok(circle, json!({"v": 1, "n": "2"}), json!({"v": 1, "n": 2}));
}

#[test]
fn a_dangling_reference_rejects_only_its_location_and_nothing_is_fetched() {
    let schema =
        json!({"type": "object", "properties": {"v": {"$ref": "https://example.com/x.json"}, "n": {"type": "number"}}});
    check_ok(schema.clone(), json!({"n": "5"}), json!({"n": 5}));
    check_lines(schema, json!({"v": 1}), &["v: schema is false"]);
    check_ok(
        json!({"$id": "relative", "type": "object", "properties": {"v": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "number"}}}),
        json!({"v": "5"}),
        json!({"v": 5}),
    );
}

#[test]
fn only_lenient_schemas_wrap_and_parse() {
    let schema = Schema::new(json!({"type": "object", "properties": {
        "xs": {"type": "array", "items": {"type": "number"}}, "o": {"type": "object"}}}));
    assert!(run(&schema, json!({"xs": "1"})).is_err());
    assert!(run(&schema, json!({"o": "{\"a\":1}"})).is_err());
    let lenient = schema.lenient();
    assert_eq!(run(&lenient, json!({"xs": "1"})), Ok(json!({"xs": [1]})));
    assert_eq!(run(&lenient, json!({"xs": "[1, \"2\"]"})), Ok(json!({"xs": [1, 2]})));
    assert_eq!(run(&lenient, json!({"o": "{\"a\":1}"})), Ok(json!({"o": {"a": 1}})));
    assert!(run(&lenient, json!({"xs": "x"})).is_err());
}

#[test]
fn every_location_is_named() {
    let inner = json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a", "b"], "additionalProperties": false});
    check_lines(
        of("o", inner),
        json!({"o": {"c": 1}}),
        &["o.a: must have required properties a, b", "o.c: schema is false", "o: must not have additional properties"],
    );
    check_lines(
        of("v", json!({"anyOf": [{"type": "number"}, {"type": "boolean"}]})),
        json!({"v": "x"}),
        &["v: must be number", "v: must be boolean", "v: must match a schema in anyOf"],
    );
    check_lines(
        of("o", json!({"type": "object", "additionalProperties": {"type": "number"}})),
        json!({"o": {"x": "z"}}),
        &["o.x: must be number", "o: must not have additional properties"],
    );
    check_lines(
        of("a/b", json!({"type": ["number", "boolean"]})),
        json!({"a/b": "x"}),
        &["a.b: must be either boolean or number"],
    );
    check_lines(
        of("xs", json!({"type": "array", "minItems": 3, "items": {"minLength": 2}})),
        json!({"xs": ["ab", "c"]}),
        &["xs: must not have fewer than 3 items", "xs.1: must not have fewer than 2 characters"],
    );
}

#[test]
fn a_schema_that_cannot_be_compiled_checks_nothing() {
    check_ok(json!({"type": "objekt"}), json!({"a": 1}), json!({"a": 1}));
}

#[test]
fn validating_an_exponential_schema_terminates() {
    let twice = |name: &str| json!({"anyOf": [{"$ref": name, "type": "object"}, {"$ref": name}], "properties": {"a": {"$ref": name}}});
    let mut defs = json!({"d0": {"type": "number"}});
    for i in 1..30 {
        defs[format!("d{i}")] = twice(&format!("#/$defs/d{}", i - 1));
    }
    let schema = json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/d12"}}, "$defs": defs});
    assert!(run(&Schema::new(schema), json!({"v": "x"})).is_err());
}
