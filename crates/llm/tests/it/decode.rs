//! Decoding does not depend on how the network splits the bytes, and never breaks the laws.

use pinch_testing::wires::{anthropic, completions};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{APIS, decode};

/// Returns a response that contains everything.
fn response(api: &str) -> String {
    let frames = if api == "anthropic-messages" {
        anthropic::AnthropicResponse::new("msg_1")
            .with_chunks(3)
            .thinking("hé, ich denke", "SIG")
            .text("grüße 😀 und mehr")
            .tool_call("t1", "read", r#"{"path":"ä.txt","n":[1,2]}"#)
            .stop("tool_use")
    } else {
        completions::CompletionsResponse::new("c1", "m")
            .with_chunks(3)
            .thinking("reasoning", "hé, ich denke")
            .text("grüße 😀 und mehr")
            .tool_call("t1", "read", r#"{"path":"ä.txt","n":[1,2]}"#)
            .finish("tool_calls")
            .usage(&json!({"prompt_tokens": 7, "completion_tokens": 3}))
            .done()
    };
    frames.concat()
}

#[test]
fn whole_responses_become_events() {
    let anthropic = decode(APIS[0], [response(APIS[0]).as_bytes()]);
    assert_eq!(
        anthropic,
        [
            "start",
            "0 thinking",
            "0 + hé, i",
            "0 + ch de",
            "0 + nke",
            r#"0 = {"type":"thinking","thinking":"hé, ich denke","thinkingSignature":"SIG"}"#,
            "1 text",
            "1 + grüße ",
            "1 + 😀 und ",
            "1 + mehr",
            r#"1 = {"type":"text","text":"grüße 😀 und mehr"}"#,
            "2 call t1 read",
            r#"2 + {"path":""#,
            r#"2 + ä.txt","n"#,
            r#"2 + ":[1,2]}"#,
            r#"2 = {"type":"toolCall","id":"t1","name":"read","arguments":{"path":"ä.txt","n":[1,2]}}"#,
            concat!(
                r#"end toolUse [{"type":"thinking","thinking":"hé, ich denke","thinkingSignature":"SIG"}, "#,
                r#"{"type":"text","text":"grüße 😀 und mehr"}, "#,
                r#"{"type":"toolCall","id":"t1","name":"read","arguments":{"path":"ä.txt","n":[1,2]}}]"#
            ),
        ]
    );
    let completions = decode(APIS[1], [response(APIS[1]).as_bytes()]);
    assert_eq!(completions.last().map(|end| end.starts_with("end toolUse ")), Some(true), "{completions:?}");
    assert!(completions.contains(&"usage 10".to_owned()), "{completions:?}");
}

#[test]
fn reasoning_details_are_joined() {
    let detail = |text: &str| json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": text}]});
    let frames = completions::CompletionsResponse::new("c", "m")
        .delta(&detail("a"))
        .delta(&detail("b"))
        .delta(&json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "S"}]}))
        .text("x")
        .finish("stop")
        .done();
    let words = decode(APIS[1], [frames.concat().as_bytes()]);
    let signature = r#"[{\"type\":\"reasoning.text\",\"index\":0,\"text\":\"ab\",\"signature\":\"S\"}]"#;
    assert!(words.last().unwrap().contains(signature), "{words:?}");
}

#[test]
fn arguments_other_than_an_object_are_an_error_of_the_call() {
    for (api, frames) in [
        (APIS[0], anthropic::AnthropicResponse::new("m").tool_call("t", "read", "[1]").stop("tool_use")),
        (
            APIS[1],
            completions::CompletionsResponse::new("m", "m").tool_call("t", "read", "[1]").finish("tool_calls").done(),
        ),
    ] {
        let end = decode(api, [frames.concat().as_bytes()]).pop().unwrap();
        assert!(end.contains(r#""arguments":{},"argumentsError":"expected a JSON object"#), "{end}");
    }
}

#[test]
fn split_surrogate_pairs_are_joined() {
    let delta = |text: &str| {
        let data = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"TEXT"}}"#;
        format!("event: content_block_delta\ndata: {}\n\n", data.replace("TEXT", text))
    };
    let mut frames = anthropic::AnthropicResponse::new("m").text("").stop("end_turn");
    frames[2] = [delta("a\\ud83d"), delta("\\ude00b\\udc00")].concat();
    let words = decode(APIS[0], [frames.concat().as_bytes()]);
    assert!(words.contains(&"0 + a".to_owned()) && words.contains(&"0 + 😀b".to_owned()), "{words:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn chunking_does_not_change_events(cuts in prop::collection::vec(0usize..4_000, 0..12), which in 0usize..2) {
        let text = response(APIS[which]);
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(decode(APIS[which], chunks), decode(APIS[which], [bytes]));
    }

    #[test]
    fn every_prefix_has_exactly_one_end(len in 0usize..4_000, which in 0usize..2) {
        let text = response(APIS[which]);
        let words = decode(APIS[which], [&text.as_bytes()[..len.min(text.len())]]);
        prop_assert_eq!(words.iter().filter(|word| word.starts_with("end ")).count(), 1);
    }

    #[test]
    fn garbage_has_exactly_one_end(at in prop::collection::vec((0usize..4_000, any::<u8>()), 1..8), which in 0usize..2) {
        let mut bytes = response(APIS[which]).into_bytes();
        let n = bytes.len();
        at.into_iter().for_each(|(at, byte)| bytes[at % n] = byte);
        let words = decode(APIS[which], [&bytes[..]]);
        prop_assert_eq!(words.iter().filter(|word| word.starts_with("end ")).count(), 1);
    }

    #[test]
    fn odd_json_has_exactly_one_end(frames in prop::collection::vec(odd_frame(), 0..12), which in 0usize..2) {
        let words = decode(APIS[which], [frames.concat().as_bytes()]);
        prop_assert_eq!(words.iter().filter(|word| word.starts_with("end ")).count(), 1);
    }
}

/// Generates frames of known names whose members have any type.
fn odd_frame() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    ]);
    let member = prop::sample::select(vec![
        "index",
        "delta",
        "content_block",
        "message",
        "usage",
        "choices",
        "type",
        "text",
        "tool_calls",
        "function",
        "content",
        "reasoning_details",
        "finish_reason",
        "stop_reason",
        "error",
        "id",
        "model",
    ]);
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!("tool_use")),
        Just(json!("text")),
        Just(json!("stop")),
        Just(json!([])),
    ];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(serde_json::Value::Array),
            prop::collection::vec((member.clone(), inner), 0..5)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    });
    (name, value).prop_map(|(name, value)| format!("event: {name}\ndata: {value}\n\n"))
}
