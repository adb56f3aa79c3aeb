//! Configuration keys affect requests and runs, and those without effect are reported.

use std::path::Path;
use std::time::Duration;

use pinch_embed::config::Config;
use pinch_embed::run::RunError;
use serde_json::json;

use crate::world::{FALLBACK, MODEL, World, answer, fallback_answer, stream, within};

#[tokio::test]
async fn only_listed_models_are_used_unless_they_are_the_default_or_a_fallback() {
    let primary = format!("anthropic/{MODEL}");
    let listed = json!({primary: {}});
    let world = World::with(|config| config["agents"]["defaults"]["models"] = listed.clone()).await;
    let request = |world: &World| world.request("s1", "hello").model("local", "small");
    let refused = within(world.engine.run(request(&world)).finish()).await.unwrap_err();
    let expected =
        "model not allowed: local/small. Add it to agents.defaults.models, or remove that list to allow every model";
    assert!(matches!(&refused, RunError::Config(text) if text == expected), "{refused}");
    let world = World::with(|config| {
        config["agents"]["defaults"]["models"] = listed;
        config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
    })
    .await;
    world.server.reply(stream(fallback_answer("Yes.")));
    within(world.engine.run(request(&world)).finish()).await.unwrap();
}

#[tokio::test]
async fn block_streaming_and_thinking_of_an_agent_reach_its_requests() {
    let world = World::with(|config| {
        let defaults = &mut config["agents"]["defaults"];
        defaults["blockStreamingDefault"] = "on".into();
        defaults["blockStreamingBreak"] = "message_end".into();
        defaults["blockStreamingChunk"] = json!({"minChars": 10, "maxChars": 90});
        defaults["thinkingDefault"] = "low".into();
        config["agents"]["list"] = json!([{"id": "main"}, {"id": "ops", "thinkingDefault": "high"}]);
    })
    .await;
    let request = world.engine.request("s1", None, Some("ops"), "hello");
    assert_eq!(request.think_level.map(|level| level.as_str()), Some("high"));
    let blocks = request.block_replies.unwrap();
    assert_eq!(blocks.chunking.map(|chunking| (chunking.min_chars, chunking.max_chars)), Some((10, 90)));
    assert!(format!("{:?}", blocks.break_at).contains("MessageEnd"));
    let request = world.engine.request("s1", None, None, "hello");
    assert_eq!(request.think_level.map(|level| level.as_str()), Some("low"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_retries_of_its_own() {
    let attempts = |own: serde_json::Value| async move {
        let world = World::with(|config| {
            config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
            config["agents"]["list"] = json!([{"id": "main", "runRetries": own}]);
        })
        .await;
        for n in 0..3 {
            world.server.reply(crate::world::refusal(529, "overloaded_error", &format!("busy {n}")));
        }
        world.server.reply(stream(answer("m", "Yes.")));
        let run = world.engine.run(world.request("s1", "hello").timeout(Some(Duration::from_secs(600))));
        within(run.finish()).await.map(|result| (result.meta.attempts.len(), result.meta.error.is_some()))
    };
    let bounded = attempts(json!({"base": 1, "perProfile": 0, "min": 2, "max": 2})).await;
    let free = attempts(json!({"base": 10, "perProfile": 0, "min": 10, "max": 10})).await;
    assert_ne!(format!("{bounded:?}"), format!("{free:?}"));
}

#[test]
fn keys_without_effect_are_reported_at_the_highest_level() {
    let document = json!({
        "gateway": {"port": 1, "auth": {"token": "x"}},
        "agents": {
            "defaults": {"workspace": "w", "compaction": {"mode": "safeguard", "notifyUser": true}, "models": {}},
            "list": [{"id": "a", "identity": {"name": "A", "theme": "x"}}],
        },
        "session": {"reset": {"mode": "daily"}, "store": "x"},
        "messages": {"queue": {"mode": "collect"}, "ackReaction": "x"},
        "models": {"providers": {"p": {"baseUrl": "x", "headers": {"a": "b"}, "models": []}}},
        "tools": {"deny": ["exec"]},
    });
    let (config, problems) = Config::from_document(document.as_object().unwrap().clone(), Path::new("pinch.json"));
    assert_eq!(problems, []);
    assert_eq!(
        config.ignored,
        [
            "gateway",
            "agents.defaults.compaction.notifyUser",
            "agents.list[0].identity.theme",
            "session.store",
            "messages.ackReaction",
        ]
    );
}

#[tokio::test]
async fn model_parameters_are_sent() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["models"] = json!({
            format!("anthropic/{MODEL}"): {"params": {"top_k": 7, "maxTokens": 99, "cacheRetention": "long"}},
            FALLBACK: {"params": {
                "temperature": 0.5, "parallel_tool_calls": false, "extraBody": {"a": {"b": 1}},
            }},
        });
    })
    .await;
    world.server.reply(stream(answer("m1", "One."))).reply(stream(fallback_answer("Two.")));
    world.ask("s1", "hello").await.unwrap();
    within(world.engine.run(world.request("s2", "hello").model("local", "small")).finish()).await.unwrap();
    let bodies: Vec<serde_json::Value> = world.server.requests().iter().map(|request| request.json()).collect();
    assert_eq!((&bodies[0]["top_k"], &bodies[0]["max_tokens"]), (&json!(7), &json!(99)));
    assert!(bodies[0]["system"].to_string().contains("\"ttl\":\"1h\""), "{}", bodies[0]["system"]);
    let of_other = (&bodies[1]["temperature"], &bodies[1]["parallel_tool_calls"], &bodies[1]["a"]);
    assert_eq!(of_other, (&json!(0.5), &json!(false), &json!({"b": 1})));
    assert!(bodies[1].get("extraBody").is_none(), "{}", bodies[1]);
}

