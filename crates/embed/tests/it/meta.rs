//! Metadata of results, besides their payloads.

use pinch_embed::run::FailureKind;
use pinch_embed::texts::TextTable;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::world::{FALLBACK, World, answer, call, fallback_answer, refusal, stream, within};

/// Returns the metadata of a run as JSON, without times.
async fn meta(world: &World) -> Value {
    let mut meta = world.ask("s1", "go").await.unwrap().into_json()["meta"].take();
    for attempt in meta["executionTrace"]["attempts"].as_array_mut().unwrap() {
        assert!(attempt["elapsedMs"].take().is_u64());
    }
    meta
}

#[tokio::test]
async fn the_trace_contains_the_outcome_of_each_attempt() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
    })
    .await;
    let refused = || refusal(401, "authentication_error", "invalid x-api-key");
    world.server.reply(refused()).reply(refused()).reply(stream(fallback_answer("Here.")));
    let meta = meta(&world).await;
    let failed = |result: &str| {
        json!({"provider": "anthropic", "model": "claude-sonnet-4-5", "result": result, "reason": "auth", "stage": "prompt",
            "elapsedMs": null, "status": 401})
    };
    assert_eq!(
        meta["executionTrace"],
        json!({
            "winnerProvider": "local", "winnerModel": "small",
            "attempts": [
                failed("rotate_profile"),
                failed("fallback_model"),
                {"provider": "local", "model": "small", "result": "success", "elapsedMs": null},
            ],
            "fallbackUsed": true,
            "runner": "embedded",
        })
    );
    let agent = &meta["agentMeta"];
    assert_eq!(agent["fallbackAttempts"][0]["reason"], "auth");
    let receipt = &agent["terminalReceipt"];
    assert_eq!(
        (&receipt["requested"], &receipt["effective"], &receipt["rerouted"]),
        (
            &json!({"provider": "anthropic", "model": "claude-sonnet-4-5"}),
            &json!({"provider": "local", "model": "small"}),
            &json!(true)
        )
    );
    assert_eq!((&meta["replayInvalid"], &meta["livenessState"]), (&json!(false), &json!("working")));
    assert_eq!(meta["completion"]["stopReason"], "stop");
}

#[tokio::test]
async fn an_attempt_without_an_answer_is_no_success() {
    let empty = || stream(AnthropicResponse::new("e").text(" ").stop("end_turn"));
    for (second, results, winner) in [
        (stream(answer("m", "Here.")), ["error", "success"], json!("anthropic")),
        (empty(), ["error", "surface_error"], Value::Null),
    ] {
        let world = World::new().await;
        world.server.reply(empty()).reply(second);
        let result = within(world.engine.run(world.request("s1", "go").require_reply()).finish()).await.unwrap();
        let trace = result.into_json()["meta"]["executionTrace"].take();
        let seen: Vec<&Value> = trace["attempts"].as_array().unwrap().iter().map(|one| &one["result"]).collect();
        assert_eq!(seen, results);
        assert_eq!(trace["winnerProvider"], winner);
    }
}

#[tokio::test]
async fn tools_are_summarised_and_make_a_replay_unsafe() {
    let world = World::new().await;
    world.server.reply(stream(call("c1", "bash", &json!({"command": "echo out"}))));
    world.server.reply(stream(call("c2", "read", &json!({"path": "missing.txt"}))));
    world.server.reply(stream(answer("m1", "Done.")));
    let meta = meta(&world).await;
    let summary = &meta["toolSummary"];
    assert_eq!(
        (&summary["calls"], &summary["tools"], &summary["failures"], &summary["unresolvedError"]),
        (&json!(2), &json!(["bash", "read"]), &json!(1), &json!({"toolName": "read"}))
    );
    assert_eq!(meta["agentMeta"]["terminalReceipt"]["successfulToolNames"], json!(["bash"]));
    assert_eq!((&meta["agentMeta"]["assistantTurns"], &meta["replayInvalid"]), (&json!(3), &json!(true)));
    let texts = ["finalPromptText", "finalAssistantVisibleText", "finalAssistantRawText"].map(|name| &meta[name]);
    assert_eq!(texts, ["go", "Done.", "Done."]);
    let budget = &meta["agentMeta"]["contextBudgetStatus"];
    assert_eq!(
        (&budget["route"], &budget["shouldCompact"], &budget["overflowTokens"]),
        (&json!("fits"), &json!(false), &json!(0))
    );
    assert!(meta["agentMeta"]["costUsd"].as_f64().is_some_and(|cost| cost > 0.0), "{meta}");
}

#[tokio::test]
async fn a_timeout_is_reported_and_pauses_the_conversation() {
    let world = World::with(|config| config["agents"]["defaults"]["timeoutSeconds"] = 1.into()).await;
    world.server.reply(pinch_testing::server::ServerReply::events().then(pinch_testing::server::Fault::Hang));
    let meta = meta(&world).await;
    let named = |name: &str| meta[name].clone();
    assert_eq!(
        ["timeoutPhase", "providerStarted", "modelFallbackStopReason", "livenessState", "replayInvalid"].map(named),
        [json!("provider"), json!(true), json!("agent_run_terminal_timeout"), json!("paused"), json!(true)]
    );
    assert_eq!(meta["error"]["kind"], "incomplete_turn");
}

#[tokio::test]
async fn a_provider_in_cooldown_is_reported_with_the_soonest_retry_time() {
    let world = World::with(|config| {
        config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
    })
    .await;
    let busy = refusal(429, "rate_limit_error", "Too many requests").header("retry-after", "600");
    world.server.reply(busy);
    let error = world.ask("s1", "go").await.unwrap_err();
    let text = error.text_for_user(&TextTable::default());
    assert_eq!(error.kind(), FailureKind::RateLimit);
    assert!(text.ends_with("Next try possible in 10 minutes."), "{text}");
    let error = world.ask("s2", "go").await.unwrap_err();
    assert_eq!(
        error.text_for_user(&TextTable::default()),
        "API temporarily unavailable: all 1 anthropic profiles are cooling down (rate_limit). Next try possible in 10 minutes."
    );
    assert_eq!(world.server.requests().len(), 1);
}
