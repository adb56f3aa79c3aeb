//! Differences of Azure and ChatGPT subscriptions, and rejections.

use super::*;

// Azure.

#[test]
fn azure_urls_follow_options_and_environment() {
    let url = |options: Value, env: &[(&str, &str)]| {
        let mut request = asked(AZURE, json!({"baseUrl": "https://model.openai.azure.com"}));
        request.options.native = native(options);
        request.host = Host::builder().env(env.iter().copied().collect()).build();
        let made = encode(&request);
        assert_eq!(made.headers["api-key"], "key");
        assert!(made.headers["api-key"].is_sensitive() && !made.headers.contains_key("authorization"));
        (made.url, made.body["model"].as_str().unwrap().to_owned())
    };
    let check = |options: Value, env: &[(&str, &str)], expect: &str, model: &str| {
        assert_eq!(url(options, env), (expect.to_owned(), model.to_owned()));
    };
    check(json!({}), &[], "https://model.openai.azure.com/openai/v1/responses?api-version=v1", "m");
    let env = [
        ("AZURE_OPENAI_RESOURCE_NAME", "res"),
        ("AZURE_OPENAI_API_VERSION", "2026"),
        ("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", "x, m = dep ,="),
    ];
    check(json!({}), &env, "https://res.openai.azure.com/openai/v1/responses?api-version=2026", "dep");
    let options = json!({"azureBaseUrl": "https://proxy.test/a?b=c", "azureDeploymentName": "own"});
    check(options, &env, "https://proxy.test/a/responses?b=c&api-version=2026", "own");
}

#[tokio::test]
async fn errors_name_missing_azure_settings() {
    let text = |base: &str| {
        let request = asked(AZURE, json!({"baseUrl": base}));
        async move { end_of(request).await.error.unwrap().text.clone() }
    };
    assert!(text("").await.starts_with("Azure OpenAI base URL is required. Set AZURE_OPENAI_BASE_URL or "));
    assert_eq!(text("nowhere").await, "Invalid Azure OpenAI base URL: nowhere");
}

// Refusals.

async fn refused(api: &str, reply: ServerReply) -> Arc<pinch_llm::error::LlmError> {
    refused_as(api, "p", reply).await
}

async fn refused_as(api: &str, provider: &str, reply: ServerReply) -> Arc<pinch_llm::error::LlmError> {
    let server = Server::start().await.unwrap();
    server.reply(reply);
    let mut request = asked(api, json!({"baseUrl": server.url(), "provider": provider}));
    request.host = Host::builder().clock(1_000_000, 0).build();
    let error = end_of(request).await.error.unwrap();
    assert_eq!(server.requests().len(), 1);
    error
}

