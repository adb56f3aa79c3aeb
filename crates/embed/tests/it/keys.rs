//! Configuration keys, each set and shown to have its effect. More complex ones have tests elsewhere.

use std::time::Duration;

use pinch_embed::replies::tool_notes::Verbose;
use pinch_embed::run::RunError;
use serde_json::{Value, json};

use crate::world::{FALLBACK, MODEL, World, answer, fallback_answer, refusal, stream, within};

/// Runs an agent and returns the model of the only request.
async fn asked_model(world: &World, agent: Option<&str>) -> Value {
    world.server.answer_with(|request| {
        let is_local = request.path.starts_with("/v1/chat");
        Some(stream(if is_local { fallback_answer("Yes.") } else { answer("m1", "Yes.") }))
    });
    let n_before = world.server.requests().len();
    let request = world.engine.request("session", None, agent, "hello");
    within(world.engine.run(request).finish()).await.unwrap();
    let requests = world.server.requests();
    assert_eq!(requests.len(), n_before + 1);
    requests[n_before].json()["model"].clone()
}

#[tokio::test]
async fn an_alias_names_a_model() {
    let world = World::with(|config| {
        let models = json!({FALLBACK: {"alias": "Quick"}, format!("anthropic/{MODEL}"): {}});
        config["agents"]["defaults"]["models"] = models;
        config["agents"]["defaults"]["model"] = json!("quick");
    })
    .await;
    assert_eq!(asked_model(&world, None).await, "small");
}

#[tokio::test]
async fn an_agent_has_its_own_model_and_fallbacks() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
        let strict = json!({"id": "strict", "model": {"fallbacks": []}});
        config["agents"]["list"] = json!([{"id": "main"}, {"id": "ops", "model": FALLBACK}, strict]);
    })
    .await;
    assert_eq!(asked_model(&world, Some("ops")).await, "small");
    assert_eq!(asked_model(&world, Some("main")).await, MODEL);
    world.server.answer_with(|_| Some(refusal(404, "not_found_error", "model: gone")));
    let request = world.engine.request("other", None, Some("strict"), "hello");
    let error = within(world.engine.run(request).finish()).await.unwrap_err();
    assert!(!error.to_string().contains("local/small"), "{error}");
}

#[tokio::test]
async fn the_default_agent_and_its_workspace_are_used_if_none_is_named() {
    let world = World::with(|config| {
        config["agents"]["list"] = json!([{"id": "main"}, {"id": "ops", "default": true, "workspace": "~/ops-files"}]);
    })
    .await;
    asked_model(&world, None).await;
    assert!(world.path("ops-files").is_dir() && !world.path("workspace").exists());
    assert!(world.path("state/agents/ops/sessions/session.jsonl").is_file());
}

