//! A runtime, a stage, a channel and tools of the fork inside an engine.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::AgentEvent;
use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::event::SessionEvent;
use pinch_embed::delivery::{EngineEvent, EngineEvents, Envelope, Lifecycle};
use pinch_embed::engine::ReplyDelivery;
use pinch_embed::replies::blocks::BlockBreak;
use pinch_embed::runner::RunEvent;
use pinch_embed::runtime::Capabilities;
use pinch_embed::runtime_suite::{self, RuntimeBed, RuntimeFixture, RuntimeTurn};
use pinch_embed::{BlockReplies, Caller, Config, Engine, EngineBuilder, EngineRun, RunRequest, RunTarget};
use pinch_fork::replies::{Mask, ReplyBoard};
use pinch_fork::runtime::{ID, MemoryRuntime};
use pinch_fork::tools::{add_tools, word_count};
use pinch_llm::event::StreamEvent;
use pinch_llm::message::Message;
use pinch_llm::normalise::system;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply, ScriptedStep};
use pinch_llm::stdx::cancel::CancelReason;
use serde_json::json;
use tempfile::TempDir;

/// An engine whose runs use the runtime of the fork, on a scripted model with two keys.
struct ForkWorld {
    dir: TempDir,
    provider: Arc<ScriptedProvider>,
    runtime: Arc<MemoryRuntime>,
    engine: Engine,
}

impl ForkWorld {
    fn new(
        replies: impl IntoIterator<Item = ScriptedReply>,
        register: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Self {
        Self::with(replies, |_| {}, register)
    }

    /// Creates an engine with a changed configuration.
    fn with(
        replies: impl IntoIterator<Item = ScriptedReply>,
        change: impl FnOnce(&mut serde_json::Value),
        register: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut document = json!({
            "agents": {"defaults": {"model": {"primary": "demo/m1"}, "workspace": dir.path().join("workspace")}},
            "auth": {"profiles": [
                {"id": "first", "provider": "demo", "apiKey": "key-1"},
                {"id": "second", "provider": "demo", "apiKey": "key-2"},
            ]},
            "models": {"providers": {"demo": {
                "baseUrl": "http://localhost", "api": "anthropic-messages",
                "models": [{"id": "m1", "contextWindow": 200_000, "maxTokens": 8_000}],
            }}},
        });
        change(&mut document);
        let (config, problems) = Config::from_document(document.as_object().unwrap().clone(), dir.path());
        assert!(problems.is_empty(), "{problems:?}");
        let provider = Arc::new(ScriptedProvider::new(replies));
        let runtime = Arc::new(MemoryRuntime::new(provider.clone()));
        let builder = Engine::builder(dir.path().join("state")).config(config).runtime(ID, runtime.clone());
        Self { engine: register(builder).build(), dir, provider, runtime }
    }

    fn request(&self, prompt: &str) -> RunRequest {
        self.engine.request("s1", None, None, prompt).runtime(ID)
    }

    /// The session's conversation: roles and texts.
    fn conversation(&self) -> Vec<String> {
        let line = |message: &Arc<Message>| match &**message {
            Message::User(user) => format!("user: {}", user.content.text("")),
            Message::Assistant(answer) => format!("assistant: {}", answer.text("")),
            other => other.role().to_owned(),
        };
        self.runtime.conversation("s1").iter().map(line).collect()
    }
}

#[tokio::test]
async fn tools_of_channels_and_plugins_are_offered_in_their_place() {
    let usual = &["word_count"][..];
    for (tools, is_owner, expect) in [
        (json!({}), false, usual),
        (json!({}), true, &["post", "word_count"]),
        (json!({"allow": ["post", "garden"]}), true, &["post", "word_count", "delete"]),
    ] {
        let change = |document: &mut serde_json::Value| document["tools"] = tools.clone();
        let world = ForkWorld::with([ScriptedReply::text("Hello.")], change, add_tools);
        let mut caller = Caller::new();
        caller.is_owner = is_owner;
        world.engine.run(world.request("hello").caller(caller)).finish().await.unwrap();
        let request = world.provider.requests().pop().unwrap();
        let declared = system::collapse(&request.system, &request.tools, &request.messages).head.tools;
        let names: Vec<&str> = declared.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, expect, "{tools} {is_owner}");
    }
}

