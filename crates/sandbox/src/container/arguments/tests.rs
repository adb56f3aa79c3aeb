use serde_json::json;

use super::*;
use crate::config::SandboxConfig;

fn arguments(docker: serde_json::Value, access: WorkspaceAccess, workspace: &str) -> Result<String, ContainerRefusal> {
    let document = json!({"agents": {"defaults": {"sandbox": {"docker": docker}}}});
    let (config, problems) = SandboxConfig::read(&document, "main");
    assert!(problems.is_empty(), "{problems:?}");
    let labels = [];
    let spec = ContainerSpec {
        config: &config.container,
        name: "n",
        scope_key: "main",
        created_at_ms: 1,
        config_hash: None,
        labels: &labels,
    };
    let mounts =
        ContainerMounts { workspace: PathBuf::from(workspace), agent_workspace: PathBuf::from("/home/u/a"), access };
    let rules = BindRules { roots: vec![PathBuf::from("/home/u/a")], ..BindRules::default() };
    let limits = spec.limits().len();
    Ok(spec.arguments(&mounts, &rules)?[limits..].join(" "))
}

#[test]
fn the_workspace_is_mounted_according_to_its_access() {
    for (access, workspace, expect) in [
        (WorkspaceAccess::None, "/s/x", "-v /s/x:/workspace img"),
        (WorkspaceAccess::ReadOnly, "/s/x", "-v /s/x:/workspace -v /home/u/a:/agent:ro img"),
        (WorkspaceAccess::ReadWrite, "/s/x", "-v /s/x:/workspace -v /home/u/a:/agent img"),
        (WorkspaceAccess::ReadOnly, "/home/u/a", "-v /home/u/a:/workspace:ro img"),
        (WorkspaceAccess::ReadWrite, "/home/u/a", "-v /home/u/a:/workspace img"),
    ] {
        let found = arguments(json!({"image": "img"}), access, workspace).unwrap();
        let expect = format!("--init --env LANG=C.UTF-8 --workdir /workspace {expect} sleep infinity");
        assert_eq!(found, expect, "{access:?} {workspace}");
    }
}

#[test]
fn an_unsafe_container_is_not_created() {
    for docker in [
        json!({"network": "host"}),
        json!({"seccompProfile": "unconfined"}),
        json!({"apparmorProfile": "unconfined"}),
        json!({"binds": ["/var/run/docker.sock:/x"]}),
    ] {
        assert!(arguments(docker.clone(), WorkspaceAccess::None, "/s/x").is_err(), "{docker}");
    }
}

#[test]
fn the_last_bind_of_a_target_wins_and_keys_stay_outside() {
    let docker = json!({
        "image": "img",
        "binds": ["/home/u/a/1:/d", "/home/u/a/2:/e", "/home/u/a/3:/d/:ro"],
        "env": {"A": "1", "OPENAI_API_KEY": "k"},
    });
    let document = json!({"agents": {"defaults": {"sandbox": {"docker": docker}}}});
    let (config, _) = SandboxConfig::read(&document, "main");
    assert_eq!(last_of_each_target(&config.container.binds), ["/home/u/a/2:/e", "/home/u/a/3:/d/:ro"]);
    let found = container_environment(&config.container.env);
    assert_eq!(found.blocked, ["OPENAI_API_KEY"]);
}
