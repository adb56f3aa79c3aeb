//! Agents that repeat the same calls.

use serde_json::{Value, json};

use crate::world::{World, answer, call, payload_texts, refusal, stream, within};

const SENTENCE: &str = "Repeated identical tool call detected, please try a different approach.";

/// Runs a model that reads the same file `n` times and then answers, and returns the text of each result.
async fn results(world: &World, n: usize) -> Vec<String> {
    world.write("workspace/a.txt", "hello");
    for at in 0..n {
        world.server.reply(stream(call(&format!("c{at}"), "read", &json!({"path": "a.txt"}))));
    }
    world.server.reply(stream(answer("m1", "Enough.")));
    world.ask("s1", "read it").await.unwrap();
    let of_tool = |message: &Value| message["message"]["role"] == "toolResult";
    let transcript = world.transcript("s1");
    let messages = transcript.of_type("message");
    let results = messages.iter().filter(|message| of_tool(message));
    results.map(|message| message["message"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn the_model_is_warned_at_the_eleventh_identical_call() {
    let world = World::new().await;
    let results = results(&world, 11).await;
    assert!(results[..10].iter().all(|text| text == "hello"), "{results:?}");
    assert!(results[10].contains(SENTENCE), "{}", results[10]);
}

#[tokio::test]
async fn calls_without_progress_are_blocked_and_then_end_the_run() {
    let world = World::with(|config| {
        config["tools"] = json!({"loopDetection": {"warningThreshold": 2, "criticalThreshold": 3}});
    })
    .await;
    let results = results(&world, 5).await;
    assert_eq!(results.len(), 5, "the run ends with the second blocked call: {results:?}");
    assert!(results[2].contains(SENTENCE) && results[2].starts_with("hello"), "{results:?}");
    assert!(results[3].contains("identical outcomes") && !results[3].starts_with("hello"), "{results:?}");
    assert_eq!(world.server.requests().len(), 5);
}

#[tokio::test]
async fn results_of_blocked_calls_say_so_to_programs() {
    let world = World::with(|config| {
        config["tools"] = json!({"loopDetection": {"warningThreshold": 2, "criticalThreshold": 3}});
    })
    .await;
    results(&world, 4).await;
    let transcript = world.transcript("s1");
    let last = transcript.of_type("message").into_iter().rfind(|line| line["message"]["role"] == "toolResult").unwrap();
    assert_eq!(last["message"]["details"], json!({"status": "blocked", "deniedReason": "tool-loop"}));
}

#[tokio::test]
async fn calls_repeated_after_a_compaction_are_blocked() {
    let world = World::new().await;
    let read = |id: &str, file: usize| stream(call(id, "read", &json!({"path": format!("{file}.txt")})));
    for file in 0..3 {
        world.write(&format!("workspace/{file}.txt"), &"word ".repeat(500));
    }
    let before = (0..3).map(|file| read(&format!("b{file}"), file));
    let overflow = refusal(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum");
    let after = (0..4).map(|at| read(&format!("a{at}"), at % 3));
    let replies = before.chain([overflow]).chain(after).chain([stream(answer("m1", "Enough."))]);
    world.reply_to_turns("## Goal\nTo read.", replies);
    let result = world.ask("s1", "read them").await.unwrap();
    assert_eq!(payload_texts(&result).last().map(String::as_str), Some("Enough."));
    let transcript = world.transcript("s1");
    assert_eq!(transcript.of_type("compaction").len(), 1);
    let results = transcript.messages().into_iter().filter(|line| line.starts_with("read")).collect::<Vec<_>>();
    assert_eq!(results, [["read"; 6].as_slice(), &["read failed"]].concat());
    let last = world.server.requests().last().unwrap().json().to_string();
    assert!(last.contains("repeat what was done before the conversation was compacted"), "{last}");
}

#[tokio::test]
async fn detection_can_be_disabled_for_one_agent() {
    let world = World::with(|config| {
        config["agents"]["list"] = json!([{"id": "main", "tools": {"loopDetection": {"enabled": false}}}]);
    })
    .await;
    assert!(results(&world, 12).await.iter().all(|text| text == "hello"));
}

#[tokio::test]
async fn another_run_restarts_the_count() {
    let world = World::new().await;
    results(&world, 8).await;
    world.server.reply(stream(call("d1", "read", &json!({"path": "a.txt"}))));
    world.server.reply(stream(call("d2", "read", &json!({"path": "a.txt"}))));
    world.server.reply(stream(call("d3", "read", &json!({"path": "a.txt"}))));
    world.server.reply(stream(answer("m2", "Enough.")));
    within(world.engine.run(world.request("s1", "again").run_id("other")).finish()).await.unwrap();
    let last = world.server.requests().last().unwrap().json();
    assert!(!last["messages"].to_string().contains(SENTENCE));
}
