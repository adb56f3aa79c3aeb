//! Conversations that become too long are compacted once, and the run continues.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use pinch_embed::run::FailureKind;
use pinch_stdx::cancel::{Cancel, CancelReason, Deadline};
use pinch_testing::server::{Gate, Recorded, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::world::{World, answer, attempts, call, is_turn, payload_texts, refusal, stream, within};

pub(crate) fn too_long() -> ServerReply {
    refusal(400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum")
}

fn notes() -> String {
    (1..=200).map(|n| format!("Line {n} of the notes.\n")).collect()
}

/// Returns the names of the calls and of the results in a request.
fn calls_and_results(request: &Recorded) -> (Vec<Value>, Vec<Value>) {
    let body = request.json();
    let blocks: Vec<Value> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["content"].as_array())
        .flatten()
        .cloned()
        .collect();
    let of = |kind: &str, name: &str| blocks.iter().filter(|b| b["type"] == kind).map(|b| b[name].clone()).collect();
    (of("tool_use", "id"), of("tool_result", "tool_use_id"))
}

#[tokio::test]
async fn an_overflow_compacts_once_and_the_run_continues() {
    let world = World::new().await;
    world.write("workspace/notes.md", &notes());
    world.reply_to_turns(
        "## Goal\nLearn how long the notes are.",
        [
            stream(answer("m0", &"I remember that. ".repeat(100))),
            stream(call("r1", "read", &json!({"path": "notes.md"}))),
            too_long(),
            stream(answer("m1", "The notes have 200 lines.")),
        ],
    );
    world.ask("s1", "Remember this.").await.unwrap();
    let result = world.ask("s1", "How long are the notes?").await.unwrap();

    assert_eq!(payload_texts(&result), ["One moment.", "The notes have 200 lines."]);
    assert_eq!(result.meta.agent.compaction_count, 1);
    assert_eq!(result.meta.error, None);
    assert_eq!(
        attempts(&result),
        ["first anthropic/claude-sonnet-4-5 context_overflow repair", "first anthropic/claude-sonnet-4-5 ok finish"]
    );
    assert_eq!(
        result.meta.tools.iter().map(|tool| (tool.name.as_str(), tool.calls)).collect::<Vec<_>>(),
        [("read", 1)]
    );

    let transcript = world.transcript("s1");
    assert_eq!(transcript.of_type("compaction").len(), 1);
    assert_eq!(transcript.unpaired(), Vec::<String>::new());
    let read = transcript.of_type("message").into_iter().find(|line| line["message"]["role"] == "toolResult").unwrap();
    assert_eq!(read["message"]["content"][0]["text"].as_str().map(str::trim_end), Some(notes().trim_end()));
    assert_eq!(transcript.messages().last().map(String::as_str), Some("assistant(stop): The notes have 200 lines."));

    // After the compaction the model sees a shorter conversation with the summary, and every call with its result.
    let turns: Vec<Recorded> = world.server.requests().into_iter().filter(is_turn).collect();
    let (before, after) = (&turns[2], &turns[3]);
    assert!(after.json()["messages"].to_string().contains("Learn how long the notes are."));
    assert!(after.json()["messages"].to_string().len() < before.json()["messages"].to_string().len());
    let (calls, results) = calls_and_results(after);
    assert_eq!(calls, results);
    // A profile is not to blame for a long conversation.
    assert_eq!(world.health()["first"]["errorCount"], 0);
}

/// A server that reports a small usage, or none, does not lead to requests that cannot succeed.
#[tokio::test]
async fn a_conversation_that_outgrows_the_window_is_compacted_without_a_refusal() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["contextTokens"] = json!(20_000);
    })
    .await;
    let long = |n: u32| stream(answer(&format!("m{n}"), &format!("Chapter {n}. {}", "It went on. ".repeat(3_000))));
    world.reply_to_turns("## Goal\nTell a story.", [long(1), long(2), stream(answer("m3", "The end."))]);
    world.ask("s1", "Begin.").await.unwrap();
    world.ask("s1", "Go on.").await.unwrap();
    let result = world.ask("s1", "And then?").await.unwrap();
    assert_eq!(payload_texts(&result), ["The end."]);
    assert_eq!(result.meta.agent.compaction_count, 1);
    assert_eq!(attempts(&result)[0], "first anthropic/claude-sonnet-4-5 context_overflow repair");
    let turns: Vec<Recorded> = world.server.requests().into_iter().filter(is_turn).collect();
    assert_eq!(turns.len(), 3, "the long request was never sent");
    assert!(turns[2].json()["messages"].to_string().contains("Tell a story."), "the summary is sent");
}

#[tokio::test]
async fn a_persistent_overflow_is_reported_and_the_session_stays_usable() {
    let world = World::new().await;
    world.server.reply(too_long());
    // A conversation of one line cannot be compacted.
    let result = world.ask("s1", "hello").await.unwrap();
    assert_eq!(result.meta.error.as_ref().map(|error| error.kind.as_str()), Some("context_overflow"));
    let texts = payload_texts(&result);
    assert!(matches!(&texts[..], [text] if text.starts_with("!Context overflow")), "{texts:?}");
    let error = &result.into_json()["meta"]["error"];
    assert!(error["detail"].as_str().is_some_and(|why| !why.is_empty()), "{error}");

    world.server.reply(stream(answer("m1", "Hello.")));
    assert_eq!(payload_texts(&world.ask("s1", "again").await.unwrap()), ["Hello."]);
}

