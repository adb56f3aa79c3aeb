//! What a host receives from a run: blocks with receipts, one start and one end, and what is left to send.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_embed::delivery::{Lifecycle, OutgoingBlock, Receipt, ReplyEvent, ReplySink, SendFailure, SinkLimits};
use pinch_embed::engine::{DeliveredRun, EngineRun, ReplyDelivery};
use pinch_embed::replies::blocks::BlockBreak;
use pinch_embed::run::request::{BlockReplies, Budget};
use pinch_embed::run::{FailureKind, RunRequest};
use pinch_embed::runner::RunEvent;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use crate::world::{World, answer, call, pull_to_text, refusal, stream, within};

/// A chat that refuses certain texts.
#[derive(Default)]
struct RefusingChat {
    refused: Vec<&'static str>,
    limit: Option<usize>,
    log: Mutex<Vec<String>>,
}

impl RefusingChat {
    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl ReplySink for RefusingChat {
    fn limits(&self) -> SinkLimits {
        self.limit.map(SinkLimits::of_chars).unwrap_or_default()
    }

    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(async move {
            let text = &block.reply.text;
            if self.refused.contains(&text.as_str()) {
                return Err(SendFailure::permanent("refused"));
            }
            self.log.lock().unwrap().push(format!("{} {text}", block.id));
            Ok(Receipt::default())
        })
    }

    fn lifecycle<'a>(&'a self, event: &'a Lifecycle) -> BoxFuture<'a, ()> {
        let phase = event.to_value()["phase"].as_str().unwrap_or("?").to_owned();
        self.log.lock().unwrap().push(phase);
        Box::pin(std::future::ready(()))
    }
}

fn by_paragraph(request: RunRequest) -> RunRequest {
    request.block_replies(BlockReplies { break_at: BlockBreak::Paragraph, ..BlockReplies::default() })
}

fn run(world: &World) -> EngineRun {
    world.engine.run(by_paragraph(world.request("s1", "go")).run_id("r"))
}

async fn delivered(world: &World, chat: RefusingChat) -> (Vec<String>, DeliveredRun) {
    let chat = Arc::new(chat);
    let done = within(run(world).deliver(Arc::clone(&chat) as Arc<dyn ReplySink>)).await;
    (chat.log(), done)
}

fn left(run: &DeliveredRun) -> Vec<String> {
    run.still_to_send().into_iter().map(|payload| payload.reply.text).collect()
}

/// Returns an answer that breaks off.
fn broken_off(text: &str, kind: &str) -> ServerReply {
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let error = json!({"type": "error", "error": {"type": kind, "message": "no more"}});
    stream(AnthropicResponse::new("m1").event(start).event(delta).event(error).frames())
}

#[tokio::test]
async fn every_block_is_sent_once_with_its_id() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "One.\n\nTwo.")));
    let (log, run) = delivered(&world, RefusingChat::default()).await;
    assert_eq!(log, ["start", "r/1/0-6 One.", "r/1/6-10 Two.", "end"]);
    assert!(run.delivered.is_complete() && left(&run).is_empty());
    let ids = run.result.as_ref().unwrap().payloads.iter().filter_map(|payload| payload.id(&run.id));
    let sent = run.delivered.blocks.iter().map(|sent| sent.block.id.clone());
    assert_eq!(ids.collect::<Vec<_>>(), sent.collect::<Vec<_>>());
}

#[tokio::test]
async fn refused_blocks_are_left_to_send() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "One.\n\nTwo.\n\nThree.")));
    let (log, run) = delivered(&world, RefusingChat { refused: vec!["Two."], ..RefusingChat::default() }).await;
    assert_eq!(log, ["start", "r/1/0-6 One.", "r/1/12-18 Three.", "end"]);
    assert_eq!(left(&run), ["Two."]);
}

#[tokio::test]
async fn a_failed_run_reports_what_was_delivered() {
    let world = World::with(|config| {
        config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
    })
    .await;
    // After some words were delivered, the retry is refused for good.
    world.server.reply(broken_off("One.\n\nTw", "rate_limit_error"));
    world.server.reply(refusal(401, "authentication_error", "invalid x-api-key"));
    let (log, run) = delivered(&world, RefusingChat::default()).await;
    let sent: Vec<&str> = run.delivered.blocks.iter().map(|sent| sent.block.reply.text.as_str()).collect();
    assert!(run.result.is_err(), "{:?}", run.result);
    assert_eq!((&log[..2], sent), (&["start".to_owned(), "r/1/0-6 One.".to_owned()][..], vec!["One."]));
    assert_eq!(log.last().map(String::as_str), Some("error"));
    let left = run.still_to_send();
    assert!(left.len() == 1 && left[0].is_error, "{left:?}");
}

#[tokio::test]
async fn a_retry_that_repeats_the_answer_is_delivered_once() {
    let world = World::new().await;
    world.server.reply(broken_off("First part.\n\nSecond part.\n\n", "rate_limit_error"));
    world.server.reply(stream(answer("m2", "First part.\n\nSecond part.")));
    let (log, run) = delivered(&world, RefusingChat::default()).await;
    assert_eq!(log, ["start", "r/1/0-13 First part.", "r/1/13-27 Second part.", "end"]);
    assert_eq!(left(&run), [""; 0]);
}

#[tokio::test]
async fn a_retry_with_a_different_text_has_new_ids() {
    let world = World::new().await;
    world.server.reply(broken_off("Red.\n\nGre", "rate_limit_error"));
    world.server.reply(stream(answer("m2", "Blue.\n\nGreen.")));
    let (log, run) = delivered(&world, RefusingChat::default()).await;
    assert_eq!(log, ["start", "r/1/0-6 Red.", "r/2/0-7 Blue.", "r/2/7-13 Green.", "end"]);
    assert_eq!(left(&run), [""; 0]);
}

