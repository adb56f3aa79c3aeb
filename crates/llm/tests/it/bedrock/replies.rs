//! Amazon Bedrock: responses.

use std::sync::Arc;

use pinch_llm::error::LlmErrorKind;
use pinch_llm::frame::aws_event;
use pinch_llm::message::Message;
use pinch_testing::server::{Fault, Server, ServerReply};
use pinch_testing::wires::bedrock::{BedrockResponse, exception, frame, message};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{API, SONNET, answered, events, keys};
use crate::support::{decode, end_of, model_with, request, tool};

fn whole() -> Vec<u8> {
    let frames = BedrockResponse::new()
        .with_chunks(2)
        .thinking("hé, so", "SIG")
        .text("grüße 😀")
        .tool_call("t1", "read", r#"{"path":"ä"}"#)
        .stop("tool_use");
    frames.concat()
}

#[test]
fn a_whole_response_becomes_events() {
    assert_eq!(
        decode(API, [&whole()[..]]),
        [
            "start",
            "0 thinking",
            "0 + hé,",
            "0 +  so",
            r#"0 = {"type":"thinking","thinking":"hé, so","thinkingSignature":"SIG"}"#,
            "1 text",
            "1 + grüß",
            "1 + e 😀",
            r#"1 = {"type":"text","text":"grüße 😀"}"#,
            "2 call t1 read",
            r#"2 + {"path"#,
            r#"2 + ":"ä"}"#,
            r#"2 = {"type":"toolCall","id":"t1","name":"read","arguments":{"path":"ä"}}"#,
            "usage 15",
            concat!(
                r#"end toolUse [{"type":"thinking","thinking":"hé, so","thinkingSignature":"SIG"}, "#,
                r#"{"type":"text","text":"grüße 😀"}, {"type":"toolCall","id":"t1","name":"read","arguments":{"path":"ä"}}]"#
            ),
        ]
    );
}

#[test]
fn hidden_reasoning_round_trips() {
    let hidden = |text: &str| json!({"reasoningContent": {"redactedContent": text}});
    let frames = BedrockResponse::new().block(None, vec![hidden("YQ=="), hidden("Yg==")]).stop("end_turn").concat();
    let end = decode(API, [&frames[..]]).pop().unwrap();
    assert!(end.contains(r#""thinkingSignature":"YWI=","redacted":true"#), "{end}");
}

#[test]
fn every_stop_reason_ends_the_answer() {
    let end = |frames: Vec<Vec<u8>>| decode(API, [&frames.concat()[..]]).pop().unwrap();
    let stop = |word: &str| end(BedrockResponse::new().text("a").stop(word));
    for (word, expect) in [
        ("end_turn", "end stop ["),
        ("stop_sequence", "end stop ["),
        ("max_tokens", "end length ["),
        ("model_context_window_exceeded", "end length ["),
        ("guardrail_intervened", "ContentFiltered Content Provider stopped with: guardrail_intervened"),
        ("content_filtered", "ContentFiltered Content Provider stopped with: content_filtered"),
        ("malformed_tool_use", "Protocol Content Provider stopped with: malformed_tool_use"),
        ("new_word", "Protocol Content Unhandled stop reason: new_word"),
    ] {
        assert!(stop(word).contains(expect), "{}", stop(word));
    }
    assert!(
        end(BedrockResponse::new().text("a").frames())
            .contains("StreamCut Content Bedrock stream ended before messageStop")
    );
    // The usage may be missing.
    let unpriced = BedrockResponse::new().text("a").event("messageStop", json!({"stopReason": "end_turn"})).frames();
    assert!(end(unpriced).starts_with("end stop ["));
    let user = end(vec![message("messageStart", &json!({"role": "user"}))]);
    assert!(user.ends_with("Unexpected assistant message start but got user message start instead"), "{user}");
    let open = [message("messageStart", &json!({"role": "assistant"})), b"\0\0\0".to_vec()];
    assert!(end(open.to_vec()).contains("ended inside a message"));
}

#[tokio::test]
async fn exceptions_within_the_stream_are_errors() {
    for (name, prefix, kind) in [
        ("throttlingException", "Throttling error", LlmErrorKind::RateLimit),
        ("validationException", "Validation error", LlmErrorKind::InvalidRequest),
        ("serviceUnavailableException", "Service unavailable", LlmErrorKind::Overloaded),
        ("internalServerException", "Internal server error", LlmErrorKind::Server),
        ("modelStreamErrorException", "Model stream error", LlmErrorKind::Server),
        ("oddException", "OddException", LlmErrorKind::Protocol),
    ] {
        let mut frames = BedrockResponse::new().frames();
        frames.push(message("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"text": "par"}})));
        frames.push(exception(name, "no luck"));
        let (end, _) = answered(events(frames), |_| {}).await;
        let error = end.error.unwrap();
        assert_eq!((error.kind, error.text.as_str()), (kind, &*format!("{prefix}: no luck")));
        assert_eq!(end.message.text(""), "par");
        let code = name[..1].to_uppercase() + &name[1..];
        let noted = json!([{"type": "bedrock_response_failure", "details": {"errorCode": code}}]);
        assert_eq!(end.message.diagnostics.as_ref(), Some(&noted));
    }
    let long = exception("validationException", "Input is too long for requested model.");
    let (end, _) = answered(events(vec![long]), |_| {}).await;
    assert_eq!(end.error.unwrap().kind, LlmErrorKind::ContextOverflow);
    let headers = [(":message-type", "error"), (":error-code", "InternalFailure"), (":error-message", "boom")];
    let (end, _) = answered(events(vec![frame(&headers, b"")]), |_| {}).await;
    assert_eq!(end.error.unwrap().text, "InternalFailure: boom");
}

#[tokio::test]
async fn refusals_become_typed_errors() {
    let reply = ServerReply::json(429, &json!({"message": "slow"}))
        .header("x-amzn-errortype", "ThrottlingException:http://internal.amazon.com/")
        .header("x-amzn-requestid", "r1")
        .header("retry-after", "2");
    let (end, _) = answered(reply, |_| {}).await;
    let error = end.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::RateLimit, "Throttling error: slow"));
    assert_eq!((error.request_id.as_deref(), error.retry_after.map(|d| d.as_secs())), (Some("r1"), Some(2)));
    let (end, _) =
        answered(ServerReply::json(403, &json!({"Message": "no", "__type": "x#AccessDeniedException"})), |_| {}).await;
    let error = end.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Auth, "AccessDeniedException: no"));
    let (end, _) = answered(ServerReply::status(502), |_| {}).await;
    assert_eq!(end.error.unwrap().text, "502 status code (no body)");
}

#[tokio::test]
async fn a_broken_stream_is_a_retryable_error() {
    let mut bytes = whole();
    let at = bytes.len() - 30;
    bytes[at] ^= 1;
    let (end, _) = answered(events(vec![bytes]), |_| {}).await;
    let error = end.error.unwrap();
    assert_eq!(
        (error.kind, error.text.as_str()),
        (LlmErrorKind::Protocol, "an event stream message has a wrong checksum")
    );
    let cut = whole()[..200].to_vec();
    let (end, _) = answered(events(vec![cut.clone()]), |_| {}).await;
    assert_eq!(end.error.unwrap().kind, LlmErrorKind::StreamCut);
    let (end, _) = answered(events(vec![cut]).then(Fault::Close), |_| {}).await;
    assert!(end.error.unwrap().text.starts_with("Connection error: stream terminated ("));
}

#[tokio::test]
async fn limits_of_strict_tools_are_hit_only_once() {
    let server = Server::start().await.unwrap();
    let limit = json!({"message": "Too many strict tools (21)."});
    server.reply(ServerReply::json(400, &limit).header("x-amzn-errortype", "ValidationException"));
    server.reply(events(BedrockResponse::new().text("a").stop("end_turn")));
    let more = json!({"id": SONNET, "provider": "amazon-bedrock", "compat": {"supportsStrictMode": true}});
    let mut request = request(model_with(API, &server.url(), more));
    let mut strict = tool("read");
    strict.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
    request.tools = Arc::new([strict]);
    request.auth = keys();
    assert!(end_of(request).await.is_ok());
    let flags: Vec<Value> = server
        .requests()
        .iter()
        .map(|asked| asked.json()["toolConfig"]["tools"][0]["toolSpec"]["strict"].clone())
        .collect();
    assert_eq!(flags, [json!(true), Value::Null]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn chunking_does_not_change_events(cuts in prop::collection::vec(0usize..3_000, 0..12)) {
        let bytes = whole();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(decode(API, chunks), decode(API, [&bytes[..]]));
    }

    #[test]
    fn corrupted_and_truncated_bytes_have_exactly_one_end(len in 0usize..3_000, at in 0usize..3_000, byte in any::<u8>()) {
        let mut bytes = whole();
        let n = bytes.len();
        bytes[at % n] = byte;
        let words = decode(API, [&bytes[..len.min(n)]]);
        prop_assert_eq!(words.iter().filter(|word| word.starts_with("end ")).count(), 1);
    }

    #[test]
    fn odd_payloads_have_exactly_one_end(frames in prop::collection::vec(odd_frame(), 0..10)) {
        let words = decode(API, [&frames.concat()[..]]);
        prop_assert_eq!(words.iter().filter(|word| word.starts_with("end ")).count(), 1);
    }
}

/// Generates events of known names whose members have any type.
fn odd_frame() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec![
        "messageStart",
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "messageStop",
        "metadata",
        "odd",
    ]);
    let member = prop::sample::select(vec![
        "role",
        "contentBlockIndex",
        "start",
        "delta",
        "toolUse",
        "toolUseId",
        "name",
        "text",
        "input",
        "reasoningContent",
        "signature",
        "redactedContent",
        "stopReason",
        "usage",
        "inputTokens",
        "cacheDetails",
    ]);
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(-1)),
        Just(json!(1)),
        Just(json!("assistant")),
        Just(json!("=")),
        Just(json!([]))
    ];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((member.clone(), inner), 0..5)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    });
    (name, value).prop_map(|(name, value)| message(name, &value))
}

