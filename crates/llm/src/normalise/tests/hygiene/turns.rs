//! Turns, and answers that are no part of the conversation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{answer, call, read, result, user};
use super::{at, check, check_answers, line, said, system, thought};
use crate::message::Message;
use crate::normalise::turns;

#[test]
fn a_history_that_starts_with_an_answer_gets_a_user_message() {
    let hello = answer("m", "stop", json!([said("hello")]));
    check(turns::user_first, std::slice::from_ref(&hello), &["user: \"(session bootstrap)\"", "assistant: hello"]);
    check(
        turns::user_first,
        &[system("be brief"), hello.clone()],
        &["system: \"be brief\"", "user: \"(session bootstrap)\"", "assistant: hello"],
    );
    check(turns::user_first, &[user("hi"), hello.clone()], &["user: \"hi\"", "assistant: hello"]);
    check(turns::user_first, &[system("be brief")], &["system: \"be brief\""]);
    assert!(turns::begins_with_answer(&read(std::slice::from_ref(&hello))));
    assert!(!turns::begins_with_answer(&read(&[user("hi"), hello])));
    assert_eq!(turns::user_first(&read(&[answer("m", "stop", json!([]))]))[0].timestamp(), 0);
}

#[test]
fn only_the_wanted_roles_are_merged() {
    let developer = |content: Value| json!({"role": "developer", "content": content});
    let messages = [
        user("a"),
        user("b"),
        answer("m", "stop", json!([said("c")])),
        answer("m", "stop", json!([said("d")])),
        developer(json!("e")),
        developer(json!([said("f")])),
        json!({"role": "note", "content": "g"}),
        developer(json!("h")),
    ];
    let none = turns::Merged::default();
    let merge = |which| move |messages: &[Arc<Message>]| turns::merge(messages, which);
    let apart = ["user: \"a\"", "user: \"b\"", "assistant: c", "assistant: d"];
    let rest = ["developer: \"e\"", "developer: f", "note: \"g\"", "developer: \"h\""];
    check(merge(none), &messages, &[&apart[..], &rest].concat());
    check(merge(turns::Merged { users: true, ..none }), &messages, &[&["user: a b"], &apart[2..], &rest].concat());
    check(
        merge(turns::Merged { answers: true, ..none }),
        &messages,
        &[&apart[..2], &["assistant: c d"], &rest].concat(),
    );
    check(
        merge(turns::Merged { developers: true, ..none }),
        &messages,
        &[&apart[..], &["developer: e f"], &rest[2..]].concat(),
    );
}

#[test]
fn a_merged_message_has_the_facts_of_the_later_one_if_it_has_them() {
    let all = turns::Merged { answers: true, users: true, developers: true };
    let merge = |first: Value, second: Value| turns::merge(&read(&[first, second]), all)[0].to_value();
    let mut before = answer("m", "toolUse", json!([said("a")]));
    before["usage"] = json!({"input": 5, "output": 6, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 11,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}});
    before["errorMessage"] = "why".into();
    let merged = merge(before.clone(), answer("m", "stop", json!([said("b")])));
    assert_eq!((&merged["stopReason"], &merged["errorMessage"]), (&json!("stop"), &json!("why")));
    assert_eq!(merged["usage"]["input"], 5);
    let mut after = answer("m", "stop", json!([]));
    after["usage"] = before["usage"].clone();
    after["usage"]["input"] = 7.into();
    assert_eq!(merge(before, after)["usage"]["input"], 7);

    assert_eq!(merge(at(user("a"), 3), at(user("b"), 4))["timestamp"], 4);
    assert_eq!(merge(at(user("a"), 3), at(user("b"), 0))["timestamp"], 3);
    let developer = json!({"role": "developer", "content": "a", "timestamp": 3});
    assert_eq!(merge(developer.clone(), json!({"role": "developer", "content": "b"}))["timestamp"], 3);
    assert_eq!(merge(developer.clone(), at(developer, 4))["timestamp"], 4);
}

