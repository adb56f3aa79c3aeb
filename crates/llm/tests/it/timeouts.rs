//! Time limits. The server's clock is real, so limits are short, and gates hold back everything that must not exceed them.

use std::time::Duration;

use futures::StreamExt;
use pinch_llm::error::{Emitted, LlmErrorKind};
use pinch_llm::event::StreamEvent;
use pinch_llm::request::Timeouts;
use pinch_testing::server::{Fault, Gate, Server, ServerReply};
use pinch_testing::wires::anthropic;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::support::{APIS, end_of, model, request, stream};

const SHORT: Option<Duration> = Some(Duration::from_millis(60));

#[track_caller]
fn check(end: &pinch_llm::event::Finished, text: &str, emitted: Emitted) {
    let error = end.error.as_ref().unwrap();
    assert_eq!((error.kind, error.text.as_str(), error.emitted), (LlmErrorKind::Timeout, text, emitted));
}

async fn end_with(reply: ServerReply, timeouts: Timeouts) -> pinch_llm::event::Finished {
    let server = Server::start().await.unwrap();
    server.reply(reply);
    let mut request = request(model(APIS[0], &server.url()));
    request.options.timeouts = timeouts;
    end_of(request).await
}

#[tokio::test]
async fn the_headers_timeout_ends_a_silent_request() {
    let timeouts = Timeouts::default().with_headers(SHORT);
    check(&end_with(ServerReply::fault(Fault::Hang), timeouts).await, "Request timed out.", Emitted::Nothing);
}

#[tokio::test]
async fn a_ping_does_not_count_as_first_content() {
    let timeouts = Timeouts::default().with_first_content(SHORT);
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    let reply = (0..4).fold(ServerReply::events(), |reply, _| reply.send(ping).pause(Duration::from_millis(25)));
    check(&end_with(reply.then(Fault::Hang), timeouts).await, "Stream idle timeout", Emitted::Nothing);
}

#[tokio::test]
async fn keep_alives_do_not_reset_the_idle_timeout() {
    let timeouts = Timeouts::default().with_idle(SHORT);
    let frames = anthropic::AnthropicResponse::new("m").text("a").frames();
    let reply = frames.into_iter().fold(ServerReply::events(), |reply, frame| reply.send(frame));
    let reply = (0..4).fold(reply, |reply, _| reply.send(": alive\n\n").pause(Duration::from_millis(25)));
    let end = end_with(reply.then(Fault::Hang), timeouts).await;
    check(&end, "Stream idle timeout", Emitted::Content);
    assert_eq!(end.message.text(""), "a");
}

#[tokio::test]
async fn the_total_timeout_ends_a_running_call() {
    let timeouts = Timeouts::default().with_total(SHORT);
    let reply = ServerReply::events().send(anthropic::AnthropicResponse::new("m").frames().concat()).then(Fault::Hang);
    check(&end_with(reply, timeouts).await, "Request timed out.", Emitted::Started);
}

#[tokio::test]
async fn zero_disables_a_timeout_and_the_headers_timeout_does_not_affect_a_stream() {
    let zero = Some(Duration::ZERO);
    let server = Server::start().await.unwrap();
    let gate = Gate::new();
    server.reply(ServerReply::events().gated(&gate, anthropic::AnthropicResponse::new("m").text("a").stop("end_turn")));
    let mut request = request(model(APIS[0], &server.url()));
    let timeouts = Timeouts::default().with_connect(zero).with_websocket(zero).with_headers(SHORT);
    request.options.timeouts = timeouts.with_first_content(zero).with_idle(zero).with_total(zero);
    let mut stream = stream(request);
    let first = async {
        gate.reached(1).await;
        tokio::time::sleep(Duration::from_millis(90)).await;
        gate.open_times(10);
    };
    let (event, ()) = tokio::join!(stream.next(), first);
    assert!(matches!(event, Some(StreamEvent::Start(_))));
    assert!(stream.collect_end().await.is_ok());
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// Starts a server that reads a request, sends `first`, and then `again` forever. Reports when it has the request.
async fn stuck(
    first: &'static str,
    again: Option<(&'static str, Duration)>,
) -> (String, oneshot::Receiver<()>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (asked, was_asked) = oneshot::channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        stream.write_all(first.as_bytes()).await.unwrap();
        // Not every test waits for it.
        let _result = asked.send(());
        match again {
            Some((again, pause)) => {
                while stream.write_all(again.as_bytes()).await.is_ok() {
                    if pause.is_zero() {
                        tokio::task::yield_now().await;
                    } else {
                        tokio::time::sleep(pause).await;
                    }
                }
            }
            None => std::future::pending().await,
        }
    });
    (url, was_asked, tasks)
}

