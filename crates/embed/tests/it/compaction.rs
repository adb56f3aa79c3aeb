//! Summaries in whole sessions: at the host's request, by a lighter model, and with everything that must be preserved.

use pinch_embed::engine::CompactionOutcome;
use pinch_testing::server::{Recorded, ServerReply};
use serde_json::{Value, json};

use crate::overflow::too_long;
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

#[tokio::test]
async fn a_summary_repeats_the_rules_of_the_workspace() {
    let world = World::new().await;
    let rules = "# Agent\nBe kind.\n\n#tag\n## Session Startup\nRead MEMORY.md.\n```sh\n# a comment\n```\n\n## Style\nShort.\n\n## Safety\n\
                 Never delete files.\n### Why\nThey are dear.\n";
    world.write("workspace/AGENTS.md", rules);
    talked(&world).await;
    let outcome = compact(&world, None).await;
    let CompactionOutcome::Compacted(compacted) = &outcome else { panic!("{outcome:?}") };
    let (_, section) = compacted.summary.split_once("<workspace-critical-rules>\n").unwrap();
    let expect = "## Session Startup\nRead MEMORY.md.\n```sh\n# a comment\n```\n\n## Safety\nNever delete files.\n### Why\nThey are dear.\n\
                  </workspace-critical-rules>";
    assert!(section.starts_with(expect), "{section}");
}

#[tokio::test]
async fn messages_that_the_model_refuses_as_too_long_are_left_out_of_a_summary() {
    let world = World::with(|config| {
        let defaults = &mut config["agents"]["defaults"];
        defaults["contextTokens"] = json!(20_000);
        defaults["compaction"] = json!({"model": "run", "recentTurnsPreserve": 0});
    })
    .await;
    let n_turns = std::sync::atomic::AtomicU32::new(0);
    world.server.answer_with(move |request| {
        if !is_turn(request) {
            let is_refused = request.json()["messages"].to_string().contains("Chapter 2.");
            return Some(if is_refused { too_long() } else { stream(answer("s", "A story.")) });
        }
        let n = n_turns.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        Some(stream(answer(&format!("m{n}"), &format!("Chapter {n}. {}", "It went on. ".repeat(1_000)))))
    });
    for text in ["Begin.", "Go on.", "And then?", "What else?"] {
        let request = world.engine.message(KEY, text).await.unwrap();
        within(world.engine.run(request).finish()).await.unwrap();
    }
    let outcome = compact(&world, None).await;
    let CompactionOutcome::Compacted(compacted) = &outcome else { panic!("{outcome:?}") };
    assert!(compacted.summary.contains("A story."), "{}", compacted.summary);
    // The parts are merged by the model, which is told what is missing.
    let asked =
        summaries(&world).iter().any(|asked| asked["messages"].to_string().contains("K tokens) omitted from summary]"));
    assert!(asked, "{:?}", summaries(&world));
}
