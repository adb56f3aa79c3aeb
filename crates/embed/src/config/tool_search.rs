//! `tools.toolSearch`: whether tools that are not for coding are searched for instead of declared.

use pinch_coding_agent::document::Problem;
use pinch_tools::tool_search::{DEFAULT_LIMIT, MAX_LIMIT};

use super::node::Node;

/// `toolSearch` of all agents or of one; `None`: not configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolSearchConfig {
    /// Whether it is enabled. An object enables it, unless it says otherwise.
    pub enabled: Option<bool>,
    /// Number of hits of a search that names none.
    pub limit: Option<usize>,
}

impl ToolSearchConfig {
    /// Reads `toolSearch` in `tools`: true, false, or an object.
    pub(super) fn read(tools: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let node = tools.get("toolSearch");
        if node.is_object() {
            let enabled = node.get("enabled");
            let is_enabled = enabled.flag(problems);
            // An object without members is still used.
            node.members(problems);
            // A wrong type does not enable anything.
            let enabled = if enabled.is_there() { is_enabled } else { Some(true) };
            return Self { enabled, limit: limit(&node.get("limit"), problems) };
        }
        if node.is_there() && !node.is_flag() {
            node.value();
            let problem =
                node.problem("must be true, false or an object").remedy("Correct it; until then it is ignored");
            problems.push(problem);
            return Self::default();
        }
        Self { enabled: node.flag(problems), limit: None }
    }

    /// Returns the number of hits if tool search is enabled for an agent, whose members take precedence over those of all agents. It is
    /// disabled by default.
    pub fn of_agent(all: Self, own: Option<Self>) -> Option<usize> {
        let own = own.unwrap_or_default();
        let is_enabled = own.enabled.or(all.enabled).unwrap_or(false);
        is_enabled.then(|| own.limit.or(all.limit).unwrap_or(DEFAULT_LIMIT))
    }
}

fn limit(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<usize> {
    let limit = usize::try_from(node.count(problems)?).unwrap_or(usize::MAX);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let problem = node.problem(format!("must be between 1 and {MAX_LIMIT}"));
        problems.push(problem.remedy("Correct it; until then it is ignored"));
        return None;
    }
    Some(limit)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::super::node::UsedKeys;
    use super::*;

    fn read(value: &Value) -> (Option<usize>, Vec<String>, Vec<String>) {
        let document = json!({"toolSearch": value});
        let used = UsedKeys::default();
        let node = Node::root(&document, Path::new("pinch.json"), &used);
        let mut problems = Vec::new();
        let config = ToolSearchConfig::read(&node, &mut problems);
        let ignored = used.ignored(document.as_object().unwrap());
        let problems = problems.iter().map(ToString::to_string).collect();
        (ToolSearchConfig::of_agent(config, None), problems, ignored)
    }

    #[test]
    fn it_is_a_flag_or_an_object() {
        for (value, expect) in [
            (json!(null), None),
            (json!(false), None),
            (json!(true), Some(8)),
            (json!({}), Some(8)),
            (json!({"limit": 3}), Some(3)),
            (json!({"enabled": true, "limit": 20}), Some(20)),
            (json!({"enabled": false, "limit": 3}), None),
        ] {
            assert_eq!(read(&value), (expect, vec![], vec![]), "{value}");
        }
    }

    #[test]
    fn wrong_types_and_unknown_members_are_reported() {
        for (value, expect) in [
            (json!("yes"), "pinch.json:toolSearch: must be true, false or an object"),
            (json!({"enabled": "yes"}), "pinch.json:toolSearch.enabled: must be true or false"),
            (json!({"limit": "many"}), "pinch.json:toolSearch.limit: must be a non-negative number"),
            (json!({"limit": 21}), "pinch.json:toolSearch.limit: must be between 1 and 20"),
            (json!({"limit": 0}), "pinch.json:toolSearch.limit: must be between 1 and 20"),
        ] {
            let (_, problems, _) = read(&value);
            assert!(matches!(&problems[..], [one] if one.starts_with(expect)), "{value}: {problems:?}");
        }
        assert_eq!(read(&json!("yes")).0, None);
        assert_eq!(read(&json!({"enabled": "yes"})).0, None);
        assert_eq!(read(&json!({"limit": 21})).0, Some(8));
        assert_eq!(read(&json!({"mode": "code"})).2, ["toolSearch.mode"]);
    }

    #[test]
    fn an_agent_overrides_single_members() {
        let all = ToolSearchConfig { enabled: Some(true), limit: Some(3) };
        let own = |enabled, limit| Some(ToolSearchConfig { enabled, limit });
        assert_eq!(ToolSearchConfig::of_agent(all, None), Some(3));
        assert_eq!(ToolSearchConfig::of_agent(all, own(Some(false), None)), None);
        assert_eq!(ToolSearchConfig::of_agent(all, own(None, Some(5))), Some(5));
        assert_eq!(ToolSearchConfig::of_agent(ToolSearchConfig::default(), own(Some(true), None)), Some(8));
    }
}
