//! Tools that a run offers, and restrictions that it refuses to ignore.

use pinch_embed::run::RunError;
use pinch_embed::{Caller, Sender};
use pinch_testing::server::Recorded;

use serde_json::{Value, json};

use crate::host::tool;
use crate::world::{FALLBACK, World, answer, fallback_answer, refusal, stream};

fn offered(world: &World) -> Vec<String> {
    names_of(&world.server.requests()[0])
}

fn names_of(request: &Recorded) -> Vec<String> {
    let body = request.json();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).map(str::to_owned);
    tools.iter().filter_map(name).collect()
}

#[tokio::test]
async fn a_denied_tool_is_neither_offered_nor_described() {
    let world = World::with(|config| {
        config["tools"] = json!({"deny": ["bash"]});
        config["agents"]["list"] = json!([{"id": "main", "tools": {"deny": ["write"]}}]);
    })
    .await;
    world.server.reply(stream(answer("m1", "Hello.")));
    world.ask("s1", "hello").await.unwrap();
    let names = offered(&world);
    assert!(names.iter().any(|name| name == "read"), "{names:?}");
    assert!(!names.iter().any(|name| name == "bash" || name == "write"), "{names:?}");
    let system = world.server.requests()[0].json()["system"].to_string();
    assert!(!system.contains("- bash"), "{system}");
}

#[tokio::test]
async fn an_unenforced_restriction_ends_the_run_before_any_request() {
    type Change = (&'static str, fn(&mut Value));
    let changes: [Change; 3] = [
        ("tools.fs.workspaceOnly", |config| config["tools"] = json!({"fs": {"workspaceOnly": "yes"}})),
        ("agents.list[0].tools.exec.host", |config| {
            config["agents"]["list"] = json!([{"id": "main", "tools": {"exec": {"host": "node"}}}]);
        }),
        ("agents.list[0].tools.exec.host", |config| {
            config["agents"]["list"] = json!([{"id": "main", "tools": {"exec": {"host": "sandbox"}}}]);
        }),
    ];
    for (key, change) in changes {
        let world = World::with(change).await;
        match world.ask("s1", "hello").await {
            Err(RunError::Config(message)) => assert!(message.contains(key), "{message}"),
            other => panic!("{key}: {other:?}"),
        }
        assert!(world.server.requests().is_empty());
    }
}

/// Returns the tools that a run offers under a policy.
async fn offered_under(tools: Value, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let world = World::with(|config| {
        config["tools"] = tools;
        change(config);
    })
    .await;
    world.server.reply(stream(answer("m1", "Hello.")));
    world.ask("s1", "hello").await.unwrap();
    offered(&world)
}

#[tokio::test]
async fn every_level_of_the_tool_policy_is_applied() {
    let unchanged = |_: &mut Value| {};
    assert_eq!(offered_under(json!({"allow": ["read"]}), unchanged).await, ["read"]);
    assert_eq!(offered_under(json!({"profile": "minimal", "alsoAllow": ["edit"]}), unchanged).await, ["edit"]);
    assert_eq!(
        offered_under(json!({"profile": "coding", "deny": ["exec:*"]}), unchanged).await,
        ["read", "edit", "write"]
    );
    let by_provider = json!({"byProvider": {"anthropic": {"deny": ["write"]}, "openai": {"deny": ["read"]}}});
    assert_eq!(offered_under(by_provider, unchanged).await, ["read", "bash", "edit"]);
    let of_agent = |config: &mut Value| {
        config["agents"]["list"] = json!([{"id": "main", "tools": {"allow": ["group:fs"]}}]);
    };
    assert_eq!(offered_under(json!({"deny": ["edit"]}), of_agent).await, ["read", "write"]);
    let loose = json!({"allow": ["nothing"], "strictAllow": false});
    assert_eq!(offered_under(loose, unchanged).await.len(), 4);
}

#[tokio::test]
async fn channels_groups_and_senders_can_have_separate_rules() {
    let world = World::with(|config| {
        config["tools"] = json!({"toolsBySender": {"id:7": {"deny": ["write"]}}});
        config["channels"] = json!({
            "telegram": {"groups": {"-100": {"tools": {"deny": ["bash"]}}}},
            "slack": {"tools": {"deny": ["bash"]}, "toolsBySender": {"id:7": {"deny": ["read"]}}},
        });
    })
    .await;
    let ask = |session: &'static str, caller: Caller| {
        let mut request = world.request(session, "hello");
        request.caller = caller;
        world.server.reply(stream(answer(session, "Hello.")));
        world.engine.run(request).finish()
    };
    let mut sender = Sender::default();
    sender.id = Some("7".into());
    ask("s1", Caller::new().channel("telegram").group("-100")).await.unwrap();
    ask("s2", Caller::new().channel("telegram").sender(sender.clone())).await.unwrap();
    ask("s3", Caller::new().channel("slack")).await.unwrap();
    ask("s4", Caller::new().channel("slack").sender(sender)).await.unwrap();
    let names: Vec<Vec<String>> = world.server.requests().iter().map(names_of).collect();
    let expect: [&[&str]; 4] =
        [&["read", "edit", "write"], &["read", "bash", "edit"], &["read", "edit", "write"], &["bash", "edit"]];
    assert_eq!(names, expect);
}

