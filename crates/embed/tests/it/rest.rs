//! Shutting down an engine and replacing its configuration.

use std::time::Duration;

use futures::FutureExt;
use pinch_embed::config::Config;
use pinch_embed::run::RunError;
use pinch_embed::{InboundMessage, Turn};
use serde_json::json;

use crate::world::{World, stream, within};

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_drained_engine_finishes_runs_and_starts_none() {
    let world = World::new().await;
    let (gate, running) = world.answering(world.request("s1", "hello")).await;
    let waiting = world.engine.run(world.request("s1", "waits for its session")).finish();
    let (ran, refused, drained, late) = within(async {
        tokio::join!(running.finish(), waiting, world.engine.drain(LONG), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let late = world.engine.run(world.request("s2", "late")).finish().await;
            gate.open_times(100);
            late
        })
    })
    .await;
    ran.unwrap();
    assert!(drained);
    assert!(matches!(refused, Err(RunError::Draining)), "{refused:?}");
    assert!(matches!(late, Err(RunError::Draining)), "{late:?}");
    assert!(matches!(world.engine.send(InboundMessage::new("chat", "hi")).await, Err(RunError::Draining)));
    assert!(!world.path("state/agents/main/sessions/s2.jsonl").exists());
}

#[tokio::test]
async fn a_message_waiting_for_its_turn_is_returned_when_the_engine_drains() {
    let world = World::new().await;
    let Ok(Turn::Run(first)) = world.engine.send(InboundMessage::new("chat", "one")).await else { panic!() };
    let mut waiting = Box::pin(world.engine.send(InboundMessage::new("chat", "two")));
    assert!((&mut waiting).now_or_never().is_none());
    assert!(world.engine.drain(LONG).await, "a turn whose run has not begun does not count as a run");
    assert!(matches!(within(waiting).await, Err(RunError::Draining)));
    drop(first);
}

#[tokio::test]
async fn a_shutdown_stops_remaining_runs_and_writes_pending_state() {
    let world = World::new().await;
    let (_gate, running) = world.answering(world.request("s1", "hello")).await;
    let (ran, n_stopped) =
        within(async { tokio::join!(running.finish(), world.engine.shutdown(Duration::from_millis(20))) }).await;
    assert_eq!(n_stopped, 1);
    assert!(ran.is_ok_and(|result| result.meta.aborted));
    assert_eq!(world.transcript("s1").messages()[0], "user: hello");
}

#[tokio::test]
async fn a_new_configuration_applies_to_new_runs_only() {
    let world = World::new().await;
    let (gate, running) = world.answering(world.request("s1", "hello")).await;
    let document = json!({
        "agents": {"defaults": {"workspace": world.path("workspace"), "model": "new/tiny", "timeoutSeconds": "x"}},
        "models": {"providers": {"new": {
            "baseUrl": format!("{}/v1", world.server.url()), "api": "openai-completions", "apiKey": "k",
            "models": [{"id": "tiny", "contextWindow": 100_000, "maxTokens": 4_000}],
        }}},
    });
    let (config, mistakes) = Config::from_document(document.as_object().unwrap().clone(), &world.path("pinch.json"));
    assert_eq!(mistakes.len(), 1);
    assert_eq!(world.engine.reload(config), []);
    let (ran, ()) = within(async { tokio::join!(running.finish(), async { gate.open_times(100) }) }).await;
    assert_eq!(ran.unwrap().meta.agent.provider, "anthropic");
    world.server.reply(stream(crate::world::fallback_answer("Hello from the new one.")));
    let result = within(world.engine.run(world.request("s2", "hello")).finish()).await.unwrap();
    assert_eq!((result.meta.agent.provider.as_str(), result.meta.agent.model.as_str()), ("new", "tiny"));
}
