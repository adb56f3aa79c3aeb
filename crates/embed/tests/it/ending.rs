//! Runs that end early, and runs that wait for one another.

use futures::StreamExt;
use pinch_embed::run::{FailureKind, RunResult};
use pinch_embed::runner::RunEvent;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_testing::server::{Fault, Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::world::{
    FALLBACK, World, answer, attempts, call, fallback_answer, payload_texts, pull_to_text, refusal, stream, within,
};

/// Returns an answer that stops in the middle of a word and hangs.
fn half_an_answer(text: &str) -> ServerReply {
    let delta = json!({"type": "text_delta", "text": text});
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let frames = AnthropicResponse::new("half")
        .event(start)
        .event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
        .frames();
    stream(frames).then(Fault::Hang)
}

/// Configures a single profile.
fn with_one_profile(config: &mut Value) {
    config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
}

/// Configures a time limit of a second and a single profile.
fn with_limit(config: &mut Value) {
    with_one_profile(config);
    config["agents"]["defaults"]["timeoutSeconds"] = 1.into();
}

#[tokio::test]
async fn a_cancelled_run_keeps_its_partial_answer() {
    let world = World::new().await;
    world.server.reply(half_an_answer("The answer is forty-"));
    let cancel = Cancel::new();
    let mut run = world.engine.run(world.request("s1", "What is it?").cancel(cancel.clone()));
    assert_eq!(pull_to_text(&mut run).await, "The answer is forty-");
    cancel.cancel(CancelReason::User);
    let result = within(run.finish()).await.unwrap();
    assert!(result.meta.aborted);
    assert_eq!(payload_texts(&result), ["The answer is forty-"]);
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 aborted finish"]);
    assert_eq!(world.transcript("s1").messages(), ["user: What is it?", "assistant(aborted): The answer is forty-"]);

    world.server.reply(stream(answer("m2", "Forty-two.")));
    let result = world.ask("s1", "Go on.").await.unwrap();
    assert_eq!(payload_texts(&result), ["Forty-two."]);
    assert!(!result.meta.aborted);
    // Stopping a run does not affect the profile.
    assert_eq!(world.keys(), ["key-1", "key-1"]);
    assert_eq!(world.transcript("s1").messages().last().map(String::as_str), Some("assistant(stop): Forty-two."));
}

#[tokio::test]
async fn a_run_cancelled_while_it_waits_for_its_lane_leaves_nothing() {
    let world = World::new().await;
    let gate = Gate::new();
    world.server.reply(ServerReply::events().gate(&gate).send(answer("m1", "One.").concat()));
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
    assert_eq!(payload_texts(&first.unwrap()), ["One."]);
    assert!(second.is_err(), "{second:?}");
    assert_eq!(world.transcript("s1").messages(), ["user: first", "assistant(stop): One."]);
}

#[tokio::test]
async fn a_silent_model_is_stopped_at_the_time_limit() {
    let world = World::with(with_limit).await;
    world.server.reply(ServerReply::events().then(Fault::Hang));
    let result = world.ask("s1", "go").await.unwrap();
    assert!(result.meta.aborted);
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 timeout finish"]);
    let texts = payload_texts(&result);
    assert!(
        matches!(&texts[..], [text] if text.starts_with("!The request timed out") && text.contains("timeoutSeconds")),
        "{texts:?}"
    );
    assert_eq!(world.transcript("s1").messages()[0], "user: go");

    // The session continues, and a slow model did not affect the profile.
    world.server.reply(stream(answer("m2", "Now.")));
    assert_eq!(payload_texts(&world.ask("s1", "again").await.unwrap()), ["Now."]);
    assert_eq!(world.keys(), ["key-1", "key-1"]);
    assert_eq!(world.health()["first"]["errorCount"], 0);
}

#[tokio::test]
async fn a_partial_answer_at_the_time_limit_is_kept() {
    let world = World::with(with_limit).await;
    world.server.reply(half_an_answer("I got this far"));
    let result = world.ask("s1", "go").await.unwrap();
    assert!(result.meta.aborted);
    assert_eq!(payload_texts(&result), ["I got this far"]);
    assert_eq!(world.transcript("s1").messages(), ["user: go", "assistant(aborted): I got this far"]);
}

#[tokio::test]
async fn all_attempts_share_the_time_limit() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["timeoutSeconds"] = 1.into();
        config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
    })
    .await;
    world.server.reply(ServerReply::events().then(Fault::Hang)).reply(stream(fallback_answer("Too late.")));
    let result = world.ask("s1", "go").await.unwrap();
    assert!(result.meta.aborted);
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 timeout finish"]);
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn a_wait_ends_at_the_time_limit() {
    let world = World::with(with_limit).await;
    let busy = refusal(429, "rate_limit_error", "Too many requests").header("retry-after", "50");
    world.server.reply(busy);
    let result = within(world.ask("s1", "go")).await.unwrap();
    assert!(matches!(&payload_texts(&result)[..], [text] if text.starts_with('!')), "{:?}", payload_texts(&result));
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn a_silent_model_fails_over_after_the_silence_limit() {
    let world = World::with(|config| config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK])).await;
    world.write("state/agents/main/agent/settings.json", r#"{"httpFirstContentTimeoutMs": 200}"#);
    let engine = world.restarted();
    world.server.answer_with(|request| {
        Some(match request.path.contains("/messages") {
            true => ServerReply::events().then(Fault::Hang),
            false => stream(fallback_answer("In time.")),
        })
    });
    let run = engine.run(engine.request("s1", None, None, "go")).finish();
    let result = within(run).await.unwrap();
    assert_eq!(payload_texts(&result), ["In time."]);
    assert!(!result.meta.aborted);
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
                () if last.contains("first") => ServerReply::events().gate(&gate).send(answer("m1", "One.").concat()),
                () if last.contains("second") => stream(answer("m2", "Two.")),
                () if last.contains("elsewhere") => stream(answer("m3", "Elsewhere.")),
                () => return None,
            })
        }
    });
    let (first, second, elsewhere) = within(async {
        tokio::join!(world.start("s1", "first").finish(), world.start("s1", "second").finish(), async {
            gate.reached(1).await;
            // A whole run of another session completes before the second run of this one makes a request.
            let elsewhere = world.ask("s2", "elsewhere").await;
            assert_eq!(world.server.requests().len(), 2);
            gate.open();
            elsewhere
        })
    })
    .await;
    assert_eq!(payload_texts(&first.unwrap()), ["One."]);
    assert_eq!(payload_texts(&second.unwrap()), ["Two."]);
    assert_eq!(payload_texts(&elsewhere.unwrap()), ["Elsewhere."]);
    assert_eq!(
        world.transcript("s1").messages(),
        ["user: first", "assistant(stop): One.", "user: second", "assistant(stop): Two."]
    );
    assert!(world.server.requests()[2].json()["messages"].to_string().contains("One."));
}

