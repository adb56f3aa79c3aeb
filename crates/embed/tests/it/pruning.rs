//! Old tool results are shortened in requests once the provider's cache has expired, and stay shortened.

use pinch_testing::server::Recorded;
use serde_json::{Value, json};

use crate::world::{FALLBACK, World, answer, call, fallback_answer, is_turn, stream, within};

/// Returns the texts of the tool results in a request.
fn results(request: &Recorded) -> Vec<String> {
    let body = request.json();
    let blocks =
        body["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array()).flatten();
    let result = |block: &&Value| block["type"] == "tool_result";
    blocks.filter(result).map(|block| block["content"].to_string()).collect()
}

#[tokio::test]
async fn without_settings_the_prompts_of_anthropic_are_pruned() {
    for (setting, model, n_stamps) in [
        (json!({}), "anthropic/claude-sonnet-4-5", 1),
        (json!({"mode": "off"}), "anthropic/claude-sonnet-4-5", 0),
        (json!({}), FALLBACK, 0),
    ] {
        let world = World::with(|config| {
            config["agents"]["defaults"]["contextPruning"] = setting.clone();
            config["agents"]["defaults"]["model"] = json!({"primary": model});
        })
        .await;
        let frames = if model == FALLBACK { fallback_answer("Yes.") } else { answer("m1", "Yes.") };
        world.server.reply(stream(frames));
        world.ask("s1", "Well?").await.unwrap();
        let transcript = world.transcript("s1");
        let stamps =
            transcript.of_type("custom").into_iter().filter(|entry| entry["customType"] == "openclaw.cache-ttl");
        assert_eq!(stamps.count(), n_stamps, "{setting} {model}");
    }
}

#[tokio::test]
async fn results_are_shortened_after_the_cache_expires_and_stay_shortened() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["contextTokens"] = 20_000.into();
        config["agents"]["defaults"]["compaction"] = json!({"reserveTokensFloor": 0});
        config["agents"]["defaults"]["contextPruning"] = json!({
            "mode": "cache-ttl", "ttl": "300ms", "keepLastAssistants": 1, "softTrimRatio": 0.1, "hardClearRatio": 1,
        });
    })
    .await;
    world.write("workspace/notes.md", &"A line of the notes.\n".repeat(1_000));
    world.server.reply(stream(call("r1", "read", &json!({"path": "notes.md"}))));
    world.server.reply(stream(answer("m1", "Read.")));
    world.ask("s1", "Read the notes.").await.unwrap();
    let ask = async |text: &str| {
        world.server.reply(stream(answer("m", "Yes.")));
        world.ask("s1", text).await.unwrap();
        let turns: Vec<Recorded> = world.server.requests().into_iter().filter(is_turn).collect();
        results(turns.last().unwrap()).remove(0)
    };
    let whole = ask("Again?").await;
    assert!(whole.len() > 15_000, "the cache still holds the prompt: {}", whole.len());
    within(tokio::time::sleep(std::time::Duration::from_millis(400))).await;
    let short = ask("And now?").await;
    assert!(short.len() < 4_000 && short.contains("[Shortened: the first 1500"), "{short}");
    // Another run within the cache's lifetime sends the same prefix.
    assert_eq!(ask("Once more?").await, short);
    let stamps: Vec<Value> = world.transcript("s1").of_type("custom").into_iter().cloned().collect();
    let stamps: Vec<&Value> = stamps.iter().filter(|entry| entry["customType"] == "openclaw.cache-ttl").collect();
    assert_eq!(stamps.len(), 4);
    assert!(stamps[3]["data"]["shortened"].to_string().contains("\"how\":\"trimmed\""), "{}", stamps[3]);
    assert!(!stamps[3].to_string().contains("A line of the notes"));
    // The transcript keeps the full result.
    assert!(std::fs::read_to_string(world.session_file("s1")).unwrap().len() > 15_000);
}