#[tokio::test]
async fn beta_features_of_a_model_are_requested() {
    let world = World::with(|config| {
        let params = json!({"context1m": true, "anthropicBeta": "one-2026, two-2026"});
        config["agents"]["defaults"]["models"] = json!({format!("anthropic/{MODEL}"): {"params": params}});
    })
    .await;
    world.server.reply(stream(answer("m1", "One.")));
    world.ask("s1", "hello").await.unwrap();
    let requests = world.server.requests();
    let betas: Vec<&str> = requests[0].header("anthropic-beta").unwrap().split(',').collect();
    for beta in ["one-2026", "two-2026", "context-1m-2025-08-07"] {
        assert_eq!(betas.iter().filter(|sent| **sent == beta).count(), 1, "{betas:?}");
    }
}

#[tokio::test]
async fn allowed_models_can_be_listed_separately_from_their_settings() {
    let world = World::with(|config| {
        config["agents"]["defaults"]["models"] = json!({FALLBACK: {"alias": "small"}});
        config["agents"]["defaults"]["modelPolicy"] = json!({"allow": ["anthropic/claude-haiku-4-5"]});
    })
    .await;
    let request = world.request("s1", "hello").model("local", "small");
    let refused = within(world.engine.run(request).finish()).await.unwrap_err().to_string();
    let list = "Add it to agents.defaults.modelPolicy.allow";
    assert!(refused.starts_with("model not allowed: local/small") && refused.contains(list), "{refused}");
    world.server.reply(stream(answer("m1", "Yes.")));
    let request = world.request("s1", "hello").model("anthropic", "claude-haiku-4-5");
    within(world.engine.run(request).finish()).await.unwrap();
}

#[tokio::test]
async fn providers_in_models_json_are_kept_unless_configured_otherwise() {
    for (mode, is_kept) in [("merge", true), ("replace", false)] {
        let world = World::with(|config| config["models"]["mode"] = mode.into()).await;
        let provider = json!({"baseUrl": format!("{}/v1", world.server.url()), "api": "openai-completions", "apiKey": "key-9",
            "models": [{"id": "m", "contextWindow": 100_000, "maxTokens": 4_000}]});
        let document = json!({"providers": {"mine": provider}});
        world.write("state/agents/main/agent/models.json", &document.to_string());
        let engine = world.restarted();
        world.server.reply(stream(fallback_answer("Yes.")));
        let request = engine.request("s1", None, None, "hello").model("mine", "m");
        let result = within(engine.run(request).finish()).await;
        assert_eq!(result.is_ok(), is_kept, "{mode}: {result:?}");
        if !is_kept {
            assert!(matches!(result, Err(RunError::UnknownModel { .. })));
        }
    }
}

#[tokio::test]
async fn provider_headers_are_sent_with_the_key_of_a_profile() {
    let world = World::with(|config| {
        config["models"]["providers"]["anthropic"]["headers"] = json!({"x-team": "blue"});
    })
    .await;
    world.server.reply(stream(answer("m1", "Yes.")));
    world.ask("s1", "hello").await.unwrap();
    assert_eq!(world.server.requests()[0].header("x-team"), Some("blue"));
    assert_eq!(world.keys(), ["key-1"]);
}

#[tokio::test]
async fn a_state_directory_may_contain_a_yaml_configuration() {
    let world = World::new().await;
    let yaml = serde_json::to_string_pretty(&world.document()).unwrap();
    // JSON is valid YAML; this comment makes it YAML only.
    world.write("state/openclaw.yml", &format!("# ours\n{yaml}\n"));
    world.write("state/openclaw.json", "");
    let host = pinch_stdx::host::Host::builder().home(world.path("")).build();
    std::fs::remove_file(world.path("state/openclaw.json")).unwrap();
    let engine = pinch_embed::Engine::builder(world.path("state")).host(host).build();
    world.server.reply(stream(answer("m1", "Yes.")));
    within(engine.run(engine.request("s1", None, None, "hello")).finish()).await.unwrap();
}