/// Polls a run until the model streams text.
async fn pull_to_text(run: &mut EngineRun) {
    while let Some(event) = run.next().await {
        if let RunEvent::Session(event) = event
            && let SessionEvent::Agent(AgentEvent::MessageUpdate(StreamEvent::Delta { .. })) = *event
        {
            return;
        }
    }
    panic!("the run ended without a text");
}

/// All events until the engine is dropped.
async fn all(mut events: EngineEvents) -> Vec<Arc<Envelope>> {
    let mut envelopes = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            EngineEvent::Event(envelope) => envelopes.push(envelope),
            EngineEvent::Lagged { missed } => panic!("{missed} events are lost"),
        }
    }
    envelopes
}

fn call(name: &str, arguments: serde_json::Value) -> ScriptedReply {
    ScriptedReply::call("c1", name, arguments.as_object().unwrap().clone())
}

#[tokio::test]
async fn a_run_on_the_forks_runtime_rotates_keys_calls_tools_and_shows_each_block_once() {
    let replies = [
        ScriptedReply::refused(http::StatusCode::TOO_MANY_REQUESTS, "slow down"),
        call("word_count", json!({"text": "one two"})),
        ScriptedReply::text("The secret text has 2 words.\n\nThere is nothing more to say about it."),
    ];
    let world = ForkWorld::new(replies, |builder| {
        builder.tool(word_count()).reply_stages(|_, stages| Mask { word: "secret".into() }.insert(stages))
    });
    let listeners = [world.engine.subscribe(), world.engine.subscribe()];
    let board = Arc::new(ReplyBoard::new(60));
    let blocks = BlockReplies { break_at: BlockBreak::Paragraph, ..BlockReplies::default() };
    let run = world.engine.run(world.request("How many words?").block_replies(blocks)).deliver(board.clone()).await;

    let result = run.result.as_ref().unwrap();
    let attempts: Vec<_> =
        result.meta.attempts.iter().map(|a| (a.profile.as_ref().unwrap().as_str(), &*a.outcome)).collect();
    assert_eq!(attempts, [("first", "rate_limit"), ("second", "ok")]);
    assert_eq!(result.meta.agent.runtime, ID);
    let keys: Vec<_> = world.provider.requests().iter().map(|request| request.auth.key.clone().unwrap()).collect();
    assert_eq!(keys.iter().map(|key| key.reveal()).collect::<Vec<_>>(), ["key-1", "key-2", "key-2"]);
    let answer = "assistant: The secret text has 2 words.\n\nThere is nothing more to say about it.";
    assert_eq!(world.conversation(), ["user: How many words?", "assistant: ", "toolResult", answer]);

    assert_eq!(board.texts(), ["The ****** text has 2 words.", "There is nothing more to say about it."]);
    assert_eq!(board.n_sends(), 4, "the confirmation of each block was lost once");
    assert!(run.delivered.is_complete(), "{:?}", run.delivered);
    assert_eq!(run.reply_delivery(), ReplyDelivery::Delivered);
    assert!(
        matches!(board.lifecycle().as_slice(), [Lifecycle::Start { .. }, Lifecycle::End { aborted: false, .. }]),
        "{:?}",
        board.lifecycle()
    );

    drop(world);
    let [first, second] = listeners;
    let events = all(first).await;
    assert_eq!(events, all(second).await);
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let phases = |stream: &str| -> Vec<_> {
        events.iter().filter(|e| e.stream.as_str() == stream).map(|e| e.data["phase"].as_str().unwrap()).collect()
    };
    assert_eq!(phases("lifecycle"), ["start", "end"]);
    assert_eq!(phases("tool"), ["start", "result"]);
}

