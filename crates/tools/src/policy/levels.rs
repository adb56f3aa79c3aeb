//! Rules for sandboxes and sub-agents.

use super::config::{LevelConfig, joined};
use super::names::canonical_name;
use super::rules::ToolRules;

/// Tools allowed in a sandbox unless lists are configured.
const SANDBOX_ALLOW: [&str; 13] = [
    "exec",
    "process",
    "read",
    "write",
    "edit",
    "apply_patch",
    "image",
    "sessions_list",
    "sessions_history",
    "sessions_send",
    "sessions_spawn",
    "subagents",
    "session_status",
];

/// Tools denied in a sandbox unless lists are configured: they act outside of it.
const SANDBOX_DENY: [&str; 12] = [
    "browser",
    "canvas",
    "nodes",
    "cron",
    "gateway",
    "telegram",
    "whatsapp",
    "discord",
    "googlechat",
    "slack",
    "signal",
    "imessage",
];

/// Tools denied to all sub-agents unless the configuration allows them.
const SUBAGENT_DENY: [&str; 9] = [
    "gateway",
    "agents_list",
    "whatsapp_login",
    "session_status",
    "cron",
    "memory_search",
    "memory_get",
    "sessions_send",
    "ask_user",
];

/// Tools also denied to sub-agents at the deepest level.
const LEAF_DENY: [&str; 3] = ["sessions_list", "sessions_history", "sessions_spawn"];

fn texts(entries: &[&str]) -> Vec<String> {
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

/// Returns the rules of a sandbox. Each list is the agent's, or else that of all agents, or else the default.
pub(super) fn sandbox_rules(agent: Option<&LevelConfig>, global: &LevelConfig) -> ToolRules {
    let pick = |list: fn(&LevelConfig) -> &Option<Vec<String>>| {
        agent.and_then(|agent| list(agent).clone()).or_else(|| list(global).clone())
    };
    let mut allow = pick(|level| &level.allow).unwrap_or_else(|| texts(&SANDBOX_ALLOW));
    let deny = pick(|level| &level.deny).unwrap_or_else(|| texts(&SANDBOX_DENY));
    if !allow.is_empty() {
        allow = joined(&allow, &pick(|level| &level.also_allow).unwrap_or_default());
    }
    // Viewing images needs no permission beyond reading, so every sandbox allows it.
    let image = ToolRules { allow: Some(allow.clone()), deny: deny.clone() };
    let is_denied = !ToolRules { allow: None, deny: deny.clone() }.permits("image");
    if !allow.is_empty() && !is_denied && !image.permits("image") {
        allow.push("image".to_owned());
    }
    ToolRules { allow: Some(allow), deny }
}

/// Returns the rules of a sub-agent; `max_depth` is the maximum nesting depth.
pub(super) fn subagent_rules(depth: u32, max_depth: u32, config: &LevelConfig) -> ToolRules {
    let configured = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let named = joined(&configured(&config.allow), &configured(&config.also_allow));
    let mut default = texts(&SUBAGENT_DENY);
    if depth >= max_depth.max(1) {
        default.extend(texts(&LEAF_DENY));
    }
    // Only a tool's own name lifts its default denial; patterns and groups do not.
    let names_it = |tool: &String| named.iter().any(|entry| canonical_name(entry) == *tool);
    let deny: Vec<String> = default.into_iter().filter(|tool| !names_it(tool)).collect();
    let deny = joined(&deny, &configured(&config.deny));
    let allow = config.allow.as_ref().map(|allow| joined(allow, &configured(&config.also_allow)));
    ToolRules { allow, deny }
}

/// Returns how deeply a session is nested in sub-agents: the stored depth, or else one more than its parent's, or else the number of
/// `subagent` segments in its key.
pub fn nesting_depth(key: &str, spawned_by: Option<&str>, stored: &dyn Fn(&str) -> Option<u32>) -> u32 {
    if let Some(depth) = stored(key) {
        return depth;
    }
    if let Some(parent) = spawned_by.filter(|parent| *parent != key) {
        let depth = stored(parent).unwrap_or_else(|| segments(parent));
        return depth.saturating_add(1);
    }
    segments(key)
}

fn segments(key: &str) -> u32 {
    let n = key.split(':').skip(1).filter(|part| part.eq_ignore_ascii_case("subagent")).count();
    let first = key.split(':').next().is_some_and(|part| part.trim().eq_ignore_ascii_case("subagent"));
    u32::try_from(n + usize::from(first)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_stored_or_derived() {
        let stored = |key: &str| (key == "agent:a:subagent:1").then_some(4);
        assert_eq!(nesting_depth("agent:a:subagent:1", None, &stored), 4);
        assert_eq!(nesting_depth("agent:a:subagent:2", Some("agent:a:subagent:1"), &stored), 5);
        assert_eq!(nesting_depth("agent:a:subagent:2", Some("agent:a:main"), &stored), 1);
        assert_eq!(nesting_depth("agent:a:subagent:2:subagent:3", None, &stored), 2);
        assert_eq!(nesting_depth("agent:a:main", None, &stored), 0);
        assert_eq!(nesting_depth("subagent:1", None, &stored), 1);
    }

    #[test]
    fn an_empty_sandbox_list_allows_everything_that_is_not_denied() {
        let config = LevelConfig { allow: Some(Vec::new()), ..LevelConfig::default() };
        let rules = sandbox_rules(Some(&config), &LevelConfig::default());
        assert!(rules.permits("anything") && !rules.permits("browser"));
    }

    #[test]
    fn a_star_does_not_lift_the_default_deny_list_of_subagents() {
        let config = LevelConfig { allow: Some(vec!["*".to_owned()]), ..LevelConfig::default() };
        let rules = subagent_rules(1, 2, &config);
        assert!(rules.permits("read") && rules.permits("sessions_spawn") && !rules.permits("gateway"));
    }
}
