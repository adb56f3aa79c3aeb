//! Texts, images, signatures, and the origin of messages.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::{answer, call, read, result, user};
use super::{check, check_answers, lines, said, thought};
use crate::message::Message;
use crate::model::transcript::TranscriptRules;
use crate::normalise::text;

#[test]
fn signatures_of_other_servers_go() {
    let step = |base64_signatures| {
        let rules = TranscriptRules { clean_content: true, base64_signatures, ..TranscriptRules::default() };
        move |messages: &[Arc<Message>]| text::clean(messages, &rules)
    };
    let signed = |signature: &str| {
        let mut text = said("a");
        text["textSignature"] = signature.into();
        let mut call = call("x");
        call["thoughtSignature"] = signature.into();
        json!([text, thought("t", signature), call])
    };
    let contents = [signed("msg_1"), signed("c2ln"), signed("sig!")];
    let plain = "assistant: a {t} [x read]";
    let base64 = "assistant: a/c2ln {t}/c2ln [x read]/c2ln";
    check_answers(step(false), &contents, &[plain, base64, "assistant: a/sig! {t}/sig! [x read]/sig!"]);
    check_answers(step(true), &contents, &[plain, base64, plain]);
}

#[test]
fn blank_texts_go_where_the_rules_say_so() {
    let clean = TranscriptRules { clean_content: true, ..TranscriptRules::default() };
    let keep = TranscriptRules { keep_signatures: true, ..clean };
    let contents = [json!([said(" "), said("a")]), json!([said("\n")]), json!([])];
    check_answers(|messages| text::clean(messages, &clean), &contents, &["assistant: a"]);
    let all = ["assistant:   a", "assistant: \n", "assistant: "];
    check_answers(|messages| text::clean(messages, &keep), &contents, &all);
    check_answers(|messages| text::clean(messages, &TranscriptRules::default()), &contents, &all);
    // Failed answers are not sent.
    check(|messages| text::clean(messages, &clean), &[answer("m", "error", json!([said(" ")]))], &["assistant:  "]);

    let step = |messages: &[Arc<Message>]| text::without_blanks(messages.to_vec());
    let blocks = |blocks: Value| json!({"role": "user", "content": blocks, "timestamp": 8});
    let image = json!({"type": "image", "data": "iVBORw", "mimeType": "image/png"});
    check(
        step,
        &[user(" "), user("a"), blocks(json!([said(" ")])), blocks(json!([])), blocks(json!([said(" "), image]))],
        &[
            "user: \"(empty message)\"",
            "user: \"a\"",
            "user: \"(empty message)\"",
            "user: \"(empty message)\"",
            "user:   <image/png>",
        ],
    );
}

#[test]
fn broken_images_become_notes_and_wrong_types_are_corrected() {
    let image = |data: &str, mime: &str| json!({"type": "image", "data": data, "mimeType": mime});
    let images = json!([
        image("  ", "image/png"),
        image("/9j/AA", "image/png"),
        image("iVBORw", "image/jpeg"),
        image("R0lGOD", "image/gif"),
        image("AAAA", "image/webp"),
    ]);
    let shown = "[session:history] omitted empty image payload <image/jpeg> <image/png> <image/gif> <image/webp>";
    let mut given = result("x", "");
    given["content"] = images.clone();
    check(
        |messages| text::clean(messages, &TranscriptRules::default()),
        &[json!({"role": "user", "content": images, "timestamp": 8}), given],
        &[&format!("user: {shown}"), &format!("toolResult(x): {shown}")],
    );
    let right = read(&[json!({"role": "user", "content": [image("iVBORw", "image/png")], "timestamp": 8})]);
    assert!(Arc::ptr_eq(&text::clean(&right, &TranscriptRules::default())[0], &right[0]));
}

#[test]
fn messages_of_other_sessions_are_marked_once() {
    let from = |content: Value, kind: &str| {
        json!({"role": "user", "content": content, "timestamp": 8,
            "provenance": {"kind": kind, "sourceSession": "", "sourceSessionKey": "agent:a:main", "sourceTool": "sessions_send"}})
    };
    let mark = "[Inter-session message] sourceSession=agent:a:main sourceTool=sessions_send";
    let image = json!({"type": "image", "data": "iVBORw", "mimeType": "image/png"});
    let messages = [
        from(json!("hi"), "inter_session"),
        from(json!([image, said("look")]), "inter_session"),
        from(json!([image]), "inter_session"),
        from(json!("[Inter-session message]\nhi"), "inter_session"),
        from(json!("hi"), "external_user"),
    ];
    let expect = [
        format!("user: {:?}", format!("{mark}\nhi")),
        format!("user: <image/png> {mark}\nlook"),
        format!("user: {mark} <image/png>"),
        "user: \"[Inter-session message]\\nhi\"".to_owned(),
        "user: \"hi\"".to_owned(),
    ];
    let once = text::mark_inter_session(&read(&messages));
    assert_eq!(lines(&once), expect);
    assert_eq!(text::mark_inter_session(&once), once);
}
