//! Agent histories, in every state that a crash, a truncation, an import or another model may leave them in.

use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::model::transcript::TranscriptRules;
use pinch_llm::normalise::history::{RequestFacts, prepare, sanitised};
use pinch_llm::request::{CallOptions, Request, ThinkingChoice};
use pinch_llm::thinking::ThinkingLevel;
use pinch_testing::rules;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::responses::subscription;
use crate::support::{body, request};

const PROVIDERS: &[(&str, &str, &str)] = &[
    ("anthropic-messages", "anthropic", "claude-sonnet-4-5"),
    ("anthropic-messages", "minimax", "MiniMax-M2.1"),
    ("google-generative-ai", "google", "gemini-3-pro-preview"),
    ("openai-completions", "local", "m"),
    ("openai-completions", "mistral", "codestral"),
    ("mistral-conversations", "mistral", "codestral"),
    ("openai-responses", "openai", "gpt-5.2"),
    ("azure-openai-responses", "azure-openai", "gpt-5.2"),
    ("openai-codex-responses", "openai-codex", "gpt-5.2-codex"),
    #[cfg(feature = "bedrock")]
    ("bedrock-converse-stream", "amazon-bedrock", "anthropic.claude-sonnet-4-5-v1:0"),
    #[cfg(feature = "bedrock")]
    ("bedrock-converse-stream", "amazon-bedrock", "amazon.nova-pro-v1:0"),
];

fn model(api: &str, provider: &str, id: &str) -> Arc<Model> {
    let record = json!({"id": id, "api": api, "provider": provider, "baseUrl": "http://localhost", "reasoning": true,
        "input": ["text", "image"], "contextWindow": 200_000, "maxTokens": 8_000});
    Arc::new(Model::from_record(&record).unwrap())
}

fn block() -> impl Strategy<Value = Value> {
    let signature = || {
        prop_oneof![
            Just(Value::Null),
            Just(json!("c2lnbg==")),
            Just(json!("sig!")),
            Just(json!("msg_1")),
            Just(json!("{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[]}")),
        ]
    };
    let call =
        prop_oneof![Just("a"), Just("a|fc_1"), Just("call_a|b"), Just(" c:1"), Just(""), Just("toolu_01ABCdef-9")];
    let name = prop_oneof![4 => Just("read"), 1 => Just("bad name!"), 1 => Just(" edit ")];
    prop_oneof![
        3 => prop_oneof![Just("hi"), Just(" "), Just("")].prop_map(|text| json!({"type": "text", "text": text})),
        1 => Just(json!({"type": "text", "text": "hi", "textSignature": "msg_1"})),
        2 => (prop_oneof![Just("hm"), Just("")], signature()).prop_map(|(text, signature)| match signature {
            Value::Null => json!({"type": "thinking", "thinking": text}),
            signature => json!({"type": "thinking", "thinking": text, "thinkingSignature": signature}),
        }),
        3 => (call, name, signature()).prop_map(|(id, name, signature)| {
            let mut call = json!({"type": "toolCall", "id": id, "name": name, "arguments": {}});
            if let Value::String(signature) = signature {
                call["thoughtSignature"] = signature.into();
            }
            call
        }),
        1 => Just(json!({"type": "toolCall", "id": "cut", "name": "read"})),
        1 => Just(json!({"type": "toolUse", "id": "x|y", "name": "read", "input": {}})),
    ]
}

/// Gives the items of OpenAI's calls ids of their kind, as the server does.
fn with_own_ids(api: &str, mut blocks: Vec<Value>) -> Vec<Value> {
    for block in blocks.iter_mut().filter(|_| api.ends_with("-responses")) {
        let Some((call, item)) = block["id"].as_str().and_then(|id| id.split_once('|')) else { continue };
        if !item.starts_with("fc_") {
            block["id"] = format!("{call}|fc_{item}").into();
        }
    }
    blocks
}

/// Makes call ids unique within an answer, as every server does.
fn with_distinct_ids(blocks: Vec<Value>) -> Vec<Value> {
    let mut seen = Vec::new();
    blocks
        .into_iter()
        .filter(|block| {
            block["id"].is_null()
                || !seen.contains(&block["id"]) && {
                    seen.push(block["id"].clone());
                    true
                }
        })
        .collect()
}

