//! `tools`: which tools are offered to which callers, and keys whose restrictions are not enforced.

use pinch_coding_agent::document::Problem;
use pinch_tools::policy::ToolPolicies;
use serde_json::{Map, Value};

use super::node::Node;

/// Members of `tools` that contain policies.
const POLICY_KEYS: [&str; 8] =
    ["profile", "allow", "alsoAllow", "deny", "byProvider", "toolsBySender", "sandbox", "strictAllow"];

/// Numeric members of `tools.loopDetection`.
const LOOP_NUMBERS: [&str; 5] =
    ["historySize", "warningThreshold", "unknownToolThreshold", "criticalThreshold", "globalCircuitBreakerThreshold"];

/// Reads the policies of a whole document.
pub(super) fn policies(root: &Node<'_>, problems: &mut Vec<Problem>) -> ToolPolicies {
    root.get("tools").get("subagents").value();
    let Some(document) = root.value() else { return ToolPolicies::default() };
    let (policies, found) = ToolPolicies::read(document);
    problems.extend(found.into_iter().map(|problem| root.problem_at(&problem.path, problem.text)));
    policies
}

/// Reads `loopDetection` of all agents or of one, as an object whose members have the right types.
pub(super) fn loop_detection(tools: &Node<'_>, problems: &mut Vec<Problem>) -> Value {
    let mut read = Map::new();
    let node = tools.get("loopDetection");
    if node.object(problems).is_none() {
        return Value::Null;
    }
    read.extend(node.get("enabled").flag(problems).map(|value| ("enabled".to_owned(), value.into())));
    for number in LOOP_NUMBERS {
        read.extend(node.get(number).count(problems).map(|value| (number.to_owned(), value.into())));
    }
    let on_repeat = node.get("onRepeat").word(problems, &["warn", "block"], |word| match word {
        "warn" | "block" => Some(word.to_owned()),
        _ => None,
    });
    read.extend(on_repeat.map(|word| ("onRepeat".to_owned(), word.into())));
    let detectors = node.get("detectors");
    let flags = ["genericRepeat", "knownPollNoProgress", "pingPong"];
    let flags =
        flags.into_iter().filter_map(|name| Some((name.to_owned(), detectors.get(name).flag(problems)?.into())));
    read.insert("detectors".to_owned(), Value::Object(flags.collect()));
    Value::Object(read)
}

/// Reads `fs.workspaceOnly` in `tools`: whether file tools see only the workspace.
pub(super) fn workspace_only(tools: &Node<'_>) -> Option<bool> {
    tools.get("fs").get("workspaceOnly").value().and_then(Value::as_bool)
}

/// Returns the keys in `tools`, of all agents or of one, that are enforced only for sandboxed runs.
pub(super) fn need_sandbox(tools: &Node<'_>) -> Vec<String> {
    let host = tools.get("exec").get("host");
    let is_sandbox = host.value().and_then(Value::as_str).is_some_and(|word| word.trim() == "sandbox");
    is_sandbox.then(|| host.path().to_owned()).into_iter().collect()
}

