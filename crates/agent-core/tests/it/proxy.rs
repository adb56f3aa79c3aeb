//! Client and server of the proxy over real HTTP.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use http::StatusCode;
use pinch_agent_core::proxy::{ProxyCall, ProxyProvider, lines};
use pinch_llm::error::LlmErrorKind;
use pinch_llm::event::{Finished, StreamEvent};
use pinch_llm::message::{Message, StopReason, ToolDecl};
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::provider::scripted::{self, ScriptedProvider, ScriptedStep};
use pinch_llm::request::{
    Auth, CacheRetention, CallOptions, NativeThinking, Request, ResponseFormat, SystemPrompt, ThinkingBudgets,
    ThinkingChoice, Timeouts, ToolChoice,
};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use pinch_testing::server::{Gate, Server, ServerReply};
use serde_json::{Value, json};

fn model() -> Arc<Model> {
    let record = json!({"id": "m", "api": "scripted", "provider": "p", "baseUrl": "http://x", "reasoning": true});
    Arc::new(Model::from_record(&record).unwrap())
}

fn request() -> Request {
    Request::new(model(), vec![Arc::new(Message::user("hi", 1))])
        .with_system(SystemPrompt::text("Be brief."))
        .with_auth(Auth::key("the client's own key"))
        .with_host(Host::builder().clock(1_000, 0).build())
}

fn script() -> scripted::ScriptedReply {
    let arguments = json!({"path": "é", "n": 1.5}).as_object().unwrap().clone();
    let steps = vec![
        ScriptedStep::Thinking(vec!["hm, ".into(), "so".into()]),
        ScriptedStep::Text(vec!["said ".into(), "in many ".into(), "words".into()]),
        ScriptedStep::ToolCall { id: "c".into(), name: "read".into(), arguments },
    ];
    scripted::ScriptedReply { steps, response_id: Some("r".into()), ..scripted::ScriptedReply::default() }
}

/// Starts a server that answers with a provider's events, one write per line.
async fn serve(provider: Arc<dyn Provider>) -> Server {
    let server = Server::start().await.unwrap();
    server.answer_with(move |asked| {
        if asked.header("authorization") != Some("Bearer token") {
            return Some(ServerReply::json(401, &json!({"error": "who are you?"})));
        }
        let host = Host::builder().clock(1_000, 0).build();
        let request = match ProxyCall::read(&asked.body) {
            Ok(asked) => asked.into_request(model(), Auth::keyless(), host),
            Err(bad) => return Some(ServerReply::json(400, &json!({"error": bad.to_string()}))),
        };
        let written = lines(provider.stream(request, Cancel::new())).collect::<Vec<String>>().now_or_never()?;
        Some(written.into_iter().fold(ServerReply::events(), ServerReply::send))
    });
    server
}

async fn events(provider: &dyn Provider, request: Request) -> Vec<StreamEvent> {
    provider.stream(request, Cancel::new()).collect().await
}

/// Renders events without their durations.
fn words(events: &[StreamEvent]) -> Vec<String> {
    let word = |event: &StreamEvent| match event {
        StreamEvent::End(Finished { message, error }) => {
            let mut message = (**message).clone();
            message.duration_ms = None;
            let error = error.as_ref().map(|error| (error.kind, error.status, error.text.clone(), error.emitted));
            format!("{message:?} {error:?}")
        }
        other => format!("{other:?}"),
    };
    events.iter().map(word).collect()
}

async fn end_at(server: &Server) -> Finished {
    ProxyProvider::new(&server.url(), "token").stream(request(), Cancel::new()).collect_end().await
}

