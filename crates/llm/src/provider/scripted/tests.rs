use futures::StreamExt;
use pinch_stdx::cancel::CancelReason;
use pinch_stdx::host::Host;

use super::*;
use crate::error::{Emitted, LlmErrorKind};
use crate::event::{Finished, StreamEvent};
use crate::message::{Message, block::Text};
use crate::request::{Auth, CallOptions, SystemPrompt};

fn request() -> Request {
    Request {
        model: Arc::new(ScriptedProvider::model("faux")),
        system: SystemPrompt::default(),
        messages: vec![Arc::new(Message::user("hi", 1))],
        tools: Arc::default(),
        options: CallOptions::default(),
        auth: Auth::default(),
        host: Host::builder().clock(1, 0).build(),
    }
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.into(), signature: None })
}

async fn end(provider: &ScriptedProvider) -> Finished {
    provider.stream(request(), Cancel::new()).collect_end().await
}

#[tokio::test]
async fn an_empty_script_fails_without_any_other_event() {
    let provider = ScriptedProvider::new([]);
    let events: Vec<StreamEvent> = provider.stream(request(), Cancel::new()).collect().await;
    assert!(matches!(&events[..], [StreamEvent::End(end)] if !end.is_ok()), "{events:?}");
}

#[tokio::test]
async fn replies_are_used_in_order_and_then_exhausted() {
    let provider = ScriptedProvider::new([ScriptedReply::text("a")]);
    provider.push(ScriptedReply::blocks([text("b")]));
    assert_eq!(provider.remaining(), 2);
    assert_eq!(end(&provider).await.message.text(""), "a");
    assert_eq!(end(&provider).await.message.text(""), "b");
    assert_eq!(end(&provider).await.error.unwrap().text, "No more faux responses queued");
    assert_eq!((provider.remaining(), provider.n_calls()), (0, 3));
}

#[tokio::test]
async fn a_reply_can_be_made_from_the_request() {
    let provider = ScriptedProvider::default();
    provider.push_with(|request, n| async move {
        tokio::task::yield_now().await;
        Ok(ScriptedReply::text(format!("{n}: {}", request.messages.len())))
    });
    provider.push_with(|request, _| async move {
        Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::Billing, "no money"))
    });
    assert_eq!(end(&provider).await.message.text(""), "1: 1");
    assert_eq!(end(&provider).await.error.unwrap().kind, LlmErrorKind::Billing);
}

#[tokio::test]
async fn failures_are_typed() {
    let provider = ScriptedProvider::new([
        ScriptedReply::refused(StatusCode::TOO_MANY_REQUESTS, "slow down"),
        ScriptedReply::blocks([text("one two three four")]).breaking_after(1, "terminated"),
        ScriptedReply::text("whole").breaking_after(1, "terminated"),
    ]);
    let refused = end(&provider).await.error.unwrap();
    assert_eq!((refused.kind, refused.emitted), (LlmErrorKind::RateLimit, Emitted::Nothing));
    for _ in 0..2 {
        let broken = end(&provider).await;
        let error = broken.error.unwrap();
        assert_eq!((error.kind, error.emitted), (LlmErrorKind::StreamCut, Emitted::Content));
        assert!(!broken.message.text("").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_paced_reply_takes_time_and_can_be_aborted() {
    let provider =
        ScriptedProvider::new([ScriptedReply::blocks([text(&"x".repeat(400))]), ScriptedReply::blocks([text("more")])])
            .pieces(5..=5, 0)
            .tokens_per_second(10.0);
    let before = tokio::time::Instant::now();
    assert!(end(&provider).await.is_ok());
    assert_eq!(before.elapsed().as_secs(), 10);
    let cancel = Cancel::new();
    let mut stream = provider.stream(request(), cancel.clone());
    while let Some(event) = stream.next().await {
        if matches!(event, StreamEvent::BlockStart { .. }) {
            cancel.cancel(CancelReason::User);
        }
        if let StreamEvent::End(finished) = event {
            assert_eq!(finished.error.unwrap().kind, LlmErrorKind::Aborted);
        }
    }
}

#[tokio::test]
async fn a_reply_whose_steps_hang_ends_when_it_is_aborted() {
    let provider =
        ScriptedProvider::new([ScriptedReply { steps: vec![ScriptedStep::Hang], ..ScriptedReply::default() }]);
    let cancel = Cancel::new();
    let stream = provider.stream(request(), cancel.clone());
    let (finished, ()) = futures::join!(stream.collect_end(), async { cancel.cancel(CancelReason::User) });
    assert_eq!(finished.error.unwrap().kind, LlmErrorKind::Aborted);
}
