//! Endless answers.

use pinch_llm::error::LlmErrorKind;
use pinch_testing::server::{Server, ServerReply};
use serde_json::{Value, json};

use crate::support::{end_of, model, request};

fn sse(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// Checks the answer to frames that repeat a thousand times, with a limit of 10 000 bytes.
async fn check(api: &str, first: &str, again: &str) {
    let server = Server::start().await.unwrap();
    server
        .reply((0..1_000).fold(ServerReply::events().send(first.to_owned()), |reply, _| reply.send(again.to_owned())));
    let mut request = request(model(api, &server.url()));
    request.options.max_answer_bytes = Some(10_000);
    let end = end_of(request).await;
    let error = end.error.unwrap();
    let text = "The answer is larger than 10000 bytes (max_answer_bytes)";
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Protocol, text), "{api} {again}");
    let kept = serde_json::to_string(&end.message.content).unwrap().len();
    assert!(kept < 30_000, "{api} {again}: {kept}");
}

#[tokio::test]
async fn the_size_of_an_answer_is_bounded() {
    let chunk = |delta: Value| sse(&json!({"id": "c", "choices": [{"index": 0, "delta": delta}]}));
    let piece = "x".repeat(100);
    check("openai-completions", "", &chunk(json!({"content": piece}))).await;
    check("openai-completions", "", &chunk(json!({"reasoning_content": piece}))).await;
    check(
        "openai-completions",
        "",
        &chunk(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": piece}]})),
    )
    .await;
    let call =
        |id: &str| json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "read", "arguments": piece}}]});
    check("openai-completions", "", &chunk(call("call_1"))).await;
    let begin = sse(&json!({"type": "message_start", "message": {"id": "m", "usage": {}}}))
        + &sse(
            &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        );
    let delta = |delta: Value| sse(&json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    check("anthropic-messages", &begin, &delta(json!({"type": "thinking_delta", "thinking": piece}))).await;
    check("anthropic-messages", &begin, &delta(json!({"type": "signature_delta", "signature": piece}))).await;
    let part = json!({"candidates": [{"content": {"parts": [{"text": piece}]}}]});
    check("google-generative-ai", "", &sse(&part)).await;
    let item = json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "i", "content": []}});
    let text = json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "i", "delta": piece});
    check("openai-responses", &sse(&item), &sse(&text)).await;
    // Empty chunks are not kept, but their frames never end.
    check("openai-responses", &sse(&item), &sse(&json!({"type": "response.unknown", "filler": piece}))).await;
}

#[tokio::test]
async fn zero_means_no_limit() {
    let server = Server::start().await.unwrap();
    let chunk = sse(&json!({"id": "c", "choices": [{"index": 0, "delta": {"content": "x".repeat(1_000)}}]}));
    let end = sse(&json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    server.reply(ServerReply::sse(chunk.repeat(100) + &end + "data: [DONE]\n\n"));
    let mut request = request(model("openai-completions", &server.url()));
    request.options.max_answer_bytes = Some(0);
    assert!(end_of(request).await.is_ok());
}

#[tokio::test]
async fn many_tiny_blocks_are_a_large_answer() {
    let server = Server::start().await.unwrap();
    let block = |n: usize| {
        let begin = json!({"type": "content_block_start", "index": n, "content_block": {"type": "text", "text": ""}});
        let delta = json!({"type": "content_block_delta", "index": n, "delta": {"type": "text_delta", "text": "x"}});
        [begin, delta, json!({"type": "content_block_stop", "index": n})].iter().map(sse).collect::<String>()
    };
    let begin = sse(&json!({"type": "message_start", "message": {"id": "m", "usage": {}}}));
    server.reply(ServerReply::sse(begin + &(0..2_000).map(block).collect::<String>()));
    let mut request = request(model("anthropic-messages", &server.url()));
    request.options.max_answer_bytes = Some(1_000_000);
    let end = end_of(request).await;
    assert!(end.error.unwrap().text.contains("max_answer_bytes"));
    assert!(end.message.content.len() < 1_000, "{}", end.message.content.len());
}
