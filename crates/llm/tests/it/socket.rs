//! ChatGPT subscriptions over WebSockets.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use futures::StreamExt;
use http::HeaderMap;
use pinch_llm::error::{Emitted, LlmErrorKind};
use pinch_llm::event::Finished;
use pinch_llm::http::HttpClient;
use pinch_llm::message::{Message, StopReason};
use pinch_llm::provider::Provider;
use pinch_llm::provider::socket::{SocketProvider, SocketStats};
use pinch_llm::request::{Auth, CallObserver, Request, SystemPrompt};
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_testing::server::socket::{ClientFrame, SocketLog, SocketScript};
use pinch_testing::server::{Fault, Gate, Server, ServerReply};
use pinch_testing::wires::responses::ResponsesResponse;
use serde_json::{Value, json};

use crate::support::{model_with, request};

fn token(account: &str) -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": account}}).to_string();
    format!("h.{}.s", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims))
}

struct Bench {
    server: Server,
    log: SocketLog,
    provider: SocketProvider,
}

impl Bench {
    async fn new() -> Self {
        let provider = SocketProvider::new(Arc::new(HttpClient::new()));
        Self { server: Server::start().await.unwrap(), log: SocketLog::default(), provider }
    }

    fn script(&self) -> SocketScript {
        SocketScript::new(&self.log)
    }

    /// Adds a socket that plays a script.
    fn socket(&self, script: SocketScript) -> &Self {
        self.server.reply(ServerReply::socket(script));
        self
    }

    fn request(&self, session: Option<&str>) -> Request {
        let model = model_with("openai-codex-responses", &self.server.url(), json!({"provider": "openai-codex"}));
        let mut request = request(model);
        request.auth = Auth::key(token("acc-1"));
        request.system = SystemPrompt::text("S");
        request.options.session_id = session.map(Into::into);
        request
    }

    async fn call(&self, request: &Request) -> Finished {
        self.provider.stream(request.clone(), Cancel::new()).collect_end().await
    }

    fn stats(&self) -> SocketStats {
        self.provider.stats("s").unwrap()
    }
}

fn answer(id: &str, text: &str) -> Vec<Value> {
    ResponsesResponse::new(id, "m").text(text).end("completed", &Value::Null).events()
}

fn sse(text: &str) -> ServerReply {
    ServerReply::sse(ResponsesResponse::new("r", "m").text(text).completed().concat())
}

/// Adds an answer and a new question to a conversation.
fn go_on(request: &mut Request, answer: &Finished, question: &str) {
    request.messages.push(Arc::new(Message::Assistant(answer.message.clone())));
    request.messages.push(Arc::new(Message::user(question, 5)));
}

#[track_caller]
fn check_note(end: &Finished, text: &str, continues: bool) {
    let notes = end.message.diagnostics.as_ref().unwrap().as_array().unwrap();
    assert_eq!(notes.len(), 1);
    let (note, details) = (&notes[0], &notes[0]["details"]);
    assert_eq!((&note["type"], &note["error"]["message"]), (&json!("provider_transport_failure"), &json!(text)));
    assert_eq!(details["configuredTransport"], "auto");
    assert_eq!(details.get("fallbackTransport"), continues.then_some(&json!("sse")));
    assert_eq!(details["eventsEmitted"], !continues);
}

