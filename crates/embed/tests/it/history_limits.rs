//! How much history a model receives, by the session's key.

use pinch_embed::engine::CompactionOutcome;
use serde_json::{Value, json};

use crate::world::{World, answer, is_turn, stream, within};

/// Sends three prompts under a session key and returns how many user turns the last request had.
async fn turns_sent(world: &World, session: &str, key: &str, account: Option<&str>) -> usize {
    world.server.answer_with(|_| Some(stream(answer("m1", "Yes."))));
    for prompt in ["one", "two", "three"] {
        let mut request = world.engine.request(session, Some(key), None, prompt);
        request.caller.account = account.map(str::to_owned);
        within(world.engine.run(request).finish()).await.unwrap();
    }
    let last = world.server.requests().pop().unwrap().json();
    last["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user").count()
}

#[tokio::test]
async fn a_limited_history_begins_with_the_summary() {
    let world = limited(json!({"telegram": {"dmHistoryLimit": 1}})).await;
    let key = "agent:main:telegram:direct:42";
    world.server.answer_with(|request| {
        Some(stream(answer("m1", if is_turn(request) { "Yes." } else { "## Goal\nTHE-SUMMARY" })))
    });
    let ask = async |prompt: &str| {
        within(world.engine.run(world.engine.request("s1", Some(key), None, prompt)).finish()).await.unwrap();
        world.server.requests().pop().unwrap().json()["messages"].to_string()
    };
    ask("one").await;
    ask(&"two ".repeat(1_000)).await;
    let compacted = within(world.engine.compact(world.engine.request("s1", Some(key), None, ""), None)).await;
    assert!(matches!(compacted, CompactionOutcome::Compacted(_)), "{compacted:?}");
    let sent = ask("three").await;
    assert!(sent.contains("THE-SUMMARY"), "{sent}");
    let sent = ask("four").await;
    assert!(sent.contains("THE-SUMMARY") && sent.contains("four") && !sent.contains("three"), "{sent}");
}

async fn limited(config: Value) -> World {
    World::with(|document| {
        document["channels"] = config;
        document["agents"]["list"] = json!([{"id": "main", "default": true}, {"id": "ops"}]);
    })
    .await
}

#[tokio::test]
async fn a_key_with_an_account_finds_the_limits_of_its_account_then_of_its_channel() {
    let world = limited(json!({"telegram": {
        "dmHistoryLimit": 2,
        "accounts": {"Work": {"dmHistoryLimit": 1, "historyLimit": 1, "dms": {"Ada": {"historyLimit": 0}}}},
    }}))
    .await;
    for (session, key, account, expect) in [
        ("s1", "agent:main:telegram:direct:42", None, 2),
        ("s2", "agent:main:telegram:home:direct:42", None, 2),
        ("s3", "agent:main:telegram:work:direct:42", None, 1),
        ("s4", "agent:main:telegram:work:dm:ada", None, 3),
        ("s5", "agent:main:telegram:direct:42", Some("WORK"), 1),
        ("s6", "agent:main:telegram:group:-100:topic:7", Some("work"), 1),
        ("s7", "agent:main:telegram:group:-100", None, 3),
    ] {
        assert_eq!(turns_sent(&world, session, key, account).await, expect, "{key} {account:?}");
    }
}

#[tokio::test]
async fn keys_of_the_old_form_have_their_agent_and_the_limits_of_direct_chats() {
    let world = limited(json!({"whatsapp": {
        "dmHistoryLimit": 1,
        "dms": {"+4915": {"historyLimit": 2}},
        "groups": {"-100": {"tools": {"deny": ["read"]}}},
    }}))
    .await;
    assert_eq!(turns_sent(&world, "s1", "main:whatsapp:+4916", None).await, 1);
    assert_eq!(turns_sent(&world, "s2", "ops:whatsapp:+4915", None).await, 2);
    assert!(world.path("state/agents/ops/sessions/s2.jsonl").is_file());
    // Neither an agent nor a channel by these names is known.
    assert_eq!(turns_sent(&world, "s3", "nobody:whatsapp:+4915", None).await, 3);
    assert_eq!(turns_sent(&world, "s4", "main:pigeon:+4915", None).await, 3);
    assert!(world.path("state/agents/main/sessions/s3.jsonl").is_file());
    assert_eq!(turns_sent(&world, "s5", "main:whatsapp:group:-100", None).await, 3);
    let tools = world.server.requests().pop().unwrap().json()["tools"].to_string();
    assert!(tools.contains("\"name\":\"write\"") && !tools.contains("\"name\":\"read\""), "{tools}");
}
