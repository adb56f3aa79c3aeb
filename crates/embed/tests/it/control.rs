//! Control of active runs from outside: listing, stopping, steering and awaiting them, and the limits that end them.

use std::time::Duration;

use futures::StreamExt;
use pinch_agent_core::queue::QueueKind;
use pinch_embed::engine::{QueueError, RunTarget};
use pinch_embed::run::RunErrorKind;
use pinch_embed::run::request::Budget;
use pinch_stdx::cancel::{Cancel, CancelReason, Deadline};
use pinch_testing::server::{Gate, ServerReply};
use serde_json::{Value, json};

use crate::world::{
    FALLBACK, World, answer, attempts, call, fallback_answer, payload_texts, pull_to_text, refusal, stream, within,
};

const SOON: Duration = Duration::from_millis(20);

fn with_fallback(config: &mut Value) {
    config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
}

#[tokio::test]
async fn a_message_queued_while_a_run_streams_is_read_in_the_next_turn() {
    let world = World::new().await;
    let gate = Gate::new();
    world.server.reply(ServerReply::events().gated(&gate, answer("m1", "One moment, please, I think.")));
    world.server.reply(stream(answer("m2", "Blue it is.")));
    let mut run = world.engine.run(world.request("s1", "Paint it.").session_key("agent:main:chat"));
    gate.open_times(4);
    pull_to_text(&mut run).await;
    let active = world.engine.active();
    assert_eq!(active.len(), 1);
    assert!(active[0].is_streaming && !active[0].is_compacting, "{active:?}");
    let queued =
        world.engine.queue_message(RunTarget::Session("agent:main:chat"), "In blue!", vec![], QueueKind::Steering);
    let (result, queued) = within(async {
        tokio::join!(
            async {
                gate.open_times(100);
                run.finish().await
            },
            queued
        )
    })
    .await;
    assert_eq!(queued, Ok(()));
    assert_eq!(payload_texts(&result.unwrap()).last().map(String::as_str), Some("Blue it is."));
    let messages = world.transcript("s1").messages();
    assert_eq!(messages[2], "user: In blue!");
    assert!(world.engine.active().is_empty());
}

#[tokio::test]
async fn messages_that_no_run_reads_are_refused_with_a_reason() {
    let world = World::new().await;
    let steer = |target| world.engine.queue_message(target, "hello", vec![], QueueKind::FollowUp);
    assert_eq!(steer(RunTarget::Session("s1")).await, Err(QueueError::NoActiveRun));
    let gate = Gate::new();
    world.server.reply(ServerReply::events().gated(&gate, answer("m1", "One moment, please, I think.")));
    let mut run = world.start("s1", "Go.");
    gate.open_times(4);
    pull_to_text(&mut run).await;
    let (refused, ()) = within(async { tokio::join!(steer(RunTarget::Run("s1")), async { drop(run) }) }).await;
    assert_eq!(refused, Err(QueueError::RunEnded));
}

#[tokio::test]
async fn a_queued_message_survives_a_change_of_the_model() {
    let world = World::with(|config| {
        with_fallback(config);
        config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
    })
    .await;
    let gate = Gate::new();
    world.server.reply(
        ServerReply::json(401, &json!({"type": "error", "error": {"type": "authentication_error", "message": "no"}}))
            .gate(&gate),
    );
    world.server.answer_with(|request| {
        request.json()["model"]
            .as_str()
            .filter(|model| *model == "small")
            .map(|_| stream(fallback_answer("Both read.")))
    });
    let run = world.start("s1", "First.");
    let engine = world.engine.clone();
    let (result, queued) = within(async {
        tokio::join!(run.finish(), async {
            gate.reached(1).await;
            while !engine.active().first().is_some_and(|run| run.is_streaming) {
                tokio::task::yield_now().await;
            }
            let queued = engine.queue_message(RunTarget::Session("s1"), "Second.", vec![], QueueKind::FollowUp);
            tokio::join!(queued, async { gate.open() }).0
        })
    })
    .await;
    result.unwrap();
    assert_eq!(queued, Ok(()));
    assert!(world.transcript("s1").messages().contains(&"user: Second.".to_owned()));
}

#[tokio::test]
async fn an_aborted_run_ends_and_its_waiters_are_notified() {
    let world = World::new().await;
    let gate = Gate::new();
    world.server.reply(ServerReply::events().gated(&gate, answer("m1", "One moment, please, I think.")));
    let mut run = world.start("s1", "Go.");
    gate.open_times(4);
    pull_to_text(&mut run).await;
    assert!(!world.engine.wait_for_end(RunTarget::Session("s1"), SOON).await);
    assert_eq!(world.engine.abort(RunTarget::Session("other"), CancelReason::User), 0);
    assert_eq!(world.engine.abort(RunTarget::Session("s1"), CancelReason::User), 1);
    let (result, ended) = within(async {
        tokio::join!(run.finish(), world.engine.wait_for_end(RunTarget::Run("s1"), Duration::from_secs(30)))
    })
    .await;
    assert!(result.unwrap().meta.aborted && ended);
    assert!(world.engine.wait_for_end(RunTarget::Session("s1"), SOON).await, "no run is active");
}

