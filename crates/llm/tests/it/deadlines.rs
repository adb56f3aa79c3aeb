//! Time limits. The server's clock is real: limits are short, and what must not pass them is held by gates.

use std::time::Duration;

use futures::StreamExt;
use pinch_llm::error::{Emitted, LlmErrorKind};
use pinch_llm::event::StreamEvent;
use pinch_llm::request::Deadlines;
use pinch_testing::server::{Fault, Gate, Reply, Server};
use pinch_testing::wires::anthropic;

use crate::support::{APIS, end_of, model, request, stream};

const SHORT: Option<Duration> = Some(Duration::from_millis(60));

#[track_caller]
fn check(end: &pinch_llm::event::Finished, text: &str, emitted: Emitted) {
    let error = end.error.as_ref().unwrap();
    assert_eq!((error.kind, error.text.as_str(), error.emitted), (LlmErrorKind::Timeout, text, emitted));
}

async fn end_with(reply: Reply, deadlines: Deadlines) -> pinch_llm::event::Finished {
    let server = Server::start().await.unwrap();
    server.reply(reply);
    let mut request = request(model(APIS[0], &server.url()));
    request.options.deadlines = deadlines;
    end_of(request).await
}

#[tokio::test]
async fn headers() {
    let deadlines = Deadlines { headers: SHORT, ..Deadlines::default() };
    check(&end_with(Reply::fault(Fault::Hang), deadlines).await, "Request timed out.", Emitted::Nothing);
}

#[tokio::test]
async fn first_content_is_not_a_ping() {
    let deadlines = Deadlines { first_content: SHORT, ..Deadlines::default() };
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    let reply = (0..4).fold(Reply::events(), |reply, _| reply.send(ping).pause(Duration::from_millis(25)));
    check(&end_with(reply.then(Fault::Hang), deadlines).await, "Stream idle timeout", Emitted::Nothing);
}

#[tokio::test]
async fn silence_between_contents() {
    let deadlines = Deadlines { idle: SHORT, ..Deadlines::default() };
    let frames = anthropic::Response::new("m").text("a").frames();
    let reply = frames.into_iter().fold(Reply::events(), |reply, frame| reply.send(frame));
    let reply = (0..4).fold(reply, |reply, _| reply.send(": alive\n\n").pause(Duration::from_millis(25)));
    let end = end_with(reply.then(Fault::Hang), deadlines).await;
    check(&end, "Stream idle timeout", Emitted::Content);
    assert_eq!(end.message.text(""), "a");
}

#[tokio::test]
async fn the_whole_call() {
    let deadlines = Deadlines { total: SHORT, ..Deadlines::default() };
    let reply = Reply::events().send(anthropic::Response::new("m").frames().concat()).then(Fault::Hang);
    check(&end_with(reply, deadlines).await, "Request timed out.", Emitted::Started);
}

#[tokio::test]
async fn zero_is_none_and_the_header_limit_does_not_cut_a_stream() {
    let zero = Some(Duration::ZERO);
    let server = Server::start().await.unwrap();
    let gate = Gate::new();
    server.reply(Reply::events().gated(&gate, anthropic::Response::new("m").text("a").stop("end_turn")));
    let mut request = request(model(APIS[0], &server.url()));
    request.options.deadlines =
        Deadlines { connect: zero, headers: SHORT, first_content: zero, idle: zero, total: zero };
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
