//! Sub-agents: they work in the background, and report to the session that started them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_embed::ports::Caller;
use pinch_embed::run::{RunRequest, RunResult};
use pinch_embed::tools::policy::PermissionMode;
use pinch_embed::{
    Engine, EngineBuilder, InboundMessage, OutgoingBlock, Receipt, ReplySink, RunTarget, SendFailure, SinkLimits, Turn,
};
use pinch_stdx::cancel::CancelReason;
use pinch_testing::server::{Gate, Recorded, ServerReply};
use serde_json::{Value, json};

use crate::world::{World, answer, call, refusal, stream, within};

const KEY: &str = "agent:main:main";

/// A chat that collects what it receives.
#[derive(Default)]
struct ReportChat(Mutex<Vec<String>>);

impl ReportChat {
    fn received(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl ReplySink for ReportChat {
    fn limits(&self) -> SinkLimits {
        SinkLimits::of_chars(4_096)
    }

    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        self.0.lock().unwrap().push(block.reply.text.clone());
        Box::pin(async { Ok(Receipt { id: None }) })
    }
}

/// Returns the text that a model answers to: that of the last message.
fn asked(request: &Recorded) -> String {
    let body = request.json();
    let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    last["content"].to_string()
}

fn system(request: &Recorded) -> String {
    request.json()["system"].to_string()
}

fn tools_of(request: &Recorded) -> Vec<String> {
    let body = request.json();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// What the model answers: the first rule whose text occurs in the last message, each once, or always if it has no end.
struct Script(Mutex<Vec<(&'static str, VecDeque<ServerReply>)>>);

impl Script {
    fn install(world: &World, rules: Vec<(&'static str, Vec<ServerReply>)>) {
        let rules = rules.into_iter().map(|(text, replies)| (text, replies.into())).collect();
        let script = Self(Mutex::new(rules));
        world.server.answer_with(move |request| script.next(&asked(request)));
    }

    fn next(&self, text: &str) -> Option<ServerReply> {
        let mut rules = self.0.lock().unwrap();
        let found = rules.iter_mut().find(|(of, replies)| text.contains(of) && !replies.is_empty());
        found.and_then(|(_, replies)| replies.pop_front())
    }
}

fn spawning(id: &str, arguments: Value) -> ServerReply {
    stream(call(id, "sessions_spawn", &arguments))
}

fn says(text: &str) -> ServerReply {
    stream(answer("m", text))
}

fn with_subagents(builder: EngineBuilder) -> EngineBuilder {
    builder.builtin_tools(["read", "sessions_spawn", "subagents"])
}

fn with_chat(world: &World) -> (Engine, Arc<ReportChat>) {
    let chat = Arc::new(ReportChat::default());
    let sink = Arc::clone(&chat);
    let engine = world.built(|builder| {
        with_subagents(builder).background_replies(move |request| {
            let is_chat =
                request.caller.channel.as_deref() == Some("demo") && request.message_to.as_deref() == Some("@ada");
            is_chat.then(|| Arc::clone(&sink) as Arc<dyn ReplySink>)
        })
    });
    (engine, chat)
}

/// Sends a message of a person, and runs it.
async fn send(engine: &Engine, text: &str) -> RunResult {
    let request = turn(engine, text).await;
    within(engine.run(request).finish()).await.unwrap()
}

async fn turn(engine: &Engine, text: &str) -> RunRequest {
    let caller = Caller::new().channel("demo").owner();
    match within(engine.send(InboundMessage::new(KEY, text).caller(caller).to("@ada"))).await.unwrap() {
        Turn::Run(request) => *request,
        other => panic!("{other:?}"),
    }
}

/// Waits until something holds.
#[track_caller]
fn until(holds: impl Fn() -> bool) -> impl Future<Output = ()> {
    within(async move {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
}

/// Returns the stored sub-agents, oldest first.
fn records(world: &World) -> Vec<Value> {
    let text = std::fs::read(world.path("state/subagents/runs.json")).unwrap_or_default();
    let document: Value = serde_json::from_slice(&text).unwrap_or_default();
    let mut all: Vec<Value> = document["runs"].as_object().into_iter().flatten().map(|(_, run)| run.clone()).collect();
    all.sort_by_key(|record| record["createdAt"].as_i64());
    all
}

fn has_reported(record: &Value) -> bool {
    record["cleanupCompletedAt"].is_i64()
}

async fn all_reported(world: &World, n: usize) {
    until(|| records(world).len() == n && records(world).iter().all(has_reported)).await;
}

/// Returns the last result of a tool in a request.
fn tool_result(world: &World, at: &str) -> String {
    let requests = world.server.requests();
    let found = requests.iter().rev().map(asked).find(|text| text.contains("tool_result") && text.contains(at));
    found.unwrap_or_else(|| panic!("no result with {at:?}"))
}

#[tokio::test]
async fn a_sub_agent_works_in_the_background_and_its_result_reaches_the_chat() {
    let world = World::new().await;
    let gate = Gate::new();
    let (engine, chat) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find the\nanswer.", "label": "finder"}))]),
            ("accepted", vec![says("I have started somebody.")]),
            ("[Subagent Task] Find", vec![ServerReply::events().gated(&gate, answer("m2", "The answer is 42."))]),
            ("finder", vec![says("It is 42.")]),
        ],
    );
    let result = send(&engine, "Research it.").await;
    assert_eq!(result.payloads.last().unwrap().reply.text, "I have started somebody.");
    // The run of the requester has ended, and the sub-agent still works.
    assert!(chat.received().is_empty());
    let accepted = tool_result(&world, "childSessionKey");
    assert!(accepted.contains("accepted") && !accepted.contains("modelApplied"), "{accepted}");
    until(|| records(&world).iter().any(|record| record["startedAt"].is_i64())).await;
    gate.open_times(100);
    until(|| chat.received() == ["It is 42."]).await;
    all_reported(&world, 1).await;

    let record = records(&world).remove(0);
    let key = record["childSessionKey"].as_str().unwrap().to_owned();
    assert!(key.starts_with("agent:main:subagent:"), "{key}");
    let expect = json!({"status": "ok"});
    assert_eq!(
        (&record["outcome"], &record["requesterSessionKey"], &record["cleanup"]),
        (&expect, &json!(KEY), &json!("keep"))
    );
    assert_eq!(record["requesterOrigin"], json!({"channel": "demo", "to": "@ada"}));
    assert_eq!(record["archiveAtMs"].as_i64().unwrap() - record["createdAt"].as_i64().unwrap(), 3_600_000);
    // What is announced need not stay in the file.
    assert_eq!(record.get("frozenResultText"), None);
    let entry = engine.sessions("main").await.unwrap().remove(key.as_str()).unwrap();
    let stored = (entry.spawned_by.as_deref(), entry.label.as_deref(), entry.extra["spawnDepth"].as_u64());
    assert_eq!(stored, (Some(KEY), Some("finder"), Some(1)));

    let requests = world.server.requests();
    let child = requests.iter().find(|request| asked(request).contains("[Subagent Task]")).unwrap();
    let prompt = system(child);
    assert!(prompt.contains("# Subagent Context") && prompt.contains("- Your task: Find the answer."), "{prompt}");
    assert!(prompt.contains("You cannot start sub-agents.") && !prompt.contains("## Silent Replies"), "{prompt}");
    assert_eq!(tools_of(child), ["read", "subagents"]);
    let report = requests.iter().map(asked).find(|text| text.contains("finder")).unwrap();
    assert!(report.contains("The answer is 42.") && report.contains("runtime 0s · tokens"), "{report}");
}

#[tokio::test]
async fn a_report_is_read_by_the_active_run_if_messages_are_steered() {
    let world = World::with(|config| config["messages"] = json!({"queue": {"mode": "steer", "debounceMs": 1}})).await;
    let (gate, hold) = (Gate::new(), Gate::new());
    let (engine, chat) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it."}))]),
            ("accepted", vec![ServerReply::events().gated(&hold, answer("m1", "I am waiting for somebody."))]),
            ("[Subagent Task]", vec![ServerReply::events().gated(&gate, answer("m2", "42"))]),
            ("has finished its task", vec![says("It is 42.")]),
        ],
    );
    let request = turn(&engine, "Research it.").await;
    let session = request.session_id.clone();
    let running = engine.run(request).finish();
    let releasing = async {
        hold.open_times(3);
        until(|| engine.active().iter().any(|run| run.session_key.as_deref() == Some(KEY) && run.is_streaming)).await;
        until(|| world.server.requests().len() >= 3).await;
        gate.open_times(100);
        // The report is queued before the answer goes on.
        until(|| records(&world).iter().any(|record| record["cleanupHandled"] == true)).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        hold.open_times(100);
    };
    let (result, ()) = within(async { tokio::join!(running, releasing) }).await;
    assert_eq!(result.unwrap().payloads.last().unwrap().reply.text, "It is 42.");
    all_reported(&world, 1).await;
    // There was only one run, so nothing else was delivered.
    assert!(chat.received().is_empty());
    assert_eq!(world.transcript(&session).messages().iter().filter(|message| message.starts_with("user:")).count(), 2);
}

#[tokio::test]
async fn stopping_a_session_stops_its_sub_agents_which_then_report_nothing() {
    let world = World::new().await;
    let gate = Gate::new();
    let (engine, chat) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it.", "cleanup": "delete"}))]),
            ("accepted", vec![says("Started.")]),
            ("[Subagent Task]", vec![ServerReply::events().gated(&gate, answer("m2", "42"))]),
        ],
    );
    send(&engine, "Research it.").await;
    until(|| engine.active().len() == 1).await;
    let key = engine.active()[0].session_key.clone().unwrap();
    assert_eq!(engine.abort(RunTarget::Session("agent:main:other"), CancelReason::User), 0);
    assert_eq!(engine.abort(RunTarget::Session(KEY), CancelReason::User), 1);
    all_reported(&world, 1).await;
    let record = records(&world).remove(0);
    assert_eq!(record["outcome"], json!({"status": "error", "error": "stopped"}));
    assert!(chat.received().is_empty() && engine.active().is_empty());
    assert!(!engine.sessions("main").await.unwrap().contains_key(key.as_str()));
}

#[tokio::test]
async fn stopping_a_run_stops_the_sub_agents_of_its_session_and_theirs() {
    let world = World::with(|config| config["agents"]["defaults"]["subagents"] = json!({"maxSpawnDepth": 2})).await;
    let gate = Gate::new();
    let (engine, chat) = with_chat(&world);
    let held = || ServerReply::events().gated(&gate, answer("m2", "Never finished."));
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Outer."}))]),
            ("[Subagent Task] Outer", vec![spawning("c2", json!({"task": "Inner."}))]),
            ("accepted", vec![held(), held()]),
            ("[Subagent Task] Inner", vec![held()]),
        ],
    );
    let request = turn(&engine, "Research it.").await;
    let id = request.run_id.clone();
    let running = engine.run(request).finish();
    let stopping = async {
        until(|| world.server.requests().len() == 5).await;
        engine.abort(RunTarget::Run(&id), CancelReason::User)
    };
    let (result, n_stopped) = within(async { tokio::join!(running, stopping) }).await;
    assert!(n_stopped == 3 && !result.is_ok_and(|result| !result.meta.aborted));
    all_reported(&world, 2).await;
    assert!(chat.received().is_empty() && engine.active().is_empty());
}

