//! Many sessions at once with providers that fail in every way.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use pinch_embed::run::RunError;
use pinch_testing::server::{Fault, Recorded, ServerReply};
use serde_json::json;

use crate::rotation::too_many;
use crate::world::{World, answer, call, fallback_answer, is_turn, payload_texts, refusal, stream};

const SESSIONS: usize = 500;
const PROMPTS: usize = 2;
/// Time limit of everything; the machine may be slow.
const LIMIT: Duration = Duration::from_secs(300);

/// Returns the reply to the `nth` request: most are answers and calls, the others failures.
fn reply(request: &Recorded, nth: u64) -> ServerReply {
    let mut hasher = DefaultHasher::new();
    nth.hash(&mut hasher);
    let id = format!("m{nth}");
    let is_first_model = request.header("x-api-key").is_some_and(|key| key != "key-3");
    let frames = || match is_first_model {
        true if is_turn(request) && nth.is_multiple_of(5) => call(&id, "read", &json!({"path": "notes.txt"})),
        true => answer(&id, "All is well, as far as I can see."),
        false => fallback_answer("All is well, says the other one."),
    };
    match hasher.finish() % 16 {
        0 => too_many("1"),
        1 => refusal(529, "overloaded_error", "Overloaded"),
        2 => refusal(500, "api_error", "Internal server error"),
        3 => refusal(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
        4 => ServerReply::fault(Fault::Reset),
        5 => ServerReply::events().send(frames().into_iter().next().unwrap_or_default()).then(Fault::Reset),
        6 => ServerReply::events().send(frames().concat().split_off(200)).then(Fault::Close),
        7 => ServerReply::events().pause(Duration::from_millis(300)).send(frames().concat()),
        _ => stream(frames()),
    }
}

/// Returns the lock files below a directory.
fn locks(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(locks(&path)),
            false if path.extension().is_some_and(|extension| extension == "lock") => {
                found.push(path.display().to_string());
            }
            false => {}
        }
    }
    found
}

#[tokio::test]
async fn faults_of_providers_leave_no_lane_no_lock_and_no_session_behind() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["model"]["fallbacks"] = json!(["local/small"]);
        config["agents"]["defaults"]["maxConcurrent"] = json!(SESSIONS);
    })
    .await;
    world.write("workspace/notes.txt", "Nothing of note.");
    let n_requests = AtomicU64::new(0);
    world.server.answer_with(move |request| Some(reply(request, n_requests.fetch_add(1, Ordering::Relaxed))));
    let talk = |n: usize| {
        let world = &world;
        async move {
            let session = format!("s{n}");
            let mut outcomes = Vec::new();
            for nth in 0..PROMPTS {
                let request = world
                    .engine
                    .request(&session, None, None, &format!("Prompt {nth}"))
                    .run_id(format!("{session}-{nth}"));
                outcomes.push(world.engine.run(request).finish().await);
            }
            outcomes
        }
    };
    let outcomes = tokio::time::timeout(LIMIT, join_all((0..SESSIONS).map(talk))).await.unwrap().concat();
    let n_answered =
        outcomes.iter().filter(|outcome| outcome.as_ref().is_ok_and(|result| result.failure().is_none())).count();
    assert!(n_answered > SESSIONS, "{n_answered} of {} were answered", outcomes.len());
    for outcome in outcomes {
        assert!(matches!(outcome, Ok(_) | Err(RunError::Failover(_))), "{outcome:?}");
    }
    for n in 0..SESSIONS {
        let transcript = world.transcript(&format!("s{n}"));
        let prompts = transcript.messages().iter().filter(|line| line.starts_with("user: Prompt")).count();
        assert_eq!(prompts, PROMPTS, "s{n}: {:?}", transcript.messages());
    }
    for profile in ["first", "second"] {
        let health = &world.health()[profile];
        let number = |member: &str| health[member].as_i64().unwrap_or(0);
        let rest = number("cooldownUntil") - number("lastFailureAt");
        assert!(rest <= number("lastWindowMs").max(0) && rest <= 3_600_000, "{profile}: {health}");
    }
    assert_eq!(locks(&world.path("state")), [""; 0]);
    // Every lane is free.
    world.server.answer_with(|request| {
        let is_first_model = request.header("x-api-key").is_some_and(|key| key != "key-3");
        Some(stream(if is_first_model { answer("end", "Fine.") } else { fallback_answer("Fine.") }))
    });
    for n in (0..SESSIONS).step_by(50) {
        let result = world.ask(&format!("s{n}"), "And now?").await.unwrap();
        assert_eq!(payload_texts(&result), ["Fine."]);
    }
}
