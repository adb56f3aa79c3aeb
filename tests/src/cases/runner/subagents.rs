//! Whether a session may start a sub-agent, and which.

use pinch_embed::key;
use pinch_embed::subagents::spawn::{SpawnOptions, SpawnRequester, decide};
use serde_json::{Value, json};

use super::check;

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    (area == "subagent-spawn").then(|| spawn(given, expect))
}

fn spawn(given: &Value, expect: &Value) -> Result<(), String> {
    let text = |name: &str| given[name].as_str().map(str::to_owned);
    let key = text("requester").unwrap_or_default();
    let depth = given.get("maxSpawnDepth").cloned().unwrap_or_else(|| 1.into());
    let allowed = given.get("allowAgents").cloned().unwrap_or_else(|| json!([]));
    let config = super::config(json!({"agents": {
        "defaults": {"subagents": {"maxSpawnDepth": depth}},
        "list": [{"id": key::agent(&key).as_str(), "subagents": {"allowAgents": allowed}}],
    }}));
    let requester = SpawnRequester { key, ..SpawnRequester::default() };
    let options = SpawnOptions { agent: text("agentId"), model: text("model"), thinking: text("thinking") };
    let decided = decide(&config, &requester, &options, |_, _| match given["modelAllowed"] {
        Value::Bool(false) => Err("it is not allowed".to_owned()),
        _ => Ok(()),
    });
    let mut answer = match &decided {
        Ok(plan) => plan.to_json(&plan.child_key("id"), "run"),
        Err(refusal) => refusal.to_json(),
    };
    if let Some(prefix) = expect["childKeyPrefix"].as_str() {
        let child = answer["childSessionKey"].as_str().unwrap_or_default();
        answer["childKeyPrefix"] = child.get(..prefix.len()).unwrap_or(child).into();
    }
    answer["warning"] = answer["warning"].is_string().into();
    check(expect, &answer)
}
