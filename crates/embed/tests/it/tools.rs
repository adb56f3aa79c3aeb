//! Which tools a run offers, and what it refuses to pass over.

use pinch_embed::run::RunError;
use serde_json::{Value, json};

use crate::world::{World, answer, stream};

fn offered(world: &World) -> Vec<String> {
    let body = world.server.requests()[0].json();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_denied_tool_is_neither_offered_nor_described() {
    let world = World::with(|config| {
        config["tools"] = json!({"deny": ["bash"]});
        config["agents"]["list"] = json!([{"id": "main", "tools": {"deny": ["write"]}}]);
    })
    .await;
    world.server.reply(stream(answer("m1", "Hello.")));
    world.ask("s1", "hello").await.unwrap();
    let names = offered(&world);
    assert!(names.iter().any(|name| name == "read"), "{names:?}");
    assert!(!names.iter().any(|name| name == "bash" || name == "write"), "{names:?}");
    let system = world.server.requests()[0].json()["system"].to_string();
    assert!(!system.contains("- bash"), "{system}");
}

#[tokio::test]
async fn a_restriction_that_is_not_enforced_ends_the_run_before_the_model_is_asked() {
    type Change = (&'static str, fn(&mut Value));
    let changes: [Change; 3] = [
        ("tools.allow", |config| config["tools"] = json!({"allow": ["read"]})),
        ("agents.defaults.sandbox.mode", |config| config["agents"]["defaults"]["sandbox"] = json!({"mode": "all"})),
        ("agents.list[0].tools.exec.security", |config| {
            config["agents"]["list"] = json!([{"id": "main", "tools": {"exec": {"security": "deny"}}}]);
        }),
    ];
    for (key, change) in changes {
        let world = World::with(change).await;
        match world.ask("s1", "hello").await {
            Err(RunError::Config(message)) => assert!(message.contains(key), "{message}"),
            other => panic!("{key}: {other:?}"),
        }
        assert!(world.server.requests().is_empty());
    }
}
