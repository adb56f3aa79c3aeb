//! `policy`, `subagent-depth`, `sandbox-tools`.

use pinch_ports::{Caller, Sender};
use pinch_tools::policy::{OfferedTool, PolicyRequest, ToolPolicies, ToolRules};
use serde_json::{Map, Value, json};

use super::super::Case;
use super::{only, texts};

pub(super) fn decide(input: &Value, case: &Case<'_>) -> Result<Value, String> {
    let members = [
        "tools",
        "channelTools",
        "plugins",
        "config",
        "sessionKey",
        "modelProvider",
        "modelId",
        "group",
        "sandboxTools",
        "owner",
        "depth",
        "spawnDepth",
        "agentId",
    ];
    only(input, &members)?;
    let core = texts(&case.file["fixtures"]["coreTools"]);
    let named = |value: &Value| if *value == "$coreTools" { core.clone() } else { texts(value) };
    let mut tools: Vec<OfferedTool> = named(&input["tools"]).into_iter().map(OfferedTool::new).collect();
    tools.extend(texts(&input["channelTools"]).into_iter().map(OfferedTool::new));
    for plugin in input["plugins"].as_array().into_iter().flatten() {
        let id = plugin["id"].as_str().unwrap_or_default();
        tools.extend(texts(&plugin["tools"]).into_iter().map(|tool| OfferedTool::new(tool).plugin(id)));
    }
    let (policies, _) = ToolPolicies::read(&input["config"]);
    let caller = caller(input)?;
    let text = |key: &str, default: &'static str| input[key].as_str().unwrap_or(default).to_owned();
    let (provider, model) = (text("modelProvider", "anthropic"), text("modelId", "claude-opus-4-5"));
    let mut request = PolicyRequest::new(&caller, &provider, &model);
    request.sandbox = match &input["sandboxTools"] {
        Value::Null => None,
        rules => Some(ToolRules {
            allow: rules["allow"].is_array().then(|| texts(&rules["allow"])),
            deny: texts(&rules["deny"]),
        }),
    };
    let depth = [&input["depth"], &input["spawnDepth"]].into_iter().find_map(Value::as_u64);
    request.depth = depth.map(|depth| u32::try_from(depth).unwrap_or(u32::MAX));
    let decision = policies.resolve(&request).decide(&tools);
    let warnings: Vec<Value> = decision
        .warnings()
        .iter()
        .map(|warning| json!({"label": warning.label, "unknown": warning.unknown, "stripped": warning.stripped}))
        .collect();
    let removed = tools.iter().filter_map(|tool| {
        let (label, _) = decision.explain(&tool.name).removed?;
        Some((tool.name.clone(), label.into()))
    });
    let decided: Map<String, Value> = removed.collect();
    let allowed = decision.allowed();
    // The names of the fixture are replaced by a placeholder.
    let allowed = if allowed == core { json!("$coreTools") } else { json!(allowed) };
    let allowed = match (&super::wanted(case)["allowed"], &allowed) {
        (Value::Array(_), Value::String(_)) => json!(core),
        _ => allowed,
    };
    Ok(json!({"allowed": allowed, "warnings": warnings, "decidedBy": decided}))
}

/// The caller that a case describes: the owner by default.
fn caller(input: &Value) -> Result<Caller, String> {
    let group = &input["group"];
    let members = [
        "groupId",
        "groupChannel",
        "groupSpace",
        "spawnedBy",
        "messageProvider",
        "channel",
        "accountId",
        "agentAccountId",
        "senderId",
        "senderName",
        "senderUsername",
        "senderE164",
    ];
    only(group, &members)?;
    let text = |key: &str| group[key].as_str().map(str::to_owned);
    let mut caller = Caller::new();
    caller.session_key = Some(input["sessionKey"].as_str().unwrap_or("agent:main:main").into());
    caller.agent = input["agentId"].as_str().map(str::to_owned);
    caller.group = text("groupId").or_else(|| group["groupId"].as_i64().map(|id| id.to_string()));
    caller.group_label = text("groupChannel");
    caller.space = text("groupSpace");
    caller.spawned_by = text("spawnedBy").map(Into::into);
    caller.channel = text("messageProvider").or_else(|| text("channel"));
    caller.account = text("accountId").or_else(|| text("agentAccountId"));
    let mut sender = Sender::default();
    sender.id = text("senderId");
    sender.name = text("senderName");
    sender.user_name = text("senderUsername");
    sender.phone = text("senderE164");
    caller.sender = sender;
    caller.is_owner = input["owner"].as_bool().unwrap_or(true);
    Ok(caller)
}

pub(super) fn subagent(input: &Value, expect: &Value) -> Result<(), String> {
    only(input, &["config", "depth"])?;
    only(expect, &["allowed", "denied", "policyAllow"])?;
    let (policies, _) = ToolPolicies::read(&input["config"]);
    let depth = input["depth"].as_u64().map(|depth| u32::try_from(depth).unwrap_or(u32::MAX));
    let rules = policies.subagent(depth);
    for (key, wanted) in [("allowed", true), ("denied", false)] {
        if let Some(tool) = texts(&expect[key]).into_iter().find(|tool| rules.permits(tool) != wanted) {
            return Err(format!("{tool} should be {key}; the rules are {rules:?}"));
        }
    }
    match expect.get("policyAllow") {
        Some(allow) if *allow != json!(rules.allow) => Err(format!("expected {allow}, got {:?}", rules.allow)),
        _ => Ok(()),
    }
}

pub(super) fn sandbox(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["config", "agentId"])?;
    let (policies, _) = ToolPolicies::read(&input["config"]);
    let rules = policies.sandbox(input["agentId"].as_str().unwrap_or("main"));
    Ok(json!({"allow": rules.allow, "deny": rules.deny}))
}