#[tokio::test]
async fn sub_agents_are_listed_steered_and_stopped() {
    let world = World::new().await;
    let gate = Gate::new();
    let (engine, chat) = with_chat(&world);
    let held = || ServerReply::events().gated(&gate, answer("m2", "Never finished."));
    Script::install(
        &world,
        vec![
            ("Begin", vec![spawning("c1", json!({"task": "First.", "label": "one"}))]),
            ("accepted", vec![says("Started."), says("Redirected.")]),
            ("[Subagent Task] First", vec![held()]),
            ("Look", vec![stream(call("c2", "subagents", &json!({"action": "list"})))]),
            ("1. one: running", vec![says("One works.")]),
            (
                "Redirect",
                vec![stream(call(
                    "c3",
                    "subagents",
                    &json!({"action": "steer", "target": "1", "message": "Take the other one."}),
                ))],
            ),
            ("starts again", vec![says("Redirected.")]),
            ("Take the other one.", vec![held()]),
            ("Stop it", vec![stream(call("c4", "subagents", &json!({"action": "kill", "target": "ONE"})))]),
            ("Stopped", vec![says("It has stopped.")]),
            ("Stop nothing", vec![stream(call("c5", "subagents", &json!({"action": "kill", "target": "7"})))]),
            ("no sub-agent", vec![says("There is none.")]),
        ],
    );
    send(&engine, "Begin.").await;
    until(|| world.server.requests().iter().any(|request| asked(request).contains("[Subagent Task]"))).await;
    send(&engine, "Look.").await;
    send(&engine, "Redirect it.").await;
    until(|| world.server.requests().iter().any(|request| asked(request).contains("Take the other one."))).await;
    // The conversation of the sub-agent goes on.
    let requests = world.server.requests();
    let again = requests.iter().rev().find(|request| system(request).contains("# Subagent Context")).unwrap();
    assert!(again.json()["messages"].to_string().contains("[Subagent Task] First."));
    send(&engine, "Stop it.").await;
    all_reported(&world, 1).await;
    assert_eq!(records(&world)[0]["outcome"]["error"], "stopped");
    send(&engine, "Stop nothing.").await;
    assert!(chat.received().is_empty());
}