#[tokio::test]
async fn a_server_that_only_keeps_the_connection_open_times_out() {
    let short = Timeouts::default().with_headers(SHORT).with_first_content(SHORT);
    let often = Duration::from_millis(5);
    for api in APIS {
        for (first, again, text) in [
            ("", None, "Request timed out."),
            ("HTTP/1.1 200 OK\r\nconte", None, "Request timed out."),
            ("HTTP/1.1 200 OK\r\n", Some(("x-more: yes\r\n", often)), "Request timed out."),
            (HEAD, None, "Stream idle timeout"),
            (HEAD, Some((": alive\n\n", often)), "Stream idle timeout"),
            (HEAD, Some((": alive\n\n", Duration::ZERO)), "Stream idle timeout"),
            (HEAD, Some(("\n", Duration::ZERO)), "Stream idle timeout"),
            (HEAD, Some((":", Duration::ZERO)), "Stream idle timeout"),
        ] {
            let (url, _, _tasks) = stuck(first, again).await;
            let mut request = request(model(api, &url));
            request.options.timeouts = short;
            check(&end_of(request).await, text, Emitted::Nothing);
        }
    }
}

#[tokio::test]
async fn events_without_content_do_not_reset_timeouts() {
    let often = Duration::from_millis(5);
    for (api, again) in [
        (
            "openai-completions",
            "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        ),
        ("mistral-conversations", "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n"),
        ("google-generative-ai", "data: {\"usageMetadata\":{\"promptTokenCount\":1}}\n\n"),
        (
            "openai-responses",
            "event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"response\":{}}\n\n",
        ),
        ("anthropic-messages", "event: ping\ndata: {\"type\":\"ping\"}\n\n"),
    ] {
        let (url, _, _tasks) = stuck(HEAD, Some((again, often))).await;
        let mut request = request(model(api, &url));
        request.options.timeouts.first_content = SHORT;
        let end = tokio::time::timeout(Duration::from_secs(5), end_of(request)).await;
        let error = end.unwrap_or_else(|_| panic!("{api} waits for ever")).error.unwrap();
        assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Timeout, "Stream idle timeout"), "{api}");
    }
}

#[tokio::test]
async fn default_limits_apply() {
    for (first, text) in [("", "Request timed out."), (HEAD, "Stream idle timeout")] {
        let (url, was_asked, _tasks) = stuck(first, None).await;
        let mut ending = std::pin::pin!(end_of(request(model(APIS[0], &url))));
        // The request has been sent, and the server's data has been read, before time advances.
        let read = async {
            was_asked.await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        tokio::select! {
            _ = &mut ending => panic!("ended at once"),
            () = read => {}
        }
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(299)).await;
        assert!(futures::poll!(&mut ending).is_pending());
        tokio::time::advance(Duration::from_secs(2)).await;
        check(&ending.await, text, Emitted::Nothing);
        tokio::time::resume();
    }
    assert_eq!(Timeouts::default().connect, Some(Duration::from_secs(30)));
}

#[tokio::test]
async fn an_endless_handshake_is_a_failed_connection() {
    let (url, _, _tasks) = stuck("", None).await;
    let mut request = request(model(APIS[0], &url.replace("http:", "https:")));
    request.options.timeouts.connect = SHORT;
    let error = end_of(request).await.error.unwrap();
    assert_eq!(error.kind, LlmErrorKind::Connect);
    assert!(error.text.contains("connect timeout"), "{}", error.text);
}

#[tokio::test]
async fn pauses_of_the_consumer_do_not_count() {
    let server = Server::start().await.unwrap();
    let gate = Gate::new();
    let frames = anthropic::AnthropicResponse::new("m").text("a").stop("end_turn");
    server.reply(ServerReply::events().gated(&gate, frames));
    gate.open_times(20);
    let mut request = request(model(APIS[0], &server.url()));
    request.options.timeouts = Timeouts::default().with_first_content(SHORT).with_idle(SHORT);
    let mut stream = stream(request);
    let mut n_events = 0;
    while let Some(event) = stream.next().await {
        n_events += 1;
        if let StreamEvent::End(end) = event {
            assert!(end.is_ok(), "{:?}", end.error);
        }
        tokio::time::sleep(Duration::from_millis(90)).await;
    }
    assert!(n_events > 3);
}
