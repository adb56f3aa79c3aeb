//! Costs of answers: counts that are odd, missing or in unusual members.

use pinch_llm::message::Usage;
use pinch_llm::wire::limit::estimate_request;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::{anthropic, completions, mistral};
use serde_json::{Value, json};

use crate::support::{APIS, end_of, messages, model, model_with, request};

async fn usage_of(api: &str, frames: Vec<String>) -> Usage {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::sse(frames.concat()));
    let end = end_of(request(model(api, &server.url()))).await;
    assert!(end.is_ok(), "{:?}", end.error);
    end.message.usage
}

#[test]
fn counts_in_files_add_up_whatever_they_are() {
    let usage = json!({"input": 1e300, "output": 1e300, "cacheRead": 1e300, "cacheWrite": -1, "totalTokens": 0});
    let answer = json!({"role": "assistant", "content": [], "api": "x", "provider": "p", "model": "m", "stopReason": "stop",
        "timestamp": 1, "usage": usage});
    let mut request = request(model(APIS[0], "http://localhost"));
    request.messages = messages(json!([answer, {"role": "user", "content": "x", "timestamp": 2}]));
    let total = request.messages[0].as_assistant().unwrap().usage.context_tokens();
    assert!(total > 1 << 53);
    assert!(estimate_request(&request) > total);
}

#[tokio::test]
async fn an_empty_usage_keeps_the_earlier_one() {
    for silent in [json!({}), json!({"prompt_tokens": null, "completion_tokens": null}), Value::Null] {
        let told = json!({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105});
        let answer = completions::CompletionsResponse::new("c1", "m").text("a").usage(&told).finish("stop");
        let usage = usage_of(APIS[1], answer.usage(&silent).done()).await;
        assert_eq!((usage.input, usage.output, usage.total_tokens), (100, 5, 105), "completions, {silent}");
        let answer = mistral::MistralResponse::new("c1", "m").text("a").usage(&told);
        let answer = answer.usage(&silent);
        let usage = usage_of("mistral-conversations", answer.stop("stop")).await;
        assert_eq!((usage.input, usage.output, usage.total_tokens), (100, 5, 105), "mistral, {silent}");
    }
}

#[tokio::test]
async fn cache_writes_for_an_hour_are_distinguished() {
    let price = json!({"cost": {"input": 1.0, "output": 0, "cacheRead": 0, "cacheWrite": 1.25}});
    let told = json!({"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 1_000_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 400_000}});
    let server = Server::start().await.unwrap();
    let frames = anthropic::AnthropicResponse::with_usage("m", &told).text("a").stop("end_turn");
    server.reply(ServerReply::sse(frames.concat()));
    let end = end_of(request(model_with(APIS[0], &server.url(), price))).await;
    let usage = end.message.usage;
    assert_eq!((usage.cache_write, usage.cache_write_1h), (1_000_000, Some(400_000)));
    assert!((usage.cost.cache_write - (0.6 * 1.25 + 0.4 * 2.0)).abs() < 1e-9, "{:?}", usage.cost);
}

#[tokio::test]
async fn cached_tokens_beside_the_counts_are_cache_reads() {
    let cases = [
        (json!({"prompt_tokens": 100, "completion_tokens": 5, "cached_tokens": 60}), (40, 60)),
        (json!({"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 70}), (30, 70)),
        (json!({"prompt_tokens": 9, "cached_tokens": 8, "prompt_tokens_details": {"cached_tokens": 4}}), (5, 4)),
    ];
    for (told, expected) in cases {
        let answer = completions::CompletionsResponse::new("c1", "m").text("a").finish("stop");
        let usage = usage_of(APIS[1], answer.usage(&told).done()).await;
        assert_eq!((usage.input, usage.cache_read), expected, "{told}");
    }
}

#[tokio::test]
async fn thinking_tokens_are_reported_and_the_requested_model_is_not_repeated() {
    let told = json!({"input_tokens": 1, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 7}});
    let answer = |usage: &Value| anthropic::AnthropicResponse::with_usage("m", usage).text("a").stop("end_turn");
    assert_eq!(usage_of(APIS[0], answer(&told)).await.reasoning, Some(7));
    assert_eq!(usage_of(APIS[0], answer(&json!({"input_tokens": 1}))).await.reasoning, None);
    let asked = model(APIS[1], "http://localhost").id.to_string();
    for (model_of_answer, expected) in [(asked.as_str(), None), ("another", Some("another"))] {
        let server = Server::start().await.unwrap();
        let answer = completions::CompletionsResponse::new("c1", model_of_answer).text("a").finish("stop");
        server.reply(ServerReply::sse(answer.done().concat()));
        let end = end_of(request(model(APIS[1], &server.url()))).await;
        assert_eq!(end.message.response_model.as_deref(), expected);
    }
}