#[tokio::test]
async fn a_sub_agent_goes_on_after_a_restart_and_still_reports() {
    let world = World::new().await;
    let gate = Gate::new();
    let (engine, _) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it.", "label": "finder"}))]),
            ("accepted", vec![says("Started.")]),
            ("was restarted while you worked", vec![says("42")]),
            ("[Subagent Task]", vec![ServerReply::events().gated(&gate, answer("m2", "Never finished."))]),
            ("has finished its task", vec![says("It is 42.")]),
        ],
    );
    send(&engine, "Research it.").await;
    until(|| engine.active().len() == 1).await;
    // Another engine does not run the same sub-agents.
    let (other, other_chat) = with_chat(&world);
    other.announce_start(None);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(other_chat.received().is_empty() && other.active().is_empty());
    assert_eq!(within(engine.shutdown(Duration::ZERO)).await, 1);
    assert_eq!(records(&world)[0].get("endedAt"), None);
    drop(engine);
    let (engine, chat) = with_chat(&world);
    engine.announce_start(None);
    until(|| chat.received() == ["It is 42."]).await;
    all_reported(&world, 1).await;
    assert_eq!(records(&world)[0]["outcome"], json!({"status": "ok"}));
}

#[tokio::test]
async fn what_could_not_be_reported_before_the_end_is_reported_by_the_next_engine() {
    let world = World::new().await;
    let gate = Gate::new();
    let (engine, chat) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it."}))]),
            ("accepted", vec![says("Started.")]),
            ("[Subagent Task]", vec![ServerReply::events().gated(&gate, answer("m2", "42"))]),
            ("has finished its task", vec![says("It is 42.")]),
        ],
    );
    send(&engine, "Research it.").await;
    until(|| world.server.requests().len() == 3).await;
    let ending = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        gate.open_times(100);
    };
    let (has_ended, ()) = within(async { tokio::join!(engine.drain(Duration::from_secs(30)), ending) }).await;
    let record = records(&world).remove(0);
    assert!(has_ended && record["endedAt"].is_i64() && !has_reported(&record), "{record}");
    assert!(chat.received().is_empty());
    drop(engine);
    let (engine, chat) = with_chat(&world);
    engine.announce_start(None);
    until(|| chat.received() == ["It is 42."]).await;
    // The sub-agent itself did not run again.
    assert_eq!(world.server.requests().len(), 4);
}