#[tokio::test]
async fn a_run_cancelled_while_it_compacts_is_cancelled() {
    let world = World::new().await;
    world.server.reply(stream(answer("m0", &"I remember that. ".repeat(100))));
    world.ask("s1", "Remember this.").await.unwrap();
    let gate = Gate::new();
    world.server.answer_with({
        let gate = gate.clone();
        move |request| match is_turn(request) {
            true => Some(too_long()),
            false => Some(ServerReply::events().gate(&gate)),
        }
    });
    let cancel = Cancel::new();
    let mut run = world.engine.run(world.request("s1", "Go on.").cancel(cancel.clone()));
    within(async {
        let pulled = async { while run.next().await.is_some() {} };
        let stopped = async {
            gate.reached(1).await;
            cancel.cancel(CancelReason::User);
        };
        tokio::join!(pulled, stopped)
    })
    .await;
    let result = run.result().unwrap();
    assert!(result.meta.aborted);
    assert_eq!(result.meta.error, None);
    assert_eq!(payload_texts(&result), Vec::<String>::new());
    assert_eq!(world.transcript("s1").of_type("compaction").len(), 0);
    world.server.reply(stream(answer("m2", "Here.")));
    assert_eq!(payload_texts(&world.ask("s1", "Once more.").await.unwrap()), ["Here."]);
}

/// Creates a world with a session that can be compacted, whose next turn overflows once. Summaries wait for the gate.
async fn overflowing(gate: &Gate, change: impl FnOnce(&mut Value)) -> World {
    let world = World::with(change).await;
    world.server.reply(stream(answer("m0", &"I remember that. ".repeat(100))));
    world.ask("s1", "Remember this.").await.unwrap();
    let (gate, n_turns) = (gate.clone(), AtomicU32::new(0));
    world.server.answer_with(move |request| {
        if !is_turn(request) {
            let usage = json!({"input_tokens": 5_000, "output_tokens": 100});
            let summary = AnthropicResponse::with_usage("s", &usage).text("## Goal\nRemember.").stop("end_turn");
            return Some(ServerReply::events().gate(&gate).send(summary.concat()));
        }
        Some(match n_turns.fetch_add(1, Ordering::Relaxed) {
            0 => too_long(),
            _ => stream(answer("m1", "Here I am.")),
        })
    });
    world
}

#[tokio::test]
async fn a_compaction_in_progress_extends_the_time_limit() {
    let gate = Gate::new();
    let world = overflowing(&gate, |config| config["agents"]["defaults"]["timeoutSeconds"] = json!(1)).await;
    let run = world.start("s1", "Go on.");
    let (result, ()) = within(async {
        tokio::join!(run.finish(), async {
            gate.reached(1).await;
            // The time limit passes while the summary is written.
            Cancel::new().child_until(Deadline::after(Duration::from_millis(1_500))).cancelled().await;
            gate.open();
        })
    })
    .await;
    let result = result.unwrap();
    assert_eq!(payload_texts(&result), ["Here I am."]);
    assert!(!result.meta.timed_out);
    assert_eq!(world.transcript("s1").of_type("compaction").len(), 1);
}

#[tokio::test]
async fn a_compaction_inside_an_attempt_extends_the_time_limit() {
    let gate = Gate::new();
    let world = World::with(|config| config["agents"]["defaults"]["timeoutSeconds"] = json!(1)).await;
    world.write("workspace/notes.md", &notes());
    world.server.reply(stream(answer("m0", &"I remember that. ".repeat(100))));
    world.ask("s1", "Remember this.").await.unwrap();
    let (n_turns, n_summaries) = (AtomicU32::new(0), AtomicU32::new(0));
    world.server.answer_with({
        let gate = gate.clone();
        move |request| {
            if !is_turn(request) {
                let summary = AnthropicResponse::new("s").text("## Goal\nRemember.").stop("end_turn");
                // One for the beginning of the turn, and one for what was before.
                return Some(match n_summaries.fetch_add(1, Ordering::Relaxed) {
                    0 => ServerReply::events().gate(&gate).send(summary.concat()),
                    _ => stream(summary),
                });
            }
            Some(match n_turns.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    let usage = json!({"input_tokens": 999_000, "output_tokens": 100});
                    let call = AnthropicResponse::with_usage("m1", &usage);
                    stream(call.tool_call("toolu_1", "read", r#"{"path": "notes.md"}"#).stop("tool_use"))
                }
                _ => stream(answer("m2", "Here I am.")),
            })
        }
    });
    let run = world.start("s1", "Go on.");
    let (result, ()) = within(async {
        tokio::join!(run.finish(), async {
            gate.reached(1).await;
            // The time limit passes while the summary is written.
            Cancel::new().child_until(Deadline::after(Duration::from_millis(1_500))).cancelled().await;
            gate.open();
        })
    })
    .await;
    let result = result.unwrap();
    assert_eq!(payload_texts(&result), ["Here I am."]);
    assert!(!result.meta.timed_out);
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 ok finish"]);
    assert_eq!(world.transcript("s1").of_type("compaction").len(), 1);
}

#[tokio::test]
async fn the_tokens_of_summaries_count_towards_the_budget() {
    let gate = Gate::new();
    gate.open();
    let world = overflowing(&gate, |_| {}).await;
    let mut request = world.request("s1", "Go on.");
    request.budget.tokens = Some(4_000);
    let result = within(world.engine.run(request).finish()).await.unwrap();
    assert_eq!(result.failure().map(|failure| failure.kind), Some(FailureKind::Budget));
    assert!(result.meta.agent.usage.input >= 5_000, "{:?}", result.meta.agent.usage);
    let turns = world.server.requests().into_iter().filter(is_turn).count();
    assert_eq!(turns, 2, "no request follows the summary");
}
