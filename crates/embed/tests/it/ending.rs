//! Runs that end before their time, and runs that wait for one another.

use futures::StreamExt;
use pinch_agent_core::event::AgentEvent;
use pinch_coding_agent::event::SessionEvent;
use pinch_embed::runner::RunEvent;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_testing::server::{Fault, Gate, Reply};
use pinch_testing::wires::anthropic::Response;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::world::{FALLBACK, World, answer, attempts, call, fallback_answer, pull_to_text, said, stream, within};

/// An answer that stops in the middle of a word and hangs.
fn half_an_answer(text: &str) -> Reply {
    let delta = json!({"type": "text_delta", "text": text});
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let frames = Response::new("half")
        .event(start)
        .event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
        .frames();
    stream(frames).then(Fault::Hang)
}

/// One profile only.
fn with_one_profile(config: &mut Value) {
    config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
}

/// A time limit of a second, and one profile.
fn with_limit(config: &mut Value) {
    with_one_profile(config);
    config["agents"]["defaults"]["timeoutSeconds"] = 1.into();
}

#[tokio::test]
async fn a_cancelled_run_keeps_what_was_said() {
    let world = World::new().await;
    world.server.reply(half_an_answer("The answer is forty-"));
    let cancel = Cancel::new();
    let mut run = world.engine.run(world.request("s1", "What is it?").cancel(cancel.clone()));
    assert_eq!(pull_to_text(&mut run).await, "The answer is forty-");
    cancel.cancel(CancelReason::User);
    let result = within(run.finish()).await.unwrap();
    assert!(result.meta.aborted);
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 aborted finish"]);
    assert_eq!(world.transcript("s1").messages(), ["user: What is it?", "assistant(aborted): The answer is forty-"]);

    world.server.reply(stream(answer("m2", "Forty-two.")));
    let result = world.ask("s1", "Go on.").await.unwrap();
    assert_eq!(said(&result), ["Forty-two."]);
    assert!(!result.meta.aborted);
    // Stopping a run says nothing about the profile.
    assert_eq!(world.keys(), ["key-1", "key-1"]);
    assert_eq!(world.transcript("s1").messages().last().map(String::as_str), Some("assistant(stop): Forty-two."));
}

#[tokio::test]
async fn a_run_cancelled_while_it_waits_for_its_lane_leaves_nothing() {
    let world = World::new().await;
    let gate = Gate::new();
    world.server.reply(Reply::events().gate(&gate).send(answer("m1", "One.").concat()));
    let cancel = Cancel::new();
    let waiting = world.engine.run(world.request("s1", "second").cancel(cancel.clone()));
    let (first, second, ()) = within(async {
        tokio::join!(world.start("s1", "first").finish(), waiting.finish(), async {
            gate.reached(1).await;
            cancel.cancel(CancelReason::User);
            gate.open();
        })
    })
    .await;
    assert_eq!(said(&first.unwrap()), ["One."]);
    assert!(second.is_err(), "{second:?}");
    assert_eq!(world.transcript("s1").messages(), ["user: first", "assistant(stop): One."]);
}

#[tokio::test]
async fn a_silent_model_ends_with_the_time_limit() {
    let world = World::with(with_limit).await;
    world.server.reply(Reply::events().then(Fault::Hang));
    let result = world.ask("s1", "go").await.unwrap();
    assert!(result.meta.aborted);
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 timeout finish"]);
    let texts = said(&result);
    assert!(
        matches!(&texts[..], [text] if text.starts_with("!The request timed out") && text.contains("timeoutSeconds")),
        "{texts:?}"
    );
    assert_eq!(world.transcript("s1").messages()[0], "user: go");

    // The same session goes on, and a slow model was not held against the profile.
    world.server.reply(stream(answer("m2", "Now.")));
    assert_eq!(said(&world.ask("s1", "again").await.unwrap()), ["Now."]);
    assert_eq!(world.keys(), ["key-1", "key-1"]);
    assert_eq!(world.health()["first"]["errorCount"], 0);
}

#[tokio::test]
async fn what_was_said_before_the_time_limit_is_the_answer() {
    let world = World::with(with_limit).await;
    world.server.reply(half_an_answer("I got this far"));
    let result = world.ask("s1", "go").await.unwrap();
    assert!(result.meta.aborted);
    assert_eq!(said(&result), ["I got this far"]);
    assert_eq!(world.transcript("s1").messages(), ["user: go", "assistant(aborted): I got this far"]);
}

