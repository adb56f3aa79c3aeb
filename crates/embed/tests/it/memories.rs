//! Memories saved before a conversation is compacted.

use pinch_embed::run::request::RunTrigger;
use pinch_testing::server::{Recorded, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::world::{World, answer, call, payload_texts, refusal, stream, within};

const KEY: &str = "agent:main:chat";

/// Returns an answer of a conversation that fills the window.
fn long(text: &str) -> ServerReply {
    let usage = json!({"input_tokens": 178_000, "output_tokens": 1});
    stream(AnthropicResponse::with_usage("long", &usage).text(text).stop("end_turn"))
}

async fn ask(world: &World, text: &str) -> Vec<String> {
    let request = world.engine.message(KEY, text).await.unwrap();
    payload_texts(&within(world.engine.run(request).finish()).await.unwrap())
}

async fn entry(world: &World) -> Value {
    serde_json::to_value(&world.engine.sessions("main").await.unwrap()[KEY]).unwrap()
}

/// Returns the last user text and the tools of a request.
fn asked(request: &Recorded) -> (String, Vec<String>) {
    let body = request.json();
    let names = body["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].as_str().unwrap().to_owned());
    (body["messages"].as_array().unwrap().last().unwrap()["content"].to_string(), names.collect())
}

#[tokio::test]
async fn the_agent_saves_notes_once_before_its_conversation_is_compacted() {
    let world = World::new().await;
    world.server.reply(long("Tea."));
    assert_eq!(ask(&world, "What do I like?").await, ["Tea."]);
    let session = entry(&world).await["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(world.server.requests().len(), 1, "nothing was said before");

    let date = pinch_stdx::host::Host::builder().build();
    let date = date.local_date(date.now_ms(), None);
    let path = format!("memory/{date}.md");
    world.write(&format!("workspace/{path}"), "- old note");
    for reply in [
        stream(call("w1", "write", &json!({"path": path, "content": "- likes tea\n"}))),
        stream(call("w2", "write", &json!({"path": "other.md", "content": "x"}))),
        stream(answer("f", "NO_REPLY")),
        long("Green tea."),
        long("Still green."),
    ] {
        world.server.reply(reply);
    }
    assert_eq!(ask(&world, "Which?").await, ["Green tea."]);
    assert_eq!(std::fs::read_to_string(world.path(&format!("workspace/{path}"))).unwrap(), "- old note\n- likes tea\n");
    assert!(!world.path("workspace/other.md").exists());
    let requests = world.server.requests();
    let (flush, tools) = asked(&requests[1]);
    assert!(flush.contains(&path), "{flush}");
    assert_eq!(tools, ["read", "write"]);
    assert!(requests[1].json()["system"].to_string().contains("## Saving memories"));
    assert!(asked(&requests[3]).0.contains("Only memory/"), "{}", asked(&requests[3]).0);
    let (turn, tools) = asked(&requests[4]);
    assert!(turn.contains("Which?") && tools.len() > 2, "{turn}");
    assert!(!requests[4].json()["system"].to_string().contains("## Saving memories"));
    let after = entry(&world).await;
    assert_eq!(after["sessionId"], session.as_str());
    assert_eq!(after["memoryFlushCompactionCount"], 0);
    assert!(after["memoryFlushAt"].as_i64().unwrap() > 0);

    assert_eq!(ask(&world, "Sure?").await, ["Still green."]);
    assert_eq!(world.server.requests().len(), 6, "the agent was asked before");
}

#[tokio::test]
async fn a_failed_request_for_memories_is_not_part_of_the_conversation_and_not_repeated() {
    let world = World::new().await;
    world.write("workspace/notes.md", "Tea.");
    world.server.answer_with(|request| {
        let (last, _) = asked(request);
        if last.contains("will soon be replaced") {
            return Some(stream(call("r", "read", &json!({"path": "notes.md"}))));
        }
        match last.contains("tool_result") {
            true => Some(refusal(400, "invalid_request_error", "no")),
            false => Some(long("Fine.")),
        }
    });
    for text in ["1", "2", "3"] {
        assert_eq!(ask(&world, text).await, ["Fine."]);
    }
    let requests = world.server.requests();
    let begins = |request: &&Recorded| asked(request).0.contains("will soon be replaced");
    assert_eq!(requests.iter().filter(begins).count(), 1);
    let last = requests.last().unwrap().json()["messages"].to_string();
    assert!(last.contains('1') && last.contains('2') && last.contains('3'), "{last}");
    assert!(!last.contains("will soon be replaced") && !last.contains("notes.md"), "{last}");
    assert_eq!(entry(&world).await["memoryFlushCompactionCount"], 0);
}

#[tokio::test]
async fn the_agent_is_asked_after_a_long_transcript_whatever_its_tokens() {
    let flush = json!({"memoryFlush": {"forceFlushTranscriptBytes": "64kb"}});
    let world = World::with(|config| config["agents"]["defaults"]["compaction"] = flush).await;
    let long_text = "tea ".repeat(20_000);
    for reply in [answer("m1", "Hello."), answer("m2", &long_text), answer("f", "NO_REPLY"), answer("m3", "Tea.")] {
        world.server.reply(stream(reply));
    }
    for text in ["hi", "say much", "and?"] {
        ask(&world, text).await;
    }
    world.server.reply(stream(answer("m4", &long_text)));
    ask(&world, "again").await;
    let asked: Vec<bool> =
        world.server.requests().iter().map(|request| asked(request).0.contains("will soon be replaced")).collect();
    assert_eq!(asked, [false, false, true, false, false], "once between two compactions");
    assert!(entry(&world).await["memoryFlushTranscriptBytes"].as_u64().unwrap() > 65_536);
}

#[tokio::test]
async fn agents_that_cannot_or_must_not_write_are_not_asked() {
    let no_write = World::with(|config| config["tools"] = json!({"deny": ["write"]})).await;
    let off =
        World::with(|config| config["agents"]["defaults"]["compaction"] = json!({"memoryFlush": {"enabled": false}}))
            .await;
    for world in [no_write, off] {
        for text in ["One.", "Two."] {
            world.server.reply(long(text));
            assert_eq!(ask(&world, "?").await, [text]);
        }
        assert_eq!(world.server.requests().len(), 2);
    }
    let world = World::new().await;
    for text in ["One.", "Two."] {
        world.server.reply(long(text));
        let mut request = world.engine.message(KEY, "?").await.unwrap();
        request.trigger = RunTrigger::Heartbeat;
        within(world.engine.run(request).finish()).await.unwrap();
    }
    assert_eq!(world.server.requests().len(), 2);
}
