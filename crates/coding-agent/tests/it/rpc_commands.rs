//! Every command of RPC mode, both idle and during a run: it takes effect, and only commands that need exclusive access end the run.

use std::sync::Arc;

use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::auth::AuthStorage;
use pinch_coding_agent::models::ModelRegistry;
use pinch_coding_agent::protocol::command::{
    ClientLine, ControlCommand, ExclusiveCommand, Mutation, QueryCommand, RpcCommand, RunCommand, parse,
};
use pinch_coding_agent::runtime::SessionTarget;
use pinch_coding_agent::settings::SettingsManager;
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::ScriptedReply;
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::rpc::{RpcTestClient, gated};

/// The commands with their members. The match is exhaustive, so a new command without a line here does not compile.
macro_rules! commands {
    ($($pattern:pat => $name:literal $members:tt,)*) => {
        fn name_of(command: &RpcCommand) -> &'static str {
            match command {
                $($pattern => $name,)*
            }
        }

        fn lines() -> Vec<Value> {
            vec![$({
                let mut line = json!($members);
                line["type"] = $name.into();
                line
            }),*]
        }
    };
}

commands! {
    RpcCommand::Control(ControlCommand::Hello(_)) => "hello" {},
    RpcCommand::Control(ControlCommand::GetCommands) => "get_commands" {},
    RpcCommand::Control(ControlCommand::GetAvailableModels) => "get_available_models" {},
    RpcCommand::Control(ControlCommand::SetQueueMode { kind: QueueKind::Steering, .. }) => "set_steering_mode" {"mode": "all"},
    RpcCommand::Control(ControlCommand::SetQueueMode { kind: QueueKind::FollowUp, .. }) => "set_follow_up_mode" {"mode": "all"},
    RpcCommand::Control(ControlCommand::SetAutoCompaction { .. }) => "set_auto_compaction" {"enabled": false},
    RpcCommand::Control(ControlCommand::SetAutoRetry { .. }) => "set_auto_retry" {"enabled": false},
    RpcCommand::Query(QueryCommand::GetState) => "get_state" {},
    RpcCommand::Query(QueryCommand::GetMessages) => "get_messages" {},
    RpcCommand::Query(QueryCommand::GetEntries { .. }) => "get_entries" {},
    RpcCommand::Query(QueryCommand::GetTree) => "get_tree" {},
    RpcCommand::Query(QueryCommand::GetForkMessages) => "get_fork_messages" {},
    RpcCommand::Query(QueryCommand::GetLastAssistantText) => "get_last_assistant_text" {},
    RpcCommand::Query(QueryCommand::GetSessionStats) => "get_session_stats" {},
    RpcCommand::Query(QueryCommand::GetAvailableThinkingLevels) => "get_available_thinking_levels" {},
    RpcCommand::ExportHtml { .. } => "export_html" {"outputPath": "page.html"},
    RpcCommand::Run(RunCommand::Prompt { .. }) => "prompt" {"message": "more", "streamingBehavior": "followUp"},
    RpcCommand::Run(RunCommand::Steer(_)) => "steer" {"message": "more"},
    RpcCommand::Run(RunCommand::FollowUp(_)) => "follow_up" {"message": "more"},
    RpcCommand::Run(RunCommand::ClearQueue) => "clear_queue" {},
    RpcCommand::Run(RunCommand::Abort) => "abort" {},
    RpcCommand::Run(RunCommand::AbortRetry) => "abort_retry" {},
    RpcCommand::Run(RunCommand::Bash { .. }) => "bash" {"command": "echo out"},
    RpcCommand::Run(RunCommand::AbortBash) => "abort_bash" {},
    RpcCommand::Mutation(Mutation::SetModel { .. }) => "set_model" {"provider": "p", "modelId": "b"},
    RpcCommand::Mutation(Mutation::CycleModel) => "cycle_model" {},
    RpcCommand::Mutation(Mutation::SetThinkingLevel { .. }) => "set_thinking_level" {"level": "high"},
    RpcCommand::Mutation(Mutation::CycleThinkingLevel) => "cycle_thinking_level" {},
    RpcCommand::Mutation(Mutation::SetSessionName { .. }) => "set_session_name" {"name": "tidy"},
    RpcCommand::Exclusive(ExclusiveCommand::Compact { .. }) => "compact" {},
    RpcCommand::Exclusive(ExclusiveCommand::NewSession { .. }) => "new_session" {},
    RpcCommand::Exclusive(ExclusiveCommand::SwitchSession { .. }) => "switch_session" {"sessionPath": "other.jsonl"},
    RpcCommand::Exclusive(ExclusiveCommand::Fork { .. }) => "fork" {"entryId": "filled in below"},
    RpcCommand::Exclusive(ExclusiveCommand::Clone) => "clone" {},
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// A session with one answered prompt and, if it should be busy, a second one that is answered when the sender fires.
struct RpcScene {
    client: RpcTestClient,
    settings: SettingsManager,
    busy: Option<oneshot::Sender<()>>,
}

impl RpcScene {
    async fn new(is_busy: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let header = json!({"type": "session", "version": 3, "id": "other", "timestamp": "2025-06-01T10:00:00.000Z", "cwd": folder.path()});
        std::fs::write(folder.path().join("other.jsonl"), format!("{header}\n")).unwrap();
        let model = |id: &str| {
            let record = json!({"id": id, "provider": "p", "api": "scripted", "reasoning": true, "contextWindow": 100_000, "maxTokens": 100});
            Arc::new(Model::from_record(&record).unwrap())
        };
        let settings =
            object(json!({"compaction": {"keepRecentTokens": 1}, "defaultProvider": "p", "defaultModel": "a"}));
        let settings = SettingsManager::in_memory(settings, Map::new(), &Host::builder().build());
        let given = settings.clone();
        let mut client =
            RpcTestClient::adjusted(folder, [ScriptedReply::text("one")], SessionTarget::New, move |options| {
                options.services.models = Some(ModelRegistry::of_models([model("a"), model("b")]));
                options.services.auth =
                    Some(AuthStorage::in_memory(object(json!({"p": {"type": "api_key", "key": "k"}}))));
                options.services.settings = Some(given);
            });
        client.ask(json!({"id": "first", "type": "prompt", "message": "first"})).await;
        client.event("agent_settled").await;
        let busy = is_busy.then(|| gated(&client.model, "two"));
        if is_busy {
            client.ask(json!({"id": "second", "type": "prompt", "message": "second"})).await;
            client.until(|line| line["type"] == "message_end" && line["message"]["role"] == "user").await;
        }
        client.received.clear();
        Self { client, settings, busy }
    }

    async fn ask(&mut self, line: Value) -> Value {
        let name = line["type"].clone();
        let mut line = line;
        line["id"] = name.clone();
        let answer = self.client.ask(line).await;
        assert_eq!((&answer["command"], &answer["success"]), (&name, &json!(true)), "{answer}");
        answer["data"].clone()
    }

    async fn state(&mut self, member: &str) -> Value {
        self.client.ask(json!({"id": "state", "type": "get_state"})).await["data"][member].clone()
    }

    fn has_aborted_run(&self) -> bool {
        self.client.received.iter().any(|line| line["type"] == "agent_settled" && line["aborted"] == true)
    }
}

/// Sends a command and checks its effect.
async fn check(mut line: Value, is_busy: bool) {
    let mut scene = RpcScene::new(is_busy).await;
    let name = line["type"].as_str().unwrap().to_owned();
    let Ok(ClientLine::Command(request)) = parse(line.to_string().as_bytes()) else { panic!("{name}") };
    assert_eq!(name_of(&request.command), name);
    let id_before = scene.state("sessionId").await;
    let level_before = scene.state("thinkingLevel").await;
    match name.as_str() {
        "clear_queue" => drop(scene.ask(json!({"type": "steer", "message": "waiting"})).await),
        "abort_bash" => scene.client.say(json!({"id": "slow", "type": "bash", "command": "sleep 60"})).await,
        "compact" => scene.client.model.push(ScriptedReply::text("summary")),
        "prompt" if !is_busy => scene.client.model.push(ScriptedReply::text("two")),
        "fork" => {
            line["entryId"] = scene.ask(json!({"type": "get_fork_messages"})).await["messages"][0]["entryId"].clone()
        }
        _ => {}
    }
    if name == "compact" && is_busy {
        // The cancelled run has consumed the gated answer.
        assert!(scene.busy.is_some());
    }
    let data = scene.ask(line).await;
    let is_exclusive = matches!(request.command, RpcCommand::Exclusive(_));
    let ends_run = is_exclusive || name == "abort";
    match name.as_str() {
        "hello" => assert_eq!(data["protocolVersion"], 1),
        "get_commands" => assert_eq!(data["commands"], json!([])),
        "get_available_models" => {
            let ids: Vec<&Value> = data["models"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
            assert_eq!(ids, ["a", "b"]);
        }
        "set_steering_mode" => assert_eq!(scene.state("steeringMode").await, "all"),
        "set_follow_up_mode" => assert_eq!(scene.state("followUpMode").await, "all"),
        "set_auto_compaction" => {
            assert_eq!(scene.state("autoCompactionEnabled").await, false);
            assert_eq!(scene.settings.value("compaction.enabled"), Some(json!(false)));
        }
        "set_auto_retry" => assert_eq!(scene.settings.value("retry.enabled"), Some(json!(false))),
        "get_state" => assert_eq!((&data["isStreaming"], &data["model"]["id"]), (&json!(is_busy), &json!("a"))),
        "get_messages" => assert!(data["messages"].to_string().contains("first"), "{data}"),
        "get_entries" => assert!(data["entries"].to_string().contains("first"), "{data}"),
        "get_tree" => assert!(data["tree"].to_string().contains("first"), "{data}"),
        "get_fork_messages" => assert_eq!(data["messages"][0]["text"], "first"),
        "get_last_assistant_text" => assert_eq!(data["text"], "one"),
        "get_session_stats" => assert_eq!(data["userMessages"], if is_busy { 2 } else { 1 }),
        "get_available_thinking_levels" => assert!(data["levels"].to_string().contains("high"), "{data}"),
        "export_html" => assert!(scene.client.folder.path().join(data["path"].as_str().unwrap()).is_file()),
        "prompt" if is_busy => {
            assert_eq!((&data["disposition"], scene.state("pendingMessageCount").await), (&json!("queued"), json!(1)))
        }
        "prompt" => {
            assert_eq!(data["disposition"], "started");
            scene.client.event("agent_settled").await;
            assert_eq!(scene.ask(json!({"type": "get_last_assistant_text"})).await["text"], "two");
        }
        "steer" | "follow_up" => {
            assert_eq!((&data["disposition"], scene.state("pendingMessageCount").await), (&json!("queued"), json!(1)));
        }
        "clear_queue" => {
            assert_eq!((&data["steering"], scene.state("pendingMessageCount").await), (&json!(["waiting"]), json!(0)));
        }
        "abort" | "abort_retry" => assert_eq!(data, Value::Null),
        "bash" => assert_eq!((&data["output"], &data["exitCode"]), (&json!("out\n"), &json!(0))),
        "abort_bash" => {
            let slow = scene.client.until(|line| line["type"] == "response" && line["id"] == "slow").await;
            assert_eq!(slow["data"]["cancelled"], true);
        }
        "set_model" | "cycle_model" => assert_eq!(scene.state("model").await["id"], "b"),
        "set_thinking_level" => assert_eq!(scene.state("thinkingLevel").await, "high"),
        "cycle_thinking_level" => {
            assert_ne!(data["level"], level_before);
            assert_eq!(scene.state("thinkingLevel").await, data["level"]);
        }
        "set_session_name" => assert_eq!(scene.state("sessionName").await, "tidy"),
        "compact" => {
            assert!(data["summary"].as_str().unwrap().contains("summary"), "{data}");
            assert_eq!(scene.state("sessionId").await, id_before);
        }
        "new_session" => {
            assert_ne!(scene.state("sessionId").await, id_before);
            assert_eq!(scene.state("messageCount").await, 0);
        }
        "switch_session" => assert_eq!(scene.state("sessionId").await, "other"),
        "fork" => {
            assert_eq!(data, json!({"text": "first", "cancelled": false}));
            assert_ne!(scene.state("sessionId").await, id_before);
        }
        "clone" => {
            assert_ne!(scene.state("sessionId").await, id_before);
            assert!(scene.ask(json!({"type": "get_messages"})).await.to_string().contains("first"));
        }
        name => panic!("the effect of {name} is not checked"),
    }
    assert_eq!(scene.has_aborted_run(), is_busy && ends_run, "{name}: whether the run was cancelled");
    assert_eq!(scene.state("isStreaming").await, is_busy && !ends_run, "{name}: whether the run goes on");
    drop(scene.busy);
    assert!(scene.client.leave().await.0.is_ok(), "{name}");
}

#[tokio::test]
async fn every_command_takes_effect_on_an_idle_session() {
    for line in lines() {
        check(line, false).await;
    }
}

#[tokio::test]
async fn every_command_takes_effect_during_a_run() {
    for line in lines() {
        check(line, true).await;
    }
}
