//! Cancelling a call at every point of it.

use futures::StreamExt;
use pinch_llm::error::LlmErrorKind;
use pinch_llm::event::StreamEvent;
use pinch_llm::message::StopReason;
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_testing::server::{Fault, Gate, Reply, Server};
use pinch_testing::wires::{anthropic, completions};

use crate::support::{APIS, model, request, stream_until};

fn frames(api: &str) -> Vec<String> {
    if api == APIS[0] {
        anthropic::Response::new("m").in_pieces(2).text("abcd").tool_call("t", "read", "{}").stop("tool_use")
    } else {
        let response = completions::Response::new("m", "m").in_pieces(2);
        response.text("abcd").tool_call("t", "read", "{}").finish("tool_calls").done()
    }
}

#[tokio::test]
async fn at_every_event() {
    for api in APIS {
        for stop_after in 0.. {
            let server = Server::start().await.unwrap();
            let pieces = frames(api);
            let gate = Gate::new();
            gate.open_times(pieces.len());
            server.reply(Reply::events().gated(&gate, pieces));
            let cancel = Cancel::new();
            let mut stream = stream_until(request(model(api, &server.url())), cancel.clone());
            let mut n_events = 0_usize;
            let end = loop {
                if n_events == stop_after {
                    cancel.cancel(CancelReason::User);
                }
                match stream.next().await.unwrap() {
                    StreamEvent::End(end) => break end,
                    _ => n_events += 1,
                }
            };
            assert!(stream.next().await.is_none());
            if end.is_ok() {
                assert!(stop_after >= n_events.saturating_sub(2), "{api} came to a good end after {stop_after} events");
                break;
            }
            assert_eq!(end.message.stop_reason, StopReason::Aborted, "{api} {stop_after}");
            assert_eq!(end.message.error_message.as_deref(), Some("Request was aborted"));
            assert_eq!(end.error.unwrap().kind, LlmErrorKind::Aborted);
        }
    }
}

#[tokio::test]
async fn before_the_call_nothing_is_sent() {
    let server = Server::start().await.unwrap();
    let cancel = Cancel::new();
    cancel.cancel(CancelReason::User);
    let end = stream_until(request(model(APIS[0], &server.url())), cancel).collect_end().await;
    assert_eq!(end.message.stop_reason, StopReason::Aborted);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let server = Server::start().await.unwrap();
    let stream = stream_until(request(model(APIS[0], &server.url())), Cancel::new());
    tokio::task::yield_now().await;
    drop(stream);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn while_the_server_is_silent() {
    for fault in [Reply::fault(Fault::Hang), Reply::events().then(Fault::Hang), Reply::status(500).then(Fault::Hang)] {
        let server = Server::start().await.unwrap();
        server.reply(fault);
        let cancel = Cancel::new();
        let stream = stream_until(request(model(APIS[1], &server.url())), cancel.clone());
        let stop = async {
            server.wait_for_requests(1).await;
            cancel.cancel(CancelReason::User);
        };
        let (end, ()) = tokio::join!(stream.collect_end(), stop);
        assert_eq!(end.message.stop_reason, StopReason::Aborted);
    }
}
