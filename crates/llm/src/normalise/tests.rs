mod hygiene;

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::ids::anthropic_id;
use super::transform;
use crate::message::Message;
use crate::model::Model;

fn target(images: bool) -> Model {
    let input = if images { json!(["text", "image"]) } else { json!(["text"]) };
    let record = json!({"id": "m", "api": "anthropic-messages", "provider": "anthropic", "input": input});
    Model::from_record(&record).unwrap()
}

fn answer(model: &str, stop: &str, content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic", "model": model,
        "stopReason": stop, "timestamp": 7})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": [{"type": "text", "text": text}],
        "isError": false, "timestamp": 9})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text, "timestamp": 8})
}

fn read(messages: &[Value]) -> Vec<Arc<Message>> {
    messages.iter().map(|message| Arc::new(Message::from_value(message).unwrap())).collect()
}

/// Expects one line per message: the role, then the relevant details.
#[track_caller]
fn check(messages: &[Value], expect: &[&str]) {
    let messages = read(messages);
    let rule = |id: &str, _: &Model, _: &crate::message::AssistantMessage| anthropic_id(id);
    let out = transform(&messages, &target(false), Some(&rule));
    let lines: Vec<String> = out.iter().map(|message| line(message)).collect();
    assert_eq!(lines, expect);
}

fn line(message: &Message) -> String {
    let value = message.to_value();
    let content = match &value["content"] {
        Value::String(text) => text.clone(),
        blocks => {
            let blocks = blocks.as_array().unwrap().iter();
            let shown: Vec<&str> =
                blocks.filter_map(|b| ["text", "thinking", "id"].iter().find_map(|k| b[*k].as_str())).collect();
            shown.join("+")
        }
    };
    let id = value["toolCallId"].as_str().unwrap_or("");
    format!("{} {id}[{content}] {}", message.role(), message.timestamp())
}

#[test]
fn each_call_is_directly_followed_by_its_only_result() {
    check(
        &[
            result("gone", "dangling"),
            answer("m", "toolUse", json!([call("a"), call("b"), call("c")])),
            json!({"role": "system", "content": "held back", "timestamp": 8}),
            result("b", "in time"),
            user("interrupt"),
            result("a", "late"),
            result("b", "again"),
        ],
        &[
            "assistant [a+b+c] 7",
            "toolResult b[in time] 9",
            "toolResult a[late] 9",
            "toolResult c[No result provided] 7",
            "system [held back] 8",
            "user [interrupt] 8",
        ],
    );
}

#[test]
fn late_results_are_in_the_order_of_their_calls() {
    for later in [user("go on"), answer("m", "stop", json!([])), answer("m", "error", json!([]))] {
        let messages =
            [answer("m", "toolUse", json!([call("a"), call("b")])), later, result("b", "2"), result("a", "1")];
        let out = transform(&read(&messages), &target(false), None);
        let lines: Vec<String> = out.iter().map(|message| line(message)).collect();
        assert_eq!(lines[..3], ["assistant [a+b] 7", "toolResult a[1] 9", "toolResult b[2] 9"], "{}", messages[1]);
    }
}

#[test]
fn failed_answers_are_removed_with_their_results_and_their_ids_may_be_reused() {
    check(
        &[
            answer("m", "aborted", json!([call("x")])),
            result("x", "of the failed one"),
            answer("m", "toolUse", json!([call("a")])),
            result("a", "first"),
            answer("m", "toolUse", json!([call("a")])),
            result("a", "second"),
            json!({"role": "note", "content": []}),
        ],
        &["assistant [a] 7", "toolResult a[first] 9", "assistant [a] 7", "toolResult a[second] 9"],
    );
}

#[test]
fn foreign_answers_lose_thinking_and_their_calls_get_new_ids() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "thinkingSignature": "s"});
    let empty = json!({"type": "thinking", "thinking": "", "thinkingSignature": "s"});
    check(
        &[
            answer("other", "toolUse", json!([thinking, call("a|b"), call("a+b")])),
            result("a|b", "1"),
            answer("m", "stop", json!([thinking, empty, {"type": "thinking", "thinking": " "}])),
        ],
        &[
            "assistant [a_b+4y6uql1a] 7",
            "toolResult a_b[1] 9",
            "toolResult 4y6uql1a[No result provided] 7",
            "assistant [hm+] 7",
        ],
    );
}

