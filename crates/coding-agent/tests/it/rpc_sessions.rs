//! RPC mode: what is kept and what is selected again when a session is replaced, and the contents of results.

use pinch_coding_agent::runtime::SessionTarget;
use pinch_coding_agent::session::create::ModelChoice;
use pinch_llm::provider::scripted::ScriptedReply;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rpc::RpcTestClient;

/// Returns the client's current model and switches.
async fn current_state(client: &mut RpcTestClient) -> Value {
    let state = client.ask(json!({"id": "s", "type": "get_state"})).await["data"].clone();
    json!([state["model"]["id"], state["steeringMode"], state["followUpMode"], state["autoCompactionEnabled"]])
}

/// Creates settings that prefer `m1`, and two models.
fn two_models() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let agent = folder.path().join("agent");
    std::fs::create_dir(&agent).unwrap();
    let models = json!({"providers": {"local": {
        "baseUrl": "http://127.0.0.1:1", "api": "anthropic-messages", "apiKey": "none", "models": [{"id": "m1"}, {"id": "m2"}, {"id": "m3"}],
    }}});
    std::fs::write(agent.join("models.json"), models.to_string()).unwrap();
    let settings = json!({"defaultProvider": "local", "defaultModel": "m1", "retry": {"enabled": true, "maxRetries": 1, "baseDelayMs": 1}});
    std::fs::write(agent.join("settings.json"), settings.to_string()).unwrap();
    folder
}

#[tokio::test]
async fn switches_are_kept_and_the_model_is_selected_again_in_another_session() {
    let replies = || (0..3).map(|_| ScriptedReply::text("ok"));
    let mut client = RpcTestClient::choosing(ModelChoice::Default, two_models(), replies(), SessionTarget::New).await;
    client.ask(json!({"id": 1, "type": "set_model", "provider": "local", "modelId": "m2"})).await;
    client.ask(json!({"id": 2, "type": "set_auto_compaction", "enabled": false})).await;
    client.ask(json!({"id": 3, "type": "set_steering_mode", "mode": "all"})).await;
    client.ask(json!({"id": 4, "type": "set_follow_up_mode", "mode": "all"})).await;
    client.ask(json!({"id": 5, "type": "set_auto_retry", "enabled": false})).await;
    assert_eq!(current_state(&mut client).await, json!(["m2", "all", "all", false]));
    client.ask(json!({"id": 6, "type": "prompt", "message": "x"})).await;
    client.event("agent_settled").await;
    let file = client.ask(json!({"id": 7, "type": "get_state"})).await["data"]["sessionFile"].clone();
    client.ask(json!({"id": 8, "type": "clone"})).await;
    assert_eq!(current_state(&mut client).await, json!(["m2", "all", "all", false]));
    client.ask(json!({"id": 9, "type": "new_session"})).await;
    assert_eq!(current_state(&mut client).await, json!(["m1", "all", "all", false]));
    let switched = client.ask(json!({"id": 10, "type": "switch_session", "sessionPath": file})).await;
    assert_eq!(switched["data"]["cancelled"], false);
    assert_eq!(current_state(&mut client).await, json!(["m2", "all", "all", false]));
    let points = client.ask(json!({"id": 11, "type": "get_fork_messages"})).await["data"]["messages"].clone();
    let forked = client.ask(json!({"id": 12, "type": "fork", "entryId": points[0]["entryId"]})).await;
    assert_eq!(forked["data"], json!({"text": "x", "cancelled": false}), "{forked}");
    assert_eq!(current_state(&mut client).await, json!(["m2", "all", "all", false]));
    // Retries stay disabled.
    client.model.push(ScriptedReply::error("overloaded"));
    client.ask(json!({"id": 13, "type": "prompt", "message": "x"})).await;
    client.event("agent_settled").await;
    assert!(!client.received.iter().any(|line| line["type"] == "auto_retry_start"));
    let saved = std::fs::read_to_string(client.folder.path().join("agent/settings.json")).unwrap();
    assert!(saved.contains("\"m1\"") && !saved.contains("\"m2\""), "{saved}");
}

#[tokio::test]
async fn settings_that_cannot_be_written_are_an_error() {
    let mut client = RpcTestClient::choosing(ModelChoice::Default, two_models(), [], SessionTarget::InMemory).await;
    client.ask(json!({"id": 0, "type": "get_state"})).await;
    // A file cannot be created below a file.
    let agent = client.folder.path().join("agent");
    std::fs::remove_dir_all(&agent).unwrap();
    std::fs::write(&agent, "").unwrap();
    let answer = client.ask(json!({"id": 1, "type": "set_auto_retry", "enabled": false})).await;
    assert_eq!(answer["success"], false, "{answer}");
    assert!(answer["error"].as_str().unwrap().starts_with("set for this run only: "), "{answer}");
}

#[tokio::test]
async fn the_model_requested_for_a_run_is_used_by_all_its_sessions() {
    let named = ModelChoice::Named { provider: None, pattern: "local/m3".into() };
    let mut client =
        RpcTestClient::choosing(named, two_models(), [ScriptedReply::text("ok")], SessionTarget::New).await;
    client.ask(json!({"id": 1, "type": "prompt", "message": "x"})).await;
    client.event("agent_settled").await;
    let file = client.ask(json!({"id": 2, "type": "get_state"})).await["data"]["sessionFile"].clone();
    for command in [
        json!({"id": 4, "type": "clone"}),
        json!({"id": 4, "type": "switch_session", "sessionPath": file}),
        json!({"id": 4, "type": "new_session"}),
    ] {
        client.ask(json!({"id": 3, "type": "set_model", "provider": "local", "modelId": "m2"})).await;
        assert_eq!(current_state(&mut client).await[0], "m2");
        assert_eq!(client.ask(command).await["success"], true);
        assert_eq!(current_state(&mut client).await[0], "m3");
    }
}

#[tokio::test]
async fn the_result_of_a_command_is_also_available_as_data() {
    let arguments = json!({"command": "echo hi; exit 3"}).as_object().cloned().unwrap();
    let mut client =
        RpcTestClient::new([ScriptedReply::call("c1", "bash", arguments), ScriptedReply::text("done")]).await;
    client.ask(json!({"id": 1, "type": "prompt", "message": "x"})).await;
    let mut result = client.event("tool_execution_end").await["result"].take();
    assert!(result["structuredContent"]["wall_time_seconds"].take().is_number());
    let data = json!({"output": "hi\n", "truncated": false, "exit_code": 3, "wall_time_seconds": null});
    let text = json!({"type": "text", "text": "hi\n\n\nCommand exited with code 3"});
    assert_eq!(result, json!({"content": [text], "structuredContent": data, "isError": true}));
    client.event("agent_settled").await;
    assert!(client.leave().await.0.is_ok());
}

#[tokio::test]
async fn a_tool_error_has_no_structured_result() {
    let arguments = json!({"command": "sleep 60", "timeout": 0.1}).as_object().cloned().unwrap();
    let mut client =
        RpcTestClient::new([ScriptedReply::call("c1", "bash", arguments), ScriptedReply::text("done")]).await;
    client.ask(json!({"id": 1, "type": "prompt", "message": "x"})).await;
    let end = client.event("tool_execution_end").await;
    assert_eq!(end["isError"], true);
    let text = json!({"type": "text", "text": "Command timed out after 0.1 seconds"});
    assert_eq!(end["result"], json!({"content": [text], "details": {}}));
    client.event("agent_settled").await;
    assert!(client.leave().await.0.is_ok());
}
