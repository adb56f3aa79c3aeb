//! Servers that echo what they were sent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinch_llm::request::{Auth, Request};
use pinch_llm::stdx::host::Host;
use pinch_testing::server::{Server, ServerReply};
use serde_json::json;

use crate::support::{end_of, model_with, request};

const SECRET: &str = "sk-very-secret-0123456789";

/// Returns the error text of a failure whose body contains `echo`.
async fn error_text(server: &Server, request: Request, echo: &str) -> String {
    server.reply(ServerReply::json(
        401,
        &json!({"error": {"message": format!("not allowed: {echo}"), "type": "x"}, "message": format!("no: {echo}")}),
    ));
    let end = end_of(request).await;
    let error = end.error.unwrap();
    assert!(!format!("{error:?}").contains(echo), "{error:?}");
    format!("{} {}", error.text, end.message.error_message.as_deref().unwrap_or_default())
}

#[tokio::test]
async fn keys_of_the_environment_are_hidden_in_every_format() {
    for (api, provider, variable) in [
        ("anthropic-messages", "anthropic", "ANTHROPIC_API_KEY"),
        ("anthropic-messages", "anthropic", "ANTHROPIC_AUTH_TOKEN"),
        ("openai-completions", "groq", "GROQ_API_KEY"),
        ("openai-responses", "openai", "OPENAI_API_KEY"),
        ("azure-openai-responses", "azure-openai-responses", "AZURE_OPENAI_API_KEY"),
        ("google-generative-ai", "google", "GEMINI_API_KEY"),
        ("mistral-conversations", "mistral", "MISTRAL_API_KEY"),
        #[cfg(feature = "vertex")]
        ("google-vertex", "google-vertex", "GOOGLE_CLOUD_API_KEY"),
        #[cfg(feature = "bedrock")]
        ("bedrock-converse-stream", "amazon-bedrock", "AWS_BEARER_TOKEN_BEDROCK"),
    ] {
        let server = Server::start().await.unwrap();
        let mut request = request(model_with(api, &server.url(), json!({"provider": provider})));
        request.auth = Auth::default();
        let env = [(variable, SECRET), ("AWS_REGION", "us-east-1")].into_iter().collect();
        request.host = Host::builder().clock(1, 0).env(env).build();
        let error_text = error_text(&server, request, SECRET).await;
        assert!(error_text.contains("[hidden]") && !error_text.contains(SECRET), "{api}: {error_text}");
        assert_eq!(server.requests().len(), 1, "{api}: the key was not sent");
    }
}

#[tokio::test]
async fn the_environment_of_the_credentials_applies_to_requests() {
    let server = Server::start().await.unwrap();
    let mut request = request(model_with("openai-completions", &server.url(), json!({"provider": "groq"})));
    request.auth = Auth::default().with_env([("GROQ_API_KEY", SECRET)].into_iter().collect());
    let error_text = error_text(&server, request, SECRET).await;
    assert!(!error_text.contains(SECRET), "{error_text}");
    assert_eq!(server.requests()[0].header("authorization"), Some(&*format!("Bearer {SECRET}")));
}

#[tokio::test]
async fn passwords_of_urls_are_hidden_however_they_are_written() {
    for echo in ["pass%2Fword-1".to_owned(), "pass/word-1".to_owned(), STANDARD.encode("user:pass/word-1")] {
        let server = Server::start().await.unwrap();
        let url = server.url().replace("http://", "http://user:pass%2Fword-1@");
        let error_text = error_text(&server, request(model_with("openai-completions", &url, json!({}))), &echo).await;
        assert!(error_text.contains("[hidden]"), "{error_text}");
        // The same for a proxy that is not used.
        let mut request = request(model_with("openai-completions", &server.url(), json!({})));
        let env = [("HTTPS_PROXY", "http://user:pass%2Fword-1@127.0.0.1:9")].into_iter().collect();
        request.host = Host::builder().clock(1, 0).env(env).build();
        let error_text = self::error_text(&server, request, &echo).await;
        assert!(error_text.contains("[hidden]"), "{error_text}");
    }
}

#[tokio::test]
async fn headers_of_models_are_hidden() {
    let server = Server::start().await.unwrap();
    let model = model_with("openai-completions", &server.url(), json!({"headers": {"x-gateway-pass": SECRET}}));
    assert!(!format!("{model:?}").contains(SECRET), "{model:?}");
    let error_text = error_text(&server, request(model), SECRET).await;
    assert!(!error_text.contains(SECRET), "{error_text}");
}