#[tokio::test]
async fn the_time_limit_is_one_of_each_attempt() {
    let world = World::with(|config| {
        with_limit(config);
        config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
    })
    .await;
    world.server.reply(Reply::events().then(Fault::Hang)).reply(stream(fallback_answer("In time.")));
    let result = world.ask("s1", "go").await.unwrap();
    assert_eq!(said(&result), ["In time."]);
    assert!(!result.meta.aborted);
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 timeout failover", "- local/small ok finish"]);
}

#[tokio::test]
async fn runs_of_one_session_wait_for_one_another() {
    let world = World::with(|config| config["agents"]["defaults"]["maxConcurrent"] = 4.into()).await;
    let gate = Gate::new();
    world.server.answer_with({
        let gate = gate.clone();
        move |request| {
            let body = request.json();
            let last = body["messages"].as_array()?.last()?.to_string();
            Some(match () {
                () if last.contains("first") => Reply::events().gate(&gate).send(answer("m1", "One.").concat()),
                () if last.contains("second") => stream(answer("m2", "Two.")),
                () if last.contains("elsewhere") => stream(answer("m3", "Elsewhere.")),
                () => return None,
            })
        }
    });
    let (first, second, elsewhere) = within(async {
        tokio::join!(world.start("s1", "first").finish(), world.start("s1", "second").finish(), async {
            gate.reached(1).await;
            // A whole run of another session goes by, and the second run of this one has asked nothing yet.
            let elsewhere = world.ask("s2", "elsewhere").await;
            assert_eq!(world.server.requests().len(), 2);
            gate.open();
            elsewhere
        })
    })
    .await;
    assert_eq!(said(&first.unwrap()), ["One."]);
    assert_eq!(said(&second.unwrap()), ["Two."]);
    assert_eq!(said(&elsewhere.unwrap()), ["Elsewhere."]);
    assert_eq!(
        world.transcript("s1").messages(),
        ["user: first", "assistant(stop): One.", "user: second", "assistant(stop): Two."]
    );
    assert!(world.server.requests()[2].json()["messages"].to_string().contains("One."));
}

#[tokio::test]
async fn a_dropped_run_is_over_and_its_session_goes_on() {
    let world = World::new().await;
    world.server.reply(half_an_answer("I was about to"));
    let mut run = world.start("s1", "What?");
    pull_to_text(&mut run).await;
    drop(run);
    assert_eq!(world.transcript("s1").messages()[0], "user: What?");

    world.server.reply(stream(answer("m2", "Here.")));
    let result = world.ask("s1", "Go on.").await.unwrap();
    assert_eq!(said(&result), ["Here."]);
    let messages = world.transcript("s1").messages();
    assert_eq!(messages.last().map(String::as_str), Some("assistant(stop): Here."), "{messages:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_dropped_run_ends_its_tools_and_their_calls_are_answered_later() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // The command holds a connection open for as long as it lives, and so does what it starts.
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf up >&3; sleep 1000");
    world.server.reply(stream(call("b1", "bash", &json!({ "command": command }))));
    let mut run = world.start("s1", "Wait long.");
    let mut connection = within(async {
        let pulled = async {
            while let Some(event) = run.next().await {
                if let RunEvent::Session(event) = event
                    && let SessionEvent::Agent(AgentEvent::ToolEnd { output, .. }) = *event
                {
                    panic!("the command ended: {output:?}");
                }
            }
            panic!("the run ended");
        };
        let started = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut word = [0; 2];
            connection.read_exact(&mut word).await.unwrap();
            connection
        };
        tokio::select! {
            () = pulled => unreachable!(),
            connection = started => connection,
        }
    })
    .await;
    drop(run);
    let mut rest = Vec::new();
    // However the connection ends: the command is gone.
    let _end = within(connection.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
    assert_eq!(world.transcript("s1").messages(), ["user: Wait long.", "assistant(toolUse): One moment. <bash>"]);

    world.server.reply(stream(answer("m2", "I stopped waiting.")));
    let result = world.ask("s1", "Leave it.").await.unwrap();
    assert_eq!(said(&result), ["I stopped waiting."]);
    // The model is never shown a call without its result.
    let body = world.server.requests()[1].json()["messages"].to_string();
    assert_eq!(body.matches("\"tool_use\"").count(), body.matches("\"tool_result\"").count(), "{body}");
}