#[tokio::test]
async fn the_client_sees_what_the_server_sees() {
    let busy = scripted::ScriptedReply::refused(StatusCode::TOO_MANY_REQUESTS, "429 slow down");
    let replies = [script(), script().breaking_after(3, "cut"), scripted::ScriptedReply::error("overloaded"), busy];
    let server = serve(Arc::new(ScriptedProvider::new(replies.clone()))).await;
    for reply in replies {
        let direct = events(&ScriptedProvider::new([reply]), request()).await;
        let through = events(&ProxyProvider::new(&format!("{}/", server.url()), "token"), request()).await;
        assert_eq!(words(&through), words(&direct));
    }
    let sent = &server.requests()[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", "/api/stream"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert!(!String::from_utf8_lossy(&sent.body).contains("own key"));
}

#[tokio::test]
async fn requests_arrive_as_they_were_sent() {
    let server = Server::start().await.unwrap();
    let done = json!({"type": "done", "reason": "stop", "usage": {}});
    server.reply(ServerReply::sse(format!("data: {done}\n"))).repeat_last();
    let mut sent = request();
    let list = json!([
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}], "timestamp": 1},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "t", "arguments": {"n": 1}}], "api": "a",
         "provider": "p", "model": "m", "stopReason": "toolUse", "timestamp": 2},
        {"role": "toolResult", "toolCallId": "c", "toolName": "t", "content": [], "isError": true, "timestamp": 3},
        {"role": "odd", "x": 1},
    ]);
    sent.messages = list.as_array().unwrap().iter().map(|m| Arc::new(Message::from_value(m).unwrap())).collect();
    let mut tool = ToolDecl::new("t", "d", json!({"type": "object"}));
    tool.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
    sent.tools = Arc::new([tool]);
    sent.options.temperature = Some(0.5);
    sent.options.max_tokens = Some(9);
    sent.options.thinking_budgets = ThinkingBudgets { low: Some(7), ..ThinkingBudgets::default() };
    sent.options.cache_retention = Some(CacheRetention::Long);
    sent.options.tool_choice = Some(ToolChoice::tool("t"));
    sent.options.response_format = Some(ResponseFormat::json_schema("answer", json!({"type": "object"})));
    sent.options.session_id = Some("s".into());
    sent.options.headers = vec![("x-a".into(), Some("1".into())), ("x-b".into(), None)];
    sent.options.metadata = json!({"user_id": "u"}).as_object().cloned();
    sent.options.native = json!({"transport": "sse", "maxRetryDelayMs": 5}).as_object().unwrap().clone();
    let native = NativeThinking { effort: Some("high".into()), budget: Some(3), ..NativeThinking::default() };
    let choices = [
        ThinkingChoice::Unset,
        ThinkingChoice::Native(native),
        ThinkingChoice::Level(ThinkingLevel::Off),
        ThinkingChoice::Level(ThinkingLevel::XHigh),
    ];
    for (idx, choice) in choices.into_iter().enumerate() {
        sent.options.thinking = choice;
        let end = ProxyProvider::new(&server.url(), "token").stream(sent.clone(), Cancel::new()).collect_end().await;
        assert!(end.is_ok(), "{end:?}");
        let body = server.requests()[idx].body.clone();
        let read = ProxyCall::read(&body).unwrap().into_request(model(), Auth::default(), Host::system());
        assert_eq!((&read.model, read.system.render()), (&sent.model, sent.system.render()));
        assert_eq!((&read.messages, &read.tools), (&sent.messages, &sent.tools));
        let facts = |options: &CallOptions| {
            let CallOptions {
                temperature, max_tokens, thinking, thinking_budgets, cache_retention, session_id, ..
            } = options;
            format!(
                "{temperature:?} {max_tokens:?} {thinking:?} {thinking_budgets:?} {cache_retention:?} {session_id:?} {:?} {:?} {:?} {:?} {:?}",
                options.headers, options.metadata, options.native, options.tool_choice, options.response_format
            )
        };
        assert_eq!(facts(&read.options), facts(&sent.options));
        let told: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(told["options"].get("reasoning").is_some(), idx == 3);
    }
}

