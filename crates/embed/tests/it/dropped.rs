//! Runs that are dropped at every possible point.

use std::pin::Pin;
use std::task::Poll;

use futures::{Stream, future};
use pinch_embed::engine::EngineRun;
use serde_json::{Value, json};

use crate::world::{World, answer, call, payload_texts, stream, within};

/// More polls than a run with one tool call takes.
const MOST_POLLS: usize = 2_000;

/// Polls a run this many times; true if it ends before.
async fn poll_times(run: &mut EngineRun, n: usize) -> bool {
    let mut left = n;
    future::poll_fn(|cx| {
        loop {
            if left == 0 {
                return Poll::Ready(false);
            }
            left -= 1;
            match Pin::new(&mut *run).poll_next(cx) {
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) => return Poll::Ready(true),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

/// Returns whether the conversation of a request ends with a tool result, and whether its last message contains the second prompt.
fn state_of(body: &Value) -> (bool, bool) {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let has_result = last["content"].as_array().is_some_and(|blocks| blocks.iter().any(|b| b["type"] == "tool_result"));
    (has_result, last.to_string().contains("Again."))
}

#[tokio::test]
async fn a_run_dropped_after_any_number_of_polls_leaves_a_valid_session_and_the_next_run_succeeds() {
    let world = World::new().await;
    world.write("workspace/note.txt", "a note");
    world.server.answer_with(|request| {
        Some(stream(match state_of(&request.json()) {
            (_, true) => answer("m3", "Here I am."),
            (true, false) => answer("m2", "It is a note."),
            (false, false) => call("c1", "read", &json!({"path": "note.txt"})),
        }))
    });
    let sessions = world.path("state/agents/main/sessions");
    let mut n_with_file = 0;
    let mut n_with_result = 0;
    for n in 0.. {
        assert!(n < MOST_POLLS, "the run does not end");
        let session = format!("s{n}");
        let mut run = world.start(&session, "Go.");
        let has_ended = within(poll_times(&mut run, n)).await;
        drop(run);

        assert!(world.engine.active().is_empty(), "after {n} polls: {:?}", world.engine.active());
        let names = std::fs::read_dir(&sessions).into_iter().flatten().map(|entry| entry.unwrap().file_name());
        let others: Vec<_> = names.filter(|name| !name.to_string_lossy().ends_with(".jsonl")).collect();
        assert!(others.is_empty(), "after {n} polls there are {others:?}");
        if world.session_file(&session).exists() {
            n_with_file += 1;
            let messages = world.transcript(&session).messages();
            n_with_result += usize::from(messages.iter().any(|line| line.starts_with("read")));
        }

        let next = world.ask(&session, "Again.").await.unwrap_or_else(|error| panic!("after {n} polls: {error}"));
        assert_eq!(payload_texts(&next), ["Here I am."], "after {n} polls");
        let transcript = world.transcript(&session);
        assert_eq!(transcript.unpaired(), Vec::<String>::new(), "after {n} polls: {:?}", transcript.messages());
        let prompts: Vec<_> = transcript.messages().into_iter().filter(|line| line.starts_with("user: ")).collect();
        // An unanswered prompt is repeated with the next one.
        let possible: [&[&str]; 3] =
            [&["user: Go.", "user: Again."], &["user: Go.", "user: Go.\n\nAgain."], &["user: Again."]];
        assert!(possible.iter().any(|expected| prompts == *expected), "after {n} polls: {prompts:?}");
        if has_ended {
            break;
        }
    }
    assert!(n_with_file > n_with_result && n_with_result > 0, "runs were dropped before and after the tool");
}