#[tokio::test]
async fn sub_agents_have_fewer_tools_by_their_stored_depth() {
    let mut world = World::with(|config| {
        config["tools"] = json!({"subagents": {"tools": {"deny": ["bash"]}}});
        config["agents"]["defaults"]["subagents"] = json!({"maxSpawnDepth": 2});
    })
    .await;
    world.engine = world.built(|builder| builder.builtin_tools(["bash"]).tool(tool("sessions_list", "none")));
    let (all, inner, leaf): (&[&str], &[&str], &[&str]) = (&["bash", "sessions_list"], &["sessions_list"], &[]);
    for (n, (key, members, expect)) in [
        ("agent:main:a", json!({}), all),
        ("agent:main:b", json!({"spawnDepth": 1}), inner),
        ("agent:main:c", json!({"spawnDepth": 2}), leaf),
        ("agent:main:d", json!({"spawnedBy": "agent:main:main"}), inner),
        ("agent:main:e", json!({"spawnedBy": "agent:main:subagent:1"}), leaf),
        ("agent:main:subagent:1", json!({}), inner),
        ("agent:main:subagent:2", json!({"spawnDepth": 2}), leaf),
        // No stored depth makes a sub-agent another session.
        ("agent:main:subagent:3", json!({"spawnDepth": 0}), inner),
    ]
    .into_iter()
    .enumerate()
    {
        let mut entry = json!({"sessionId": format!("s{n}"), "updatedAt": 1});
        entry.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        world.write("state/agents/main/sessions/sessions.json", &json!({key: entry}).to_string());
        let mut request = world.engine.message(key, "hello").await.unwrap();
        // A caller set by the host does not change that.
        request.caller = Caller::new().owner();
        world.server.reply(stream(answer("m1", "Hello.")));
        world.engine.run(request).finish().await.unwrap();
        assert_eq!(names_of(world.server.requests().last().unwrap()), expect, "{key} {members}");
    }
}

#[tokio::test]
async fn a_fallback_of_another_provider_is_offered_what_its_policy_allows() {
    let world = World::with(|config| {
        config["tools"] = json!({"byProvider": {"local": {"allow": ["read"]}}});
        config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]);
        config["auth"]["profiles"] = json!([{"id": "first", "provider": "anthropic", "apiKey": "key-1"}]);
    })
    .await;
    world.server.reply(refusal(401, "authentication_error", "invalid x-api-key"));
    world.server.reply(stream(fallback_answer("Hello.")));
    world.ask("s1", "hello").await.unwrap();
    let names: Vec<Vec<String>> = world.server.requests().iter().map(names_of).collect();
    assert_eq!(names, [vec!["read", "bash", "edit", "write"], vec!["read"]]);
}

#[tokio::test]
async fn an_allow_list_that_leaves_no_tool_ends_the_run_before_any_request() {
    let world = World::with(|config| config["tools"] = json!({"allow": ["reed"]})).await;
    match world.ask("s1", "hello").await {
        Err(RunError::Config(message)) => assert!(message.contains("read is not in tools.allow"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert!(world.server.requests().is_empty());
    // The profile `minimal` leaves nothing here, as intended.
    let minimal = offered_under(json!({"profile": "minimal"}), |_| {}).await;
    assert_eq!(minimal, [""; 0]);
    // A request that disables tools needs none.
    let mut request = world.request("s2", "hello");
    request.disable_tools = true;
    world.server.reply(stream(answer("m1", "Hello.")));
    world.engine.run(request).finish().await.unwrap();
}

#[tokio::test]
async fn the_policy_of_a_request_is_explained_without_running_it() {
    let world = World::with(|config| config["tools"] = json!({"profile": "coding", "deny": ["exec:*"]})).await;
    let decision = world.engine.tool_policy(world.request("s1", "")).unwrap();
    assert_eq!(decision.explain("bash").to_string(), "bash is denied by tools.deny (exec:*)");
    assert_eq!(decision.explain("message").to_string(), "message is not in tools.profile (coding)");
    assert!(!world.path("workspace").exists());
}
