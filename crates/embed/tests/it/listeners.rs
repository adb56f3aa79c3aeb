//! Listeners receive every run's events, in order, however many there are.

use std::collections::BTreeMap;

use pinch_embed::delivery::{EngineEvent, EngineEvents, Envelope};
use serde_json::{Value, json};

use crate::world::{World, answer, call, pull_to_text, stream, within};

/// Returns all events until the engine is gone.
async fn all(mut events: EngineEvents) -> Vec<Envelope> {
    let mut envelopes = Vec::new();
    while let Some(event) = within(events.next()).await {
        match event {
            EngineEvent::Event(envelope) => envelopes.push((*envelope).clone()),
            EngineEvent::Lagged { missed } => panic!("{missed} events are lost"),
        }
    }
    envelopes
}

/// Returns the text accumulated from the events of a stream.
fn text_of(envelopes: &[Envelope], stream: &str) -> String {
    let mut text = String::new();
    for data in envelopes.iter().filter(|e| e.stream.as_str() == stream).map(|e| &e.data) {
        text.truncate(usize::try_from(data["at"].as_u64().unwrap()).unwrap());
        text.push_str(data["delta"].as_str().unwrap());
    }
    text
}

#[tokio::test]
async fn every_listener_gets_every_event_of_every_run_in_order() {
    let world = World::new().await;
    let listeners = [world.engine.subscribe(), world.engine.subscribe()];
    world.server.reply(stream(call("c1", "bash", &json!({"command": "echo out"}))));
    world.server.reply(stream(answer("m1", "The first answer.")));
    world.server.reply(stream(answer("m2", "The second answer.")));
    let key = "agent:main:main";
    for (run, prompt) in [("r1", "one"), ("r2", "two")] {
        let request = world.engine.request("s1", Some(key), None, prompt).run_id(run);
        within(world.engine.run(request).finish()).await.unwrap();
    }
    drop(world);
    let mut seen = Vec::new();
    for listener in listeners {
        let envelopes = all(listener).await;
        let mut runs: BTreeMap<String, Vec<Envelope>> = BTreeMap::new();
        for envelope in &envelopes {
            assert_eq!(envelope.session_key.as_deref(), Some(key));
            runs.entry(envelope.run_id.to_string()).or_default().push(envelope.clone());
        }
        for run in runs.values() {
            let numbers: Vec<u64> = run.iter().map(|envelope| envelope.seq).collect();
            assert_eq!(numbers, (1..=run.len() as u64).collect::<Vec<_>>());
            let lifecycle = run.iter().filter(|e| e.stream.as_str() == "lifecycle").map(|e| &e.data["phase"]);
            assert_eq!(lifecycle.collect::<Vec<_>>(), ["start", "end"]);
            assert_eq!(run.last().unwrap().data["executionSettled"], true);
        }
        let tool: Vec<&Value> = runs["r1"].iter().filter(|e| e.stream.as_str() == "tool").map(|e| &*e.data).collect();
        assert_eq!((&tool[0]["phase"], &tool[0]["args"]["command"]), (&json!("start"), &json!("echo out")));
        assert_eq!(tool.last().unwrap()["phase"], "result");
        assert_eq!(text_of(&runs["r2"], "assistant"), "The second answer.");
        seen.push(envelopes);
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn listeners_are_notified_of_the_end_of_a_dropped_run() {
    let world = World::new().await;
    let listener = world.engine.subscribe();
    world.server.reply(stream(answer("m1", "A long answer.")));
    let mut run = world.start("s1", "go");
    pull_to_text(&mut run).await;
    drop(run);
    drop(world);
    let phases =
        all(listener).await.into_iter().filter(|e| e.stream.as_str() == "lifecycle").map(|e| e.data["phase"].clone());
    assert_eq!(phases.collect::<Vec<_>>(), ["start", "error"]);
}

#[tokio::test]
async fn the_cost_of_a_long_answer_for_listeners_is_linear() {
    let world = World::new().await;
    let listener = world.engine.subscribe();
    let text = "word ".repeat(100);
    let frames =
        pinch_testing::wires::anthropic::AnthropicResponse::new("m1").with_chunks(100).text(&text).stop("end_turn");
    world.server.reply(stream(frames));
    world.ask("s1", "go").await.unwrap();
    drop(world);
    let envelopes = all(listener).await;
    let n_bytes: usize = envelopes.iter().filter_map(|e| e.data["delta"].as_str().map(str::len)).sum();
    assert_eq!(text_of(&envelopes, "assistant"), text.trim_end());
    assert!(n_bytes < 2 * text.len(), "{n_bytes} bytes for a text of {}", text.len());
}
