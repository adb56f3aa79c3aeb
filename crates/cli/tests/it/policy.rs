//! `pinch policy explain`: the rule that allows or denies a tool.

use serde_json::{Value, json};

use crate::help::TestUser;

/// Creates a user with rules for everybody and for a group.
async fn user() -> TestUser {
    let user = TestUser::new().await;
    let document = json!({
        "agents": {"defaults": {"model": "anthropic/claude-sonnet-4-5"}},
        "models": {"providers": {"anthropic": {"baseUrl": user.server.url(), "apiKey": "none"}}},
        "tools": {"profile": "coding", "deny": ["exec:*"]},
        "channels": {"telegram": {"groups": {"-100": {"tools": {"allow": ["read"]}}}}},
    });
    user.write(".pinch/pinch.json", &document.to_string());
    user
}

#[tokio::test]
async fn the_deciding_rule_is_printed() {
    let user = user().await;
    let all = user.run_program(&["policy", "explain"]).await;
    let expect = "read is allowed\nbash is denied by tools.deny (exec:*)\nedit is allowed\nwrite is allowed\n\
                  apply_patch is allowed\n";
    assert_eq!((all.code, all.out.as_str(), all.err.as_str()), (Some(0), expect, ""));
    let group = ["policy", "explain", "read", "edit", "--channel", "telegram", "--group", "-100"];
    assert_eq!(user.run_program(&group).await.out, "read is allowed\nedit is not in group tools.allow\n");
    let stranger = user.run_program(&["policy", "explain", "cron", "--stranger"]).await.out;
    assert_eq!(stranger, "cron is reserved for the owner of the agent, and the sender is someone else\n");
    let limited = user.run_program(&["policy", "explain", "write", "--permission-mode", "read-only"]).await.out;
    assert_eq!(limited, "write is denied by the session mode read-only (write)\n");
}

#[tokio::test]
async fn rules_for_senders_and_spawned_sessions_are_explained() {
    let user = user().await;
    let rules = json!({"id:7": {"deny": ["read"]}, "username:ada": {"deny": ["edit"]}, "name:Ada": {"deny": ["write"]},
        "e164:+491": {"deny": ["apply_patch"]}});
    let mut document: Value = serde_json::from_slice(&std::fs::read(user.path(".pinch/pinch.json")).unwrap()).unwrap();
    document["tools"] = json!({"toolsBySender": rules, "subagents": {"tools": {"deny": ["read"]}}});
    user.write(".pinch/pinch.json", &document.to_string());
    for (option, value, tool) in [
        ("--sender", "7", "read"),
        ("--sender-username", "ada", "edit"),
        ("--sender-name", "Ada", "write"),
        ("--sender-phone", "+491", "apply_patch"),
    ] {
        let told = user.run_program(&["policy", "explain", tool, option, value]).await.out;
        assert_eq!(told, format!("{tool} is denied by tools.toolsBySender.deny ({tool})\n"), "{option}");
    }
    let spawned = ["policy", "explain", "read", "--spawned-by", "agent:main:main"];
    assert_eq!(user.run_program(&spawned).await.out, "read is denied by subagent tools.deny (read)\n");
}

#[tokio::test]
async fn settings_that_disable_patches_are_named() {
    let user = user().await;
    for (patches, expect) in [
        (json!({"enabled": false}), "apply_patch is denied by tools.exec.applyPatch.enabled (apply_patch)\n"),
        (
            json!({"allowModels": ["gpt-5.2"]}),
            "apply_patch is denied by tools.exec.applyPatch.allowModels (apply_patch)\n",
        ),
        (json!({"allowModels": ["claude-sonnet-4-5"]}), "apply_patch is allowed\n"),
    ] {
        let mut document: Value =
            serde_json::from_slice(&std::fs::read(user.path(".pinch/pinch.json")).unwrap()).unwrap();
        document["tools"] = json!({"exec": {"applyPatch": patches}});
        user.write(".pinch/pinch.json", &document.to_string());
        assert_eq!(user.run_program(&["policy", "explain", "apply_patch"]).await.out, expect);
    }
}

#[tokio::test]
async fn explanations_are_printed_as_json() {
    let user = user().await;
    let printed = user.run_program(&["policy", "explain", "bash", "message", "--json"]).await.out;
    let shown: Value = serde_json::from_str(&printed).unwrap();
    let expect = json!([
        {"tool": "bash", "allowed": false, "exists": true, "rule": "tools.deny", "explanation": "bash is denied by tools.deny (exec:*)"},
        {"tool": "message", "allowed": false, "exists": false, "rule": "tools.profile (coding)",
            "explanation": "message is not in tools.profile (coding)"},
    ]);
    assert_eq!(shown, expect);
}

#[tokio::test]
async fn an_undecidable_policy_reports_what_is_missing() {
    let user = user().await;
    let failed = user.run_program(&["policy", "explain", "--model", "no-such-model"]).await;
    assert!(failed.code == Some(1) && failed.err.contains("no-such-model"), "{failed:?}");
}