#[tokio::test]
async fn a_dropped_run_ends_and_its_session_continues() {
    let world = World::new().await;
    world.server.reply(half_an_answer("I was about to"));
    let mut run = world.start("s1", "What?");
    pull_to_text(&mut run).await;
    drop(run);
    assert_eq!(world.transcript("s1").messages()[0], "user: What?");

    world.server.reply(stream(answer("m2", "Here.")));
    let result = world.ask("s1", "Go on.").await.unwrap();
    assert_eq!(payload_texts(&result), ["Here."]);
    let messages = world.transcript("s1").messages();
    assert_eq!(messages.last().map(String::as_str), Some("assistant(stop): Here."), "{messages:?}");
}

/// Returns a command that never exits and keeps a connection to `listener` open.
#[cfg(unix)]
async fn endless() -> (TcpListener, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf up >&3; sleep 1000");
    (listener, json!({ "command": command }))
}

/// Waits for the command's connection.
#[cfg(unix)]
async fn is_up(listener: &TcpListener) -> TcpStream {
    let (mut connection, _) = listener.accept().await.unwrap();
    let mut word = [0; 2];
    connection.read_exact(&mut word).await.unwrap();
    connection
}

/// Waits until the command and everything it started are gone.
#[cfg(unix)]
async fn is_gone(mut connection: TcpStream) {
    let mut rest = Vec::new();
    // However the connection ends, its holder is gone.
    let _end = within(connection.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
}

/// Asserts that the result reports the interrupted tool, which may have changed something, and otherwise only the model's text.
#[cfg(unix)]
fn says_that_the_command_failed(result: &RunResult) {
    let texts = payload_texts(result);
    assert!(
        matches!(&texts[..], [text, note] if text == "One moment." && note.starts_with("!⚠") && note.ends_with("failed")),
        "{texts:?}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_dropped_run_stops_its_tools_and_their_calls_get_results_later() {
    let world = World::new().await;
    let (listener, command) = endless().await;
    world.server.reply(stream(call("b1", "bash", &command)));
    let mut run = world.start("s1", "Wait long.");
    let pulled = async {
        while run.next().await.is_some() {}
        panic!("the run ended");
    };
    let connection = within(async {
        tokio::select! {
            () = pulled => unreachable!(),
            connection = is_up(&listener) => connection,
        }
    })
    .await;
    drop(run);
    is_gone(connection).await;
    assert_eq!(world.transcript("s1").messages(), ["user: Wait long.", "assistant(toolUse): One moment. <bash>"]);

    world.server.reply(stream(answer("m2", "I stopped waiting.")));
    let result = world.ask("s1", "Leave it.").await.unwrap();
    assert_eq!(payload_texts(&result), ["I stopped waiting."]);
    assert_eq!(world.transcript("s1").unpaired(), Vec::<String>::new());
    // The model never sees a call without its result.
    let body = world.server.requests()[1].json()["messages"].to_string();
    assert_eq!(body.matches("\"tool_use\"").count(), body.matches("\"tool_result\"").count(), "{body}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_run_cancelled_in_a_tool_leaves_a_result_for_the_call() {
    let world = World::new().await;
    let (listener, command) = endless().await;
    world.server.reply(stream(call("b1", "bash", &command)));
    let cancel = Cancel::new();
    let run = world.engine.run(world.request("s1", "Wait long.").cancel(cancel.clone()));
    let (result, connection) = within(async {
        tokio::join!(run.finish(), async {
            let connection = is_up(&listener).await;
            cancel.cancel(CancelReason::User);
            connection
        })
    })
    .await;
    is_gone(connection).await;
    let result = result.unwrap();
    assert!(result.meta.aborted);
    says_that_the_command_failed(&result);
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 aborted finish"]);
    let transcript = world.transcript("s1");
    assert_eq!(transcript.unpaired(), Vec::<String>::new());
    assert_eq!(
        transcript.messages()[..3],
        ["user: Wait long.", "assistant(toolUse): One moment. <bash>", "bash failed"]
    );

    world.server.reply(stream(answer("m2", "Here.")));
    assert_eq!(payload_texts(&world.ask("s1", "Go on.").await.unwrap()), ["Here."]);
}

#[cfg(unix)]
#[tokio::test]
async fn the_time_limit_ends_a_tool() {
    let world = World::with(with_limit).await;
    let (listener, command) = endless().await;
    world.server.reply(stream(call("b1", "bash", &command)));
    let (result, connection) = tokio::join!(world.ask("s1", "Wait long."), within(is_up(&listener)));
    is_gone(connection).await;
    let result = result.unwrap();
    assert!(result.meta.aborted && result.meta.timed_out);
    let texts = payload_texts(&result);
    assert!(
        matches!(&texts[..], [text, note] if text == "One moment." && note.starts_with("!The request timed out")),
        "{texts:?}"
    );
    let failure = result.failure().unwrap();
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(failure.message.starts_with("The request timed out"), "{}", failure.message);
    assert_eq!(attempts(&result), ["first anthropic/claude-sonnet-4-5 timeout finish"]);
    assert_eq!(world.transcript("s1").unpaired(), Vec::<String>::new());
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn a_tool_that_failed_before_the_time_limit_is_reported_after_it() {
    let world = World::with(with_limit).await;
    let edit = json!({"path": "missing.txt", "edits": [{"oldText": "a", "newText": "b"}]});
    world.server.reply(stream(call("e1", "edit", &edit))).reply(half_an_answer("I got this far"));
    let result = world.ask("s1", "Change it.").await.unwrap();
    let texts = payload_texts(&result);
    assert!(matches!(&texts[..], [_, text, note] if text == "I got this far" && note.starts_with("!⚠")), "{texts:?}");
    let failure = result.failure().unwrap();
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(failure.message.starts_with("The answer was cut off"), "{}", failure.message);
}

#[tokio::test]
async fn after_a_silence_the_next_profile_resumes_from_the_log() {
    let world = World::new().await;
    world.write("state/agents/main/agent/settings.json", r#"{"httpIdleTimeoutMs": 300}"#);
    let engine = world.restarted();
    world.server.reply(half_an_answer("I got th")).reply(stream(answer("m2", "I got there.")));
    let result = within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["I got there."]);
    assert!(!result.meta.aborted);
    assert_eq!(world.keys(), ["key-1", "key-2"]);
    let messages = world.transcript("s1").messages();
    assert_eq!(messages, ["user: go", "assistant(error): I got th", "assistant(stop): I got there."]);
    assert!(!world.server.requests()[1].json()["messages"].to_string().contains("I got th"));
}

#[tokio::test]
async fn a_run_cancelled_during_a_retry_delay_ends_immediately() {
    let world = World::with(with_one_profile).await;
    let busy = refusal(429, "rate_limit_error", "Too many requests").header("retry-after", "50");
    world.server.reply(busy);
    let cancel = Cancel::new();
    let mut run = world.engine.run(world.request("s1", "go").cancel(cancel.clone()));
    while let Some(event) = within(run.next()).await {
        if let RunEvent::Wait(wait) = event {
            assert_eq!(wait.delay.as_secs(), 50);
            cancel.cancel(CancelReason::User);
        }
    }
    let result = run.result().unwrap();
    assert!(result.meta.aborted);
    assert_eq!(payload_texts(&result), Vec::<String>::new());
    assert_eq!(world.server.requests().len(), 1);
}
