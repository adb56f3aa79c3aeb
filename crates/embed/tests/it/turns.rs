//! Messages to busy sessions: which run reads them, and that none is lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use pinch_embed::config::messages::InboxMode;
use pinch_embed::ports::Caller;
use pinch_embed::run::{RunError, RunRequest};
use pinch_embed::{InboundMessage, Turn};
use pinch_stdx::cancel::CancelReason;
use pinch_testing::server::{Gate, ServerReply};
use serde_json::json;

use crate::overflow::too_long;
use crate::rotation::too_many;
use crate::world::{World, answer, call, is_turn, stream, within};

const KEY: &str = "agent:main:chat";

async fn world(queue: serde_json::Value) -> World {
    World::with(|config| config["messages"] = json!({"queue": queue})).await
}

fn message(text: &str) -> InboundMessage {
    InboundMessage::new(KEY, text)
}

/// Returns the request of a message whose turn it is.
#[track_caller]
fn request(turn: Result<Turn, RunError>) -> RunRequest {
    match turn {
        Ok(Turn::Run(request)) => *request,
        other => panic!("not a turn of its own: {other:?}"),
    }
}

async fn run(world: &World, request: RunRequest) {
    world.server.reply(stream(answer("m", "Yes.")));
    within(world.engine.run(request).finish()).await.unwrap();
}

