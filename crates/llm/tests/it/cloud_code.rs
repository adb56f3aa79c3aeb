//! Google's Cloud Code Assist.

use std::sync::Arc;
use std::time::Duration;

use pinch_llm::error::LlmErrorKind;
use pinch_llm::message::StopReason;
use pinch_llm::request::{Auth, Request, SystemPrompt, ThinkingChoice};
use pinch_llm::stdx::host::Host;
use pinch_llm::thinking::ThinkingLevel;
use pinch_testing::server::{Server, ServerReply};
use serde_json::{Value, json};

use crate::support::{encode, end_of, model_with, request, tool};

const API: &str = "google-gemini-cli";
const KEY: &str = r#"{"token":"ya29.secret-token","projectId":"proj"}"#;

fn at(url: &str, id: &str) -> Request {
    let mut request = request(model_with(API, url, json!({"id": id, "provider": API})));
    request.auth = Auth::key(KEY);
    request
}

fn sse(chunk: &Value) -> String {
    format!("data: {}\n\n", json!({"response": chunk, "traceId": "t"}))
}

#[tokio::test]
async fn requests_and_responses_are_wrapped_in_an_envelope() {
    let server = Server::start().await.unwrap();
    let call = json!({"functionCall": {"name": "read", "args": {"path": "a"}}});
    let first = json!({"responseId": "r1", "candidates": [{"content": {"parts": [{"text": "hm", "thought": true}, {"text": "hello"}]}}]});
    let last = json!({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}],
                      "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}});
    server.reply(ServerReply::sse(sse(&first) + "data: {broken\n\n" + &sse(&last)));
    let mut request = at(&server.url(), "gemini-2.5-flash");
    request.system = SystemPrompt::text("Be brief.");
    request.tools = Arc::new([tool("read")]);
    request.options.session_id = Some("s1".into());
    request.options.thinking = ThinkingChoice::Level(ThinkingLevel::Low);
    let end = end_of(request).await;
    assert!(end.is_ok(), "{:?}", end.error);
    assert_eq!((end.message.text("").as_str(), end.message.stop_reason), ("hello", StopReason::ToolUse));
    assert_eq!((end.message.usage.input, end.message.usage.output), (7, 3));
    assert_eq!(end.message.response_id.as_deref(), Some("r1"));
    let asked = server.requests().remove(0);
    assert_eq!(asked.path, "/v1internal:streamGenerateContent?alt=sse");
    assert_eq!(asked.header("authorization"), Some("Bearer ya29.secret-token"));
    let body = asked.json();
    assert_eq!(
        (&body["project"], &body["model"], &body["userAgent"]),
        (&json!("proj"), &json!("gemini-2.5-flash"), &json!("pi-coding-agent"))
    );
    assert!(body["requestId"].as_str().unwrap().starts_with("pi-"));
    let inner = &body["request"];
    assert_eq!(inner["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
    assert_eq!((&inner["sessionId"], &inner["contents"][0]["role"]), (&json!("s1"), &json!("user")));
    assert!(inner["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"].is_object());
    assert_eq!(inner["generationConfig"]["thinkingConfig"]["includeThoughts"], true);
}

#[test]
fn claude_models_have_their_own_thinking_parameters() {
    let mut request = at("http://localhost", "claude-sonnet-4-5-thinking");
    request.tools = Arc::new([tool("read")]);
    let made = encode(&request);
    let declared = &made.body["request"]["tools"][0]["functionDeclarations"][0];
    assert!(declared["parameters"].is_object() && declared.get("parametersJsonSchema").is_none());
    assert_eq!(made.headers["anthropic-beta"], "interleaved-thinking-2025-05-14");
}

#[tokio::test]
async fn credentials_are_a_token_and_a_project() {
    for (key, project, text) in [
        (None, None, "Google Cloud Code Assist requires OAuth authentication. Use /login to authenticate."),
        (Some("ya29.x"), None, "Invalid Google Cloud Code Assist credentials. Use /login to re-authenticate."),
        (
            Some(r#"{"token":"t"}"#),
            None,
            "Missing token or projectId in Google Cloud credentials. Use /login to re-authenticate.",
        ),
        (Some("ya29.x"), Some("p"), ""),
        (Some(r#"{"token":"t"}"#), Some("p"), ""),
    ] {
        let server = Server::start().await.unwrap();
        let mut request = at(&server.url(), "gemini-2.5-flash");
        request.auth = key.map_or_else(Auth::default, Auth::key);
        let env = project.map(|project| ("GOOGLE_CLOUD_PROJECT", project)).into_iter().collect();
        request.host = Host::builder().clock(1, 0).env(env).build();
        if text.is_empty() {
            assert_eq!(encode(&request).body["project"], "p");
            continue;
        }
        let error = end_of(request).await.error.unwrap();
        assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Auth, text));
    }
}

#[tokio::test]
async fn rejections_contain_the_requested_delay_and_hide_the_token() {
    let server = Server::start().await.unwrap();
    let body = json!({"error": {"code": 429, "message": "Quota of ya29.secret-token will reset after 1m10s", "status": "RESOURCE_EXHAUSTED"}});
    server.reply(ServerReply::json(429, &body));
    let error = end_of(at(&server.url(), "gemini-2.5-flash")).await.error.unwrap();
    assert_eq!(error.text, "Cloud Code Assist API error (429): Quota of [hidden] will reset after 1m10s");
    assert_eq!((error.kind, error.retry_after), (LlmErrorKind::RateLimit, Some(Duration::from_secs(71))));
}

#[tokio::test]
async fn an_empty_answer_is_retryable() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::sse(""));
    let error = end_of(at(&server.url(), "gemini-2.5-flash")).await.error.unwrap();
    assert_eq!(
        (error.kind, error.text.as_str()),
        (LlmErrorKind::StreamCut, "Cloud Code Assist API returned an empty response")
    );
}
