//! Mistral's chat format: encoding, and order of the events.

use pinch_llm::error::LlmErrorKind;
use pinch_llm::request::{CacheRetention, NativeThinking, Request, ThinkingChoice};
use pinch_llm::thinking::ThinkingLevel;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::mistral::MistralResponse;
use serde_json::{Value, json};

use crate::support::{body, decode, encode, end_of, messages, model_with, request};

const API: &str = "mistral-conversations";

fn at(base_url: &str, id: &str, more: Value) -> Request {
    let mut record = json!({"id": id, "provider": "mistral"});
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request(model_with(API, base_url, record))
}

fn request_to(id: &str, more: Value) -> Request {
    at("http://localhost", id, more)
}

#[test]
fn calls_of_other_models_and_their_results_get_ids_of_nine_characters() {
    let mut request = request_to("mistral-large-4", json!({}));
    request.messages = messages(json!([
        {"role": "user", "content": " ", "timestamp": 1},
        {"role": "user", "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "timestamp": 1},
        {"role": "assistant", "api": "openai-completions", "provider": "p", "model": "m", "stopReason": "toolUse", "timestamp": 2,
         "content": [
            {"type": "thinking", "thinking": "foreign"},
            {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"n": 1.0}},
            {"type": "toolCall", "id": "D681-PevKs", "name": "shot", "arguments": {}}]},
        {"role": "toolResult", "toolCallId": "call_1", "toolName": "read", "content": [], "isError": true, "timestamp": 3},
        {"role": "toolResult", "toolCallId": "D681-PevKs", "toolName": "shot", "isError": false, "timestamp": 3,
         "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]},
    ]));
    let told = body(&request)["messages"].as_array().unwrap().clone();
    let image = json!({"type": "image_url", "image_url": "data:image/png;base64,AAAA"});
    assert_eq!(told[0], json!({"role": "user", "content": [image]}));
    let first = told[1]["tool_calls"][0]["id"].as_str().unwrap().to_owned();
    assert!(first.len() == 9 && first.bytes().all(|b| b.is_ascii_alphanumeric()), "{first}");
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let calls = [call(&first, "read", r#"{"n":1}"#), call("D681PevKs", "shot", "{}")];
    assert_eq!(told[1], json!({"role": "assistant", "tool_calls": calls}));
    let text = |text: &str| json!({"type": "text", "text": text});
    let failed = json!({"role": "tool", "tool_call_id": first, "name": "read", "content": [text("[tool error] (no tool output)")]});
    assert_eq!(told[2], failed);
    assert_eq!(told[3]["tool_call_id"], "D681PevKs");
    assert_eq!(told[3]["content"], json!([text("(see attached image)"), image]));
}

#[test]
fn prompt_changes_stay_in_place_if_the_model_supports_them() {
    let list = json!([
        {"role": "system", "content": "", "sections": {"rules": "be kind"}, "timestamp": 0},
        {"role": "user", "content": "one", "timestamp": 1},
        {"role": "system", "content": "", "sections": {"rules": "be brief"}, "timestamp": 2},
    ]);
    for (compat, roles) in [
        (json!({}), vec!["system", "user"]),
        (json!({"supportsMidConvoSystemMessages": true}), vec!["system", "user", "system"]),
    ] {
        let mut request = request_to("m", json!({"compat": compat}));
        request.messages = messages(list.clone());
        let body = body(&request);
        let told: Vec<&str> = body["messages"].as_array().unwrap().iter().filter_map(|m| m["role"].as_str()).collect();
        assert_eq!(told, roles);
    }
}

#[test]
fn thinking_is_requested_by_mode_or_by_effort() {
    let said = |id: &str, map: Value, choice: ThinkingChoice| {
        let mut request = request_to(id, json!({"thinkingLevelMap": map}));
        request.options.thinking = choice;
        let body = body(&request);
        (body["prompt_mode"].clone(), body["reasoning_effort"].clone())
    };
    use ThinkingChoice::{Level, Native, Unset};
    use ThinkingLevel::{Low, Medium, Off};
    let words = || json!({"off": "none", "low": null, "medium": null, "high": "high"});
    assert_eq!(said("magistral-medium-latest", words(), Level(Low)), (json!("reasoning"), json!(null)));
    assert_eq!(said("unknown", json!({}), Level(Low)), (json!("reasoning"), json!(null)));
    assert_eq!(said("mistral-small-2603", json!({}), Level(Low)), (json!(null), json!("high")));
    assert_eq!(said("mistral-small-2603", words(), Level(Off)), (json!(null), json!(null)));
    assert_eq!(said("glm-5-2", words(), Level(Medium)), (json!(null), json!("high")));
    assert_eq!(said("glm-5-2", words(), Level(Off)), (json!(null), json!("none")));
    assert_eq!(said("glm-5-2", words(), Unset), (json!(null), json!(null)));
    let native = NativeThinking { effort: Some("none".into()), ..NativeThinking::default() };
    assert_eq!(said("unknown", json!({}), Native(native)), (json!(null), json!("none")));
}

#[test]
fn the_session_id_is_sent_for_affinity_and_caching() {
    let mut request = request_to("m", json!({}));
    request.options.session_id = Some("s".repeat(65).into());
    let made = encode(&request);
    assert_eq!(made.headers["x-affinity"].len(), 64);
    assert_eq!(made.body["prompt_cache_key"].as_str().unwrap().len(), 64);
    request.options.headers = vec![("X-Affinity".into(), Some("mine".into()))];
    request.options.cache_retention = Some(CacheRetention::None);
    let made = encode(&request);
    assert_eq!((&made.headers["x-affinity"], made.body.get("prompt_cache_key")), (&"mine".parse().unwrap(), None));
}

#[test]
fn a_whole_response_becomes_events() {
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 2}});
    let frames = MistralResponse::new("m1", "x")
        .with_chunks(2)
        .thinking("hmhm")
        .tool_call("D681PevKs", "read", r#"{"path":"z"}"#)
        .tool_call("", "list", "{}")
        .text("after")
        .usage(&usage)
        .stop("stop");
    let words = decode(API, [frames.concat().as_bytes()]);
    assert_eq!(
        words[..14],
        [
            "start",
            "0 thinking",
            "0 + hm",
            "0 + hm",
            r#"0 = {"type":"thinking","thinking":"hmhm"}"#,
            "1 call D681PevKs read",
            r#"1 + {"path"#,
            r#"1 + ":"z"}"#,
            "2 call toolcall1 list",
            "2 + {",
            "2 + }",
            r#"1 = {"type":"toolCall","id":"D681PevKs","name":"read","arguments":{"path":"z"}}"#,
            &words[12],
            "3 text",
        ]
    );
    assert!(words[12].starts_with("2 = {"), "{words:?}");
    assert!(words.contains(&"usage 10".to_owned()) && words.last().unwrap().starts_with("end toolUse "), "{words:?}");
}

#[test]
fn finish_reasons_decide_how_an_answer_ends() {
    let end = |frames: Vec<String>| decode(API, [frames.concat().as_bytes()]).pop().unwrap();
    let text = || MistralResponse::new("m", "m").text("x");
    assert!(end(text().stop("model_length")).starts_with("end length "));
    assert!(end(text().stop("error")).ends_with("Content Provider stopped with: error"));
    assert!(end(text().stop("tired")).ends_with("Protocol Content Provider stopped with: tired"));
    assert!(end(text().done()).ends_with("StreamCut Content Mistral stream ended without a finish reason"));
    let said = end(vec!["{\"object\":\"error\",\"message\":\"slow down\",\"type\":\"rate_limited\"}".into()]);
    assert!(said.ends_with("RateLimit Started Mistral API error: slow down"), "{said}");
    let broken = end(MistralResponse::new("m", "m").tool_call("t", "read", "[1]").stop("tool_calls"));
    assert!(broken.contains(r#""arguments":{},"argumentsError":"expected a JSON object"#), "{broken}");
}

#[tokio::test]
async fn long_error_bodies_are_truncated() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::status(503).send("é".repeat(4_010))).reply(ServerReply::status(401));
    let error = end_of(at(&server.url(), "m", json!({}))).await.error.unwrap();
    assert!(error.text.starts_with("Mistral API error (503): éé") && error.text.ends_with("é... [truncated 10 chars]"));
    assert_eq!(error.kind, LlmErrorKind::Server);
    let error = end_of(at(&server.url(), "m", json!({}))).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Auth, "Mistral API error (401): Unauthorized"));
}