/// Returns the user messages of a session, in order.
fn users(world: &World, session: &str) -> Vec<String> {
    let messages = world.transcript(session).messages();
    messages.iter().filter_map(|message| message.strip_prefix("user: ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn messages_that_arrive_during_a_run_are_collected_into_one_turn() {
    let world = world(json!({"mode": "collect", "debounceMs": 30})).await;
    let first = request(world.engine.send(message("one")).await);
    let session = first.session_id.clone();
    let engine = world.engine.clone();
    let (two, three) = (engine.send(message("two")), engine.send(message("three")));
    let run = run(&world, first);
    let ((), two, three) =
        within(async { tokio::join!(run, async { request(two.await) }, async { three.await.unwrap() }) }).await;
    let joined = two.run_id.clone();
    assert!(matches!(three, Turn::Joined { run_id } if run_id == joined));
    self::run(&world, two).await;
    assert_eq!(users(&world, &session), ["one", "two\n\nthree"]);
    // The session is free again.
    request(within(world.engine.send(message("four"))).await);
}

#[tokio::test]
async fn follow_ups_get_separate_runs_and_messages_of_different_origin_are_not_mixed() {
    for (mode, queue) in [("followup", "followup"), ("collect", "collect")] {
        let world = world(json!({"mode": queue, "debounceMs": 1})).await;
        let first = request(world.engine.send(message("one")).await);
        let session = first.session_id.clone();
        let other = Caller::new().channel("telegram");
        let second = world.engine.send(message("two"));
        let third = world.engine.send(message("three").caller(other));
        let ((), (), ()) = within(async {
            tokio::join!(run(&world, first), async { run(&world, request(second.await)).await }, async {
                run(&world, request(third.await)).await;
            })
        })
        .await;
        assert_eq!(users(&world, &session), ["one", "two", "three"], "{mode}");
    }
}

#[tokio::test]
async fn a_steered_message_is_read_by_the_run_and_one_that_comes_too_late_gets_its_own() {
    let world = world(json!({"mode": "steer", "debounceMs": 1})).await;
    let first = request(world.engine.send(message("Paint it.")).await);
    let (session, run_id) = (first.session_id.clone(), first.run_id.clone());
    let (gate, running) = world.answering(first).await;
    world.server.reply(stream(answer("m2", "Blue it is.")));
    let steered = world.engine.send(message("In blue!"));
    let (steered, result) = within(async {
        // The message is queued before the answer continues.
        tokio::join!(steered, async {
            gate.open_times(100);
            running.finish().await
        })
    })
    .await;
    result.unwrap();
    assert!(matches!(steered, Ok(Turn::Joined { run_id: of }) if of == run_id));
    assert_eq!(users(&world, &session), ["Paint it.", "In blue!"]);
    // A turn whose run has not begun cannot be steered, because the message arrives before anything of that run has happened.
    let second = request(world.engine.send(message("two")).await);
    let third = world.engine.send(message("three"));
    let (third, ()) = within(async { tokio::join!(async { request(third.await) }, run(&world, second)) }).await;
    run(&world, third).await;
    assert_eq!(users(&world, &session), ["Paint it.", "In blue!", "two", "three"]);
}

#[tokio::test]
async fn a_steered_message_skips_calls_that_have_not_started() {
    let world = world(json!({"mode": "steer", "debounceMs": 1})).await;
    let first = request(world.engine.send(message("Paint it.")).await);
    let session = first.session_id.clone();
    let gate = Gate::new();
    let painting = call("c1", "bash", &json!({"command": "touch painted"}));
    world.server.reply(ServerReply::events().gated(&gate, painting)).reply(stream(answer("m2", "Blue it is.")));
    let mut running = world.engine.run(first);
    gate.open_times(4);
    crate::world::pull_to_text(&mut running).await;
    let (steered, result) = within(async {
        tokio::join!(world.engine.send(message("In blue!")), async {
            gate.open_times(100);
            running.finish().await
        })
    })
    .await;
    assert!(matches!(steered, Ok(Turn::Joined { .. })));
    assert_eq!(result.unwrap().meta.tools.iter().map(|tool| tool.errors).sum::<u32>(), 1);
    assert!(!world.path("workspace/painted").exists());
    let asked = world.server.requests()[1].json()["messages"].to_string();
    assert!(asked.contains("Skipped to process an incoming message.") && asked.contains("In blue!"), "{asked}");
    assert_eq!(users(&world, &session), ["Paint it.", "In blue!"]);
}

#[tokio::test]
async fn an_interruption_stops_the_run_and_drops_waiting_messages() {
    let world = world(json!({"mode": "collect", "debounceMs": 1})).await;
    let first = request(world.engine.send(message("one")).await);
    let session = first.session_id.clone();
    let (_gate, running) = world.answering(first).await;
    let waiting = world.engine.send(message("two"));
    let urgent = world.engine.send(message("stop, three!").mode(InboxMode::Interrupt));
    let (stopped, waiting, urgent) = within(async {
        tokio::join!(running.finish(), waiting, async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            request(urgent.await)
        })
    })
    .await;
    assert!(stopped.is_ok_and(|result| result.meta.aborted));
    assert!(matches!(waiting, Ok(Turn::Dropped)));
    run(&world, urgent).await;
    assert_eq!(users(&world, &session), ["one", "stop, three!"]);
}

#[tokio::test]
async fn waiting_messages_are_limited_and_dropped_ones_optionally_summarised() {
    for (policy, expected) in [
        ("old", "three"),
        ("new", "two"),
        (
            "summarize",
            "[1 earlier messages were dropped because too many were waiting. They began with:\n- two]\n\nthree",
        ),
    ] {
        let world = world(json!({"mode": "collect", "debounceMs": 1, "cap": 1, "drop": policy})).await;
        let first = request(world.engine.send(message("one")).await);
        let session = first.session_id.clone();
        let (two, three) = (world.engine.send(message("two\nmore")), world.engine.send(message("three")));
        let ((), outcomes) = within(async {
            tokio::join!(run(&world, first), async {
                futures::future::join_all([two.boxed(), three.boxed()].map(|turn| async {
                    match turn.await.unwrap() {
                        Turn::Run(request) => run(&world, *request).await,
                        Turn::Dropped => {}
                        other => panic!("{other:?}"),
                    }
                }))
                .await
            })
        })
        .await;
        assert_eq!(outcomes.len(), 2);
        let expected = if policy == "new" { "two\nmore" } else { expected };
        assert_eq!(users(&world, &session), ["one", expected], "{policy}");
    }
}

#[tokio::test]
async fn a_caller_that_gives_up_passes_its_turn_on() {
    let world = world(json!({"mode": "collect", "debounceMs": 1})).await;
    let first = request(world.engine.send(message("one")).await);
    let mut gone = Box::pin(world.engine.send(message("two")));
    let mut next = Box::pin(world.engine.send(message("three")));
    assert!((&mut gone).now_or_never().is_none() && (&mut next).now_or_never().is_none());
    drop(gone);
    // A request that is never run also frees its session.
    drop(first);
    let next = request(within(next).await);
    assert_eq!(next.prompt, "three");
}

#[tokio::test]
async fn a_resent_message_gets_no_second_run() {
    let world = world(json!({"mode": "collect", "debounceMs": 1})).await;
    let once = |text: &str| message(text).idempotency_key("m1");
    let first = request(world.engine.send(once("one")).await);
    let run_id = first.run_id.clone();
    let again = world.engine.send(once("one")).await;
    assert!(matches!(again, Ok(Turn::Duplicate { run_id: Some(of) }) if of == run_id));
    let other = world.engine.send(once("another")).await;
    assert!(matches!(other, Err(RunError::Config(text)) if text.contains("idempotency key")));
    drop(first);
    // A message that never reached a run may be sent again.
    let second = request(world.engine.send(message("two").idempotency_key("m2")).await);
    let mut waiting = Box::pin(world.engine.send(message("three").idempotency_key("m3")));
    assert!((&mut waiting).now_or_never().is_none());
    drop(waiting);
    drop(second);
    request(world.engine.send(message("three").idempotency_key("m3")).await);
}

/// Messages in every mode that arrive in every phase of a run: each is read exactly once, or its caller learns that it was not.
#[tokio::test]
async fn a_message_is_read_once_whenever_it_arrives() {
    for mode in [InboxMode::Steer, InboxMode::FollowUp, InboxMode::Collect] {
        for n_open in 0..7 {
            let world = Arc::new(world(json!({"debounceMs": 1})).await);
            let gate = Gate::new();
            world.server.reply(ServerReply::events().gated(&gate, answer("m1", "One moment, please, I think.")));
            for n in 0..4 {
                world.server.reply(stream(answer(&format!("a{n}"), "Yes.")));
            }
            let first = request(world.engine.send(message("one")).await);
            let session = first.session_id.clone();
            let running = world.engine.run(first).finish();
            let arriving = async {
                gate.open_times(n_open);
                tokio::time::sleep(Duration::from_millis(5)).await;
                let late = async {
                    match world.engine.send(message("late").mode(mode)).await.unwrap() {
                        Turn::Run(request) => drop(world.engine.run(*request).finish().await.unwrap()),
                        Turn::Joined { .. } => {}
                        other => panic!("{other:?}"),
                    }
                };
                let release = async {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    gate.open_times(100);
                };
                tokio::join!(late, release);
            };
            let (ran, ()) = within(async { tokio::join!(running, arriving) }).await;
            ran.unwrap();
            assert_eq!(users(&world, &session), ["one", "late"], "{mode:?} after {n_open} events");
        }
    }
}

/// What the run does when a message arrives.
#[derive(Clone, Copy, Debug)]
enum BusyWith {
    Tool,
    Wait,
    Compaction,
}

impl BusyWith {
    /// Scripts the server so that the second run of the session does this. A summary stays open until the gate opens.
    fn script(self, world: &World, gate: &Gate, mode: InboxMode) {
        let command = json!({"command": "touch begun; while [ ! -e go ]; do sleep 0.01; done"});
        let turns = match self {
            Self::Tool => vec![stream(call("c1", "bash", &command))],
            // The profiles must still rest when an interrupting message arrives, also on a slow machine.
            Self::Wait if mode == InboxMode::Interrupt => ["50", "50"].map(too_many).into(),
            Self::Wait => ["1", "1"].map(too_many).into(),
            Self::Compaction => vec![too_long()],
        };
        let long = stream(answer("m0", &"I remember that. ".repeat(100)));
        let turns = Mutex::new([long].into_iter().chain(turns).collect::<VecDeque<_>>());
        let gate = gate.clone();
        world.server.answer_with(move |request| {
            if !is_turn(request) {
                return Some(ServerReply::events().gated(&gate, answer("summary", "## Goal\nAnswer.")));
            }
            Some(turns.lock().unwrap().pop_front().unwrap_or_else(|| stream(answer("m", "Yes."))))
        });
    }

    fn has_begun(self, world: &World) -> bool {
        match self {
            Self::Tool => world.path("workspace/begun").exists(),
            // The refusals have been taken note of, not only sent.
            Self::Wait => world.server.requests().len() >= 3 && world.health()["second"]["errorCount"] == 1,
            Self::Compaction => world.server.requests().iter().any(|request| !is_turn(request)),
        }
    }
}

#[tokio::test]
async fn a_message_to_a_run_that_is_busy_otherwise_is_read_once() {
    let modes = [InboxMode::Steer, InboxMode::FollowUp, InboxMode::Collect, InboxMode::Interrupt];
    let all = [BusyWith::Tool, BusyWith::Wait, BusyWith::Compaction];
    for (busy, mode) in all.into_iter().flat_map(|busy| modes.map(|mode| (busy, mode))) {
        let world = world(json!({"debounceMs": 1})).await;
        let gate = Gate::new();
        busy.script(&world, &gate, mode);
        world.write("workspace/notes.md", "");
        let zero = request(world.engine.send(message("zero")).await);
        let session = zero.session_id.clone();
        within(world.engine.run(zero).finish()).await.unwrap();
        let first = request(world.engine.send(message("one")).await);
        let running = world.engine.run(first).finish();
        let arriving = async {
            while !busy.has_begun(&world) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let late = async {
                match world.engine.send(message("late").mode(mode)).await.unwrap() {
                    Turn::Run(request) => world.engine.run(*request).finish().await.err(),
                    Turn::Joined { .. } => None,
                    other => panic!("{other:?}"),
                }
            };
            let release = async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                world.write("workspace/go", "");
                gate.open_times(100);
            };
            tokio::join!(late, release).0
        };
        let (ran, failed) = within(async { tokio::join!(running, arriving) }).await;
        let is_stopped = !ran.is_ok_and(|result| !result.meta.aborted);
        assert_eq!(is_stopped, mode == InboxMode::Interrupt, "{mode:?} during {busy:?}");
        // A run that waits for its profiles goes on when they are ready again. A new one is refused, and told when that will be.
        let is_refused = matches!((busy, mode), (BusyWith::Wait, InboxMode::Interrupt));
        let told = matches!(&failed, Some(RunError::Failover(error)) if error.retry_after.is_some());
        assert_eq!((failed.is_some(), told), (is_refused, is_refused), "{mode:?} during {busy:?}: {failed:?}");
        let expected: &[&str] = if is_refused { &["zero", "one"] } else { &["zero", "one", "late"] };
        assert_eq!(users(&world, &session), expected, "{mode:?} during {busy:?}");
    }
}

#[tokio::test]
async fn a_stopped_turn_frees_the_session() {
    let world = world(json!({"mode": "followup", "debounceMs": 1})).await;
    let gate = Gate::new();
    world.server.reply(ServerReply::events().gated(&gate, answer("m1", "One moment, please, I think.")));
    let first = request(world.engine.send(message("one")).await);
    let cancel = first.cancel.clone();
    let second = world.engine.send(message("two"));
    let (stopped, (), second) = within(async {
        tokio::join!(
            world.engine.run(first).finish(),
            async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                cancel.cancel(CancelReason::User);
            },
            async { request(second.await) }
        )
    })
    .await;
    assert!(stopped.is_err() || stopped.is_ok_and(|result| result.meta.aborted));
    assert_eq!(second.prompt, "two");
}
