//! OpenAI's Responses format, at OpenAI, at Azure and for ChatGPT subscriptions.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use pinch_llm::error::{LlmErrorKind, retry};
use pinch_llm::message::{StopReason, ToolDecl};
use pinch_llm::request::{CacheRetention, NativeThinking, Request, SystemPrompt, ThinkingChoice};
use pinch_llm::stdx::host::Host;
use pinch_llm::thinking::ThinkingLevel;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::responses::{ResponsesResponse, frame};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{body, decode, encode, end_of, messages, model_with, request, tool};

mod relatives;
mod requests;

const OPENAI: &str = "openai-responses";
const AZURE: &str = "azure-openai-responses";
const CODEX: &str = "openai-codex-responses";

fn asked(api: &str, more: Value) -> Request {
    let mut request = request(model_with(api, "http://localhost/v1", more));
    if api == CODEX {
        request.auth = subscription();
        request.options.native = native(json!({"transport": "sse"}));
    }
    request
}

/// Returns the credentials of a ChatGPT subscription.
pub(crate) fn subscription() -> pinch_llm::request::Auth {
    pinch_llm::request::Auth::key(token())
}

fn token() -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc-1"}}).to_string();
    format!("h.{}.s", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims))
}

fn native(pairs: Value) -> serde_json::Map<String, Value> {
    pairs.as_object().unwrap().clone()
}

