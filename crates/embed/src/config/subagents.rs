//! `subagents`: which sub-agents an agent may start, how many, and with which model.

use std::time::Duration;

use pinch_coding_agent::document::Problem;
use pinch_llm::thinking::ThinkingLevel;

use super::models::read_model;
use super::node::Node;
use super::thinking::read_level;

/// Default and maximum number of unfinished sub-agents of one session.
const CHILDREN: u64 = 5;
const MAX_CHILDREN: u64 = 20;
/// Maximum nesting depth.
const MAX_DEPTH: u64 = 5;
/// Minutes after which sub-agents are removed, by default.
const ARCHIVE_MINUTES: f64 = 60.0;

/// Limits of the sub-agents of all agents (`agents.defaults.subagents`). The nesting depth is part of the tool policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentLimits {
    /// Maximum number of concurrent runs (`maxConcurrent`).
    pub max_concurrent: Option<usize>,
    /// Maximum number of unfinished sub-agents per session (`maxChildrenPerAgent`).
    pub max_children: usize,
    /// How long after its start a finished sub-agent is removed with its session (`archiveAfterMinutes`); `None`: never.
    pub archive_after: Option<Duration>,
}

impl Default for SubagentLimits {
    fn default() -> Self {
        let archive_after = archive_after(ARCHIVE_MINUTES);
        Self { max_concurrent: None, max_children: CHILDREN as usize, archive_after }
    }
}

/// Settings of the sub-agents that an agent starts or is (`subagents` of `agents.defaults`, and of one agent, which come first).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubagentChoices {
    /// Model of this agent as a sub-agent.
    pub model: Option<String>,
    /// Its thinking level.
    pub thinking: Option<ThinkingLevel>,
    /// Other agents that this one may start, `*` for all; itself it always may.
    pub allow_agents: Option<Vec<String>>,
}

impl SubagentLimits {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let count = |name: &str, max: u64, problems: &mut Vec<Problem>| {
            let member = node.get(name);
            let n = member.count(problems)?;
            if !(1..=max).contains(&n) {
                problems
                    .push(member.problem(format!("must be 1 to {max}, not {n}")).remedy("The nearest of them applies"));
            }
            Some(n.clamp(1, max))
        };
        // The policies read its value.
        count("maxSpawnDepth", MAX_DEPTH, problems);
        let max_children = count("maxChildrenPerAgent", MAX_CHILDREN, problems).unwrap_or(CHILDREN);
        Self {
            max_concurrent: node.get("maxConcurrent").count(problems).and_then(|n| usize::try_from(n).ok()),
            max_children: usize::try_from(max_children).unwrap_or(usize::MAX),
            archive_after: archive_after(node.get("archiveAfterMinutes").number(problems).unwrap_or(ARCHIVE_MINUTES)),
        }
    }
}

/// Returns the time of a number of minutes; `None` if it is not positive.
fn archive_after(minutes: f64) -> Option<Duration> {
    (minutes > 0.0).then(|| Duration::try_from_secs_f64(minutes * 60.0).ok()).flatten()
}

impl SubagentChoices {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        Self {
            model: read_model(&node.get("model"), problems).0,
            thinking: read_level(&node.get("thinking"), problems),
            allow_agents: node.get("allowAgents").texts(problems),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::Config;
    use super::*;

    #[test]
    fn limits_are_read_and_values_out_of_range_are_reported() {
        let read = |subagents: serde_json::Value| {
            let document = json!({"agents": {"defaults": {"subagents": subagents}}});
            let (config, problems) =
                Config::from_document(document.as_object().unwrap().clone(), Path::new("pinch.json"));
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            (config, problems.join("\n"))
        };
        let (config, problems) = read(json!({"maxSpawnDepth": 3, "maxChildrenPerAgent": 7, "archiveAfterMinutes": 0}));
        let limits = &config.agents.defaults.subagent_limits;
        assert_eq!((problems.as_str(), config.tools.max_spawn_depth()), ("", 3));
        assert_eq!((limits.max_children, limits.archive_after), (7, None));
        let (config, problems) = read(json!({"maxSpawnDepth": 9, "maxChildrenPerAgent": 0, "thinking": "much"}));
        let limits = &config.agents.defaults.subagent_limits;
        assert_eq!((config.tools.max_spawn_depth(), limits.max_children), (5, 1));
        for expected in [
            "subagents.maxSpawnDepth: must be 1 to 5, not 9",
            "subagents.maxChildrenPerAgent: must be 1 to 20, not 0",
            "subagents.thinking: \"much\" is not one of",
        ] {
            assert!(problems.contains(expected), "{problems}");
        }
        assert_eq!(read(json!({})).0.agents.defaults.subagent_limits, SubagentLimits::default());
        assert_eq!(SubagentLimits::default().archive_after, Some(Duration::from_secs(3600)));
    }
}
