//! Thinking, and reasoning items.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{answer, call, read, result, user};
use super::{at, check, check_answers, lines, said, thought};
use crate::message::Message;
use crate::normalise::thinking;

#[test]
fn only_padded_base64_signs_thinking() {
    let good = ["c2ln", "c2k=", "cw==", " ab+/ "].map(|signature| json!([thought("t", signature)]));
    let expect = ["assistant: {t}/c2ln", "assistant: {t}/c2k=", "assistant: {t}/cw==", "assistant: {t}/ ab+/ "];
    check_answers(thinking::signed_only, &good, &expect);
    let bad = ["", "====", "c2l", "c===", "c2lnb===", "a-_w", "si!n"]
        .map(|signature| json!([thought("t", signature), said("a")]));
    check_answers(thinking::signed_only, &bad, &["assistant: a"; 7]);
}

#[test]
fn removed_thinking_leaves_an_answer_behind() {
    let contents = [json!([thought("t", "s")]), json!([thought("t", "s"), said("a")]), json!([said("b")])];
    check_answers(thinking::drop_all, &contents, &["assistant: ", "assistant: a", "assistant: b"]);
}

#[test]
fn reasoning_items_stay_only_before_what_they_led_to() {
    let item = r#"{"type":"reasoning","id":"rs_1"}"#;
    let summary = r#"{"type":"reasoning.summary","id":"rs_1"}"#;
    let foreign = r#"{"type":"reasoning","id":"x_1"}"#;
    let other = r#"{"type":"message","id":"rs_1"}"#;
    let contents = [
        json!([thought("t", item), said("a"), thought("u", item)]),
        json!([said("a"), thought("t", summary)]),
        json!([said("a"), thought("t", foreign), thought("u", other), thought("v", "rs_1")]),
        json!([thought("t", item)]),
        json!([thought("t", item), thought("u", item)]),
        json!([thought("t", item), thought("u", item), said("a")]),
    ];
    let expect = [
        format!("assistant: {{t}}/{item} a"),
        "assistant: a".to_owned(),
        format!("assistant: a {{t}}/{foreign} {{u}}/{other} {{v}}/rs_1"),
        format!("assistant: {{t}}/{item} {{u}}/{item} a"),
    ];
    let messages: Vec<Value> = contents.iter().map(|content| answer("m", "stop", content.clone())).collect();
    assert_eq!(lines(&thinking::without_orphan_items(&read(&messages))), expect);
}

#[test]
fn ids_of_items_go_where_their_reasoning_is_missing() {
    let item = r#"{"type":"reasoning","id":"rs_1"}"#;
    let calls = |ids: &[&str]| answer("m", "toolUse", ids.iter().map(|id| call(id)).collect());
    check(
        thinking::without_item_ids,
        &[
            calls(&["call_a|fc_1", "call_b|fc_2", "call_b|fc_3", "call_c|x", "|fc_4"]),
            result("call_a|fc_1", "r"),
            result("call_b|fc_2", "r"),
            calls(&["call_d"]),
            result("call_a|fc_1", "late"),
            answer("m", "toolUse", json!([thought("t", item), call("call_e|fc_5")])),
            result("call_e|fc_5", "r"),
        ],
        &[
            "assistant: [call_a read] [call_b|fc_2 read] [call_b|fc_3 read] [call_c|x read] [|fc_4 read]",
            "toolResult(call_a): r",
            "toolResult(call_b|fc_2): r",
            "assistant: [call_d read]",
            "toolResult(call_a|fc_1): late",
            &format!("assistant: {{t}}/{item} [call_e|fc_5 read]"),
            "toolResult(call_e|fc_5): r",
        ],
    );
}

#[test]
fn bound_thinking_is_signed_and_younger_than_what_was_said_before_it() {
    let step = |unsigned| move |messages: &[Arc<Message>]| thinking::bound(messages.to_vec(), unsigned);
    let messages = [
        at(user("u"), 10),
        at(answer("m", "stop", json!([thought("old", "s"), said("a")])), 9),
        at(answer("m", "stop", json!([thought("same", "s")])), 10),
        at(answer("m", "stop", json!([thought("unsigned", " ")])), 11),
        at(user("v"), 5),
        at(answer("m", "stop", json!([thought("new", "s")])), 10),
    ];
    let expect = |unsigned| {
        ["user: \"u\"", "assistant: a", "assistant: {same}/s", unsigned, "user: \"v\"", "assistant: {new}/s"]
    };
    check(step(false), &messages, &expect("assistant: [reasoning omitted]"));
    check(step(true), &messages, &expect("assistant: {unsigned}/ "));
}

#[test]
fn thinking_of_earlier_turns_is_forgotten() {
    let step = |messages: &[Arc<Message>]| thinking::current_only(messages.to_vec());
    let thinking = answer("m", "stop", json!([thought("t", "s"), said("a")]));
    check(
        step,
        &[thinking.clone(), user("u"), thinking.clone(), result("x", "r"), thinking.clone()],
        &["assistant: a", "user: \"u\"", "assistant: {t}/s a", "toolResult(x): r", "assistant: {t}/s a"],
    );
    check(step, &[thinking], &["assistant: {t}/s a"]);
}

#[test]
fn answers_of_thinking_alone_go_if_they_ended() {
    let step = |messages: &[Arc<Message>]| thinking::without_thinking_only(messages.to_vec());
    let only = |stop: &str| answer("m", stop, json!([thought(stop, "s")]));
    check(
        step,
        &[
            only("stop"),
            only("length"),
            only("toolUse"),
            answer("m", "stop", json!([thought("t", "s"), said("a")])),
            user("u"),
        ],
        &["assistant: {toolUse}/s", "assistant: {t}/s a", "user: \"u\""],
    );
}
