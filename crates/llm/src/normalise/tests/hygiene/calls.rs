//! Tool calls, their ids and their results.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{answer, call, read, result, user};
use super::{check, lines, said};
use crate::message::Message;
use crate::model::transcript::CallIdRule;
use crate::normalise::{call_ids, calls, repair};

#[test]
fn ids_of_calls_fit_the_alphabet_of_the_server_and_stay_distinct() {
    let short = |id| call_ids::sanitise(id, CallIdRule::Strict9);
    for (id, strict, strict9) in [
        ("", "defaulttoolid", "defaultid"),
        ("call_abcdefgh", "callabcdefgh", "callabcde"),
        ("123456789", "123456789", "123456789"),
    ] {
        assert_eq!(
            (call_ids::sanitise(id, CallIdRule::Strict).as_str(), short(id).as_str()),
            (strict, strict9),
            "{id}"
        );
    }
    assert_eq!(call_ids::sanitise("|_-", CallIdRule::Strict), "sanitizedtoolid");
    // The start of the hash of "sanitized".
    assert_eq!(short("|_-"), "7b757a23b");
    // Hashes of what is left.
    assert_eq!(short("a_b").len(), 9);
    assert_eq!(short("a_b"), short("ab"));
    assert_ne!(short("a_b"), short("|_-"));

    let long = "x".repeat(50);
    let ids = ["a_b", "a-b", "a|b", "ab", &long, &format!("{long}_")];
    let messages = read(&[
        answer("m", "toolUse", ids.iter().map(|id| call(id)).collect()),
        result("a-b", "r"),
        result(" a_b ", "r"),
    ]);
    for (rule, max) in [(CallIdRule::Strict, 40), (CallIdRule::Strict9, 9)] {
        let out = call_ids::rewrite(&messages, rule);
        let new: Vec<String> = out[0].as_assistant().unwrap().tool_calls().map(|call| call.id.to_string()).collect();
        for (at, id) in new.iter().enumerate() {
            assert!(id.len() <= max && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
            assert!(!new[..at].contains(id), "{id} twice");
        }
        assert_eq!(out[1].to_value()["toolCallId"], new[1]);
        assert_eq!(out[2].to_value()["toolCallId"], new[0]);
        assert_eq!(call_ids::rewrite(&messages, rule), out);
    }
    let own = read(&[answer("m", "toolUse", json!([call("abc")])), result("abc", "r"), user("u")]);
    let out = call_ids::rewrite(&own, CallIdRule::Strict);
    assert!(own.iter().zip(&out).all(|(before, after)| Arc::ptr_eq(before, after)));
    let foreign = json!([{"type": "tool_use", "id": "a_b", "name": "f"}, {"type": "note", "id": "a_c", "name": "n"}]);
    let rewrite = |messages: &[Arc<Message>]| call_ids::rewrite(messages, CallIdRule::Strict);
    check(rewrite, &[answer("m", "toolUse", foreign)], &["assistant: [ab f] [a_c n]"]);
}

#[test]
fn results_are_moved_behind_their_calls_and_counted() {
    let step = |synthetic| move |messages: &[Arc<Message>]| repair::repair(messages, synthetic).messages;
    let calls = |ids: &[&str]| answer("m", "toolUse", ids.iter().map(|id| call(id)).collect());
    let messages = [
        result("x", "before"),
        calls(&["a", "b", "c"]),
        user("u"),
        result("b", "1"),
        result("a", "2"),
        result("b", "3"),
        calls(&["d"]),
        result("c", "moved"),
        result("d", "4"),
        answer("m", "error", json!([call("e")])),
        result("e", "of the failed one"),
    ];
    let expect = [
        "assistant: [a read] [b read] [c read]",
        "toolResult(a): 2",
        "toolResult(b): 1",
        "toolResult(c): moved",
        "user: \"u\"",
        "assistant: [d read]",
        "toolResult(d): 4",
        "assistant: [e read]",
    ];
    check(step(false), &messages, &expect);
    check(step(true), &messages, &expect);
    let report = repair::repair(&read(&messages), true);
    assert_eq!((report.n_added, report.n_duplicates, report.n_orphans), (0, 1, 2));

    // A displaced result belongs to no call if two of them could be meant, or if the call is after it.
    let messages = [calls(&["a"]), calls(&["a"]), calls(&["b"]), result("a", "?"), result("c", "?"), calls(&["c"])];
    let answers = ["assistant: [a read]", "assistant: [a read]", "assistant: [b read]", "assistant: [c read]"];
    check(step(false), &messages, &answers);
    let report = repair::repair(&read(&messages), true);
    assert_eq!((report.n_added, report.n_duplicates, report.n_orphans), (4, 0, 2));
    assert_eq!(report.messages[1].to_value()["content"][0]["text"], repair::MISSING_RESULT);
    assert_eq!((report.messages[1].timestamp(), report.messages[1].role().to_string()), (7, "toolResult".to_owned()));
}

#[test]
fn repaired_results_carry_the_id_and_the_name_of_their_call() {
    let mut unnamed = result("a", "r");
    unnamed["toolName"] = " ".into();
    let spaced = answer("m", "toolUse", json!([call(" a "), {"type": "toolUse", "id": "b ", "name": ""}]));
    let report = repair::repair(&read(&[spaced, unnamed]), true);
    assert_eq!(lines(&report.messages)[..2], ["assistant: [a read] [b ]", "toolResult(a): r"]);
    assert_eq!(report.messages[1].to_value()["toolName"], "read");
    let added = report.messages[2].to_value();
    assert_eq!(
        (&added["toolCallId"], &added["toolName"], &added["isError"]),
        (&json!("b"), &json!("unknown"), &json!(true))
    );

    let whole = read(&[answer("m", "toolUse", json!([call("a")])), result(" a", "r")]);
    let once = repair::repair(&whole, true).messages;
    assert_eq!(once[1].to_value()["toolCallId"], "a");
    assert!(Arc::ptr_eq(&repair::repair(&once, true).messages[1], &once[1]));
}

#[test]
fn unknown_blocks_are_no_calls_even_if_they_have_an_id() {
    let notes = [json!({"type": "note", "id": " n ", "name": "f"}), json!({"type": "note"})];
    let [first, second] = notes.clone();
    let messages = [answer("m", "toolUse", json!([first, call(" a "), second])), result("a", "r")];
    let repaired = repair::repair(&read(&messages), true);
    assert_eq!(lines(&repaired.messages), ["assistant: [ n  f] [a read] [ ]", "toolResult(a): r"]);
    let content = &repaired.messages[0].to_value()["content"];
    assert_eq!([content[0].clone(), content[2].clone()], notes);
}

#[test]
fn calls_that_no_server_accepts_go() {
    let raw =
        |kind: &str, id: &str, name: &str, input: Value| json!({"type": kind, "id": id, "name": name, "input": input});
    let named = |name: &str| json!({"type": "toolCall", "id": "a", "name": name, "arguments": {}});
    let longest = "n".repeat(64);
    let contents = [
        json!([said("t"), call(" "), named(""), named("a b"), named("é"), named(&"n".repeat(65))]),
        json!([named(" read "), named(&longest), named("_-9")]),
        json!([
            raw("tool_use", "a", "f", Value::Null),
            raw("tool_use", " ", "f", json!({})),
            raw("tool_use", "a", "", json!({}))
        ]),
        json!([raw("function_call", "a", " f ", json!({})), raw("toolUse", "b", "g", json!({}))]),
        json!([raw("note", "", "", Value::Null)]),
    ];
    let expect = [
        "assistant: t".to_owned(),
        format!("assistant: [a read] [a {longest}] [a _-9]"),
        "assistant: [a f] [b g]".to_owned(),
        "assistant: [ ]".to_owned(),
    ];
    let messages: Vec<Value> = contents.iter().map(|content| answer("m", "stop", content.clone())).collect();
    let checked = calls::without_malformed(&read(&messages));
    assert_eq!(lines(&checked), expect);
    let again = calls::without_malformed(&checked);
    assert!(checked.iter().zip(&again).all(|(before, after)| Arc::ptr_eq(before, after)));

    let adopted = calls::adopted(&read(&[answer(
        "m",
        "stop",
        json!([
            raw("tool_use", "a", "f", json!({"x": 1})),
            raw("tool_use", "a", "f", json!("text")),
            raw("note", "a", "f", json!({})),
        ]),
    )]));
    let kinds: Vec<Value> =
        adopted[0].to_value()["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
    assert_eq!(kinds, ["toolCall", "tool_use", "note"]);
    assert_eq!(adopted[0].to_value()["content"][0]["arguments"], json!({"x": 1}));
}