#[tokio::test]
async fn a_report_that_is_interrupted_is_read_again_after_a_restart() {
    let world = World::new().await;
    let gate = Gate::new();
    let (engine, _) = with_chat(&world);
    let interrupted = ServerReply::events().gated(&gate, answer("m3", "It is, I think,"));
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it."}))]),
            ("accepted", vec![says("Started.")]),
            ("[Subagent Task]", vec![says("42")]),
            ("has finished its task", vec![interrupted, says("It is 42.")]),
        ],
    );
    send(&engine, "Research it.").await;
    until(|| world.server.requests().len() == 4).await;
    within(engine.shutdown(Duration::ZERO)).await;
    drop(engine);
    assert!(!has_reported(&records(&world)[0]));
    let (engine, chat) = with_chat(&world);
    engine.announce_start(None);
    until(|| chat.received() == ["It is 42."]).await;
    all_reported(&world, 1).await;
}

#[tokio::test]
async fn a_sub_agent_that_takes_too_long_is_reported_as_such() {
    let world = World::new().await;
    let gate = Gate::new();
    let (engine, chat) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it.", "timeoutSeconds": 1}))]),
            ("accepted", vec![says("Started.")]),
            ("[Subagent Task]", vec![ServerReply::events().gated(&gate, answer("m2", "42"))]),
            ("has reached its time limit", vec![says("Nothing was found in time.")]),
        ],
    );
    send(&engine, "Research it.").await;
    until(|| chat.received() == ["Nothing was found in time."]).await;
    all_reported(&world, 1).await;
    assert_eq!(records(&world)[0]["outcome"], json!({"status": "timeout"}));
}

