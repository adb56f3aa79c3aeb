use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::repair::{parse_streaming, parse_with_repair};

#[track_caller]
fn check(text: &str, expect: Value) {
    assert_eq!(Value::Object(parse_streaming(text)), expect, "{text}");
}

#[test]
fn unfinished_values_are_closed() {
    check("  ", json!({}));
    check("{", json!({}));
    check("{\"a\":", json!({}));
    check("{\"a\":1,\"b", json!({"a": 1}));
    check("{\"a\":1,\"b\"", json!({"a": 1}));
    check("{\"a\":[1,", json!({"a": [1]}));
    check("{\"a\":{\"b\":[{\"c\":\"d", json!({"a": {"b": [{"c": "d"}]}}));
    check("{\"a\":1,\"a\":", json!({"a": 1}));
    check("{\"a\":1,\"b\":2,\"a\":\"x", json!({"a": "x", "b": 2}));
}

#[test]
fn open_numbers_and_words_have_a_value() {
    for (text, value) in
        [("12", json!(12)), ("1e", json!(1)), ("1.5e-", json!(1.5)), ("-0.5", json!(-0.5)), ("1e3", json!(1e3))]
    {
        check(&format!("{{\"a\":{text}"), json!({"a": value}));
        check(&format!("{{\"a\":[{text}"), json!({"a": [value]}));
    }
    check("{\"a\":-", json!({}));
    check("{\"a\":1.", json!({}));
    check("{\"a\":tr", json!({"a": true}));
    check("{\"a\":fals", json!({"a": false}));
    check("{\"a\":n", json!({"a": null}));
    check("{\"a\":1e999,\"b\":2}", json!({"a": null, "b": 2}));
}

#[test]
fn broken_strings_are_repaired() {
    check("{\"a\":\"x\ny", json!({"a": "x\ny"}));
    check("{\"a\":\"b\\u00", json!({"a": "b"}));
    check("{\"a\":\"b\\", json!({"a": "b"}));
    check("{\"a\":\"C:\\dir\"}", json!({"a": "C:\\dir"}));
    check("{\"a\":\"\\ud83d\\ude00\\ud83dx\\ude00\"}", json!({"a": "😀\u{fffd}x\u{fffd}"}));
    check("{\"a\":\"x\\ud83d", json!({"a": "x"}));
}

#[test]
fn errors_end_parsing_and_complete_parts_stay() {
    check("{'a':1}", json!({}));
    check("{\"a\" 1}", json!({}));
    check("{\"a\":\"\\uZZ\"}", json!({}));
    check("{\"a\":1,\"b\":\"x\\uZZ y", json!({"a": 1, "b": "x"}));
    check("{\"a\":1,\"b\":\"x\\uZZ\",\"c\":2}", json!({"a": 1}));
    check("{\"a\":[1,x", json!({"a": [1]}));
    check("{\"a\":[1}", json!({"a": [1]}));
    check("{\"a\":1} tail", json!({"a": 1}));
    check("{\"a\":1}{\"b\":2}", json!({"a": 1}));
    check("[1,2", json!({}));
    check("null", json!({}));
    check("{\"a\":1,}", json!({"a": 1}));
    check("{\"a\":01}", json!({}));
}

#[test]
fn deep_nesting_is_truncated() {
    let text = format!("{{\"a\":{}", "[".repeat(200_000));
    let object = parse_streaming(&text);
    assert!(object["a"].is_array());
}

/// Generates any JSON value, with strings that need escapes.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        proptest::num::f64::NORMAL.prop_map(Value::from),
        "\\PC*|[\\x00-\\x1f\"\\\\/é😀]*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec(("[a-c\"\\n]{0,2}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_final_value_equals_that_of_serde_json(value in any_json(), pretty in any::<bool>()) {
        let value = json!({"root": value});
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        prop_assert_eq!(Value::Object(parse_streaming(&text)), value);
    }

    #[test]
    fn every_split_gives_the_same_value_at_every_step(value in any_json(), cut in 0_usize..200, junk in "[\\\\\"{}\\[\\],:ue0-9tn\n]{0,6}") {
        let mut text = serde_json::to_string(&json!({"root": value, "more": 1})).unwrap();
        let at = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        text.insert_str(at, &junk);
        let mut by_char = PartialJson::new();
        for (at, c) in text.char_indices() {
            let end = at + c.len_utf8();
            by_char.push(&text[at..end]);
            prop_assert_eq!(by_char.object(), parse_streaming(&text[..end]));
        }
    }

    #[test]
    fn repairable_text_is_parsed_completely(text in "[a\\\\nu0\n\"{}:é]{0,12}") {
        let text = format!("{{\"a\":\"{text}\"}}");
        if let Ok(Value::Object(object)) = parse_with_repair(&text) {
            prop_assert_eq!(parse_streaming(&text), object);
        }
    }
}