#[tokio::test]
async fn refusals_keep_their_kind_and_text() {
    let text = |reply: ServerReply| async move {
        let server = Server::start().await.unwrap();
        server.reply(reply);
        let error = end_at(&server).await.error.unwrap();
        (error.kind, error.text.clone())
    };
    let unavailable = (LlmErrorKind::Server, "Proxy error: 503 Service Unavailable".to_owned());
    assert_eq!(text(ServerReply::status(503).send("<html>")).await, unavailable);
    let said = text(ServerReply::json(429, &json!({"error": "slow down"}))).await;
    assert_eq!(said, (LlmErrorKind::RateLimit, "Proxy error: slow down".into()));
    let server = serve(Arc::new(ScriptedProvider::new([script()]))).await;
    let end = ProxyProvider::new(&server.url(), "wrong").stream(request(), Cancel::new()).collect_end().await;
    assert_eq!(end.error.unwrap().text, "Proxy error: who are you?");
    let end = ProxyProvider::new(&server.url(), "a\nb").stream(request(), Cancel::new()).collect_end().await;
    assert_eq!(end.error.unwrap().kind, LlmErrorKind::Auth);
}

#[tokio::test]
async fn interrupted_answers_are_errors() {
    let server = Server::start().await.unwrap();
    let half = "data: {\"type\":\"start\"}\n\ndata: {\"type\":\"text_start\",\"contentIndex\":0}\n\ndata: {\"type\":\"text_delta\",\"contentIndex\":0,\"delta\":\"half\"}\n\n";
    server.reply(ServerReply::sse(half));
    let end = end_at(&server).await;
    assert_eq!(end.error.unwrap().text, "Proxy stream ended unexpectedly");
    assert_eq!(end.message.text(""), "half");
    // The last line needs no terminator.
    server.reply(ServerReply::sse(half).send("data: {\"type\":\"done\",\"reason\":\"stop\",\"usage\":{}}"));
    let end = end_at(&server).await;
    assert_eq!((end.error.is_none(), end.message.text("")), (true, "half".into()));
}

#[tokio::test]
async fn cancelling_keeps_the_partial_answer() {
    let server = Server::start().await.unwrap();
    let gate = Gate::new();
    let half = "data: {\"type\":\"text_start\",\"contentIndex\":0}\ndata: {\"type\":\"text_delta\",\"contentIndex\":0,\"delta\":\"half\"}\n";
    server.reply(ServerReply::sse(half).gate(&gate));
    let cancel = Cancel::new();
    let mut stream = ProxyProvider::new(&server.url(), "token").stream(request(), cancel.clone());
    let mut end = None;
    while let Some(event) = stream.next().await {
        match event {
            StreamEvent::Delta { .. } => cancel.cancel(CancelReason::User),
            StreamEvent::End(finished) => end = Some(finished),
            _ => {}
        }
    }
    let end = end.unwrap();
    assert_eq!((end.message.stop_reason, end.message.text("")), (StopReason::Aborted, "half".into()));
    assert_eq!(end.message.error_message.as_deref(), Some("Request aborted by user"));
    gate.open();
}

#[tokio::test]
async fn the_clients_timeouts_are_enforced() {
    let server = Server::start().await.unwrap();
    let gate = Gate::new();
    server.reply(ServerReply::sse("data: {\"type\":\"start\"}\n").gate(&gate));
    let mut request = request();
    request.options.timeouts = Timeouts::default().with_idle(Some(Duration::from_millis(30)));
    let end = ProxyProvider::new(&server.url(), "token").stream(request, Cancel::new()).collect_end().await;
    assert_eq!(end.error.unwrap().kind, LlmErrorKind::Timeout);
    gate.open();
}

#[tokio::test]
async fn no_credentials_travel_with_the_model() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::json(401, &json!({"error": "unknown token-of-the-client"})));
    let record = json!({"id": "m", "api": "scripted", "provider": "p", "baseUrl": "http://user:password1@host/v1?key=k",
                        "headers": {"x-api-key": "sk-model-header"}});
    let mut request = request();
    request.model = Arc::new(Model::from_record(&record).unwrap());
    let provider = ProxyProvider::new(&server.url(), "token-of-the-client");
    let end = provider.stream(request, Cancel::new()).collect_end().await;
    let sent = server.requests().remove(0);
    let body = String::from_utf8(sent.body.to_vec()).unwrap();
    assert!(!body.contains("sk-model-header") && !body.contains("password1"), "{body}");
    assert_eq!(sent.json()["model"]["baseUrl"], "http://host/v1");
    assert_eq!(end.error.unwrap().text, "Proxy error: unknown [hidden]");
}