#[tokio::test]
async fn a_conversation_keeps_its_socket_and_sends_only_new_items() {
    let bench = Bench::new().await;
    let script = bench.script().hear().send(&answer("ra", "A1")).ping(b"alive?").hear().send(&answer("rb", "A2"));
    bench.socket(script.hear().send(&answer("rc", "A3")));
    let mut request = bench.request(Some("s"));
    let first = bench.call(&request).await;
    assert_eq!((first.message.stop_reason, first.message.text("")), (StopReason::Stop, "A1".into()));
    go_on(&mut request, &first, "q2");
    let second = bench.call(&request).await;
    go_on(&mut request, &second, "q3");
    request.system = SystemPrompt::text("T");
    assert_eq!(bench.call(&request).await.message.text(""), "A3");

    let texts = bench.log.texts();
    let user = |text: &str| json!({"role": "user", "content": [{"type": "input_text", "text": text}]});
    assert_eq!((&texts[0]["type"], &texts[0]["input"]), (&json!("response.create"), &json!([user("hi")])));
    assert_eq!((&texts[1]["previous_response_id"], &texts[1]["input"]), (&json!("ra"), &json!([user("q2")])));
    assert_eq!((texts[2].get("previous_response_id"), texts[2]["input"].as_array().unwrap().len()), (None, 5));
    assert_eq!(bench.log.n_opened(), 1);
    assert!(
        bench.log.frames().contains(&ClientFrame::Pong(b"alive?".to_vec())),
        "pings are answered between calls too"
    );
    let stats = bench.stats();
    assert_eq!((stats.requests, stats.connections_created, stats.connections_reused), (3, 1, 2));
    assert_eq!((stats.full_context_requests, stats.delta_requests, stats.cached_context_requests), (2, 1, 3));
    assert_eq!((stats.last_input_items, stats.last_delta_input_items), (5, Some(1)));
    assert_eq!(stats.last_previous_response_id.as_deref(), Some("ra"));

    bench.provider.close_session("s");
    bench.log.wait_for(|frame| *frame == ClientFrame::Close { code: 1000, reason: "debug_close".into() }).await;
    assert_eq!(bench.provider.stats("s"), None);
}

#[tokio::test]
async fn a_plain_websocket_sends_everything() {
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().send(&answer("ra", "A1")).hear().send(&answer("rb", "A2")));
    let mut request = bench.request(Some("s"));
    request.options.native = json!({"transport": "websocket"}).as_object().unwrap().clone();
    let first = bench.call(&request).await;
    go_on(&mut request, &first, "q2");
    assert!(bench.call(&request).await.is_ok());
    assert_eq!(bench.log.texts()[1]["input"].as_array().unwrap().len(), 3);
    assert_eq!((bench.stats().cached_context_requests, bench.log.n_opened()), (0, 1));
}

#[tokio::test]
async fn without_a_session_the_socket_is_closed() {
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().send(&answer("r", "A")));
    assert!(bench.call(&bench.request(None)).await.is_ok());
    bench.log.wait_for(|frame| *frame == ClientFrame::Close { code: 1000, reason: "done".into() }).await;
    let asked = &bench.server.requests()[0];
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("GET", "/codex/responses"));
    assert_eq!(asked.header("openai-beta"), Some("responses_websockets=2026-02-06"));
    assert_eq!(asked.header("session-id").map(str::len), Some(36));
    assert_eq!((asked.header("chatgpt-account-id"), asked.header("accept")), (Some("acc-1"), Some("*/*")));
}

#[tokio::test]
async fn sse_is_used_on_request() {
    let bench = Bench::new().await;
    bench.server.reply(sse("A"));
    let mut request = bench.request(Some("s"));
    request.options.native = json!({"transport": "sse"}).as_object().unwrap().clone();
    assert_eq!(bench.call(&request).await.message.text(""), "A");
    assert_eq!(bench.provider.stats("s"), None);
}

#[tokio::test]
async fn without_a_socket_the_call_continues_and_the_next_one_does_not_try() {
    let bench = Bench::new().await;
    bench.server.reply(ServerReply::status(426)).reply(sse("A")).reply(sse("B"));
    let request = bench.request(Some("s"));
    let end = bench.call(&request).await;
    check_note(&end, "WebSocket upgrade refused with status 426 Upgrade Required", true);
    assert_eq!(end.message.text(""), "A");
    assert!(bench.stats().websocket_fallback_active);
    let next = bench.call(&request).await;
    assert_eq!((next.message.text(""), &next.message.diagnostics), ("B".into(), &None));
}

#[tokio::test]
async fn a_socket_closed_before_the_first_event_falls_back() {
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().close(1009, ""));
    bench.server.reply(sse("A"));
    let mut stream = bench.provider.stream(bench.request(Some("s")), Cancel::new());
    let mut n_starts = 0;
    let mut end = None;
    while let Some(event) = stream.next().await {
        match event {
            pinch_llm::event::StreamEvent::Start(_) => n_starts += 1,
            pinch_llm::event::StreamEvent::End(finished) => end = Some(finished),
            _ => {}
        }
    }
    let end = end.unwrap();
    check_note(&end, "WebSocket closed 1009 message too big", true);
    assert_eq!((n_starts, end.message.text("")), (1, "A".into()));
    let stats = bench.stats();
    assert_eq!((stats.websocket_failures, stats.sse_fallbacks, stats.full_context_requests), (1, 1, 1));
    assert_eq!(stats.last_web_socket_error.as_deref(), Some("WebSocket closed 1009 message too big"));
}