fn message() -> impl Strategy<Value = Value> {
    let from = prop_oneof![
        3 => Just(("anthropic-messages", "anthropic", "claude-sonnet-4-5")),
        1 => Just(("openai-responses", "openai", "gpt-5.2")),
        1 => Just(("openai-codex-responses", "openai-codex", "gpt-5.2-codex")),
        1 => Just(("bedrock-converse-stream", "amazon-bedrock", "anthropic.claude-sonnet-4-5-v1:0")),
        1 => Just(("google-generative-ai", "google", "gemini-3-pro-preview")),
        1 => Just(("openai-completions", "local", "m")),
        1 => Just(("", "openclaw", "delivery-mirror")),
    ];
    let stop = prop_oneof![4 => Just("toolUse"), 2 => Just("stop"), 1 => Just("error"), 1 => Just("aborted"), 1 => Just("length")];
    let answer = (from, stop, vec(block(), 0..4)).prop_map(|((api, provider, model), stop, content)| {
        json!({"role": "assistant", "api": api, "provider": provider, "model": model, "stopReason": stop,
            "errorMessage": "x", "content": with_own_ids(api, with_distinct_ids(content))})
    });
    let id = prop_oneof![
        Just("a"),
        Just("a|fc_1"),
        Just("call_a|b"),
        Just("call_a|fc_b"),
        Just(" c:1"),
        Just(""),
        Just("toolu_01ABCdef-9"),
        Just("none")
    ];
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    prop_oneof![
        4 => answer,
        4 => id.prop_map(|id| json!({"role": "toolResult", "toolCallId": id, "toolName": "", "content": [{"type": "text", "text": "r"}]})),
        2 => prop_oneof![Just(json!("hello")), Just(json!(" ")), Just(json!([])), Just(json!([image])),
            Just(json!([{"type": "text", "text": "there"}]))].prop_map(|content| json!({"role": "user", "content": content})),
        1 => Just(json!({"role": "user", "content": "from afar", "provenance": {"kind": "inter_session", "sourceTool": "t"}})),
        1 => Just(json!({"role": "unknown", "content": []})),
    ]
}

fn transcript() -> impl Strategy<Value = Vec<Arc<Message>>> {
    vec((message(), 0_i64..40), 0..14).prop_map(|messages| {
        let timed = |(mut message, time): (Value, i64)| {
            message["timestamp"] = time.into();
            Arc::new(Message::from_value(&message).unwrap())
        };
        let mut messages: Vec<Arc<Message>> = messages.into_iter().map(timed).collect();
        // The requested turn.
        messages.push(Arc::new(Message::user("go on", 50)));
        messages
    })
}

/// Generates the rules of the providers, and of some whose format is not encoded here.
fn any_rules() -> impl Strategy<Value = TranscriptRules> {
    let others = [
        ("google-antigravity", "google-antigravity", "claude-opus-4-5"),
        ("anthropic-messages", "github-copilot", "claude-sonnet-4-5"),
        ("bedrock-converse-stream", "amazon-bedrock", "anthropic.claude-sonnet-4-5"),
        ("openai-completions", "openrouter", "google/gemini-2.5-pro"),
        ("openai-completions", "openai", "gpt-5.2"),
    ];
    let all: Vec<TranscriptRules> =
        PROVIDERS.iter().chain(&others).map(|(api, provider, id)| TranscriptRules::detect(api, provider, id)).collect();
    proptest::sample::select(all)
}