#[tokio::test]
async fn the_configured_time_limit_applies_to_requests() {
    let world = World::with(|config| config["agents"]["defaults"]["timeoutSeconds"] = json!(7)).await;
    assert_eq!(world.engine.request("s1", None, None, "x").timeout, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn the_context_window_can_be_capped() {
    let world = World::with(|config| config["agents"]["defaults"]["contextTokens"] = json!(9_000)).await;
    let error = world.ask("s1", "hello").await.unwrap_err().to_string();
    assert!(error.contains("9000") && world.keys().is_empty(), "{error}");
}

#[tokio::test]
async fn the_source_of_the_context_window_is_reported() {
    for (cap, of_local, model, expect) in [
        (Value::Null, 100_000, "claude-sonnet-4-5", "model"),
        (json!(50_000), 100_000, "claude-sonnet-4-5", "agentContextTokens"),
        (Value::Null, 100_000, "small", "modelsConfig"),
        (json!(50_000), 40_000, "small", "modelsConfig"),
    ] {
        let world = World::with(|config| {
            if cap.is_number() {
                config["agents"]["defaults"]["contextTokens"] = cap.clone();
            }
            config["models"]["providers"]["local"]["models"][0]["contextWindow"] = json!(of_local);
        })
        .await;
        world.server.answer_with(|request| {
            let is_local = request.path.starts_with("/v1/chat");
            Some(stream(if is_local { fallback_answer("Yes.") } else { answer("m1", "Yes.") }))
        });
        let provider = if model == "small" { "local" } else { "anthropic" };
        let request = world.request("s1", "hello").model(provider, model);
        let meta = within(world.engine.run(request).finish()).await.unwrap().into_json()["meta"]["agentMeta"].take();
        assert_eq!(meta["contextTokensSource"], expect, "{cap} {model}: {meta}");
    }
}

#[tokio::test]
async fn the_verbose_level_of_requests_is_configured() {
    for (configured, expect) in [(Value::Null, Verbose::Off), (json!("full"), Verbose::Full)] {
        let world = World::with(|config| {
            if configured.is_string() {
                config["agents"]["defaults"]["verboseDefault"] = configured.clone();
            }
        })
        .await;
        assert_eq!(world.engine.request("s1", None, None, "x").verbose_level, expect);
    }
}

#[tokio::test]
async fn a_runtime_is_chosen_for_all_agents_and_for_one() {
    for (place, runtime) in [("/agents/defaults", "theirs"), ("/agents/list/0", "own")] {
        let world = World::with(|config| {
            config["agents"]["list"] = json!([{"id": "main"}]);
            config.pointer_mut(place).unwrap()["runtime"] = runtime.into();
        })
        .await;
        let error = world.ask("s1", "hello").await.unwrap_err();
        assert!(matches!(&error, RunError::Config(text) if text.contains(&format!("unknown runtime \"{runtime}\""))));
    }
}

#[tokio::test]
async fn profiles_are_tried_in_order_and_cool_down_as_configured() {
    let world = World::with(|config| {
        config["auth"]["order"] = json!({"Anthropic": ["second", "first"]});
        let cooldowns = json!({"series": [1234], "billingBackoffHours": 2, "billingMaxHours": 3});
        config["auth"]["cooldowns"] = cooldowns;
    })
    .await;
    world.server.reply(refusal(429, "rate_limit_error", "slow down"));
    world.server.reply(refusal(402, "billing_error", "Your credit balance is too low"));
    world.ask("s1", "hello").await.unwrap_err();
    assert_eq!(world.keys(), ["key-2", "key-1"]);
    world.engine.drain(Duration::from_secs(1)).await;
    let health = world.health();
    let rest = |id: &str, until: &str| {
        health[id][until].as_i64().zip(health[id]["lastFailureAt"].as_i64()).map(|(until, from)| until - from)
    };
    assert_eq!(rest("second", "cooldownUntil"), Some(1234), "{health}");
    assert_eq!(rest("first", "disabledUntil"), Some(2 * 3_600_000), "{health}");
}

#[tokio::test]
async fn a_specific_level_undoes_the_fast_mode_and_the_betas_of_a_general_one() {
    let with = async |of_agent: Value| {
        World::with(|config| {
            let provider = &mut config["models"]["providers"]["local"];
            provider["api"] = json!("openai-responses");
            let params = json!({"fastMode": true, "anthropicBeta": ["general"], "context1m": true});
            config["agents"]["defaults"]["params"] = params;
            config["agents"]["list"] = json!([{"id": "main", "params": of_agent}]);
        })
        .await
    };
    let sent = async |of_agent: Value, provider: &str, model: &str| {
        let world = with(of_agent).await;
        world.server.answer_with(|_| Some(refusal(400, "invalid_request_error", "no")));
        let request = world.request("s1", "hello").model(provider, model);
        drop(within(world.engine.run(request).finish()).await);
        world.server.requests().swap_remove(0)
    };
    for (of_agent, tier) in [
        (json!({}), json!("priority")),
        (json!({"fastMode": false}), Value::Null),
        (json!({"serviceTier": "flex"}), json!("flex")),
    ] {
        assert_eq!(sent(of_agent.clone(), "local", "small").await.json()["service_tier"], tier, "{of_agent}");
    }
    for (of_agent, has, lacks) in [
        (json!({}), vec!["general", "context-1m"], vec![]),
        (json!({"anthropicBeta": "own"}), vec!["own", "context-1m"], vec!["general"]),
        (json!({"context1m": false}), vec!["general"], vec!["context-1m"]),
    ] {
        let request = sent(of_agent.clone(), "anthropic", MODEL).await;
        let betas = request.header("anthropic-beta").unwrap_or_default();
        assert!(has.iter().all(|beta| betas.contains(beta)), "{of_agent}: {betas}");
        assert!(!lacks.iter().any(|beta: &&str| betas.contains(beta)), "{of_agent}: {betas}");
    }
}
