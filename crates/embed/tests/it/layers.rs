//! Layers of credentials: agents over the main agent, files of earlier versions and of other programs, references to secrets.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use pinch_embed::profiles::choice::{ProfileChoice, ProfileSource};
use pinch_embed::run::RunError;
use pinch_stdx::host::{Env, Host};
use serde_json::{Value, json};

use crate::world::{FALLBACK, MODEL, World, answer, attempts, call, fallback_answer, refusal, stream, within};

const MAIN: &str = "state/agents/main/agent";

async fn without_keys(change: impl FnOnce(&mut Value)) -> World {
    World::with(|config| {
        config["auth"] = json!({});
        change(config);
    })
    .await
}

fn key(provider: &str, key: &str) -> Value {
    json!({"type": "api_key", "provider": provider, "key": key})
}

fn store(profiles: Value) -> String {
    json!({"version": 1, "profiles": profiles}).to_string()
}

fn read(world: &World, path: &str) -> Value {
    std::fs::read(world.path(path)).map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
}

/// Runs a prompt of an agent.
async fn ask(world: &World, engine: &pinch_embed::Engine, session: &str, agent: &str) -> Vec<String> {
    world.server.reply(stream(answer("m1", "Here.")));
    let result = within(engine.run(engine.request(session, None, Some(agent), "go")).finish()).await.unwrap();
    attempts(&result)
}

