//! Cancelling a call while there is no event: before it is polled, and while the server is silent.

use pinch_llm::message::StopReason;
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_testing::server::{Fault, Server, ServerReply};

use crate::support::{APIS, model, request, stream_until};

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let server = Server::start().await.unwrap();
    let stream = stream_until(request(model(APIS[0], &server.url())), Cancel::new());
    tokio::task::yield_now().await;
    drop(stream);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_call_can_be_cancelled_while_the_server_is_silent() {
    for fault in [
        ServerReply::fault(Fault::Hang),
        ServerReply::events().then(Fault::Hang),
        ServerReply::status(500).then(Fault::Hang),
    ] {
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
