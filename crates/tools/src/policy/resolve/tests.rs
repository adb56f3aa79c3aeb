use serde_json::json;

use super::super::decide::RemovalReason;
use super::*;

const TOOLS: [&str; 8] =
    ["read", "bash", "process", "apply_patch", "sessions_list", "session_status", "message", "cron"];

fn caller() -> Caller {
    speaking_in("agent:main:main").owner()
}

fn speaking_in(key: &str) -> Caller {
    let mut caller = Caller::new();
    caller.session_key = Some(key.into());
    caller
}

fn decide(config: &Value, caller: &Caller) -> PolicyDecision {
    let (policies, problems) = ToolPolicies::read(config);
    assert!(problems.is_empty(), "{problems:?}");
    let tools: Vec<OfferedTool> = TOOLS.iter().map(|name| OfferedTool::new(*name)).collect();
    policies.resolve(&PolicyRequest::new(caller, "openai", "gpt-5")).decide(&tools)
}

#[track_caller]
fn check(config: &Value, caller: &Caller, expect: &[&str]) {
    assert_eq!(decide(config, caller).allowed(), expect, "{config}");
}

#[test]
fn each_level_can_only_remove_tools() {
    check(&json!({}), &caller(), &TOOLS);
    check(&json!({"tools": {"allow": ["group:runtime"]}}), &caller(), &["bash", "process", "apply_patch"]);
    let levels = json!({
        "tools": {"allow": ["read", "exec", "process"], "byProvider": {"OpenAI": {"deny": ["process"]}}},
        "agents": {"entries": {"Main": {"tools": {"byProvider": {"openai/gpt-5": {"allow": ["read", "bash"]}}}}}},
    });
    check(&levels, &caller(), &["read", "bash", "apply_patch"]);
    let profile = json!({"tools": {"profile": "minimal", "alsoAllow": ["message"]}});
    check(&profile, &caller(), &["session_status", "message"]);
}

#[test]
fn an_allow_list_that_names_no_tool_allows_nothing() {
    let decision = decide(&json!({"tools": {"allow": ["red", "w*e"]}}), &caller());
    assert_eq!(decision.allowed(), [""; 0]);
    assert!(decision.is_emptied());
    assert_eq!(decision.warnings()[0].to_string(), "tools.allow: no tool matches red, w*e");
    check(&json!({"tools": {"allow": ["red"], "strictAllow": false}}), &caller(), &TOOLS);
    check(&json!({"tools": {"profile": "messaging"}}), &caller(), &["sessions_list", "session_status", "message"]);
}

#[test]
fn unreadable_rules_deny_everything() {
    for (config, path) in [
        (json!({"tools": {"deny": "exec"}}), "tools.deny"),
        (json!({"tools": {"allow": [1]}}), "tools.allow"),
        (json!({"tools": []}), "tools"),
        (json!({"tools": {"profile": 7}}), "tools.profile"),
        (json!({"agents": {"list": [{"id": "main", "tools": {"alsoAllow": {}}}]}}), "agents.list[0].tools.alsoAllow"),
        (json!({"tools": {"byProvider": "none"}}), "tools.byProvider"),
        (json!({"agents": {"list": {"main": {"tools": {"deny": ["read"]}}}}}), "agents.list"),
        (json!({"agents": {"list": [{"tools": {"deny": ["read"]}}]}}), "agents.list[0]"),
        (json!({"agents": {"entries": []}}), "agents.entries"),
        (json!({"agents": []}), "agents"),
        (json!({"channels": []}), "channels"),
        (json!({"channels": {"telegram": []}}), "channels.telegram"),
        (json!({"channels": {"telegram": {"groups": {"-1": "none"}}}}), "channels.telegram.groups.-1"),
        (json!({"channels": {"telegram": {"accounts": [1]}}}), "channels.telegram.accounts"),
        (json!({"channels": {"telegram": {"accounts": {"a": 1}}}}), "channels.telegram.accounts.a"),
    ] {
        let (policies, problems) = ToolPolicies::read(&config);
        assert_eq!(problems[0].path, path);
        let mut caller = caller().channel("telegram").group("-1");
        caller.account = Some("a".to_owned());
        let policy = policies.resolve(&PolicyRequest::new(&caller, "openai", "gpt-5"));
        assert_eq!(policy.decide(&[OfferedTool::new("read")]).allowed(), [""; 0], "{config}");
    }
}

