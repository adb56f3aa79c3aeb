//! Summaries in whole sessions: at the host's request, by a lighter model, and with everything that must be preserved.

use pinch_embed::engine::CompactionOutcome;
use pinch_testing::server::{Recorded, ServerReply};
use serde_json::{Value, json};

use crate::world::{World, answer, call, is_turn, refusal, stream, within};

const KEY: &str = "agent:main:chat";

/// Creates a session with a few turns, one of them with a failed tool call.
async fn talked(world: &World) -> String {
    world.reply_to_turns(
        "## Goal\nBuy tea.",
        [
            stream(answer("m0", &"I remember that. ".repeat(100))),
            stream(call("r1", "read", &json!({"path": "missing.md"}))),
            stream(answer("m1", &"There is no such file. ".repeat(60))),
            stream(answer("m2", &"Green tea it is. ".repeat(100))),
            stream(answer("m3", "Yes.")),
        ],
    );
    let mut session = String::new();
    for text in ["Remember that I like tea.", "What is in missing.md?", "Which tea should I buy?"] {
        let request = world.engine.message(KEY, text).await.unwrap();
        session = request.session_id.to_string();
        within(world.engine.run(request).finish()).await.unwrap();
    }
    session
}

async fn compact(world: &World, instructions: Option<&str>) -> CompactionOutcome {
    let request = world.engine.message(KEY, "").await.unwrap();
    within(world.engine.compact(request, instructions)).await
}

fn summaries(world: &World) -> Vec<Value> {
    world.server.requests().iter().filter(|request| !is_turn(request)).map(Recorded::json).collect()
}

#[tokio::test]
async fn a_host_compacts_a_session_with_a_lighter_model() {
    let world = World::new().await;
    let session = talked(&world).await;
    let outcome = compact(&world, Some("Keep the kind of tea.")).await;
    let CompactionOutcome::Compacted(compacted) = &outcome else { panic!("{outcome:?}") };
    assert!(compacted.summary.starts_with("## Goal\nBuy tea."), "{}", compacted.summary);
    assert!(compacted.summary.contains("## Tool Failures\n- read (status=error): "), "{}", compacted.summary);
    assert!(compacted.summary.contains("## Most Recent Turns\n- Assistant: One moment."), "{}", compacted.summary);
    assert_eq!(world.transcript(&session).of_type("compaction").len(), 1);
    let asked = &summaries(&world)[0];
    assert!(asked["model"].as_str().unwrap().contains("haiku"), "{}", asked["model"]);
    assert!(asked["messages"].to_string().contains("Keep the kind of tea."));
    let entry = &world.engine.sessions("main").await.unwrap()[KEY];
    assert_eq!(entry.compaction_count, Some(1));

    let request = world.engine.message(KEY, "And now?").await.unwrap();
    within(world.engine.run(request).finish()).await.unwrap();
    let turns: Vec<Recorded> = world.server.requests().into_iter().filter(is_turn).collect();
    assert!(turns.last().unwrap().json()["messages"].to_string().contains("Buy tea."));

    let json = compact(&world, None).await.to_json();
    assert_eq!((&json["ok"], &json["compacted"]), (&json!(false), &json!(false)), "{json}");
}

#[tokio::test]
async fn the_model_of_the_run_summarises_if_a_lighter_one_fails() {
    let world = World::new().await;
    talked(&world).await;
    world.server.answer_with(|request| match request.json()["model"].as_str().unwrap().contains("haiku") {
        true => Some(refusal(400, "invalid_request_error", "no")),
        false => Some(stream(answer("s", "Own words."))),
    });
    let outcome = compact(&world, None).await;
    assert!(
        matches!(&outcome, CompactionOutcome::Compacted(done) if done.summary.starts_with("Own words.")),
        "{outcome:?}"
    );
    let models: Vec<String> = summaries(&world).iter().map(|body| body["model"].as_str().unwrap().to_owned()).collect();
    assert!(models[0].contains("haiku") && models.last().unwrap().contains("sonnet"), "{models:?}");
}

#[tokio::test]
async fn the_configuration_decides_who_summarises_and_how() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["compaction"] = json!({
            "model": "run", "recentTurnsPreserve": 0, "customInstructions": "Mind the leaves.",
            "identifierPolicy": "custom", "identifierInstructions": "Drop numbers.",
            "qualityGuard": {"enabled": true, "maxRetries": 2},
        });
    })
    .await;
    talked(&world).await;
    let outcome = compact(&world, None).await;
    assert!(
        matches!(&outcome, CompactionOutcome::Compacted(done) if !done.summary.contains("Most Recent")),
        "{outcome:?}"
    );
    let asked = summaries(&world);
    assert_eq!(asked.len(), 4, "a summary without its headings is asked for again, twice; then the turn that is cut");
    let texts: Vec<String> = asked.iter().map(|body| body["messages"].to_string()).collect();
    assert!(asked[0]["model"].as_str().unwrap().contains("sonnet"));
    assert!(texts[0].contains("Mind the leaves.") && texts[0].contains("Drop numbers."));
    assert!(texts[1].contains("## Exact identifiers") && texts[1].contains("is missing"));

    let slow = World::with(|config| {
        config["agents"]["defaults"]["compaction"] = json!({"timeoutSeconds": 1, "model": "run"});
    })
    .await;
    talked(&slow).await;
    slow.server.answer_with(|_| Some(ServerReply::events().gate(&pinch_testing::server::Gate::new())));
    let json = compact(&slow, None).await.to_json();
    assert!(json["reason"].as_str().unwrap().contains("no answer within 1 seconds"), "{json}");
}

#[tokio::test]
async fn an_incomplete_summary_is_not_stored_if_the_check_is_required() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["compaction"] =
            json!({"model": "run", "qualityGuard": {"enabled": true, "maxRetries": 1, "required": true}});
    })
    .await;
    talked(&world).await;
    let json = compact(&world, None).await.to_json();
    assert_eq!(json["compacted"], false, "{json}");
    assert!(json["reason"].as_str().unwrap().contains("the summary is incomplete"), "{json}");
    assert_eq!(summaries(&world).len(), 2, "it is asked for again once");
}

#[tokio::test]
async fn a_session_that_cannot_be_compacted_is_unchanged() {
    let world = World::new().await;
    let json = compact(&world, None).await.to_json();
    assert_eq!(json["reason"], "no real conversation messages");
    let mut request = world.engine.message(KEY, "").await.unwrap();
    (request.provider, request.model) = (Some("x".into()), Some("y".into()));
    let json = within(world.engine.compact(request, None)).await.to_json();
    assert_eq!(json, json!({"ok": false, "compacted": false, "reason": "Unknown model: x/y"}));
}
