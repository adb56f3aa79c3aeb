//! `sandbox-args`, `sandbox-config`, `sandbox-name`, `sandbox-hash`, `sandbox-security`, `sandbox-mode`.

use std::path::PathBuf;

use pinch_embed::key::{AgentId, canonical};
use pinch_sandbox::config::SandboxConfig;
use pinch_sandbox::container::{
    BindRules, ContainerRefusal, ContainerSpec, check_network, check_profile, config_hash, container_environment,
};
use pinch_sandbox::scope::{SandboxMode, SandboxScope, is_sandboxed, slug};
use serde_json::{Map, Value, json};

use super::super::Case;
use super::{only, texts, wanted};

/// The configuration of a case: a complete one, or only its section.
fn configuration(input: &Value) -> SandboxConfig {
    let given = &input["config"];
    let sections = ["mode", "scope", "perSession", "workspaceAccess", "workspaceRoot", "docker", "browser", "prune"];
    let document = match sections.iter().any(|key| given.get(key).is_some()) {
        true => json!({"agents": {"defaults": {"sandbox": given}}}),
        false => given.clone(),
    };
    SandboxConfig::read(&document, input["agentId"].as_str().unwrap_or("main")).0
}

pub(super) fn arguments(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["config", "agentId", "name", "scopeKey", "createdAtMs", "configHash", "labels"])?;
    let config = configuration(input);
    let labels = input["labels"].as_object().into_iter().flatten();
    let labels: Vec<(String, String)> =
        labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect();
    let spec = ContainerSpec {
        config: &config.container,
        name: input["name"].as_str().unwrap_or_default(),
        scope_key: input["scopeKey"].as_str().unwrap_or_default(),
        created_at_ms: input["createdAtMs"].as_i64().unwrap_or_default(),
        config_hash: input["configHash"].as_str(),
        labels: &labels,
    };
    Ok(json!({"args": spec.limits()}))
}

/// All fields, each under its configuration name; those of `docker` are next to the others, too.
pub(super) fn config(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["config", "agentId"])?;
    let config = configuration(input);
    let docker = config.container.to_section();
    let mut all = docker.as_object().cloned().unwrap_or_default();
    let browser = &config.browser;
    let members = json!({
        "mode": config.mode.as_str(),
        "scope": config.scope.as_str(),
        "workspaceAccess": config.workspace_access.as_str(),
        "workspaceRoot": config.workspace_root,
        "sessionToolsVisibility": config.session_tools_visibility.as_str(),
        "prune": {"idleHours": config.prune.idle_hours, "maxAgeDays": config.prune.max_age_days},
        "docker": docker,
        "browser": {
            "enabled": browser.enabled,
            "image": browser.image,
            "containerPrefix": browser.container_prefix,
            "cdpPort": browser.cdp_port,
            "vncPort": browser.vnc_port,
            "noVncPort": browser.no_vnc_port,
            "headless": browser.headless,
            "enableNoVnc": browser.enable_no_vnc,
            "allowHostControl": browser.allow_host_control,
            "autoStart": browser.auto_start,
            "autoStartTimeoutMs": browser.auto_start_timeout_ms,
        },
    });
    all.extend(members.as_object().cloned().unwrap_or_default());
    Ok(Value::Object(all))
}

pub(super) fn name(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["sessionKey", "scope"])?;
    let key = input["sessionKey"].as_str().unwrap_or_default();
    match input["scope"].as_str().map(|scope| SandboxScope::parse(scope).ok_or(scope)) {
        Some(Ok(scope)) => Ok(json!({"slug": slug(&scope.key(key)), "scopeKey": scope.key(key)})),
        Some(Err(scope)) => Err(format!("there is no scope {scope:?}")),
        None => Ok(json!({"slug": slug(key)})),
    }
}

pub(super) fn hash(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["a", "b"])?;
    let (a, b) = (config_hash(&input["a"]), config_hash(&input["b"]));
    Ok(json!({"equal": a == b, "hash": if a == b { Some(a) } else { None }}))
}

pub(super) fn security(input: &Value, case: &Case<'_>) -> Result<Value, String> {
    only(input, &["bind", "network", "apparmorProfile", "seccompProfile", "env"])?;
    if let Some(env) = input["env"].as_object() {
        let variables: Vec<(String, String)> =
            env.iter().map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect();
        let found = container_environment(&variables);
        let allowed = match wanted(case)["allowed"].is_object() {
            true => {
                Value::Object(found.allowed.into_iter().map(|(key, value)| (key, value.into())).collect::<Map<_, _>>())
            }
            false => json!(found.allowed.into_iter().map(|(key, _)| key).collect::<Vec<_>>()),
        };
        let ok = found.blocked.is_empty();
        return Ok(json!({"ok": ok, "allowed": allowed, "blocked": found.blocked}));
    }
    let rules = BindRules { roots: vec![PathBuf::from("/home/u")], ..BindRules::default() };
    let checked = || -> Result<(), ContainerRefusal> {
        let binds = texts(&input["bind"]);
        for bind in input["bind"].as_str().into_iter().chain(binds.iter().map(String::as_str)) {
            rules.check(bind)?;
        }
        input["network"].as_str().map_or(Ok(()), |network| check_network(network, false))?;
        for (kind, key) in [("apparmor", "apparmorProfile"), ("seccomp", "seccompProfile")] {
            input[key].as_str().map_or(Ok(()), |profile| check_profile(kind, profile))?;
        }
        Ok(())
    };
    Ok(match checked() {
        Ok(()) => json!({"ok": true}),
        Err(refusal) => json!({"ok": false, "reason": refusal.code()}),
    })
}

pub(super) fn mode(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["mode", "sessionKey"])?;
    let word = input["mode"].as_str().unwrap_or("off");
    let mode = SandboxMode::parse(word).ok_or_else(|| format!("there is no mode {word:?}"))?;
    let agent = AgentId::normalise("main");
    let key = input["sessionKey"].as_str().filter(|key| !key.trim().is_empty());
    let key = key.and_then(|key| canonical(key, &agent, "main"));
    Ok(json!({"sandboxed": is_sandboxed(mode, key.as_deref(), "agent:main:main")}))
}
