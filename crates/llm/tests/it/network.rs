//! Connections, proxies and observers.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::model::Model;
use pinch_llm::request::{Auth, CallObserver};
use pinch_llm::stdx::host::{Env, Host};
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::completions;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::support::{APIS, end_of, model, request};

fn answer() -> ServerReply {
    ServerReply::sse(completions::CompletionsResponse::new("c", "m").text("hi").finish("stop").done().concat())
}

#[tokio::test]
async fn proxies_come_from_the_given_environment() {
    let proxy = Server::start().await.unwrap();
    proxy.reply(answer());
    let env: Env = [("HTTP_PROXY", proxy.url()), ("NO_PROXY", "near.test,.far.test".into())].into_iter().collect();
    let mut request = request(model(APIS[1], "http://model.test/v1"));
    request.host = Host::builder().clock(1, 0).env(env).build();
    assert!(end_of(request).await.is_ok());
    assert_eq!(proxy.requests()[0].path, "http://model.test/v1/chat/completions");
}

#[tokio::test]
async fn every_request_has_the_common_headers() {
    let server = Server::start().await.unwrap();
    server.reply(answer());
    assert!(end_of(request(model(APIS[1], &server.url()))).await.is_ok());
    let asked = &server.requests()[0];
    assert_eq!(asked.header("accept-encoding"), Some("identity"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(asked.header("authorization"), Some("Bearer key"));
    assert!(asked.header("user-agent").unwrap().starts_with("pinch/"));
}

#[tokio::test]
async fn a_missing_key_is_taken_only_from_the_providers_own_variables() {
    let with = |provider: &str, vars: &[(&str, &str)]| {
        let mut request = request(crate::support::model_with(APIS[0], "http://h", json!({"provider": provider})));
        request.auth = Auth::default();
        request.host = Host::builder().env(vars.iter().copied().collect()).build();
        request
    };
    let key = |request| crate::support::encode(&request).headers;
    assert_eq!(key(with("anthropic", &[("ANTHROPIC_API_KEY", "k")]))["x-api-key"], "k");
    assert_eq!(key(with("anthropic", &[("ANTHROPIC_AUTH_TOKEN", "k")]))["authorization"], "Bearer k");
    let error = end_of(with("p", &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")])).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Auth, "No API key for provider: p"));
}

#[derive(Default)]
struct HeaderSpy {
    statuses: Mutex<Vec<u16>>,
    fails: bool,
}

impl CallObserver for HeaderSpy {
    fn on_payload<'a>(&'a self, body: &'a Value, _: &'a Model) -> BoxFuture<'a, Result<Option<Value>, LlmError>> {
        let mut body = body.clone();
        body["seen"] = json!(true);
        Box::pin(async move { Ok(Some(body)) })
    }

    fn on_headers<'a>(&'a self, headers: &'a mut HeaderMap, _: &'a Model) -> BoxFuture<'a, Result<(), LlmError>> {
        headers.insert("x-spied", "yes".parse().unwrap());
        headers.remove("authorization");
        Box::pin(async { Ok(()) })
    }

    fn on_response<'a>(
        &'a self,
        status: StatusCode,
        _: &'a HeaderMap,
        model: &'a Model,
    ) -> BoxFuture<'a, Result<(), LlmError>> {
        self.statuses.lock().unwrap().push(status.as_u16());
        let error = LlmError::new(model.provider.clone(), LlmErrorKind::Protocol, "spied");
        Box::pin(async move { if self.fails { Err(error) } else { Ok(()) } })
    }
}

#[tokio::test]
async fn observers_can_inspect_and_change_requests() {
    for (spy, good) in [(HeaderSpy::default(), true), (HeaderSpy { fails: true, ..HeaderSpy::default() }, false)] {
        let server = Server::start().await.unwrap();
        server.reply(answer());
        let spy = Arc::new(spy);
        let mut request = request(model(APIS[1], &server.url()));
        request.options.observer = Some(spy.clone());
        let end = end_of(request).await;
        assert_eq!(end.is_ok(), good);
        let sent = server.requests().remove(0);
        assert_eq!(sent.json()["seen"], true);
        assert_eq!((sent.header("x-spied"), sent.header("authorization")), (Some("yes"), None));
        assert_eq!(*spy.statuses.lock().unwrap(), [200]);
    }
}

#[tokio::test]
async fn errors_in_a_stream_contain_their_status() {
    for (api, code, kind) in [
        ("openai-completions", json!(429), LlmErrorKind::RateLimit),
        ("openai-completions", json!("429"), LlmErrorKind::RateLimit),
        ("openai-completions", json!("502"), LlmErrorKind::Server),
        ("openai-completions", json!("server_is_overloaded"), LlmErrorKind::Overloaded),
        ("openai-completions", json!("7"), LlmErrorKind::Protocol),
        ("mistral-conversations", json!(429), LlmErrorKind::RateLimit),
        ("mistral-conversations", json!("503"), LlmErrorKind::Server),
        ("mistral-conversations", json!("1300"), LlmErrorKind::Protocol),
    ] {
        let server = Server::start().await.unwrap();
        server.reply(ServerReply::sse(format!("data: {}\n\n", json!({"error": {"message": "no", "code": code}}))));
        let error = end_of(request(model(api, &server.url()))).await.error.unwrap();
        assert_eq!(error.kind, kind, "{api} {code}: {error:?}");
    }
}

/// Starts a server that reads something and sends this response on each connection.
async fn answering(answer: &'static str) -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _n_read = stream.read(&mut request).await;
            let _result = stream.write_all(answer.as_bytes()).await;
            let _result = stream.shutdown().await;
        }
    });
    (port, tasks)
}

#[tokio::test]
async fn a_wrong_port_and_a_proxy_are_recognised_by_their_response() {
    let (port, _tasks) = answering("SSH-2.0-OpenSSH_9.6\r\n").await;
    let error = end_of(request(model(APIS[1], &format!("http://127.0.0.1:{port}")))).await.error.unwrap();
    let text = "Connection error: the server does not speak HTTP; it answered \"SSH-2.0-OpenSSH_9.6\"";
    assert!(error.kind == LlmErrorKind::Connect && error.text.starts_with(text), "{}", error.text);

    let (port, _tasks) = answering("HTTP/1.1 400 Bad Request\r\n\r\nplain HTTP only\n").await;
    let error = end_of(request(model(APIS[1], &format!("https://127.0.0.1:{port}")))).await.error.unwrap();
    let text = "Connection error: the server does not speak TLS; it answered \"HTTP/1.1 400 Bad Request\": \"plain HTTP only\"";
    assert!(error.text.starts_with(text), "{}", error.text);

    let (port, _tasks) = answering("HTTP/1.1 403 Forbidden\r\n\r\nblocked for user:password-1\n").await;
    let mut request = request(model(APIS[1], "https://model.test/v1"));
    let env = [("HTTPS_PROXY", format!("http://user:password-1@127.0.0.1:{port}"))].into_iter().collect();
    request.host = Host::builder().clock(1, 0).env(env).build();
    let error = end_of(request).await.error.unwrap();
    let text = "Connection error: the proxy answered \"HTTP/1.1 403 Forbidden\": \"blocked for user:[hidden]\"";
    assert_eq!(error.text, text);
}
