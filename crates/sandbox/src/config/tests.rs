use serde_json::json;

use super::*;

fn read(defaults: Value, own: Value) -> (SandboxConfig, Vec<String>) {
    let document = json!({"agents": {"defaults": {"sandbox": defaults}, "list": [{"id": "Ops", "sandbox": own}]}});
    let (config, problems) = SandboxConfig::read(&document, "ops");
    (config, problems.into_iter().map(|problem| format!("{}: {}", problem.path, problem.text)).collect())
}

#[test]
fn an_invalid_list_of_servers_allows_none() {
    let (config, problems) = read(json!({"domains": ["a.test"]}), json!({"domains": "b.test"}));
    assert_eq!(config.domains.as_deref(), Some(&[][..]));
    assert_eq!(problems, ["agents.list[0].sandbox.domains: expected a list of strings; an empty one is used"]);
    assert_eq!(read(json!({"domains": ["a.test"]}), json!({})).0.domains.as_deref(), Some(&["a.test".to_owned()][..]));
    assert_eq!(read(json!({}), json!({})).0.domains, None);
    let (config, problems) = read(json!({"hideProcesses": false}), json!({"hideProcesses": "no"}));
    assert!(config.hide_processes);
    assert_eq!(problems, ["agents.list[0].sandbox.hideProcesses: expected true or false; true is used"]);
    assert!(read(json!({"hideProcesses": true}), json!({})).0.hide_processes);
    assert!(!read(json!({"hideProcesses": true}), json!({"hideProcesses": false})).0.hide_processes);
}

#[test]
fn an_agent_overrides_field_by_field() {
    let defaults = json!({
        "mode": "all", "workspaceAccess": "ro",
        "docker": {"image": "a", "memory": "1g", "binds": ["/a:/a"], "env": {"A": "1", "B": "1"}, "ulimits": {"nproc": 1}},
        "prune": {"idleHours": 0},
    });
    let own = json!({
        "workspaceAccess": "rw",
        "docker": {"image": "b", "binds": ["/b:/b"], "env": {"B": "2"}, "ulimits": {"core": 0}, "memory": null},
    });
    let (config, problems) = read(defaults.clone(), own.clone());
    assert_eq!(problems, [""; 0]);
    assert_eq!((config.mode, config.workspace_access), (SandboxMode::All, WorkspaceAccess::ReadWrite));
    assert_eq!((config.prune.idle_hours, config.prune.max_age_days), (0.0, 7.0));
    let container = &config.container;
    assert_eq!(
        container.to_section(),
        json!({
            "image": "b", "containerPrefix": "openclaw-sbx-", "workdir": "/workspace", "readOnlyRoot": true,
            "tmpfs": ["/tmp", "/var/tmp", "/run"], "network": "none", "capDrop": ["ALL"], "env": {"A": "1", "B": "2"},
            "memory": "1g", "ulimits": {"nproc": 1, "core": 0}, "binds": ["/a:/a", "/b:/b"],
        })
    );
    let mut shared = own;
    shared["scope"] = json!("shared");
    let (config, _) = read(defaults, shared);
    assert_eq!((config.container.image.as_str(), config.container.binds.len()), ("a", 1), "one sandbox for all");
}

#[test]
fn settings_that_only_containers_have_require_one() {
    for (section, expect) in [
        (json!({}), None),
        (json!({"capDrop": ["ALL"], "readOnlyRoot": true, "network": "bridge", "tmpfs": ["/tmp:size=1m"]}), None),
        (json!({"image": "tools:1"}), Some("image")),
        (json!({"user": "1000:1000"}), Some("user")),
        (json!({"workdir": "/code"}), Some("workdir")),
        (json!({"tmpfs": ["/tmp", "/scratch"]}), Some("tmpfs")),
        (json!({"memory": "1g"}), Some("memory")),
        (json!({"pidsLimit": 100}), Some("pidsLimit")),
        (json!({"network": "backend"}), Some("network")),
    ] {
        let (config, problems) = read(json!({"docker": section.clone()}), json!({}));
        assert_eq!((config.container.needs_container(), problems.len()), (expect, 0), "{section}");
    }
}

#[test]
fn unreadable_values_get_the_strictest_setting() {
    let (config, problems) = read(json!({"mode": "none-main", "scope": 1, "workspaceAccess": "write"}), json!({}));
    assert_eq!((config.mode, config.scope), (SandboxMode::All, SandboxScope::Session));
    assert_eq!(config.workspace_access, WorkspaceAccess::None);
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert_eq!(problems[0], "agents.defaults.sandbox.mode: expected off, non-main or all; all is used");
    let (config, problems) = read(json!({}), json!("all"));
    assert_eq!(config.mode, SandboxMode::All);
    assert_eq!(problems, ["agents.list[0].sandbox: expected an object"]);
}

#[test]
fn the_legacy_key_sets_the_scope() {
    for (section, expect) in [
        (json!({"perSession": true}), SandboxScope::Session),
        (json!({"perSession": false}), SandboxScope::Shared),
        (json!({"perSession": false, "scope": "agent"}), SandboxScope::Agent),
        (json!({}), SandboxScope::Agent),
    ] {
        assert_eq!(read(section.clone(), json!({})).0.scope, expect, "{section}");
    }
}

#[test]
fn agents_may_be_entries_by_name() {
    let document = json!({"agents": {"entries": {"ops": {"sandbox": {"mode": "all"}}}}});
    assert_eq!(SandboxConfig::read(&document, "Ops").0.mode, SandboxMode::All);
    assert_eq!(SandboxConfig::read(&document, "main").0.mode, SandboxMode::Off);
}
