//! Keys of the configuration reach requests and runs, and those without effect are named.

use std::path::Path;
use std::time::Duration;

use pinch_embed::config::Config;
use pinch_embed::run::RunError;
use serde_json::json;

use crate::world::{FALLBACK, MODEL, World, answer, fallback_answer, stream, within};

#[tokio::test]
async fn only_listed_models_are_used_unless_they_are_the_default_or_a_fallback() {
    let primary = format!("anthropic/{MODEL}");
    let listed = json!({primary: {}});
    let world = World::with(|config| config["agents"]["defaults"]["models"] = listed.clone()).await;
    let request = |world: &World| world.request("s1", "hello").model("local", "small");
    let refused = within(world.engine.run(request(&world)).finish()).await.unwrap_err();
    let expected =
        "model not allowed: local/small. Add it to agents.defaults.models, or remove that list to allow every model";
    assert!(matches!(&refused, RunError::Config(text) if text == expected), "{refused}");
    let world = World::with(|config| {
        config["agents"]["defaults"]["models"] = listed;
        config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
    })
    .await;
    world.server.reply(stream(fallback_answer("Yes.")));
    within(world.engine.run(request(&world)).finish()).await.unwrap();
}

#[tokio::test]
async fn block_streaming_and_thinking_of_an_agent_reach_its_requests() {
    let world = World::with(|config| {
        let defaults = &mut config["agents"]["defaults"];
        defaults["blockStreamingDefault"] = "on".into();
        defaults["blockStreamingBreak"] = "message_end".into();
        defaults["blockStreamingChunk"] = json!({"minChars": 10, "maxChars": 90});
        defaults["thinkingDefault"] = "low".into();
        config["agents"]["list"] = json!([{"id": "main"}, {"id": "ops", "thinkingDefault": "high"}]);
    })
    .await;
    let request = world.engine.request("s1", None, Some("ops"), "hello");
    assert_eq!(request.think_level.map(|level| level.as_str()), Some("high"));
    let blocks = request.block_replies.unwrap();
    assert_eq!(blocks.chunking.map(|chunking| (chunking.min_chars, chunking.max_chars)), Some((10, 90)));
    assert!(format!("{:?}", blocks.break_at).contains("MessageEnd"));
    let request = world.engine.request("s1", None, None, "hello");
    assert_eq!(request.think_level.map(|level| level.as_str()), Some("low"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_retries_of_its_own() {
    let attempts = |own: serde_json::Value| async move {
        let world = World::with(|config| {
            config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
            config["agents"]["list"] = json!([{"id": "main", "runRetries": own}]);
        })
        .await;
        for n in 0..3 {
            world.server.reply(crate::world::refusal(529, "overloaded_error", &format!("busy {n}")));
        }
        world.server.reply(stream(answer("m", "Yes.")));
        let run = world.engine.run(world.request("s1", "hello").timeout(Some(Duration::from_secs(600))));
        within(run.finish()).await.map(|result| (result.meta.attempts.len(), result.meta.error.is_some()))
    };
    let bounded = attempts(json!({"base": 1, "perProfile": 0, "min": 2, "max": 2})).await;
    let free = attempts(json!({"base": 10, "perProfile": 0, "min": 10, "max": 10})).await;
    assert_ne!(format!("{bounded:?}"), format!("{free:?}"));
}

#[test]
fn keys_without_effect_are_named_as_wholes() {
    let document = json!({
        "gateway": {"port": 1, "auth": {"token": "x"}},
        "agents": {
            "defaults": {"workspace": "w", "compaction": {"mode": "safeguard", "notifyUser": true}, "models": {}},
            "list": [{"id": "a", "identity": {"name": "A"}}],
        },
        "session": {"reset": {"mode": "daily"}, "store": "x"},
        "messages": {"queue": {"mode": "collect"}, "ackReaction": "x"},
        "models": {"providers": {"p": {"baseUrl": "x", "headers": {"a": "b"}, "models": []}}},
        "tools": {"deny": ["exec"]},
    });
    let (config, problems) = Config::from_document(document.as_object().unwrap().clone(), Path::new("pinch.json"));
    assert_eq!(problems, []);
    assert_eq!(
        config.ignored,
        [
            "gateway",
            "agents.defaults.compaction.notifyUser",
            "agents.list[0].identity",
            "session.store",
            "messages.ackReaction",
        ]
    );
}