#[tokio::test]
async fn a_deadline_set_by_the_caller_ends_the_run_without_rotation_or_failover() {
    let world = World::with(with_fallback).await;
    let gate = Gate::new();
    world.server.reply(ServerReply::events().gated(&gate, answer("m1", "Never.")));
    let cancel = Cancel::new().child_until(Deadline::after(Duration::from_millis(200)));
    let result = within(world.engine.run(world.request("s1", "Go.").cancel(cancel)).finish()).await.unwrap();
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 timeout finish"]);
    assert!(result.meta.aborted);
}

#[tokio::test]
async fn a_time_limit_that_expires_in_a_tool_ends_the_run_without_rotation() {
    let world = World::with(with_fallback).await;
    world.server.reply(stream(call("c1", "bash", &json!({"command": "sleep 30"}))));
    let request = world.request("s1", "Go.").timeout(Some(Duration::from_millis(500)));
    let result = within(world.engine.run(request).finish()).await.unwrap();
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 timeout finish"]);
}

#[tokio::test]
async fn the_deadline_of_the_budget_applies_during_an_attempt() {
    let world = World::new().await;
    let gate = Gate::new();
    world.server.reply(ServerReply::events().gated(&gate, answer("m1", "Never.")));
    let budget = Budget { deadline: Some(Duration::from_millis(200)), ..Budget::default() };
    let result = within(world.engine.run(world.request("s1", "Go.").budget(budget)).finish()).await.unwrap();
    assert_eq!(result.meta.error.map(|error| error.kind), Some(RunErrorKind::Budget));
}

#[tokio::test]
async fn tokens_and_cost_are_limited_within_an_attempt() {
    let limits = [
        (Budget { tokens: Some(40), ..Budget::default() }, "tokens: 45 of 40"),
        (Budget { cost_usd: Some(0.0003), attempts: Some(1), ..Budget::default() }, "US dollars: 0.0003 of 0.0003"),
    ];
    for (budget, spent) in limits {
        let world = World::new().await;
        let note = |n: u32| {
            let command = format!("echo {n} >> {}", world.path("notes").display());
            stream(call(&format!("c{n}"), "bash", &json!({"command": command})))
        };
        for n in 1..=3 {
            world.server.reply(note(n));
        }
        world.server.reply(stream(answer("m4", "Still here.")));
        let result = within(world.engine.run(world.request("s1", "Go.").budget(budget)).finish()).await.unwrap();
        let error = result.meta.error.clone().unwrap();
        assert_eq!((error.kind, error.message.as_str()), (RunErrorKind::Budget, spent));
        assert!(!result.meta.aborted && !result.meta.timed_out);
        // The third answer exceeds the limit: its call does not run, and there is no fourth request.
        assert_eq!(world.server.requests().len(), 3);
        assert_eq!(std::fs::read_to_string(world.path("notes")).unwrap(), "1\n2\n");
        let messages = world.transcript("s1").messages();
        assert_eq!(messages[5..], ["assistant(toolUse): One moment. <bash>", "bash failed", "assistant(aborted): "]);
        // The session goes on.
        let next = within(world.engine.run(world.request("s1", "And now?")).finish()).await.unwrap();
        assert_eq!(payload_texts(&next), ["Still here."]);
    }
}

#[tokio::test]
async fn an_answer_that_exceeds_the_budget_is_kept() {
    let world = World::new().await;
    world.server.reply(stream(answer("m1", "Done.")));
    let budget = Budget { tokens: Some(1), ..Budget::default() };
    let result = within(world.engine.run(world.request("s1", "Go.").budget(budget)).finish()).await.unwrap();
    assert_eq!((payload_texts(&result), result.meta.error), (vec!["Done.".to_owned()], None));
}

#[tokio::test]
async fn waits_end_with_the_run() {
    let world = World::with(|config| {
        config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
    })
    .await;
    world.server.reply(refusal(529, "overloaded_error", "Overloaded")).repeat_last();
    let mut run = world.start("s1", "Go.");
    while let Some(event) = within(run.next()).await {
        if matches!(event, pinch_embed::runner::RunEvent::Wait(_)) {
            world.engine.abort(RunTarget::Run("s1"), CancelReason::User);
        }
    }
    assert!(run.result().unwrap().meta.aborted);
}