/// Returns a response that contains everything.
fn whole() -> Vec<String> {
    ResponsesResponse::new("resp_1", "m-2026")
        .with_chunks(3)
        .thinking("hé, ich denke", "ENC")
        .text("grüße 😀 und mehr")
        .tool_call("call_1", "read", r#"{"path":"ä.txt","n":[1,2]}"#)
        .completed()
}

fn decode_one(frames: &[String]) -> Vec<String> {
    decode(OPENAI, [frames.concat().as_bytes()])
}

#[test]
fn a_whole_response_becomes_events() {
    assert_eq!(
        decode_one(&whole()),
        [
            "start",
            "0 thinking",
            "0 + hé, i",
            "0 + ch de",
            "0 + nke",
            "0 + \n\n",
            concat!(
                r#"0 = {"type":"thinking","thinking":"hé, ich denke","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_0\","#,
                r#"\"summary\":[{\"type\":\"summary_text\",\"text\":\"hé, ich denke\"}],\"encrypted_content\":\"ENC\"}"}"#
            ),
            "1 text",
            "1 + grüße ",
            "1 + 😀 und ",
            "1 + mehr",
            r#"1 = {"type":"text","text":"grüße 😀 und mehr","textSignature":"{\"v\":1,\"id\":\"msg_1\"}"}"#,
            "2 call call_1|fc_2 read",
            r#"2 + {"path":""#,
            r#"2 + ä.txt","n"#,
            r#"2 + ":[1,2]}"#,
            r#"2 = {"type":"toolCall","id":"call_1|fc_2","name":"read","arguments":{"path":"ä.txt","n":[1,2]}}"#,
            "usage 15",
            decode_one(&whole()).last().unwrap(),
        ]
    );
    assert!(decode_one(&whole()).last().unwrap().starts_with("end toolUse ["));
}

#[test]
fn parallel_items_are_distinguished() {
    let event = |kind: &str, number: u64, more: Value| {
        let mut event = json!({"type": kind, "output_index": number});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let call = |number: u64, arguments: &str| json!({"item": {"type": "function_call", "id": format!("fc_{number}"), "call_id": format!("c{number}"), "name": "read", "arguments": arguments}});
    let delta = |number, text: &str| event("response.function_call_arguments.delta", number, json!({"delta": text}));
    let events = [
        event("response.output_item.added", 0, call(0, "")),
        event("response.output_item.added", 1, call(1, "")),
        delta(1, r#"{"b":"#),
        delta(0, r#"{"a":"#),
        delta(1, "1}"),
        event("response.output_item.done", 1, call(1, "")),
        // An unknown index, and one whose item is complete.
        delta(7, "x"),
        delta(1, "x"),
        delta(0, "0}"),
        event("response.output_item.done", 0, call(0, "")),
        // An item ends only once.
        event("response.output_item.done", 0, call(0, "")),
    ];
    let frames = events.into_iter().fold(ResponsesResponse::new("r", "m"), ResponsesResponse::event).completed();
    let words = decode_one(&frames);
    assert!(words.contains(&r#"1 = {"type":"toolCall","id":"c1|fc_1","name":"read","arguments":{"b":1}}"#.to_owned()));
    assert!(words.contains(&r#"0 = {"type":"toolCall","id":"c0|fc_0","name":"read","arguments":{"a":0}}"#.to_owned()));
    assert_eq!(words.iter().filter(|word| word.contains(" call ")).count(), 2, "{words:?}");
}

#[test]
fn parallel_items_without_an_index_are_identified_by_id_only() {
    let message = |id: &str| json!({"type": "response.output_item.added", "item": {"type": "message", "id": id}});
    let two = || ResponsesResponse::new("r", "m").event(message("a")).event(message("b"));
    let named = two()
        .event(json!({"type": "response.output_text.delta", "item_id": "a", "delta": "A"}))
        .event(json!({"type": "response.output_text.delta", "item_id": "b", "delta": "B"}));
    let words = decode_one(&named.completed());
    assert!(words.contains(&"0 + A".to_owned()) && words.contains(&"1 + B".to_owned()), "{words:?}");
    let nameless = two().event(json!({"type": "response.output_text.delta", "delta": "?"}));
    assert!(decode_one(&nameless.completed()).last().unwrap().contains("Protocol Content"));
}

#[test]
fn final_arguments_replace_the_streamed_ones() {
    let item = |arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "t", "arguments": arguments});
    let with = |deltas: &str, done: &str, last: &str| {
        let events = vec![
            json!({"type": "response.function_call_arguments.delta", "delta": deltas}),
            json!({"type": "response.function_call_arguments.done", "arguments": done}),
        ];
        decode_one(&ResponsesResponse::new("r", "m").item(&item(""), events, &item(last)).completed())
    };
    let longer = with(r#"{"a":"#, r#"{"a":1}"#, "");
    assert!(longer.contains(&"0 + 1}".to_owned()) && longer.last().unwrap().contains(r#""arguments":{"a":1}"#));
    let other = with(r#"{"wrong"#, r#"{"a":1}"#, r#"{"a":1}"#);
    assert!(other.last().unwrap().contains(r#""arguments":{"a":1}"#), "{other:?}");
    let broken = with("[1]", "[1]", "[1]");
    assert!(broken.last().unwrap().contains(r#""argumentsError":"expected a JSON object"#), "{broken:?}");
}

#[test]
fn split_surrogate_pairs_are_joined() {
    let item = |text: &str| json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": text}]});
    let deltas = [r"a\ud83d", r"\ude00b\udc00"];
    let events = deltas.map(|text| json!({"type": "response.output_text.delta", "delta": text})).to_vec();
    let frames = ResponsesResponse::new("r", "m").item(&item(""), events, &item(r"x\udc00y")).completed();
    let frames: Vec<String> = frames.iter().map(|frame| frame.replace("\\\\u", "\\u")).collect();
    let words = decode_one(&frames);
    assert!(words.contains(&"0 + a".to_owned()) && words.contains(&"0 + 😀b".to_owned()), "{words:?}");
    assert!(words.last().unwrap().contains(r#""text":"xy""#), "{words:?}");
}

#[test]
fn statuses_decide_how_a_response_ends() {
    let end = |frames: Vec<String>| decode_one(&frames).pop().unwrap();
    let begun = || ResponsesResponse::new("r", "m").text("a");
    assert!(end(begun().incomplete("max_output_tokens")).starts_with("end length "));
    let filtered = end(begun().incomplete("content_filter"));
    assert!(filtered.ends_with("ContentFiltered Content incomplete: content_filter"), "{filtered}");
    assert!(
        end(begun().end("strange", &Value::Null).frames()).contains("StreamCut"),
        "an event nobody knows ends nothing"
    );
    let event = |response: Value| begun().event(json!({"type": "response.completed", "response": response})).frames();
    assert!(end(event(json!({"status": "odd"}))).ends_with("Protocol Content Unknown response status: odd"));
    assert!(end(event(json!(7))).starts_with("end stop "), "a good end says nothing that must be there");
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "boom"}}});
    assert!(end(begun().event(failed).frames()).ends_with("Server Content server_error: boom"));
    let nested = json!({"type": "error", "status": 429, "error": {"code": "slow", "message": "slow down"}});
    assert!(end(begun().event(nested).frames()).ends_with("RateLimit Content Error Code slow: slow down"));
    assert!(end(vec!["data: {\"type\":\n\n".into()]).contains("StreamCut Started Could not parse event: "));
}

#[tokio::test]
async fn a_failed_response_keeps_its_status() {
    let server = pinch_testing::server::Server::start().await.unwrap();
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "boom"}}});
    server.reply(pinch_testing::server::ServerReply::sse(format!("data: {failed}\n\n")));
    let end = crate::support::end_of(crate::support::request(crate::support::model(OPENAI, &server.url()))).await;
    assert_eq!(end.message.raw_stop_reason.as_deref(), Some("failed"));
}

#[test]
fn caches_and_tiers_are_priced() {
    let usage = json!({"input_tokens": 1000, "output_tokens": 10, "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
                       "output_tokens_details": {"reasoning_tokens": 4}});
    let cost = |id: &str, tier: Option<&str>, told: Value, api: &str| {
        let rates = json!({"input": 1e6, "output": 1e6, "cacheRead": 1e6, "cacheWrite": 1e6});
        let mut request = asked(api, json!({"id": id, "cost": rates}));
        request.options.native.insert("serviceTier".into(), json!(tier));
        let mut outcome = json!({"status": "completed", "usage": usage});
        outcome["service_tier"] = told;
        let event = frame(&json!({"type": "response.completed", "response": outcome}));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let end = runtime.block_on(async {
            let server = Server::start().await.unwrap();
            server.reply(ServerReply::sse(event));
            Arc::make_mut(&mut request.model).base_url = server.url();
            end_of(request).await
        });
        let usage = end.message.usage;
        assert_eq!((usage.input, usage.cache_read, usage.cache_write, usage.reasoning), (300, 600, 100, Some(4)));
        assert_eq!(usage.total_tokens, 1010);
        usage.cost.total
    };
    assert_eq!(cost("m", None, Value::Null, OPENAI), 1010.0);
    assert_eq!(cost("m", Some("flex"), Value::Null, OPENAI), 505.0);
    assert_eq!(cost("m", Some("priority"), json!("default"), OPENAI), 1010.0);
    assert_eq!(cost("gpt-5.5", Some("auto"), json!("priority"), OPENAI), 2525.0);
    // A subscription's response reports `default` anyway.
    assert_eq!(cost("m", Some("priority"), json!("default"), CODEX), 2020.0);
    assert_eq!(cost("m", Some("flex"), json!("flex"), AZURE), 1010.0);
}

// Whatever comes.

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn chunking_does_not_change_events(cuts in prop::collection::vec(0usize..4_000, 0..12)) {
        let text = whole().concat();
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(decode(OPENAI, chunks), decode(OPENAI, [bytes]));
    }

    #[test]
    fn garbage_has_exactly_one_end(at in prop::collection::vec((0usize..4_000, any::<u8>()), 1..8), len in 0usize..4_000) {
        let mut bytes = whole().concat().into_bytes();
        bytes.truncate(len.max(1));
        let n = bytes.len();
        at.into_iter().for_each(|(at, byte)| bytes[at % n] = byte);
        prop_assert_eq!(decode(OPENAI, [&bytes[..]]).iter().filter(|word| word.starts_with("end ")).count(), 1);
    }

    #[test]
    fn odd_events_have_exactly_one_end(events in prop::collection::vec(odd_event(), 0..24)) {
        let text: String = events.iter().map(frame).collect();
        let words = decode(OPENAI, [text.as_bytes()]);
        prop_assert_eq!(words.iter().filter(|word| word.starts_with("end ")).count(), 1);
    }
}

/// Generates events of known names whose members have any type.
fn odd_event() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_part.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.custom_tool_call_input.delta",
    ]);
    let member = prop::sample::select(vec![
        "output_index",
        "item_id",
        "delta",
        "arguments",
        "item",
        "response",
        "type",
        "id",
        "call_id",
        "name",
        "input",
        "summary",
        "content",
        "text",
        "usage",
        "status",
    ]);
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(-1)),
        Just(json!(0)),
        Just(json!("message")),
        Just(json!("function_call")),
        Just(json!("custom_tool_call")),
        Just(json!("reasoning")),
        Just(json!([])),
    ];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((member.clone(), inner), 0..6)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    });
    (kind, value, 0u64..3, prop::sample::select(vec!["message", "function_call", "custom_tool_call", "reasoning"]))
        .prop_map(|(kind, value, number, item)| {
            let mut event = json!({"output_index": number, "item": {"type": item}, "delta": "d"});
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), value) {
                event.extend(more);
            }
            event["type"] = kind.into();
            event
        })
}