#[tokio::test]
async fn an_agent_uses_its_own_profiles_over_those_of_the_main_agent() {
    let world = without_keys(|config| {
        config["agents"]["list"] = json!([{"id": "main"}, {"id": "ops", "agentDir": "~/ops-documents"}, {"id": "dev"}]);
    })
    .await;
    let main = json!({"anthropic:a": key("anthropic", "main-a"), "openai:x": key("openai", "main-x")});
    world.write(&format!("{MAIN}/auth-profiles.json"), &store(main));
    world.write("ops-documents/auth-profiles.json", &store(json!({"anthropic:a": key("anthropic", "ops-a")})));
    world.write("state/agents/dev/agent/settings.json", "{}");
    let engine = world.restarted();
    for agent in ["main", "ops", "dev"] {
        ask(&world, &engine, agent, agent).await;
    }
    assert_eq!(world.keys(), ["main-a", "ops-a", "main-a"]);
    engine.shutdown(Duration::from_secs(1)).await;
    let is_marked = |path: &str| read(&world, path)["usageStats"]["anthropic:a"]["lastUsed"].is_i64();
    assert!(is_marked("state/agents/main/agent/auth-profiles.json") && is_marked("ops-documents/auth-profiles.json"));
    // Neither secrets nor health of the main agent are copied.
    assert!(!world.path("state/agents/dev/agent/auth-profiles.json").exists());
    assert_eq!(read(&world, "ops-documents/auth-profiles.json")["profiles"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_uses_the_profiles_in_its_own_directory() {
    let world =
        without_keys(|config| config["agents"]["list"] = json!([{"id": "main"}, {"id": "ops", "agentDir": "ops"}]))
            .await;
    world.write(&format!("{MAIN}/auth-profiles.json"), &store(json!({"anthropic:a": key("anthropic", "main-a")})));
    for user in ["ada", "bob"] {
        let profiles = json!({"anthropic:a": key("anthropic", user)});
        world.write(&format!("state/users/{user}/auth-profiles.json"), &store(profiles));
    }
    let engine = world.restarted();
    for (session, agent, dir) in
        [("s1", "main", "users/ada"), ("s2", "ops", "users/bob"), ("s3", "main", ""), ("s4", "ops", "users/ada")]
    {
        world.server.reply(stream(answer("m1", "Here.")));
        let request = engine.request(session, None, Some(agent), "go").agent_dir(dir);
        within(engine.run(request).finish()).await.unwrap();
    }
    assert_eq!(world.keys(), ["ada", "bob", "main-a", "ada"]);
    engine.shutdown(Duration::from_secs(1)).await;
    for user in ["ada", "bob"] {
        let stats = read(&world, &format!("state/users/{user}/auth-profiles.json"))["usageStats"].clone();
        assert!(stats["anthropic:a"]["lastUsed"].is_i64(), "{user}: {stats}");
    }
}

#[tokio::test]
async fn credentials_of_earlier_versions_are_used_until_there_are_profiles() {
    let world = without_keys(|_| {}).await;
    let legacy = json!({"anthropic": {"type": "token", "token": "old-token"}, "junk": {"foo": 1}}).to_string();
    world.write(&format!("{MAIN}/auth.json"), &legacy);
    let engine = world.restarted();
    assert_eq!(ask(&world, &engine, "s1", "main").await, [format!("anthropic:default anthropic/{MODEL} ok finish")]);
    engine.shutdown(Duration::from_secs(1)).await;
    assert_eq!(std::fs::read_to_string(world.path(&format!("{MAIN}/auth.json"))).unwrap(), legacy);
    let written = read(&world, &format!("{MAIN}/auth-profiles.json"));
    assert_eq!(written["profiles"], json!({}));
    // Health alone does not give the newer file precedence.
    let engine = world.restarted();
    ask(&world, &engine, "s2", "main").await;
    world.write(&format!("{MAIN}/auth-profiles.json"), &store(json!({"anthropic:new": key("anthropic", "new-key")})));
    ask(&world, &engine, "s3", "main").await;
    assert_eq!(world.keys(), ["old-token", "old-token", "new-key"]);
}

fn in_minutes(minutes: i64) -> i64 {
    Host::builder().build().now_ms() + minutes * 60_000
}

#[tokio::test]
async fn logins_of_other_programs_are_read_and_reread() {
    let world = without_keys(|config| {
        let mut provider = config["models"]["providers"]["local"].clone();
        provider.as_object_mut().unwrap().remove("apiKey");
        config["models"]["providers"]["qwen-portal"] = provider;
        config["agents"]["defaults"]["model"] = json!("qwen-portal/small");
    })
    .await;
    let write = |access: &str, minutes: i64| {
        let login = json!({"access_token": access, "refresh_token": "r", "expiry_date": in_minutes(minutes)});
        world.write(".qwen/oauth_creds.json", &login.to_string());
    };
    write("cli-1", 5);
    let engine = world.restarted();
    let ask = async |session: &str| {
        world.server.reply(stream(fallback_answer("Here.")));
        let result = within(engine.run(engine.request(session, None, None, "go")).finish()).await.unwrap();
        attempts(&result)
    };
    assert_eq!(ask("s1").await, ["qwen-portal:qwen-cli qwen-portal/small ok finish"]);
    write("cli-2", 60);
    ask("s2").await;
    assert_eq!(world.keys(), ["cli-1", "cli-2"]);
    engine.shutdown(Duration::from_secs(1)).await;
    assert_eq!(read(&world, &format!("{MAIN}/auth-profiles.json"))["profiles"], json!({}), "no secret is copied");
}

#[tokio::test]
async fn a_login_of_another_program_is_used_only_if_named() {
    let login = json!({"claudeAiOauth": {"accessToken": "claude", "refreshToken": "r", "expiresAt": in_minutes(60)}});
    let world = without_keys(|_| {}).await;
    world.write(".claude/.credentials.json", &login.to_string());
    let error = within(world.restarted().run(world.request("s1", "go")).finish()).await.unwrap_err();
    assert!(error.to_string().starts_with("No API key found for anthropic."), "{error}");
    let world = without_keys(|config| {
        let named = json!({"anthropic:claude-cli": {"provider": "anthropic", "mode": "oauth"}});
        config["auth"]["profiles"] = named;
    })
    .await;
    world.write(".claude/.credentials.json", &login.to_string());
    let engine = world.restarted();
    assert_eq!(ask(&world, &engine, "s1", "main").await, [format!("anthropic:claude-cli anthropic/{MODEL} ok finish")]);
    assert_eq!(world.keys(), ["claude"]);
}

#[tokio::test]
async fn secrets_are_looked_up_in_the_stores_that_profiles_refer_to() {
    let world = without_keys(|config| {
        let profile = |id: &str, source: &str, name: &str| {
            json!({"id": id, "provider": "anthropic", "apiKey": {"source": source, "provider": id, "id": name}})
        };
        let profiles = [
            profile("variable", "env", "THE_KEY"),
            profile("vault", "file", "/keys/a"),
            profile("program", "exec", "b"),
            profile("whole", "file", "value"),
            profile("printed", "exec", "any"),
            profile("forbidden", "env", "OTHER_KEY"),
        ];
        config["auth"]["profiles"] = json!(profiles);
    })
    .await;
    world.write("vault.json", r#"{"keys": {"a": "from-file"}}"#);
    let program = "#!/bin/sh\nread request\ncase \"$request\" in *'\"ids\":[\"b\"]'*) echo \"{\\\"values\\\": {\\\"b\\\": \\\"$PART-program\\\"}}\";; esac\n";
    world.write("program.sh", program);
    std::fs::set_permissions(world.path("program.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut document = world.document();
    document["secrets"] = json!({"providers": {
        "variable": {"source": "env", "allowlist": ["THE_KEY"]},
        "vault": {"source": "file", "path": "~/vault.json"},
        "program": {"source": "exec", "command": world.path("program.sh"), "env": {"PART": "from"}, "timeoutMs": 5000},
        "whole": {"source": "file", "path": "~/whole.txt", "mode": "singleValue"},
        "printed": {"source": "exec", "command": "/bin/sh", "args": ["-c", "echo $THE_KEY-printed"], "passEnv": ["THE_KEY"],
            "jsonOnly": false},
        "forbidden": {"source": "env", "allowlist": ["THE_KEY"]},
    }});
    world.write("whole.txt", "from-whole\n");
    let host = Host::builder()
        .home(world.path(""))
        .env(Env::from_iter([("THE_KEY", "from-env"), ("OTHER_KEY", "secret")]))
        .build();
    let engine = world.configured(&document).host(host).build();
    for id in ["variable", "vault", "program", "whole", "printed"] {
        world.server.reply(stream(answer("m1", "Here.")));
        let mut request = engine.request(id, None, None, "go");
        request.auth_profile = Some(ProfileChoice { id: id.into(), source: ProfileSource::User });
        within(engine.run(request).finish()).await.unwrap();
    }
    let keys = ["from-env", "from-file", "from-program", "from-whole", "from-env-printed"];
    assert_eq!(world.keys(), keys);
    let mut request = engine.request("forbidden", None, None, "go");
    request.auth_profile = Some(ProfileChoice { id: "forbidden".into(), source: ProfileSource::User });
    let result = within(engine.run(request).finish()).await;
    assert!(!format!("{result:?}").contains("\"secret\""));
    assert_eq!(world.keys(), keys, "no request is sent with it");
}

#[tokio::test]
async fn a_profile_that_the_user_chose_is_never_replaced() {
    let world = World::new().await;
    let mut request = world.request("s1", "go");
    request.auth_profile = Some(ProfileChoice { id: "gone".into(), source: ProfileSource::User });
    let error = within(world.engine.run(request).finish()).await.unwrap_err();
    assert!(
        matches!(&error, RunError::Config(text) if text == "Auth profile \"gone\" is not configured for anthropic.")
    );
    // A session keeps its choice even if the profile disappears.
    let choice = |entry: Option<pinch_embed::ports::SessionEntry>| {
        entry.map(|mut entry| {
            entry.auth_profile_override = Some("gone".to_owned());
            entry.auth_profile_override_source = Some(pinch_embed::ports::OverrideSource::User);
            entry
        })
    };
    world.engine.message("main", "hello").await.unwrap();
    world.engine.update_session("main", choice).await.unwrap();
    let request = world.engine.message("main", "hello").await.unwrap();
    let error = within(world.engine.run(request).finish()).await.unwrap_err();
    assert!(error.to_string().contains("\"gone\""), "{error}");
    assert_eq!(world.keys(), Vec::<String>::new());
}

/// A key that is refused for one model is still tried with another one.
async fn refused_for_the_first_model(auth: Value, provider_key: Option<&str>) {
    let world = World::with(|config| {
        config["auth"] = auth;
        if let Some(key) = provider_key {
            config["models"]["providers"]["anthropic"]["apiKey"] = key.into();
        }
        config["agents"]["defaults"]["model"]["fallbacks"] = json!(["anthropic/claude-haiku-4-5"]);
    })
    .await;
    let refused = || refusal(401, "authentication_error", "invalid x-api-key");
    world.server.reply(refused()).reply(stream(answer("m1", "Here.")));
    let result = world.ask("s1", "go").await.unwrap();
    assert!(attempts(&result).last().unwrap().contains("claude-haiku-4-5 ok"), "{:?}", attempts(&result));
    // The next run remembers it, and continues with the second model if the first is refused again.
    world.server.answer_with(move |request| {
        Some(if request.json()["model"] == MODEL { refused() } else { stream(answer("m2", "Again.")) })
    });
    world.ask("s2", "go").await.unwrap();
}

#[tokio::test]
async fn a_configured_key_that_is_refused_for_one_model_is_tried_for_another() {
    let one = json!({"profiles": [{"id": "only", "provider": "anthropic", "apiKey": "key-1"}]});
    refused_for_the_first_model(one, None).await;
    refused_for_the_first_model(json!({}), Some("key-1")).await;
}

#[tokio::test]
async fn a_cooldown_is_shortened_after_the_clock_was_set_back() {
    let fallback = |config: &mut Value| config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
    let world = without_keys(fallback).await;
    let now = in_minutes(0);
    let far = now + 10 * 365 * 86_400_000;
    let document = json!({"version": 1, "profiles": {"anthropic:a": key("anthropic", "k")}, "usageStats": {"anthropic:a": {
        "errorCount": 1, "lastFailureAt": far - 60_000, "cooldownUntil": far, "cooldownReason": "rate_limit",
        "disabledUntil": far, "disabledReason": "billing"}}});
    world.write(&format!("{MAIN}/auth-profiles.json"), &document.to_string());
    let engine = world.restarted();
    world.server.reply(stream(fallback_answer("Here.")));
    within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
    engine.shutdown(Duration::from_secs(1)).await;
    let health = &read(&world, &format!("{MAIN}/auth-profiles.json"))["usageStats"]["anthropic:a"];
    let hours = |name: &str| (health[name].as_i64().unwrap() - now + 1_800_000) / 3_600_000;
    assert_eq!((hours("cooldownUntil"), hours("disabledUntil")), (1, 24), "{health}");
}

#[tokio::test]
async fn order_and_health_in_a_separate_file_are_read_and_written_there() {
    let world = without_keys(|_| {}).await;
    let profiles = json!({"a": key("anthropic", "key-a"), "b": key("anthropic", "key-b")});
    let secrets = json!({"version": 1, "profiles": profiles, "usageStats": {"b": {"lastUsed": 5}}}).to_string();
    world.write(&format!("{MAIN}/auth-profiles.json"), &secrets);
    world.write(
        &format!("{MAIN}/auth-state.json"),
        &json!({"version": 1, "order": {"anthropic": ["b", "a"]}}).to_string(),
    );
    let engine = world.restarted();
    ask(&world, &engine, "s1", "main").await;
    assert_eq!(world.keys(), ["key-b"]);
    engine.shutdown(Duration::from_secs(1)).await;
    assert_eq!(std::fs::read_to_string(world.path(&format!("{MAIN}/auth-profiles.json"))).unwrap(), secrets);
    let state = read(&world, &format!("{MAIN}/auth-state.json"));
    assert!(
        state["usageStats"]["b"]["lastUsed"].as_i64() > Some(5) && state["lastGood"]["anthropic"] == "b",
        "{state}"
    );
    assert!(state.get("profiles").is_none());
}

#[tokio::test]
async fn a_login_that_was_renamed_is_found_by_its_old_name() {
    let login = |access: &str| json!({"type": "oauth", "provider": "anthropic", "access": access, "refresh": "r", "expires": in_minutes(60)});
    for (email, last_good, expected) in
        [(Some("b@x"), None, "access-b"), (None, Some("anthropic:b@x"), "access-b"), (Some("a@x"), None, "access-a")]
    {
        let world = without_keys(|config| {
            config["auth"] = json!({
                "profiles": {"anthropic:default": {"provider": "anthropic", "mode": "oauth", "email": email}},
                "order": {"anthropic": ["anthropic:default"]},
            });
        })
        .await;
        let profiles = json!({"anthropic:a@x": login("access-a"), "anthropic:b@x": login("access-b")});
        let store = json!({"version": 1, "profiles": profiles, "lastGood": {"anthropic": last_good}});
        world.write(&format!("{MAIN}/auth-profiles.json"), &store.to_string());
        let engine = world.restarted();
        ask(&world, &engine, "s1", "main").await;
        assert_eq!(world.keys(), [expected]);
    }
}

#[tokio::test]
async fn commands_do_not_see_variables_with_keys_of_profiles() {
    let world = without_keys(|config| {
        let reference = json!({"source": "env", "id": "OTHER_KEY"});
        config["auth"]["profiles"] = json!([
            {"id": "one", "provider": "anthropic", "apiKey": "${MY_KEY}"},
            {"id": "two", "provider": "anthropic", "apiKey": reference},
        ]);
    })
    .await;
    let env =
        [("MY_KEY", "k1"), ("OTHER_KEY", "k2"), ("VENICE_API_KEY", "k3"), ("PLAIN", "p"), ("PATH", "/usr/bin:/bin")];
    let host = Host::builder().home(world.path("")).temp(world.path("")).env(Env::from_iter(env)).build();
    let engine = world.configured(&world.document()).host(host).builtin_tools(["bash"]).build();
    let command = json!({"command": "echo \"[$MY_KEY|$OTHER_KEY|$VENICE_API_KEY|$PLAIN]\""});
    world.server.reply(stream(call("1", "bash", &command))).reply(stream(answer("m2", "Done.")));
    within(engine.run(engine.request("s1", None, None, "go")).finish()).await.unwrap();
    let messages = world.server.requests()[1].json()["messages"].to_string();
    assert!(messages.contains("[|||p]"), "{messages}");
}