#[tokio::test]
async fn nested_sub_agents_report_to_their_parent_before_it_reports() {
    let subagents = json!({"maxSpawnDepth": 2, "model": format!("anthropic/{}", crate::world::MODEL)});
    let world = World::with(|config| config["agents"]["defaults"]["subagents"] = subagents).await;
    let gate = Gate::new();
    let (engine, chat) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Outer.", "label": "outer"}))]),
            ("[Subagent Task] Outer", vec![spawning("c2", json!({"task": "Inner.", "label": "inner"}))]),
            ("[Subagent Task] Inner", vec![ServerReply::events().gated(&gate, answer("m2", "42"))]),
            ("accepted", vec![says("Started."), says("Started.")]),
            ("\\\\\\\"inner\\\\\\\" has finished", vec![says("The inner one says 42.")]),
            ("inner\\\" has finished", vec![says("The inner one says 42.")]),
            ("outer\\\" has finished", vec![says("It is 42.")]),
        ],
    );
    send(&engine, "Research it.").await;
    // The outer one has ended and waits for the inner one.
    until(|| records(&world).iter().any(|record| record["endedAt"].is_i64())).await;
    assert!(chat.received().is_empty());
    gate.open_times(100);
    until(|| chat.received() == ["It is 42."]).await;
    all_reported(&world, 2).await;
    let requests = world.server.requests();
    let report = requests.iter().map(asked).find(|text| text.contains("outer\\\" has finished")).unwrap();
    assert!(report.contains("The inner one says 42."), "{report}");
    let nested = |name: &str| requests.iter().find(|request| asked(request).contains(name)).map(tools_of).unwrap();
    assert_eq!(nested("[Subagent Task] Outer"), ["read", "sessions_spawn", "subagents"]);
    assert_eq!(nested("[Subagent Task] Inner"), ["read", "subagents"]);
    assert!(tool_result(&world, "modelApplied").contains("true"));
}

#[tokio::test]
async fn a_report_that_fails_is_tried_again() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["runRetries"] = json!({"base": 1, "perProfile": 0, "min": 1, "max": 1});
    })
    .await;
    let (engine, chat) = with_chat(&world);
    let refused = || refusal(400, "invalid_request_error", "something is wrong");
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it.", "cleanup": "delete"}))]),
            ("accepted", vec![says("Started.")]),
            ("[Subagent Task]", vec![says("42")]),
            ("has finished its task", vec![refused(), says("It is 42.")]),
        ],
    );
    send(&engine, "Research it.").await;
    until(|| chat.received() == ["It is 42."]).await;
    all_reported(&world, 1).await;
    let record = records(&world).remove(0);
    assert_eq!(record["announceRetryCount"], 1);
    let key = record["childSessionKey"].as_str().unwrap();
    assert!(!engine.sessions("main").await.unwrap().contains_key(key));
}