#[test]
fn runs_of_images_become_one_note() {
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    check(
        &[json!({"role": "user", "content": [image, image, {"type": "text", "text": "and"}, image], "timestamp": 8})],
        &["user [(image omitted: model does not support images)+and+(image omitted: model does not support images)] 8"],
    );
}

#[test]
fn unchanged_messages_are_shared() {
    let message = Arc::new(Message::from_value(&user("hi")).unwrap());
    let out = transform(&[Arc::clone(&message)], &target(true), None);
    assert!(Arc::ptr_eq(&out[0], &message));
    // Another model's call loses its signature, but if it keeps its id, so does its result.
    let mut signed = call("a");
    signed["thoughtSignature"] = "s".into();
    let messages = read(&[answer("other", "toolUse", json!([signed])), result("a", "r")]);
    let out = transform(&messages, &target(true), None);
    assert_eq!(out[0].to_value()["content"][0], call("a"));
    assert!(Arc::ptr_eq(&out[1], &messages[1]));
}

#[test]
fn signatures_are_the_targets_own() {
    let signed = json!([
        {"type": "text", "text": "t", "textSignature": "s"},
        {"type": "toolCall", "id": "a", "name": "read", "arguments": {}, "thoughtSignature": "s"}]);
    let are_kept = |model: &str, provider: &str, api: &str| {
        let mut message = answer(model, "toolUse", signed.clone());
        (message["provider"], message["api"]) = (provider.into(), api.into());
        let out = transform(&read(&[message]), &target(false), None)[0].to_value();
        (out["content"][0]["textSignature"].is_string(), out["content"][1]["thoughtSignature"].is_string())
    };
    assert_eq!(are_kept("m", "anthropic", "anthropic-messages"), (true, true));
    assert_eq!(are_kept("other", "anthropic", "anthropic-messages"), (false, false));
    assert_eq!(are_kept("m", "other", "anthropic-messages"), (false, false));
    assert_eq!(are_kept("m", "anthropic", "other"), (false, false));
}

/// Generates conversations of a few messages whose calls and results share a few ids.
fn any_messages() -> impl Strategy<Value = Vec<Value>> {
    let id = || prop_oneof![Just("a"), Just("b"), Just("c|1"), Just("c+1")];
    let assistant =
        (prop_oneof![Just("m"), Just("other")], prop_oneof![Just("toolUse"), Just("error")], vec(id(), 0..3))
            .prop_map(|(model, stop, ids)| answer(model, stop, ids.into_iter().map(call).collect()));
    let one = prop_oneof![
        assistant,
        id().prop_map(|id| result(id, "r")),
        Just(user("u")),
        Just(json!({"role": "system", "content": "s", "timestamp": 8})),
    ];
    vec(one, 0..12)
}

#[test]
fn the_targets_own_calls_keep_their_ids() {
    let foreign = answer("other", "toolUse", json!([call("a+b")]));
    let own = answer("m", "toolUse", json!([call("a_b")]));
    let messages = read(&[foreign, own]);
    let rule = |id: &str, _: &Model, _: &crate::message::AssistantMessage| anthropic_id(id);
    let out = transform(&messages, &target(false), Some(&rule));
    let ids: Vec<String> =
        out.iter().filter_map(|m| m.as_assistant()).flat_map(|m| m.tool_calls()).map(|c| c.id.to_string()).collect();
    assert_eq!((ids.len(), ids[1].as_str()), (2, "a_b"));
    assert_ne!(ids[0], ids[1]);
}

proptest! {
    #[test]
    fn every_call_gets_exactly_one_result(messages in any_messages()) {
        let messages = read(&messages);
        let rule = |id: &str, _: &Model, _: &crate::message::AssistantMessage| anthropic_id(id);
        let out = transform(&messages, &target(true), Some(&rule));
        let mut open: Vec<String> = Vec::new();
        for message in &out {
            match &**message {
                Message::Assistant(answer) => {
                    prop_assert!(open.is_empty(), "a call without result");
                    prop_assert!(!answer.stop_reason.is_failure());
                    open = answer.tool_calls().map(|call| call.id.to_string()).collect();
                }
                Message::ToolResult(result) => {
                    let at = open.iter().position(|id| result.tool_call_id == **id);
                    prop_assert!(at.is_some(), "a result without call");
                    open.remove(at.unwrap());
                }
                _ => prop_assert!(open.is_empty(), "something between a call and its result"),
            }
        }
        prop_assert!(open.is_empty());
        // A second pass changes nothing but ids: other models' calls are renamed again, to the same.
        prop_assert_eq!(transform(&out, &target(true), Some(&rule)), out);
    }
}