#[tokio::test]
async fn throttling_midway_is_a_rate_limit() {
    let mut frames = BedrockResponse::new().frames();
    frames.push(message("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"text": "par"}})));
    frames.push(exception("throttlingException", "Too many tokens, please wait"));
    let words = decode(API, [&frames.concat()[..]]);
    assert_eq!(words[..3], ["start", "0 text", "0 + par"]);
    let (end, _) = answered(events(frames), |_| {}).await;
    let mut kept = Message::Assistant(end.message).to_value();
    for free in ["timestamp", "durationMs"] {
        kept.as_object_mut().unwrap().remove(free);
    }
    let zero = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
                      "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.0}});
    assert_eq!(
        kept,
        json!({
            "role": "assistant", "content": [{"type": "text", "text": "par"}], "api": API, "provider": "amazon-bedrock",
            "model": SONNET, "usage": zero, "stopReason": "error",
            "errorMessage": "Throttling error: Too many tokens, please wait",
            "diagnostics": [{"type": "bedrock_response_failure", "details": {"errorCode": "ThrottlingException"}}],
        })
    );
}

/// A frame as encoded by Amazon's own library.
const RECORDED: &str = "0000008300000061a9d144e50f3a657863657074696f6e2d747970650700137468726f74746c696e67457863657074696f6e\
    0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d74797065070009657863657074696f6e\
    7b226d657373616765223a22736c6f77227d9350311c";

#[test]
fn a_recorded_frame_is_decoded() {
    let byte = |at: usize| u8::from_str_radix(&RECORDED[at..at + 2], 16).unwrap();
    let mut bytes: Vec<u8> = (0..RECORDED.len()).step_by(2).map(byte).collect();
    let read = aws_event::EventMessage::read(&bytes, 1_000).unwrap().unwrap();
    assert_eq!((read.total_len, read.headers_len), (bytes.len(), 0x61));
    let headers: Vec<(&str, &str)> =
        read.headers.iter().map(|(name, value)| (*name, value.as_text().unwrap())).collect();
    assert_eq!(
        headers,
        [
            (":exception-type", "throttlingException"),
            (":content-type", "application/json"),
            (":message-type", "exception"),
        ]
    );
    assert_eq!(read.payload, br#"{"message":"slow"}"#);
    *bytes.last_mut().unwrap() = 0;
    assert_eq!(aws_event::EventMessage::read(&bytes, 1_000), Err(aws_event::AwsEventError::Checksum));
}