#[tokio::test]
async fn what_is_not_allowed_is_refused_with_the_reason() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["subagents"] = json!({"maxChildrenPerAgent": 1});
        config["agents"]["defaults"]["modelPolicy"] = json!({"allow": [format!("anthropic/{}", crate::world::MODEL)]});
    })
    .await;
    let gate = Gate::new();
    let (engine, _) = with_chat(&world);
    Script::install(
        &world,
        vec![
            (
                "Begin",
                vec![
                    spawning("c1", json!({"task": " "})),
                    spawning("c2", json!({"task": "x", "agentId": "ops"})),
                    spawning("c3", json!({"task": "x", "thinking": "much"})),
                    spawning("c4", json!({"task": "x", "model": "local/small"})),
                    spawning("c5", json!({"task": "x"})),
                ],
            ),
            ("tool_result", (0..5).map(|_| says("Done.")).collect()),
            ("[Subagent Task]", vec![ServerReply::events().gated(&gate, answer("m2", "42"))]),
        ],
    );
    for _ in 0..5 {
        send(&engine, "Begin.").await;
    }
    for (text, reason) in [
        ("task is missing", "error"),
        ("may not start the agent ops", "forbidden"),
        ("invalid thinking level", "error"),
        ("the model local/small is not used", "accepted"),
        ("1 active sub-agents of 1", "forbidden"),
    ] {
        let result = tool_result(&world, text);
        assert!(result.contains(reason), "{result}");
    }
    assert_eq!(records(&world).len(), 1);
    within(engine.shutdown(Duration::ZERO)).await;
}

#[tokio::test]
async fn a_sub_agent_has_the_limits_of_its_requester() {
    let world = World::new().await;
    let (engine, _) = with_chat(&world);
    Script::install(
        &world,
        vec![
            (
                "Research it",
                vec![spawning("c1", json!({"task": "Find it.", "thinking": "off", "runTimeoutSeconds": 7}))],
            ),
            ("tool_result", vec![says("Done.")]),
            ("[Subagent Task]", vec![says("42")]),
            ("has finished", vec![says("NO_REPLY")]),
        ],
    );
    let request = turn(&engine, "Research it.").await.permission_mode(PermissionMode::ReadOnly);
    let request = request.workspace_dir(world.path("project"));
    within(engine.run(request).finish()).await.unwrap();
    all_reported(&world, 1).await;
    let record = records(&world).remove(0);
    assert_eq!(record["runTimeoutSeconds"], 7);
    // The sub-agent and the report work where the requester did.
    let requests = world.server.requests();
    let dirs = requests.iter().filter(|request| system(request).contains("Your working directory is"));
    let of_request = world.path("project").display().to_string();
    assert!(dirs.clone().all(|request| system(request).contains(&of_request)) && dirs.count() == 4);
    let key = record["childSessionKey"].as_str().unwrap();
    let entry = engine.sessions("main").await.unwrap().remove(key).unwrap();
    assert_eq!((&entry.extra["permissionMode"], entry.thinking_level.as_deref()), (&json!("read-only"), Some("off")));
}

#[tokio::test]
async fn only_sessions_with_a_key_have_the_tools_and_a_policy_removes_them() {
    let world = World::new().await;
    let engine = world.built(with_subagents);
    let mut document = world.document();
    document["tools"] = json!({"deny": ["sessions_spawn"]});
    let denied = with_subagents(world.configured(&document)).build();
    for (engine, key, expect) in [
        (&engine, Some(KEY), &["read", "sessions_spawn", "subagents"][..]),
        (&engine, None, &["read"]),
        (&engine, Some("agent:main:subagent:x"), &["read", "subagents"]),
        (&denied, Some(KEY), &["read", "subagents"]),
    ] {
        world.server.reply(says("Hello."));
        within(engine.run(engine.request("s1", key, None, "hello")).finish()).await.unwrap();
        assert_eq!(tools_of(world.server.requests().last().unwrap()), expect, "{key:?}");
    }
}

#[tokio::test]
async fn old_sub_agents_are_removed_with_their_sessions() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["subagents"] = json!({"archiveAfterMinutes": 0.001});
    })
    .await;
    let (engine, _) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it."}))]),
            ("tool_result", vec![says("Done.")]),
            ("[Subagent Task]", vec![says("42")]),
            ("has finished", vec![says("NO_REPLY")]),
        ],
    );
    send(&engine, "Research it.").await;
    all_reported(&world, 1).await;
    let key = records(&world)[0]["childSessionKey"].as_str().unwrap().to_owned();
    let session = engine.sessions("main").await.unwrap().remove(key.as_str()).unwrap().session_id;
    assert!(world.session_file(&session).exists());
    within(engine.shutdown(Duration::from_secs(5))).await;
    drop(engine);
    tokio::time::sleep(Duration::from_millis(70)).await;
    let (engine, _) = with_chat(&world);
    engine.announce_start(None);
    until(|| records(&world).is_empty()).await;
    assert!(!world.session_file(&session).exists());
    assert!(!engine.sessions("main").await.unwrap().contains_key(key.as_str()));
}