#[tokio::test]
async fn a_conversation_of_the_forks_runtime_goes_on_without_a_session_file() {
    let world = ForkWorld::new([ScriptedReply::text("One."), ScriptedReply::text("Two.")], |builder| builder);
    for prompt in ["first", "second"] {
        world.engine.run(world.request(prompt)).finish().await.unwrap();
    }
    assert_eq!(world.conversation(), ["user: first", "assistant: One.", "user: second", "assistant: Two."]);
    assert_eq!(world.provider.requests()[1].messages.iter().filter(|m| m.role() != "system").count(), 3);
    assert!(!world.dir.path().join("state/agents/main/sessions/s1.jsonl").exists());
}

#[tokio::test]
async fn a_queued_message_reaches_the_forks_runtime() {
    let world =
        ForkWorld::new([ScriptedReply::text("One moment."), ScriptedReply::text("In blue.")], |builder| builder);
    let mut run = world.engine.run(world.request("Paint it."));
    pull_to_text(&mut run).await;
    assert!(world.engine.active()[0].is_streaming);
    let queued = world.engine.queue_message(RunTarget::Session("s1"), "Blue!", Vec::new(), QueueKind::Steering);
    let (queued, result) = futures::join!(queued, run.finish());
    assert_eq!(queued, Ok(()));
    result.unwrap();
    assert_eq!(
        world.conversation(),
        ["user: Paint it.", "assistant: One moment.", "user: Blue!", "assistant: In blue."]
    );
}

#[tokio::test]
async fn an_aborted_run_on_the_forks_runtime_keeps_what_was_said() {
    let half = ScriptedReply {
        steps: vec![ScriptedStep::Text(vec!["Half of".into()]), ScriptedStep::Hang],
        ..ScriptedReply::default()
    };
    let world = ForkWorld::new([half, ScriptedReply::text("The whole.")], |builder| builder);
    let mut run = world.engine.run(world.request("Go."));
    pull_to_text(&mut run).await;
    assert_eq!(world.engine.abort(RunTarget::Session("s1"), CancelReason::User), 1);
    let result = run.finish().await.unwrap();
    assert!(result.meta.aborted);
    assert_eq!(result.payloads.iter().map(|payload| &*payload.reply.text).collect::<Vec<_>>(), ["Half of"]);
    assert!(world.engine.active().is_empty());
    let again = world.engine.run(world.request("Again.")).finish().await.unwrap();
    assert_eq!(again.payloads[0].reply.text, "The whole.");
}

/// The runtime of the fork for the conformance suite.
struct MemoryFixture;

impl RuntimeFixture for MemoryFixture {
    fn id(&self) -> &'static str {
        ID
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE.profiles(true).resumable(true)
    }

    fn engine<'a>(
        &'a self,
        turns: Vec<RuntimeTurn>,
        register: Box<dyn FnOnce(EngineBuilder) -> EngineBuilder + Send + 'a>,
    ) -> BoxFuture<'a, RuntimeBed> {
        let replies = turns.into_iter().map(|turn| match turn {
            RuntimeTurn::Answer(text) => ScriptedReply::text(text),
            RuntimeTurn::Refusal(text) => ScriptedReply::refused(http::StatusCode::BAD_REQUEST, text),
            RuntimeTurn::Hang(text) => {
                let steps = vec![ScriptedStep::Text(vec![text.into()]), ScriptedStep::Hang];
                ScriptedReply { steps, ..ScriptedReply::default() }
            }
            RuntimeTurn::Call(tool, arguments) => call(tool, arguments),
            other => panic!("{other:?}"),
        });
        let world =
            ForkWorld::with(replies, |document| document["agents"]["defaults"]["runtime"] = ID.into(), register);
        Box::pin(std::future::ready(RuntimeBed { engine: world.engine.clone(), keep: Box::new(world) }))
    }
}

#[tokio::test]
async fn the_forks_runtime_passes_the_suite() {
    runtime_suite::check(&MemoryFixture).await;
}