#[tokio::test]
async fn an_unreadable_configuration_prevents_every_run() {
    let world = World::new().await;
    world.write("state/pinch.json", "{tools: {$include: \"gone.json\"}}");
    let engine = pinch_embed::Engine::builder(world.path("state")).build();
    let error = within(engine.run(engine.request("s1", None, None, "hello")).finish()).await.unwrap_err();
    assert!(matches!(&error, RunError::Config(text) if text.contains("gone.json cannot be read")), "{error}");
}

#[tokio::test]
async fn models_newer_than_the_catalog_are_requested_by_their_own_names() {
    let world = World::with(|config| {
        config["models"]["providers"]["bare"] = json!({
            "baseUrl": config["models"]["providers"]["local"]["baseUrl"], "api": "openai-completions", "apiKey": "key-4",
        });
    })
    .await;
    let model = async |provider: &str, model: &str, reply: Vec<String>| {
        world.server.reply(stream(reply));
        let session = format!("{provider}-{model}");
        let request = world.request(&session, "hello").model(provider, model);
        within(world.engine.run(request).finish()).await.unwrap();
        world.server.requests().last().unwrap().json()["model"].clone()
    };
    // Not the catalog model with a similar name.
    assert_eq!(model("anthropic", "claude-sonnet-4", answer("m1", "a")).await, "claude-sonnet-4");
    assert_eq!(model("anthropic", "claude-opus-77", answer("m2", "a")).await, "claude-opus-77");
    assert_eq!(model("anthropic", "sonnet-4.5", answer("m3", "a")).await, MODEL);
    assert_eq!(model("local", "small-2", fallback_answer("a")).await, "small-2");
    // A configured provider need not list its models.
    assert_eq!(model("bare", "anything", fallback_answer("a")).await, "anything");
}

#[tokio::test]
async fn a_provider_whose_key_is_set_needs_no_configuration() {
    let world = World::with(|config| {
        let base = config["models"]["providers"]["local"]["baseUrl"].clone();
        // Only the address of the test's server is configured.
        config["models"]["providers"]["venice"] = json!({"baseUrl": base});
        config["models"]["providers"]["zai"] = json!({"baseUrl": base});
    })
    .await;
    let variables = [("VENICE_API_KEY", "v-key"), ("Z_AI_API_KEY", "z-key")];
    let env = pinch_stdx::host::Env::from_iter(variables);
    let host = pinch_stdx::host::Host::builder().home(world.path("")).env(env).build();
    let engine = world.configured(&world.document()).host(host).build();
    assert_eq!(engine.problems(), []);
    for (session, provider, model) in [("s1", "venice", "llama-3.3-70b"), ("s2", "zai", "glm-5.3")] {
        world.server.reply(stream(fallback_answer("Yes.")));
        let request = engine.request(session, None, None, "hello").model(provider, model);
        within(engine.run(request).finish()).await.unwrap();
    }
    assert_eq!(world.keys(), ["v-key", "z-key"]);
}

#[tokio::test]
async fn an_unenforced_tool_policy_of_a_chat_prevents_runs() {
    for (channels, key) in [
        (json!({"telegram": {"accounts": {"a": {"tools": {"deny": ["exec"]}}}}}), "channels.telegram.accounts.a.tools"),
        (
            json!({"discord": {"accounts": {"a": {"guilds": {"g": {"toolsBySender": {"*": {}}}}}}}}),
            "channels.discord.accounts.a.guilds.g.toolsBySender",
        ),
    ] {
        let world = World::with(|config| config["channels"] = channels).await;
        let error = world.ask("s1", "hello").await.unwrap_err();
        assert!(matches!(&error, RunError::Config(text) if text.contains(key)), "{error}");
    }
}

#[test]
fn renamed_keys_are_read_with_a_notice_and_not_reported_as_ignored() {
    let document = json!({
        "session": {"idleMinutes": 30}, "media": {"x": 1}, "agents": {"entries": {"ops": {"workspace": "/o", "agentDir": "/d"}}},
    });
    let (config, problems) = Config::from_document(document.as_object().unwrap().clone(), Path::new("pinch.json"));
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(problems.len() == 2 && problems[0].contains("session.reset.idleMinutes"), "{problems:?}");
    assert_eq!(config.session.reset.idle_minutes, Some(30));
    assert_eq!(config.agents.list[0].agent_dir.as_deref(), Some("/d"));
    assert_eq!(config.ignored, ["attachments"]);
}
