//! `sandbox-info`.

use std::path::PathBuf;

use pinch_sandbox::facts::SandboxFacts;
use pinch_sandbox::scope::WorkspaceAccess;
use serde_json::{Value, json};

use super::super::only;
use super::check;

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    (area == "sandbox-info").then(|| info(given).and_then(|actual| check(expect, &actual)))
}

fn info(given: &Value) -> Result<Value, String> {
    only(given, &["sandbox", "elevated"])?;
    let (sandbox, elevated) = (&given["sandbox"], &given["elevated"]);
    let members = [
        "enabled",
        "workspaceDir",
        "workspaceAccess",
        "agentWorkspaceDir",
        "browserAllowHostControl",
        "browser",
        "browserBridgeUrl",
        "browserNoVncUrl",
    ];
    only(sandbox, &members)?;
    only(elevated, &["enabled", "allowed", "defaultLevel"])?;
    if sandbox["enabled"] != true {
        return Ok(Value::Null);
    }
    let access = sandbox["workspaceAccess"].as_str().unwrap_or("none");
    let access = WorkspaceAccess::parse(access).ok_or_else(|| format!("there is no access {access:?}"))?;
    let mut facts = SandboxFacts::new(PathBuf::from(sandbox["workspaceDir"].as_str().unwrap_or_default()), access);
    let browser = &sandbox["browser"];
    let address = |long: &str, short: &str| sandbox[long].as_str().or(browser[short].as_str()).map(str::to_owned);
    facts.browser_bridge_url = address("browserBridgeUrl", "bridgeUrl");
    facts.browser_screen_url = address("browserNoVncUrl", "noVncUrl");
    facts.host_browser_allowed = sandbox["browserAllowHostControl"] == true;
    let facts = facts.with_elevated(
        elevated["enabled"] == true,
        elevated["allowed"] == true,
        elevated["defaultLevel"].as_str(),
    );
    Ok(json!({
        "enabled": true,
        "workspaceDir": facts.workspace,
        "workspaceAccess": facts.access.as_str(),
        "agentWorkspaceMount": facts.agent_mount,
        "browserBridgeUrl": facts.browser_bridge_url,
        "browserNoVncUrl": facts.browser_screen_url,
        "hostBrowserAllowed": facts.host_browser_allowed,
        "elevated": facts.elevated.map(|level| json!({"allowed": true, "defaultLevel": level})),
    }))
}
