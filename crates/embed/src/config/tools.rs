//! `tools` and `sandbox`: what agents may use. Deny lists are enforced; a run does not start if the configuration restricts tools
//! in a way that cannot be enforced.

use serde_json::Value;

use super::node::Node;
use super::pattern::glob;

/// Tool groups as deny lists name them.
const GROUPS: [(&str, &[&str]); 2] = [("fs", &["read", "write", "edit", "grep", "find", "ls"]), ("runtime", &["exec"])];

/// Groups of OpenClaw whose tools do not exist here, so that denying them needs no enforcement.
const EMPTY_GROUPS: [&str; 8] = ["web", "memory", "sessions", "ui", "automation", "messaging", "nodes", "openclaw"];

/// Tool restrictions for all agents, or for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolsConfig {
    /// Tools that are not offered: names, patterns with `*`, and groups.
    pub deny: Vec<String>,
    /// Keys that restrict tools in a way that is not enforced, with their paths.
    pub unenforced: Vec<String>,
}

impl ToolsConfig {
    /// Reads `tools` and `sandbox` of all agents or of one.
    pub(super) fn read(tools: &Node<'_>, sandbox: &Node<'_>) -> Self {
        let mut unenforced = Vec::new();
        let deny = tools.get("deny");
        let mut denied = Vec::new();
        match deny.value() {
            None => {}
            Some(Value::Array(entries)) if entries.iter().all(Value::is_string) => {
                denied.extend(entries.iter().filter_map(Value::as_str).map(normal).filter(|entry| !entry.is_empty()));
                if denied.iter().any(|entry| !is_understood(entry)) {
                    unenforced.push(deny.path().to_owned());
                }
            }
            // It is unknown what an unreadable list was meant to deny.
            Some(_) => unenforced.push(deny.path().to_owned()),
        }
        let mut restricts = |node: &Node<'_>, is_harmless: &dyn Fn(&Value) -> bool| {
            if node.value().is_some_and(|value| !is_harmless(value)) {
                unenforced.push(node.path().to_owned());
            }
        };
        let is_word = |words: &'static [&str]| {
            move |value: &Value| value.as_str().is_some_and(|word| words.contains(&word.trim()))
        };
        restricts(&tools.get("allow"), &is_empty);
        restricts(&tools.get("profile"), &is_word(&["full", ""]));
        restricts(&tools.get("byProvider"), &is_empty);
        restricts(&tools.get("sandbox"), &is_empty);
        restricts(&tools.get("fs").get("workspaceOnly"), &|value| *value == Value::Bool(false));
        let exec = tools.get("exec");
        restricts(&exec.get("mode"), &is_word(&["full"]));
        restricts(&exec.get("host"), &is_word(&["gateway", "auto"]));
        restricts(&exec.get("security"), &is_word(&["full"]));
        restricts(&exec.get("ask"), &is_word(&["off"]));
        restricts(&exec.get("applyPatch").get("workspaceOnly"), &|value| *value == Value::Bool(false));
        restricts(&tools.get("toolsBySender"), &is_empty);
        restricts(&sandbox.get("mode"), &is_word(&["off"]));
        Self { deny: denied, unenforced }
    }

    /// Whether a tool is denied.
    pub fn denies(&self, tool: &str) -> bool {
        let tool = tool.to_ascii_lowercase();
        let canonical = normal(&tool);
        self.deny.iter().any(|entry| matches(entry, &canonical) || matches(entry, &tool))
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// An entry or a name in the form that is compared. OpenClaw calls `bash` `exec`.
fn normal(name: &str) -> String {
    match name.trim().to_ascii_lowercase().as_str() {
        "bash" => "exec".to_owned(),
        "apply-patch" => "apply_patch".to_owned(),
        // Newer names of the same tools.
        "view_image" => "image".to_owned(),
        "automations" => "cron".to_owned(),
        other => other.to_owned(),
    }
}

fn is_understood(entry: &str) -> bool {
    let is_known = |group: &str| GROUPS.iter().any(|(name, _)| *name == group) || EMPTY_GROUPS.contains(&group);
    entry.strip_prefix("group:").is_none_or(is_known)
}

fn matches(entry: &str, tool: &str) -> bool {
    let in_group = |group: &str| GROUPS.iter().any(|(name, tools)| *name == group && tools.contains(&tool));
    if let Some(group) = entry.strip_prefix("group:") {
        return in_group(group);
    }
    // A family: the tool itself, and all tools whose names start with its name.
    if let Some(series) = entry.strip_suffix(":*") {
        let continues = |rest: &str| rest.is_empty() || rest.starts_with([':', '.', '_']);
        return in_group(series) || tool.strip_prefix(normal(series).as_str()).is_some_and(continues);
    }
    glob(entry, tool)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::node::UsedKeys;
    use super::*;

    fn read(document: &Value) -> ToolsConfig {
        let used = UsedKeys::default();
        let root = Node::root(document, Path::new("pinch.json"), &used);
        ToolsConfig::read(&root.get("tools"), &root.get("sandbox"))
    }

    #[test]
    fn a_tool_is_denied_by_name_alias_pattern_and_group() {
        for (entry, denied) in [
            ("bash", &["bash"][..]),
            (" Exec ", &["bash"]),
            ("exec:*", &["bash"]),
            ("group:runtime", &["bash"]),
            ("group:fs", &["read", "edit", "write", "grep", "find", "ls"]),
            ("*", &["read", "bash", "edit", "write", "grep", "find", "ls"]),
            ("r*d", &["read"]),
            ("*i*", &["edit", "write", "find"]),
            ("browser", &[]),
        ] {
            let tools = read(&json!({"tools": {"deny": [entry]}}));
            assert_eq!(tools.unenforced, [""; 0], "{entry}");
            let all = ["read", "bash", "edit", "write", "grep", "find", "ls"];
            let found: Vec<&str> = all.into_iter().filter(|tool| tools.denies(tool)).collect();
            assert_eq!(found, denied, "{entry}");
        }
    }

    #[test]
    fn restrictions_that_cannot_be_enforced_are_reported() {
        for (document, expect) in [
            (json!({"tools": {"allow": ["read"]}}), "tools.allow"),
            (json!({"tools": {"profile": "minimal"}}), "tools.profile"),
            (json!({"tools": {"byProvider": {"openai": {"deny": ["exec"]}}}}), "tools.byProvider"),
            (json!({"tools": {"sandbox": {"tools": {"deny": ["exec"]}}}}), "tools.sandbox"),
            (json!({"tools": {"fs": {"workspaceOnly": true}}}), "tools.fs.workspaceOnly"),
            (json!({"tools": {"exec": {"mode": "ask"}}}), "tools.exec.mode"),
            (json!({"tools": {"exec": {"security": "allowlist"}}}), "tools.exec.security"),
            (json!({"tools": {"exec": {"ask": "always"}}}), "tools.exec.ask"),
            (json!({"tools": {"exec": {"host": "sandbox"}}}), "tools.exec.host"),
            (
                json!({"tools": {"exec": {"applyPatch": {"workspaceOnly": true}}}}),
                "tools.exec.applyPatch.workspaceOnly",
            ),
            (json!({"sandbox": {"mode": "all"}}), "sandbox.mode"),
            (json!({"tools": {"deny": ["group:unknown"]}}), "tools.deny"),
            (json!({"tools": {"deny": "bash"}}), "tools.deny"),
        ] {
            assert_eq!(read(&document).unenforced, [expect], "{document}");
        }
        for document in [
            json!({}),
            json!({"tools": {"allow": [], "profile": "full", "exec": {"mode": "full", "host": "gateway"}}}),
            json!({"sandbox": {"mode": "off"}}),
        ] {
            assert_eq!(read(&document), ToolsConfig::default(), "{document}");
        }
    }
}