#[test]
fn a_session_that_another_one_spawned_is_a_subagent() {
    let (policies, _) = ToolPolicies::read(&json!({"agents": {"defaults": {"subagents": {"maxSpawnDepth": 2}}}}));
    let offered = [OfferedTool::new("sessions_list"), OfferedTool::new("cron")];
    for (key, parent, expect) in [
        ("agent:main:job", Some("agent:main:main"), (true, false)),
        ("agent:main:subagent:b", Some("agent:main:subagent:a"), (false, false)),
        ("agent:main:subagent:b", None, (true, false)),
        ("agent:main:job", None, (true, true)),
    ] {
        let mut caller = speaking_in(key).owner();
        caller.spawned_by = parent.map(Into::into);
        let decision = policies.resolve(&PolicyRequest::new(&caller, "openai", "gpt-5")).decide(&offered);
        assert_eq!((decision.allows("sessions_list"), decision.allows("cron")), expect, "{key} of {parent:?}");
    }
}

#[test]
fn strangers_do_not_get_owner_tools() {
    let stranger = speaking_in("agent:main:main");
    check(&json!({}), &stranger, &TOOLS[..7]);
    let explained = decide(&json!({}), &stranger).explain("cron");
    assert_eq!(explained.removed, Some(("owner".to_owned(), RemovalReason::OwnerOnly)));
}

#[test]
fn every_decision_names_its_rule() {
    let config = json!({
        "tools": {"deny": ["exec:*"]},
        "agents": {"list": [{"id": "main", "tools": {"allow": ["read", "message", "apply_patch"]}}]},
        "channels": {"telegram": {"groups": {"-1": {"toolsBySender": {"7": {"deny": ["message"]}}}}}},
    });
    let mut sender = caller().channel("telegram").group("-1:topic:3");
    sender.sender.id = Some("7".to_owned());
    let decision = decide(&config, &sender);
    for (tool, expect) in [
        ("read", "read is allowed"),
        ("process", "process is denied by tools.deny (exec:*)"),
        ("sessions_list", "sessions_list is not in agents.main.tools.allow"),
        ("message", "message is denied by group tools.deny (message)"),
        ("exec_now", "exec_now is denied by tools.deny (exec:*)"),
        ("lobster", "lobster is not in agents.main.tools.allow"),
    ] {
        assert_eq!(decision.explain(tool).to_string(), expect);
    }
}

#[test]
fn a_channel_has_rules_for_all_its_chats() {
    let config = json!({"channels": {"telegram": {
        "tools": {"deny": ["exec"]},
        "toolsBySender": {"id:7": {"deny": ["read"]}},
        "groups": {"-100": {"tools": {"deny": ["message"]}}},
    }}});
    let from = |channel: &str, sender: &str, group: Option<&str>| {
        let mut caller = caller().channel(channel).sender(pinch_ports::Sender::new(sender));
        caller.group = group.map(str::to_owned);
        let decision = decide(&config, &caller);
        ["bash", "read", "message"].map(|tool| decision.allows(tool))
    };
    assert_eq!(from("Telegram", "8", None), [false, true, true], "a direct chat");
    assert_eq!(from("telegram", "7", None), [true, false, true]);
    assert_eq!(from("telegram", "8", Some("-100")), [false, true, false], "and those of the group");
    assert_eq!(from("slack", "8", None), [true, true, true]);
}

#[test]
fn a_list_of_the_sandbox_that_leaves_nothing_is_noticed_if_someone_wrote_it() {
    let tools = [OfferedTool::new("read"), OfferedTool::new("exec")];
    for (config, is_emptied) in [
        (json!({}), false),
        (json!({"tools": {"sandbox": {"tools": {"allow": ["raed"]}}}}), true),
        (json!({"tools": {"sandbox": {"tools": {"allow": ["read"]}}}}), false),
        (json!({"agents": {"list": [{"id": "main", "tools": {"sandbox": {"tools": {"allow": ["raed"]}}}}]}}), true),
        (json!({"tools": {"sandbox": {"tools": {"deny": ["*"]}}}}), false),
    ] {
        let (policies, _) = ToolPolicies::read(&config);
        let caller = Caller::new();
        let request = PolicyRequest::new(&caller, "openai", "gpt-5").sandbox(policies.sandbox("main"));
        assert_eq!(policies.resolve(&request).decide(&tools).is_emptied(), is_emptied, "{config}");
    }
}

#[test]
fn a_subagent_keeps_its_rules_whatever_depth_is_stored() {
    let child = speaking_in("agent:main:subagent:x").owner();
    let (policies, _) = ToolPolicies::read(&json!({"agents": {"defaults": {"subagents": {"maxSpawnDepth": 9}}}}));
    for (depth, expect) in [(0, true), (4, true), (5, false)] {
        let policy = policies.resolve(&PolicyRequest::new(&child, "openai", "gpt-5").depth(depth));
        let decision = policy.decide(&[OfferedTool::new("sessions_list"), OfferedTool::new("cron")]);
        assert_eq!((decision.allows("sessions_list"), decision.allows("cron")), (expect, false), "depth {depth}");
    }
}