#[test]
fn calls_before_a_user_message_go_unless_it_contains_their_results() {
    let calls =
        answer("m", "toolUse", json!([said("a"), call("x"), call("y"), {"type": "toolUse", "id": "z", "name": "f"}]));
    let inside = |key: &str| json!({"role": "user", "content": [{"type": "tool_result", key: "y"}, {"type": "note", "toolCallId": "x"}], "timestamp": 8});
    check(turns::without_dangling, &[calls.clone(), user("stop")], &["assistant: a", "user: \"stop\""]);
    for key in ["toolUseId", "tool_use_id", "toolCallId"] {
        let out = turns::without_dangling(&read(&[calls.clone(), inside(key)]));
        assert_eq!(line(&out[0].to_value()), "assistant: a [y read]", "{key}");
    }
    let noted = answer("m", "toolUse", json!([{"type": "note", "id": "n", "name": "f"}, call("x")]));
    check(turns::without_dangling, &[noted, user("stop")], &["assistant: [n f]", "user: \"stop\""]);
    check(
        turns::without_dangling,
        &[answer("m", "toolUse", json!([call("x")])), user("stop")],
        &["assistant: [tool calls omitted]", "user: \"stop\""],
    );
    // Results follow, or nothing does.
    check(
        turns::without_dangling,
        &[calls.clone(), result("x", "r"), user("go"), calls],
        &[
            "assistant: a [x read] [y read] [z f]",
            "toolResult(x): r",
            "user: \"go\"",
            "assistant: a [x read] [y read] [z f]",
        ],
    );
}

#[test]
fn a_failed_answer_that_was_replied_to_leaves_a_note() {
    let step = |messages: &[Arc<Message>]| turns::without_failed(messages.to_vec());
    let note = "assistant: [This answer failed before it was complete.]";
    let failed = |text: &str| answer("m", "error", json!([said(text)]));
    check(step, &[failed("half"), user("go on")], &[note, "user: \"go on\""]);
    check(step, &[failed("half"), system("s"), user("go on")], &[note, "system: \"s\"", "user: \"go on\""]);
    check(step, &[failed(" "), user("go on")], &["user: \"go on\""]);
    check(step, &[failed("half")], &[]);
    check(
        step,
        &[failed("half"), answer("m", "stop", json!([said("a")])), user("u")],
        &["assistant: a", "user: \"u\""],
    );
    let mut failed = failed("half");
    failed["errorMessage"] = "overloaded".into();
    let noted = step(&read(&[failed, user("go on")]))[0].to_value();
    assert_eq!((&noted["stopReason"], &noted["errorMessage"]), (&json!("stop"), &Value::Null));
}

#[test]
fn answers_that_say_nothing_and_answers_at_the_end_go() {
    let silent = |messages: &[Arc<Message>]| turns::without_silent(messages.to_vec());
    check_answers(
        silent,
        &[json!([said(" ")]), json!([thought("t", "s")]), json!([]), json!([said("a")]), json!([call("x")])],
        &["assistant: a", "assistant: [x read]"],
    );
    let prefill = |messages: &[Arc<Message>]| turns::without_prefill(messages.to_vec());
    let hello = answer("m", "stop", json!([said("a")]));
    check(prefill, &[hello.clone(), user("u"), hello.clone(), hello.clone()], &["assistant: a", "user: \"u\""]);
    check(prefill, &[hello.clone(), hello], &[]);
}

#[test]
fn copies_of_delivered_messages_go() {
    let from = |provider: &str, model: &str| {
        let mut message = answer(model, "stop", json!([said(model)]));
        message["provider"] = provider.into();
        message
    };
    check(
        turns::without_mirrors,
        &[
            from("openclaw", "delivery-mirror"),
            from("pinch", "delivery-mirror"),
            from("other", "delivery-mirror"),
            from("pinch", "m"),
            user("u"),
        ],
        &["assistant: delivery-mirror", "assistant: m", "user: \"u\""],
    );
}