#[tokio::test]
async fn refusals_become_typed_errors() {
    let body = json!({"error": {"message": "no such model", "code": "model_not_found"}});
    let error = refused_as(OPENAI, "openai", ServerReply::json(404, &body)).await;
    assert_eq!(error.text, r#"OpenAI API error (404): {"message":"no such model","code":"model_not_found"}"#);
    assert_eq!((error.kind, error.code.as_deref()), (LlmErrorKind::ModelNotFound, Some("model_not_found")));
    let error = refused(AZURE, ServerReply::status(500).send("gateway exploded")).await;
    assert_eq!(error.text, "Azure OpenAI API error (500): gateway exploded");
    assert_eq!(refused(OPENAI, ServerReply::status(500).send("down")).await.text, "p API error (500): down");
    assert_eq!(refused(OPENAI, ServerReply::status(503)).await.text, "503 status code (no body)");
    let long = json!({"error": {"message": "Your input exceeds the context window of this model."}});
    assert_eq!(refused(OPENAI, ServerReply::json(400, &long)).await.kind, LlmErrorKind::ContextOverflow);
}

#[tokio::test]
async fn usage_limits_of_subscriptions_say_when_they_end() {
    let limit =
        json!({"error": {"code": "usage_limit_reached", "plan_type": "PLUS", "resets_at": 1_600, "message": "limit"}});
    let error = refused(CODEX, ServerReply::json(400, &limit)).await;
    assert_eq!(error.text, "You have hit your ChatGPT usage limit (plus plan). Try again in ~10 min.");
    assert_eq!((error.kind, error.should_retry), (LlmErrorKind::RateLimit, Some(false)));
    assert_eq!(error.retry_after, Some(Duration::from_secs(600)));
    let error = refused(CODEX, ServerReply::status(429).header("retry-after", "3")).await;
    assert_eq!(error.text, "You have hit your ChatGPT usage limit.");
    assert!(retry::retryable(&error) && error.retry_after == Some(Duration::from_secs(3)));
    let busy = refused(CODEX, ServerReply::json(400, &json!({"error": {"message": "upstream connect error"}}))).await;
    assert_eq!((busy.text.as_str(), busy.kind), ("upstream connect error", LlmErrorKind::Overloaded));
    assert_eq!(refused(CODEX, ServerReply::status(403)).await.text, "Forbidden");
    let event =
        json!({"type": "error", "error": {"type": "usage_limit_reached", "plan_type": "Pro", "resets_at": 1_060}});
    let error = refused(CODEX, ServerReply::sse(frame(&event))).await;
    assert_eq!(error.text, "You have hit your ChatGPT usage limit (pro plan). Try again in ~1 min.");
    assert_eq!((error.kind, error.should_retry), (LlmErrorKind::RateLimit, Some(false)));
}

// Subscriptions of ChatGPT.

#[tokio::test]
async fn subscription_requests_name_the_account() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::sse(frame(&json!({"type": "response.done", "response": {"status": "completed"}}))));
    let mut request =
        asked(CODEX, json!({"baseUrl": format!("{}/backend-api/", server.url()), "headers": {"originator": "me"}}));
    request.options.session_id = Some("s-1".into());
    request.options.max_tokens = Some(5);
    request.options.headers = vec![("Authorization".into(), Some("other".into())), ("user-agent".into(), None)];
    request.tools = Arc::new([tool("t")]);
    let end = end_of(request).await;
    assert_eq!(end.message.stop_reason, StopReason::Stop);
    let sent = &server.requests()[0];
    assert_eq!(sent.path, "/backend-api/codex/responses");
    let header = |name: &str| sent.header(name).unwrap_or("").to_owned();
    assert_eq!(header("authorization"), format!("Bearer {}", token()));
    assert_eq!((header("chatgpt-account-id"), header("originator")), ("acc-1".into(), "pi".into()));
    assert!(header("user-agent").starts_with("pi ("));
    assert_eq!((header("session-id"), header("accept")), ("s-1".into(), "text/event-stream".into()));
    let body = sent.json();
    assert_eq!(
        (&body["instructions"], &body["tools"][0]["strict"]),
        (&json!("You are a helpful assistant."), &Value::Null)
    );
    assert_eq!((body.get("max_output_tokens"), &body["text"]), (None, &json!({"verbosity": "low"})));
}

#[cfg(feature = "zstd")]
#[tokio::test]
async fn long_bodies_are_compressed() {
    use std::io::Read as _;
    let server = Server::start().await.unwrap();
    let done = frame(&json!({"type": "response.done", "response": {"status": "completed"}}));
    server.reply(ServerReply::sse(done.clone())).reply(ServerReply::sse(done));
    let mut request = asked(CODEX, json!({"baseUrl": server.url()}));
    request.system = SystemPrompt::text("word ".repeat(10_000));
    assert!(end_of(request.clone()).await.is_ok());
    request.options.headers = vec![("content-encoding".into(), None)];
    assert!(end_of(request).await.is_ok());
    let sent = server.requests();
    assert_eq!((sent[0].header("content-encoding"), sent[1].header("content-encoding")), (Some("zstd"), None));
    assert!(sent[0].body.len() < 5_000, "{} bytes", sent[0].body.len());
    let mut text = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(sent[0].body.as_slice()).unwrap().read_to_end(&mut text).unwrap();
    assert_eq!(text, sent[1].body);
}

#[tokio::test]
async fn a_token_without_an_account_needs_a_stored_one() {
    let mut request = asked(CODEX, json!({}));
    request.auth = pinch_llm::request::Auth::key("opaque");
    request.auth.headers = vec![("ChatGPT-Account-Id".into(), Some("stored".into()))];
    assert_eq!(encode(&request).headers["chatgpt-account-id"], "stored");
    request.auth.headers.clear();
    let error = end_of(request).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Auth, "Failed to extract accountId from token"));
}