#[tokio::test]
async fn a_socket_closed_midway_ends_the_answer() {
    let created = json!({"type": "response.created", "response": {"id": "z"}});
    for (code, text) in [
        (Some((1006, "gone")), "WebSocket closed 1006 gone"),
        (Some((1000, "")), "WebSocket stream closed before response.completed"),
        (None, "WebSocket closed 1006"),
    ] {
        let bench = Bench::new().await;
        let script = bench.script().hear().send([&created]);
        bench.socket(match code {
            Some((code, reason)) => script.close(code, reason),
            None => script.drop(),
        });
        let end = bench.call(&bench.request(Some("s"))).await;
        check_note(&end, text, false);
        let error = end.error.unwrap();
        assert_eq!((error.text.as_str(), error.kind, error.emitted), (text, LlmErrorKind::StreamCut, Emitted::Started));
        assert_eq!(end.message.response_id.as_deref(), Some("z"));
        assert!(bench.stats().websocket_fallback_active);
    }
}

#[tokio::test]
async fn service_errors_do_not_count_as_socket_failures() {
    let bench = Bench::new().await;
    let limit = json!({"type": "error", "status": 429, "error": {"code": "usage_limit_reached", "resets_at": 61}});
    bench.socket(bench.script().hear().send([&limit]));
    let error = bench.call(&bench.request(Some("s"))).await.error.unwrap();
    assert_eq!((error.kind, error.should_retry), (LlmErrorKind::RateLimit, Some(false)));
    assert_eq!(error.retry_after, Some(Duration::from_secs(60)));
    assert!(!bench.stats().websocket_fallback_active);

    bench.socket(bench.script().hear().send_text("{\"type\":"));
    let error = bench.call(&bench.request(Some("s"))).await.error.unwrap();
    assert!(error.text.starts_with("Invalid Codex WebSocket JSON: "), "{}", error.text);
    assert_eq!(bench.log.n_opened(), 2, "a socket that failed is not used again");
}

#[tokio::test]
async fn after_lost_state_the_whole_request_is_resent_once() {
    let flat = json!({"type": "error", "code": "previous_response_not_found", "message": "gone"});
    let nested = json!({"type": "error", "status": 400, "error": {"code": "websocket_connection_limit_reached", "message": "60 minutes"}});
    let created = json!({"type": "response.created", "response": {"id": "lost"}});
    for lost in [vec![&flat], vec![&nested], vec![&created, &nested]] {
        let bench = Bench::new().await;
        bench.socket(bench.script().hear().send(&answer("ra", "A1")).hear().send(lost));
        bench.socket(bench.script().hear().send(&answer("rb", "A2")));
        let mut request = bench.request(Some("s"));
        let first = bench.call(&request).await;
        go_on(&mut request, &first, "q2");
        let end = bench.call(&request).await;
        assert_eq!((end.message.text(""), end.message.response_id.as_deref()), ("A2".into(), Some("rb")));
        let texts = bench.log.texts();
        assert_eq!((texts.len(), &texts[1]["previous_response_id"]), (3, &json!("ra")));
        assert_eq!((texts[2].get("previous_response_id"), texts[2]["input"].as_array().unwrap().len()), (None, 3));
        assert!(!bench.stats().websocket_fallback_active);
    }
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().send([&nested])).socket(bench.script().hear().send([&nested]));
    let end = bench.call(&bench.request(Some("s"))).await;
    assert_eq!(end.error.unwrap().text, "Codex error: 60 minutes", "never twice");
}

