//! Failover: the next model is used when one fails.

use pinch_embed::run::FailureKind;
use serde_json::{Value, json};

use crate::world::{FALLBACK, World, answer, attempts, call, fallback_answer, payload_texts, refusal, stream, within};

fn with_fallback(config: &mut Value) {
    config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
    config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
}

#[tokio::test]
async fn the_fallback_answers_when_the_first_model_cannot() {
    let rows = [
        (404, "not_found_error", "model: claude-sonnet-4-5", "model_not_found"),
        (401, "authentication_error", "invalid x-api-key", "auth"),
    ];
    for (status, kind, message, outcome) in rows {
        let world = World::with(with_fallback).await;
        world.server.reply(refusal(status, kind, message)).reply(stream(fallback_answer("I can.")));
        let result = world.ask("s1", "Who can?").await.unwrap();
        assert_eq!(payload_texts(&result), ["I can."]);
        let agent = &result.meta.agent;
        assert_eq!((agent.provider.as_str(), agent.model.as_str()), ("local", "small"));
        assert_eq!(
            attempts(&result),
            [format!("first anthropic/claude-sonnet-4-5 {outcome} failover"), "- local/small ok finish".to_owned()]
        );
        assert_eq!(world.keys(), ["key-1", "key-3"]);
        let requests = world.server.requests();
        assert!(requests[0].path.starts_with("/v1/messages"), "{}", requests[0].path);
        assert_eq!(requests[1].path, "/v1/chat/completions");
        // The prompt is sent to the second model once, and is in the file once.
        assert_eq!(requests[1].json()["messages"].to_string().matches("Who can?").count(), 1);
        let transcript = world.transcript("s1").messages();
        assert_eq!(transcript.iter().filter(|line| *line == "user: Who can?").count(), 1, "{transcript:?}");
        assert_eq!(transcript.last().map(String::as_str), Some("assistant(stop): I can."));
    }
}

#[tokio::test]
async fn a_configured_model_that_does_not_exist_is_skipped_and_a_requested_one_is_an_error() {
    let unknown = |config: &mut Value| {
        with_fallback(config);
        config["agents"]["defaults"]["model"]["primary"] = json!("nowhere/gone");
    };
    let world = World::with(unknown).await;
    world.server.reply(stream(fallback_answer("I can.")));
    let result = world.ask("s1", "Who can?").await.unwrap();
    assert_eq!(payload_texts(&result), ["I can."]);
    let agent = result.into_json()["meta"]["agentMeta"].take();
    let skipped = json!([{"provider": "nowhere", "model": "gone", "error": "Unknown model: nowhere/gone", "reason": "model_not_found",
        "code": null}]);
    assert_eq!(agent["fallbackAttempts"], skipped);
    assert_eq!(agent["terminalReceipt"]["requested"], json!({"provider": "nowhere", "model": "gone"}));
    let request = world.request("s2", "hello").model("nowhere", "gone");
    let error = within(world.engine.run(request).finish()).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.kind()), ("Unknown model: nowhere/gone", FailureKind::ModelNotFound));
    assert_eq!(world.server.requests().len(), 1);
}

#[tokio::test]
async fn the_next_run_begins_with_the_first_model_again() {
    let world = World::with(with_fallback).await;
    world.server.reply(refusal(404, "not_found_error", "model: claude-sonnet-4-5"));
    world.server.reply(stream(fallback_answer("I can.")));
    world.ask("s1", "Who can?").await.unwrap();
    world.server.reply(stream(answer("m1", "Now I can.")));
    let result = world.ask("s1", "And now?").await.unwrap();
    assert_eq!(payload_texts(&result), ["Now I can."]);
    assert_eq!(result.meta.agent.provider, "anthropic");
    // The other model's answer is part of the conversation.
    assert!(world.server.requests()[2].json()["messages"].to_string().contains("I can."));
}

#[tokio::test]
async fn when_all_models_fail_the_error_names_each_with_its_reason() {
    let world = World::with(with_fallback).await;
    world.server.reply(refusal(401, "authentication_error", "invalid x-api-key"));
    world.server.reply(refusal(401, "invalid_request_error", "Incorrect API key provided"));
    let error = world.ask("s1", "go").await.unwrap_err().to_string();
    for part in ["All models failed (2)", "anthropic/claude-sonnet-4-5", "local/small", "(auth)"] {
        assert!(error.contains(part), "{part} is missing in: {error}");
    }
    // The log says why; models never see it.
    let transcript = world.transcript("s1");
    let noted = transcript.of_type("custom").into_iter().filter(|entry| entry["customType"] == "openclaw:prompt-error");
    let noted: Vec<String> =
        noted.map(|entry| format!("{} {}", entry["data"]["provider"], entry["data"]["error"])).collect();
    assert_eq!(noted.len(), 2, "{noted:?}");
    assert!(noted[0].starts_with("\"anthropic\"") && noted[1].starts_with("\"local\""), "{noted:?}");
}

#[tokio::test]
async fn the_fallback_resumes_after_completed_tools() {
    let world = World::with(with_fallback).await;
    world.write("workspace/notes.md", "Buy milk.");
    world.server.reply(stream(call("r1", "read", &json!({"path": "notes.md"}))));
    world.server.reply(refusal(401, "authentication_error", "invalid x-api-key"));
    world.server.reply(stream(fallback_answer("Milk.")));
    let result = world.ask("s1", "What do I buy?").await.unwrap();
    assert_eq!(payload_texts(&result), ["One moment.", "Milk."]);
    // The tool ran once; its call and its result are in the other model's format.
    assert_eq!(result.meta.tools.iter().map(|tool| tool.calls).collect::<Vec<_>>(), [1]);
    let body = world.server.requests()[2].json();
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().skip(1).filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
    assert_eq!(body["messages"][2]["tool_calls"][0]["id"], body["messages"][3]["tool_call_id"]);
    assert!(body["messages"][3].to_string().contains("Buy milk."), "{body}");
    assert_eq!(world.transcript("s1").unpaired(), Vec::<String>::new());
}