/// Returns the first rule of its server that a request violates.
fn broken(request: &Request) -> Result<(), String> {
    let body = body(request);
    match request.model.api.as_str() {
        "anthropic-messages" => rules::anthropic(&body),
        "google-generative-ai" => rules::google(&body),
        "openai-responses" | "azure-openai-responses" | "openai-codex-responses" => rules::responses(&body),
        "bedrock-converse-stream" => rules::bedrock(&body, request.model.id.as_str().contains("claude")),
        _ if request.model.provider.as_str() == "mistral" => rules::chat(&body, rules::is_mistral_id),
        _ => rules::chat(&body, |_| true),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_becomes_a_request_that_its_server_accepts(
        messages in transcript(),
        which in 0..PROVIDERS.len(),
        thinking in any::<bool>(),
        model_changed in any::<bool>(),
    ) {
        let (api, provider, id) = PROVIDERS[which];
        let model = model(api, provider, id);
        let facts = RequestFacts { model_changed, thinking, unsigned_thinking: false };
        let prepared = prepare(&messages, &model.dialect.history.transcript, facts);
        prop_assert!(!prepared.is_empty());
        let mut options = CallOptions::default();
        options.thinking = ThinkingChoice::Level(if thinking { ThinkingLevel::High } else { ThinkingLevel::Off });
        let mut asked = request((*model).clone()).with_auth(subscription());
        asked.messages = prepared;
        let held = broken(&asked.with_options(options));
        prop_assert!(held.is_ok(), "{api} {provider}: {}", held.unwrap_err());
    }

    #[test]
    fn preparing_twice_changes_nothing(
        messages in transcript(),
        rules in any_rules(),
        thinking in any::<bool>(),
        model_changed in any::<bool>(),
    ) {
        let facts = RequestFacts { model_changed, thinking, unsigned_thinking: false };
        let once = sanitised(&messages, &rules, facts);
        prop_assert_eq!(&sanitised(&once, &rules, facts), &once);
        let once = prepare(&messages, &rules, facts);
        prop_assert_eq!(&prepare(&once, &rules, facts), &once);
    }
}

#[test]
fn unchanged_messages_are_shared() {
    let messages: Vec<Arc<Message>> = [
        json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1}),
        json!({"role": "assistant", "api": "anthropic-messages", "provider": "anthropic", "model": "m", "stopReason": "toolUse",
            "content": [{"type": "toolCall", "id": "a1", "name": "read", "arguments": {}}], "timestamp": 2}),
        json!({"role": "toolResult", "toolCallId": "a1", "toolName": "read", "content": [], "timestamp": 3}),
    ].iter().map(|message| Arc::new(Message::from_value(message).unwrap())).collect();
    for &(api, provider, id) in PROVIDERS.iter().filter(|(_, provider, _)| *provider != "mistral") {
        let rules = TranscriptRules::detect(api, provider, id);
        let prepared = prepare(&messages, &rules, RequestFacts::default());
        assert!(prepared.iter().zip(&messages).all(|(now, before)| Arc::ptr_eq(now, before)), "{api} {provider}");
        assert_eq!(prepared.len(), messages.len());
    }
}

#[test]
fn white_space_around_call_ids_does_not_separate_calls_from_results() {
    for (call, result) in [("c1", " c1 "), (" c1", "c1"), ("c1\n", " c1")] {
        let messages: Vec<Arc<Message>> = [
            json!({"role": "user", "content": "hi", "timestamp": 1}),
            json!({"role": "assistant", "api": "openai-completions", "provider": "local", "model": "m",
                "stopReason": "toolUse", "content": [{"type": "toolCall", "id": call, "name": "read", "arguments": {}}],
                "timestamp": 2}),
            json!({"role": "toolResult", "toolCallId": result, "toolName": "read",
                "content": [{"type": "text", "text": "found"}], "timestamp": 3}),
        ]
        .iter()
        .map(|message| Arc::new(Message::from_value(message).unwrap()))
        .collect();
        let model = model("openai-completions", "local", "m");
        let mut asked = request((*model).clone());
        asked.messages = prepare(&messages, &model.dialect.history.transcript, RequestFacts::default());
        let sent = body(&asked)["messages"].clone();
        let seen = json!([sent[1]["tool_calls"][0]["id"], sent[2]["tool_call_id"], sent[2]["content"], sent.get(3)]);
        assert_eq!(seen, json!(["c1", "c1", "found", null]), "{call:?} {result:?}");
    }
}

#[test]
fn a_message_returns_its_text_whatever_its_role() {
    let call = json!({"role": "toolResult", "toolCallId": "c", "toolName": "t", "isError": false, "timestamp": 0,
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    let result: Message = serde_json::from_value(call).unwrap();
    assert_eq!(result.text("-"), "a-b");
    assert_eq!(Message::user("hello", 0).text("-"), "hello");
}