#[tokio::test]
async fn a_busy_conversation_gets_a_socket_for_one_call() {
    let bench = Bench::new().await;
    let gate = Gate::new();
    let events = answer("ra", "A1");
    bench.socket(
        bench.script().hear().send(&events[..1]).gate(&gate).send(&events[1..]).hear().send(&answer("rc", "A3")),
    );
    bench.socket(bench.script().hear().send(&answer("rb", "A2")));
    let request = bench.request(Some("s"));
    let mut first = bench.provider.stream(request.clone(), Cancel::new());
    assert!(first.next().await.is_some());
    assert_eq!(bench.call(&request).await.message.text(""), "A2");
    gate.open();
    assert_eq!(first.collect_end().await.message.text(""), "A1");
    assert_eq!(bench.call(&request).await.message.text(""), "A3");
    assert_eq!(bench.log.n_opened(), 2);
}

#[tokio::test]
async fn each_account_has_its_own_sockets() {
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().send(&answer("ra", "A1")));
    bench.socket(bench.script().hear().send(&answer("rb", "A2")));
    let mut request = bench.request(Some("s"));
    assert!(bench.call(&request).await.is_ok());
    request.auth = Auth::key(token("acc-2"));
    assert!(bench.call(&request).await.is_ok());
    assert_eq!(bench.log.n_opened(), 2);
}

#[tokio::test]
async fn an_idle_socket_that_the_server_closed_is_not_used() {
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().send(&answer("ra", "A1")).close(1000, "bye"));
    bench.socket(bench.script().hear().send(&answer("rb", "A2")));
    let request = bench.request(Some("s"));
    assert!(bench.call(&request).await.is_ok());
    // The task that keeps the socket alive notices its end.
    for _ in 0..100 {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(bench.call(&request).await.message.text(""), "A2");
    assert_eq!(bench.stats().connections_created, 2);
}

#[tokio::test]
async fn cancelling_at_any_event_frees_the_slot() {
    let events = answer("ra", "A1");
    for stop_after in 0..5 {
        let bench = Bench::new().await;
        let gate = Gate::new();
        gate.open_times(events.len());
        let script = events.iter().fold(bench.script().hear(), |script, event| script.gate(&gate).send([event]));
        bench.socket(script);
        let request = bench.request(Some("s"));
        let cancel = Cancel::new();
        let mut stream = bench.provider.stream(request.clone(), cancel.clone());
        for _ in 0..stop_after {
            stream.next().await.unwrap();
        }
        cancel.cancel(CancelReason::User);
        let end = stream.collect_end().await;
        if end.is_ok() {
            assert!(stop_after >= 3);
            continue;
        }
        assert_eq!(end.message.stop_reason, StopReason::Aborted, "{stop_after}");
        bench.server.reply(ServerReply::socket(bench.script().hear().send(&answer("rb", "A2"))));
        if stop_after == 0 {
            assert!(bench.server.requests().is_empty());
            continue;
        }
        assert_eq!(bench.call(&request).await.message.text(""), "A2");
        assert_eq!(bench.log.n_opened(), 2);
    }
}

#[tokio::test]
async fn a_dropped_call_frees_the_slot() {
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().send(&answer("ra", "A1")[..1]));
    bench.socket(bench.script().hear().send(&answer("rb", "A2")));
    let request = bench.request(Some("s"));
    let mut stream = bench.provider.stream(request.clone(), Cancel::new());
    assert!(stream.next().await.is_some());
    drop(stream);
    assert!(bench.call(&request).await.is_ok());
    bench.log.wait_for(|frame| matches!(frame, ClientFrame::Text(text) if text["prompt_cache_key"] == "s")).await;
}

#[tokio::test]
async fn silence_ends_the_call_without_a_resend() {
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().send(&answer("ra", "A1")[..2]).ping(b"p"));
    let mut request = bench.request(Some("s"));
    request.options.timeouts.idle = Some(Duration::from_millis(40));
    let error = bench.call(&request).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Timeout, "Stream idle timeout"));
    assert_eq!(bench.server.requests().len(), 1);
}

#[tokio::test]
async fn a_socket_that_only_pings_times_out() {
    let bench = Bench::new().await;
    bench.socket((0..40).fold(bench.script().hear(), |script, _| script.ping(b"p")));
    let mut request = bench.request(Some("s"));
    request.options.timeouts.first_content = Some(Duration::from_millis(40));
    let error = bench.call(&request).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Timeout, "Stream idle timeout"));
}