/// Returns the keys in `tools`, of all agents or of one, whose restrictions are not enforced.
pub(super) fn unenforced(tools: &Node<'_>) -> Vec<String> {
    for key in POLICY_KEYS {
        tools.get(key).value();
    }
    let mut unenforced = Vec::new();
    let mut restricts = |node: &Node<'_>, is_harmless: &dyn Fn(&Value) -> bool| {
        if node.value().is_some_and(|value| !is_harmless(value)) {
            unenforced.push(node.path().to_owned());
        }
    };
    // What is no object has no members, and whatever it was meant to forbid would be allowed.
    for section in [tools.get("exec"), tools.get("fs"), tools.get("exec").get("applyPatch")] {
        if section.is_there() && !section.is_object() {
            restricts(&section, &|_| false);
        }
    }
    let is_word =
        |words: &'static [&str]| move |value: &Value| value.as_str().is_some_and(|word| words.contains(&word.trim()));
    restricts(&tools.get("fs").get("workspaceOnly"), &Value::is_boolean);
    restricts(&tools.get("exec").get("host"), &is_word(&["gateway", "auto", "sandbox"]));
    let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    restricts(&tools.get("exec").get("safeBinProfiles"), &is_empty);
    unenforced
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pinch_ports::Caller;
    use pinch_tools::policy::{OfferedTool, PolicyRequest};
    use serde_json::json;

    use super::super::node::UsedKeys;
    use super::*;

    fn read(document: &Value) -> (ToolPolicies, Vec<String>, Vec<String>) {
        let used = UsedKeys::default();
        let root = Node::root(document, Path::new("pinch.json"), &used);
        let mut problems = Vec::new();
        let policies = policies(&root, &mut problems);
        let keys = unenforced(&root.get("tools"));
        (policies, keys, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_tool_is_denied_by_name_alias_pattern_and_group() {
        let all = ["read", "bash", "edit", "write", "grep", "find", "ls"];
        for (entry, denied) in [
            ("bash", &["bash"][..]),
            (" Exec ", &["bash"]),
            ("exec:*", &["bash"]),
            ("group:runtime", &["bash"]),
            ("group:fs", &["read", "edit", "write", "grep", "find", "ls"]),
            ("*", &all),
            ("r*d", &["read"]),
            ("*i*", &["edit", "write", "find"]),
            ("browser", &[]),
        ] {
            let (policies, unenforced, problems) = read(&json!({"tools": {"deny": [entry]}}));
            assert_eq!((unenforced.len(), problems.len()), (0, 0), "{entry}");
            let decision = policies
                .resolve(&PolicyRequest::new(&Caller::new(), "openai", "gpt-5"))
                .decide(&all.map(OfferedTool::new));
            let mut expect: Vec<&str> = all.to_vec();
            expect.retain(|tool| !denied.contains(tool));
            assert_eq!(decision.allowed(), expect, "{entry}");
        }
    }

    #[test]
    fn an_invalid_policy_denies_everything_and_is_reported() {
        for tools in [json!({"deny": ["group:unknown"]}), json!({"deny": "bash"}), json!([])] {
            let (policies, _, problems) = read(&json!({"tools": tools}));
            let decision = policies
                .resolve(&PolicyRequest::new(&Caller::new(), "openai", "gpt-5"))
                .decide(&[OfferedTool::new("read")]);
            assert_eq!((decision.allowed().len(), problems.len()), (0, 1), "{tools}: {problems:?}");
            assert!(problems[0].starts_with("pinch.json:tools"), "{problems:?}");
        }
    }

    #[test]
    fn restrictions_that_cannot_be_enforced_are_reported() {
        for (document, expect) in [
            (json!({"tools": {"fs": {"workspaceOnly": "yes"}}}), "tools.fs.workspaceOnly"),
            (json!({"tools": {"exec": {"host": "node"}}}), "tools.exec.host"),
            (json!({"tools": {"exec": "deny"}}), "tools.exec"),
            (json!({"tools": {"exec": ["deny"]}}), "tools.exec"),
            (json!({"tools": {"exec": {"applyPatch": false}}}), "tools.exec.applyPatch"),
            (json!({"tools": {"fs": "workspaceOnly"}}), "tools.fs"),
            (
                json!({"tools": {"exec": {"safeBinProfiles": {"rg": {"maxPositional": 1}}}}}),
                "tools.exec.safeBinProfiles",
            ),
            (json!({"tools": {"exec": {"safeBinProfiles": "strict"}}}), "tools.exec.safeBinProfiles"),
        ] {
            assert_eq!(read(&document).1, [expect], "{document}");
        }
        for document in [
            json!({}),
            json!({"tools": {"allow": ["read"], "profile": "coding", "exec": {"mode": "full", "host": "gateway"}}}),
            json!({"tools": {"exec": {"host": "sandbox"}}}),
            json!({"tools": {"exec": {"safeBinProfiles": {}}}}),
        ] {
            assert_eq!(read(&document).1, [""; 0], "{document}");
        }
    }
}
