//! Sessions that stay in memory between runs.

use pinch_embed::Engine;
use pinch_stdx::host::{Env, Host};
use pinch_testing::logs::change_unseen;
use pinch_testing::server::ServerReply;
use serde_json::Value;

use crate::world::{World, answer, stream, within};

fn reply(text: &str) -> ServerReply {
    stream(answer("m1", text))
}

async fn run(engine: &Engine, prompt: &str) {
    within(engine.run(engine.request("s1", None, None, prompt)).finish()).await.unwrap();
}

/// The texts of the last request.
fn sent(world: &World) -> Vec<String> {
    let body = world.server.requests().last().unwrap().json();
    let text = |message: &Value| message["content"][0]["text"].as_str().unwrap().to_owned();
    body["messages"].as_array().unwrap().iter().map(text).collect()
}

#[tokio::test]
async fn the_next_run_reads_a_session_only_if_its_file_has_changed() {
    let world = World::new().await;
    for text in ["Apples.", "Pears.", "Plums.", "Quinces."] {
        world.server.reply(reply(text));
    }
    run(&world.engine, "one").await;
    change_unseen(&world.session_file("s1"), "Apples", "Grapes");
    run(&world.engine, "two").await;
    assert_eq!(sent(&world), ["one", "Apples.", "two"], "the file was read again");
    // Another process, which reads the file.
    run(&world.restarted(), "three").await;
    assert_eq!(sent(&world), ["one", "Grapes.", "two", "Pears.", "three"]);
    run(&world.engine, "four").await;
    assert_eq!(sent(&world), ["one", "Grapes.", "two", "Pears.", "three", "Plums.", "four"]);
    world.transcript("s1");
}

#[tokio::test]
async fn a_lifetime_of_zero_keeps_no_session() {
    let world = World::new().await;
    let env = Env::from_iter([("OPENCLAW_SESSION_MANAGER_CACHE_TTL_MS", "0")]);
    let engine = world.built(|builder| builder.host(Host::builder().env(env).build()));
    world.server.reply(reply("Apples.")).reply(reply("Pears."));
    run(&engine, "one").await;
    change_unseen(&world.session_file("s1"), "Apples", "Grapes");
    run(&engine, "two").await;
    assert_eq!(sent(&world), ["one", "Grapes.", "two"]);
}