#[test]
fn the_effort_is_announced_in_the_conversation_if_the_model_accepts_that() {
    let answer = |model: &str, effort: Value| {
        json!({"role": "assistant", "content": [{"type": "text", "text": "a"}], "api": "openai-responses", "provider": "p",
               "model": model, "stopReason": "stop", "timestamp": 2, "providerThinkingLevel": effort})
    };
    let history = json!([
        {"role": "user", "content": "1", "timestamp": 1}, answer("m", "low".into()),
        {"role": "user", "content": "2", "timestamp": 3}, answer("other", "low".into()),
        {"role": "user", "content": "3", "timestamp": 5},
    ]);
    let sent = |more: Value, level: ThinkingLevel, key: &str| {
        let mut request = request(model_with("openai-responses", "https://api.openai.com/v1", more));
        request.messages = messages(history.clone());
        request.options.thinking = ThinkingChoice::Level(level);
        request.auth.key = Some(key.to_owned().into());
        let body = body(&request);
        let items = body["input"].as_array().unwrap().iter();
        let shown = items.map(|item| match item["type"].as_str() {
            Some("configuration_update") => item["reasoning"]["effort"].as_str().unwrap().to_owned(),
            _ => item["role"].as_str().unwrap()[..1].to_owned(),
        });
        (shown.collect::<Vec<_>>().join(" "), body["reasoning"]["effort"].as_str().map(str::to_owned))
    };
    let flag = json!({"compat": {"supportsMidConvoEffort": true}});
    let medium = Some("medium".to_owned());
    assert_eq!(sent(flag.clone(), ThinkingLevel::High, "k"), ("u low a u a u high".into(), medium.clone()));
    assert_eq!(sent(flag.clone(), ThinkingLevel::Off, "k").0, "u a u a u");
    assert_eq!(sent(json!({}), ThinkingLevel::High, "k"), ("u a u a u".into(), Some("high".into())));
    let openai = json!({"provider": "openai", "compat": {"supportsMidConvoEffort": true}});
    assert_eq!(sent(openai.clone(), ThinkingLevel::High, "subscription").0, "u a u a u");
    assert_eq!(sent(openai, ThinkingLevel::High, "sk-1").0, "u a u a u high");
}