#[tokio::test]
async fn a_long_block_is_split_at_the_limit_and_its_payload_is_not_left() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "One two. Three four.")));
    let (log, run) = delivered(&world, RefusingChat { limit: Some(12), ..RefusingChat::default() }).await;
    let texts: Vec<&str> =
        log[1..log.len() - 1].iter().filter_map(|line| line.split_once(' ')).map(|(_, t)| t).collect();
    assert_eq!((texts, left(&run)), (vec!["One two.", "Three four."], Vec::<String>::new()));
}

fn phases(events: &[RunEvent]) -> Vec<String> {
    let phase = |event: &RunEvent| match event {
        RunEvent::Reply(ReplyEvent::Lifecycle(event)) => Some(event.to_value()["phase"].as_str()?.to_owned()),
        _ => None,
    };
    events.iter().filter_map(phase).collect()
}

#[tokio::test]
async fn a_run_has_one_start_and_one_end_however_many_attempts_it_takes() {
    let world = World::new().await;
    world.server.reply(refusal(401, "authentication_error", "invalid x-api-key"));
    world.server.reply(stream(answer("m1", "Here.")));
    let events: Vec<RunEvent> = within(run(&world).collect()).await;
    assert_eq!(phases(&events), ["start", "end"]);
    let is_end = matches!(events.last(), Some(RunEvent::Reply(ReplyEvent::Lifecycle(event))) if event.is_terminal());
    assert!(is_end, "nothing comes after the end");
}

#[tokio::test]
async fn a_run_that_fails_has_one_start_and_one_error() {
    let world = World::new().await;
    world.server.reply(refusal(401, "authentication_error", "no")).reply(refusal(401, "authentication_error", "no"));
    let events: Vec<RunEvent> = within(run(&world).collect()).await;
    assert_eq!(phases(&events), ["start", "error"]);
    // It fails before it gets its lanes.
    let events: Vec<RunEvent> = within(world.engine.run(world.request("s1", " ")).collect()).await;
    assert_eq!(phases(&events), ["start", "error"]);
}

#[tokio::test]
async fn a_cancelled_run_has_one_end() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "A long answer.")));
    let cancel = Cancel::new();
    let mut run = world.engine.run(world.request("s1", "go").cancel(cancel.clone()));
    pull_to_text(&mut run).await;
    cancel.cancel(CancelReason::User);
    let events: Vec<RunEvent> = within(run.by_ref().collect()).await;
    assert_eq!(phases(&events), ["end"]);
}

/// Runs a request that requires an answer against these replies of the model.
async fn required(replies: Vec<Vec<String>>) -> (World, Vec<String>, DeliveredRun) {
    let world = World::new().await;
    for reply in replies {
        world.server.reply(stream(reply));
    }
    let chat = Arc::new(RefusingChat::default());
    let request = by_paragraph(world.request("s1", "go")).run_id("r").require_reply();
    let run = within(world.engine.run(request).deliver(Arc::clone(&chat) as Arc<dyn ReplySink>)).await;
    (world, chat.log(), run)
}

#[tokio::test]
async fn a_run_that_ends_without_an_answer_gets_one_attempt_without_tools() {
    let bash = || call("c1", "bash", &json!({"command": "echo out"}));
    let (world, log, run) = required(vec![bash(), answer("m1", "NO_REPLY"), answer("m2", "It is done.")]).await;
    let requests = world.server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[2].json()["tool_choice"]["type"], "none");
    assert!(requests[1].json().get("tool_choice").is_none(), "tool choice is unrestricted before");
    assert_eq!(log.last().map(String::as_str), Some("end"));
    assert!(log.iter().any(|line| line.ends_with("It is done.")), "{log:?}");
    assert_eq!(run.reply_delivery(), ReplyDelivery::Delivered);
    assert_eq!(world.transcript("s1").messages().iter().filter(|line| line.starts_with("user: ")).count(), 1);

    // Only once, and no tool runs.
    let touch = call("c2", "bash", &json!({"command": "touch written"}));
    let (world, _, run) = required(vec![bash(), answer("m1", ""), touch]).await;
    assert_eq!(world.server.requests().len(), 3);
    assert!(!world.path("workspace/written").exists(), "a tool ran");
    assert_eq!(run.reply_delivery(), ReplyDelivery::Missing);
    assert_eq!(run.result.unwrap().failure().map(|failure| failure.kind), Some(FailureKind::Empty));
    assert_eq!(world.transcript("s1").unpaired(), Vec::<String>::new());
}

#[tokio::test]
async fn no_attempt_follows_when_the_budget_is_used_up() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "NO_REPLY")));
    let budget = Budget { attempts: Some(1), ..Budget::default() };
    let request = world.request("s1", "go").require_reply().budget(budget);
    let result = within(world.engine.run(request).finish()).await.unwrap();
    assert_eq!(world.server.requests().len(), 1);
    assert_eq!(result.failure().map(|failure| failure.kind), Some(FailureKind::Empty));
}

#[tokio::test]
async fn an_optional_reply_may_be_silent() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "NO_REPLY")));
    let (log, run) = delivered(&world, RefusingChat::default()).await;
    assert_eq!((log, run.reply_delivery()), (vec!["start".to_owned(), "end".to_owned()], ReplyDelivery::Missing));
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn an_unsent_answer_is_pending() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "One.\n\nTwo.")));
    let (_, run) = delivered(&world, RefusingChat { refused: vec!["Two."], ..RefusingChat::default() }).await;
    assert_eq!(run.reply_delivery(), ReplyDelivery::Pending);
}