#[tokio::test]
async fn the_total_timeout_continues_without_a_socket() {
    let bench = Bench::new().await;
    bench.server.reply(ServerReply::fault(Fault::Hang)).reply(ServerReply::fault(Fault::Hang));
    let mut request = bench.request(Some("s"));
    request.options.timeouts.websocket = Some(Duration::from_millis(300));
    request.options.timeouts.total = Some(Duration::from_millis(500));
    let began = std::time::Instant::now();
    let error = bench.call(&request).await.error.unwrap();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Timeout, "Request timed out."));
    assert!(began.elapsed() < Duration::from_millis(780), "{:?}", began.elapsed());
    assert_eq!(bench.server.requests().len(), 2);
}

/// Advances the time. Nothing may be in flight, because network time is real.
async fn wait(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn idle_sockets_are_closed() {
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().send(&answer("ra", "A1")));
    assert!(bench.call(&bench.request(Some("s"))).await.is_ok());
    // The waiting task must be polled once before its timer starts.
    tokio::task::yield_now().await;
    wait(Duration::from_secs(301)).await;
    bench.log.wait_for(|frame| *frame == ClientFrame::Close { code: 1000, reason: "idle_timeout".into() }).await;
}

#[tokio::test]
async fn old_sockets_are_not_reused() {
    let bench = Bench::new().await;
    let script = (0..12).fold(bench.script(), |script, n| script.hear().send(&answer(&format!("r{n}"), "A")));
    bench.socket(script).socket(bench.script().hear().send(&answer("rx", "X")));
    for n_calls in 1..=12 {
        assert_eq!(bench.call(&bench.request(Some("s"))).await.message.text(""), "A");
        assert_eq!(bench.stats().connections_created, 1, "after {n_calls} calls");
        tokio::task::yield_now().await;
        wait(Duration::from_secs(240)).await;
    }
    assert_eq!(bench.call(&bench.request(Some("s"))).await.message.text(""), "X");
    bench.log.wait_for(|frame| *frame == ClientFrame::Close { code: 1000, reason: "max_age".into() }).await;
}

#[tokio::test]
async fn a_silent_server_falls_back_to_sse_until_the_fallback_expires() {
    let bench = Bench::new().await;
    bench.server.reply(ServerReply::fault(Fault::Hang)).reply(sse("B"));
    let mut request = bench.request(Some("s"));
    request.options.timeouts.connect = None;
    let passes = async {
        bench.server.wait_for_requests(1).await;
        wait(Duration::from_secs(16)).await;
    };
    let (end, ()) = tokio::join!(bench.call(&request), passes);
    check_note(&end, "WebSocket connect timeout", true);
    assert!(bench.stats().websocket_fallback_active);
    wait(Duration::from_secs(601)).await;
    assert!(!bench.stats().websocket_fallback_active);
    bench.socket(bench.script().hear().send(&answer("rc", "C")));
    assert_eq!(bench.call(&request).await.message.text(""), "C");
}

struct StatusSpy(std::sync::Mutex<Vec<u16>>);

impl CallObserver for StatusSpy {
    fn on_payload<'a>(
        &'a self,
        body: &'a Value,
        _: &'a pinch_llm::model::Model,
    ) -> futures::future::BoxFuture<'a, Result<Option<Value>, pinch_llm::error::LlmError>> {
        let mut body = body.clone();
        body["seen"] = json!(true);
        Box::pin(async move { Ok(Some(body)) })
    }

    fn on_response<'a>(
        &'a self,
        status: http::StatusCode,
        _: &'a HeaderMap,
        _: &'a pinch_llm::model::Model,
    ) -> futures::future::BoxFuture<'a, Result<(), pinch_llm::error::LlmError>> {
        self.0.lock().unwrap().push(status.as_u16());
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn observers_see_sockets_too() {
    let bench = Bench::new().await;
    bench.socket(bench.script().hear().send(&answer("ra", "A1")));
    let spy = Arc::new(StatusSpy(std::sync::Mutex::default()));
    let mut request = bench.request(None);
    request.options.observer = Some(spy.clone());
    assert!(bench.call(&request).await.is_ok());
    assert_eq!((bench.log.texts()[0]["seen"].clone(), spy.0.lock().unwrap().clone()), (json!(true), vec![101]));
}