#[tokio::test]
async fn a_run_can_wait_for_its_sub_agents() {
    let world = World::new().await;
    let gate = Gate::new();
    let (engine, chat) = with_chat(&world);
    let waits = |id: &str, seconds: u64| {
        stream(call(id, "subagents", &json!({"action": "wait", "target": "all", "timeoutSeconds": seconds})))
    };
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it."}))]),
            ("accepted", vec![waits("c2", 0)]),
            ("have not ended", vec![waits("c3", 60)]),
            ("All of them have ended", vec![says("It is 42.")]),
            ("[Subagent Task]", vec![ServerReply::events().gated(&gate, answer("m2", "42"))]),
            ("has finished", vec![says("NO_REPLY")]),
        ],
    );
    let request = turn(&engine, "Research it.").await;
    let running = engine.run(request).finish();
    let releasing = async {
        until(|| world.server.requests().iter().any(|request| asked(request).contains("have not ended"))).await;
        gate.open_times(100);
    };
    let (result, ()) = within(async { tokio::join!(running, releasing) }).await;
    assert_eq!(result.unwrap().payloads.last().unwrap().reply.text, "It is 42.");
    assert!(tool_result(&world, "All of them have ended").contains("done"));
    all_reported(&world, 1).await;
    assert!(chat.received().is_empty());
}

#[tokio::test]
async fn sub_agents_end_with_the_engine() {
    let world = World::new().await;
    let gate = Gate::new();
    let (engine, _) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it."}))]),
            ("accepted", vec![says("Started.")]),
            ("[Subagent Task]", (0..2).map(|_| ServerReply::events().gated(&gate, answer("m2", "42"))).collect()),
        ],
    );
    send(&engine, "Research it.").await;
    until(|| world.server.requests().len() == 3).await;
    drop(engine);
    // The file of the sub-agents is free once nothing uses it.
    let (next, _) = with_chat(&world);
    next.announce_start(None);
    until(|| world.server.requests().len() == 4).await;
    within(next.shutdown(Duration::ZERO)).await;
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[tokio::test]
async fn nobody_leaves_a_sandbox_through_a_sub_agent() {
    use pinch_sandbox::contract::Sandbox as _;

    if pinch_sandbox::landlock::LandlockSandbox.probe().await.is_err() {
        return;
    }
    let world = World::with(|config| {
        let agents = &mut config["agents"];
        agents["defaults"]["sandbox"] = json!({"mode": "off", "backend": "landlock"});
        agents["list"] = json!([
            {"id": "main", "sandbox": {"mode": "all"}, "subagents": {"allowAgents": ["ops"]}},
            {"id": "ops", "sandbox": {"mode": "off"}},
        ]);
    })
    .await;
    let (engine, _) = with_chat(&world);
    Script::install(
        &world,
        vec![
            ("Research it", vec![spawning("c1", json!({"task": "Find it.", "agentId": "ops"}))]),
            ("tool_result", vec![says("Done.")]),
            ("[Subagent Task]", vec![says("42")]),
            ("has finished", vec![says("NO_REPLY")]),
        ],
    );
    send(&engine, "Research it.").await;
    all_reported(&world, 1).await;
    let record = records(&world).remove(0);
    assert!(record["childSessionKey"].as_str().unwrap().starts_with("agent:ops:subagent:"));
    assert_eq!((&record["requiresSandbox"], &record["outcome"]), (&json!(true), &json!({"status": "ok"})));
    let requests = world.server.requests();
    let child = requests.iter().find(|request| asked(request).contains("[Subagent Task]")).unwrap();
    assert!(system(child).contains("Tools execute in: landlock"), "{}", system(child));
}
