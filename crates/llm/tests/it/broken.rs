//! Responses that break off.

use pinch_llm::error::{Emitted, LlmErrorKind, retry};
use pinch_testing::server::{Fault, Server, ServerReply};
use pinch_testing::wires::{anthropic, completions};
use serde_json::json;

use crate::support::{APIS, end_of, model, request};

async fn end_with(api: &str, reply: ServerReply) -> pinch_llm::event::Finished {
    let server = Server::start().await.unwrap();
    server.reply(reply);
    end_of(request(model(api, &server.url()))).await
}

#[tokio::test]
async fn a_response_that_ends_inside_a_frame_is_cut_off() {
    for fault in [Fault::Close, Fault::Reset] {
        let half = "event: content_block_delta\ndata: {\"type\":\"content_bl";
        let text = anthropic::AnthropicResponse::new("m").text("abc").frames().concat();
        let end = end_with(APIS[0], ServerReply::sse(text + half).then(fault)).await;
        let error = end.error.unwrap();
        assert!(error.text.starts_with("Connection error: stream terminated ("), "{}", error.text);
        assert_eq!((error.kind, error.emitted), (LlmErrorKind::StreamCut, Emitted::Content));
        assert!(retry::retryable(&error));
        assert_eq!(end.message.text(""), "abc");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_response_is_a_connect_error() {
    let error = end_with(APIS[0], ServerReply::fault(Fault::Close)).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Connect, "Connection error."));
    let cause = error.source.as_deref().and_then(std::error::Error::source).unwrap().to_string();
    assert!(!cause.is_empty() && !cause.contains("127.0.0.1"), "{cause}");
    let error = end_of(request(model(APIS[0], "http://127.0.0.1:1"))).await.error.unwrap();
    assert_eq!(error.kind, LlmErrorKind::Connect);
    assert!(error.text.contains("refused") && error.text.contains("http://127.0.0.1:1/v1/messages"), "{}", error.text);
}

#[tokio::test]
async fn an_invalid_base_url_is_named_with_its_provider() {
    // What may be a password in place of a port is hidden.
    for (url, shown, cause) in [
        ("htp:/x", "htp:/x", "URL scheme is not allowed"),
        ("127.0.0.1:1/v1", "127.0.0.1:1/v1", "relative URL without a base"),
        ("  ", "  ", "relative URL without a base"),
        (" http://127.0.0.1:1 ", " http://[hidden]", "invalid port number"),
    ] {
        let error = end_of(request(model(APIS[0], url))).await.error.unwrap();
        assert_eq!(error.kind, LlmErrorKind::InvalidRequest);
        let provider = &error.provider;
        let start = format!("Invalid base URL {shown:?} of provider {provider}: {cause}. Set baseUrl ");
        assert!(error.text.starts_with(&start), "{}", error.text);
    }
}

#[tokio::test]
async fn a_long_refusal_is_cut() {
    let reply = ServerReply::status(400).send("é".repeat(50_000));
    let end = end_with(APIS[0], reply).await;
    let text = end.error.unwrap().text.clone();
    assert!(text.len() < 8300 && text.starts_with("400 éé"), "{}", text.len());
    assert!(text.ends_with("é… [first 8192 of 100004 bytes]"), "{}", &text[8100..]);
    assert_eq!(end.message.error_message.as_deref(), Some(text.as_str()));
}

#[tokio::test]
async fn a_valid_response_without_an_end_is_cut_off() {
    let anthropic =
        end_with(APIS[0], ServerReply::sse(anthropic::AnthropicResponse::new("m").text("a").frames().concat())).await;
    assert_eq!(anthropic.error.unwrap().text, "Anthropic stream ended before message_stop");
    let completions = end_with(
        APIS[1],
        ServerReply::sse(completions::CompletionsResponse::new("m", "m").text("a").frames().concat()),
    )
    .await;
    let error = completions.error.unwrap();
    assert_eq!((error.text.as_str(), error.kind), ("Stream ended without finish_reason", LlmErrorKind::StreamCut));
    // The end marker replaces a missing reason.
    let marked =
        end_with(APIS[1], ServerReply::sse(completions::CompletionsResponse::new("m", "m").text("a").done().concat()))
            .await;
    assert!(marked.is_ok());
}

#[tokio::test]
async fn an_unfinished_call_keeps_its_partial_arguments() {
    let whole = anthropic::AnthropicResponse::new("m").tool_call("t", "read", r#"{"path":"a","te"#).frames();
    let end = end_with(APIS[0], ServerReply::sse(whole[..3].concat())).await;
    let call = end.message.tool_calls().next().unwrap().clone();
    assert_eq!(serde_json::Value::Object(call.arguments), json!({"path": "a"}));
}

#[tokio::test]
async fn rejections_contain_all_details() {
    let body = json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}});
    let reply = ServerReply::json(429, &body).header("retry-after", "3").header("x-request-id", "r1");
    let error = end_with(APIS[1], reply).await.error.unwrap();
    assert_eq!(error.kind, LlmErrorKind::RateLimit);
    assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(3)));
    assert_eq!((error.request_id.as_deref(), error.code.as_deref()), (Some("r1"), Some("rate_limit_exceeded")));
    let error =
        end_with(APIS[0], ServerReply::status(307).header("location", "http://127.0.0.1:1/")).await.error.unwrap();
    assert_eq!(error.text, "307 status code (no body)");
}
