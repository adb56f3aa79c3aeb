//! `agents.defaults.sandbox`, and that of each agent: which runs are isolated from the rest of the machine, and how.

use pinch_coding_agent::document::Problem;
use pinch_sandbox::config::{ContainerConfig, SandboxConfig};
use serde_json::Value;

use super::node::Node;
use crate::key::AgentId;

/// Members of a section that have an effect.
const KEYS: [&str; 9] = [
    "mode",
    "scope",
    "perSession",
    "workspaceAccess",
    "workspaceRoot",
    "backend",
    "domains",
    "hideProcesses",
    "extraRoots",
];

/// Members of the nested sections that have an effect.
const NESTED: [(&str, &[&str]); 2] = [("docker", &ContainerConfig::KEYS), ("prune", &["idleHours", "maxAgeDays"])];

/// The sandbox of each agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxSettings {
    defaults: SandboxConfig,
    agents: Vec<(AgentId, SandboxConfig)>,
}

impl SandboxSettings {
    /// Reads the sections of a whole document. Invalid values are reported and replaced by the strictest ones.
    pub(super) fn read(root: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let document = root.value().unwrap_or(&Value::Null);
        let agents = root.get("agents");
        let mut found = Vec::new();
        let (defaults, of_defaults) = SandboxConfig::read(document, "");
        use_keys(&agents.get("defaults").get("sandbox"));
        found.extend(of_defaults);
        let mut own: Vec<(AgentId, SandboxConfig)> = Vec::new();
        // Problems in the list itself are reported where agents are read.
        for item in agents.get("list").items(&mut Vec::new()) {
            use_keys(&item.get("sandbox"));
            let id = item.get("id");
            let Some(name) = id.value().and_then(Value::as_str) else { continue };
            let (config, of_agent) = SandboxConfig::read(document, name);
            found.extend(of_agent);
            let agent = AgentId::normalise(name);
            if own.iter().all(|(known, _)| *known != agent) {
                own.push((agent, config));
            }
        }
        // Problems of the defaults show up again for each agent.
        let mut known: Vec<String> = Vec::new();
        for problem in found {
            if !known.contains(&problem.path) {
                problems.push(root.problem_at(&problem.path, problem.text).remedy("Correct it"));
                known.push(problem.path);
            }
        }
        Self { defaults, agents: own }
    }

    /// Returns the sandbox of an agent.
    pub fn of(&self, agent: &AgentId) -> &SandboxConfig {
        self.agents.iter().find(|(known, _)| known == agent).map_or(&self.defaults, |(_, config)| config)
    }
}

/// Marks the members of a section that have an effect as read.
fn use_keys(section: &Node<'_>) {
    for key in KEYS {
        section.get(key).value();
    }
    for (name, keys) in NESTED {
        let nested = section.get(name);
        if !nested.is_object() {
            nested.value();
        }
        for key in keys {
            nested.get(key).value();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pinch_sandbox::scope::{SandboxMode, SandboxScope};
    use serde_json::json;

    use super::super::node::UsedKeys;
    use super::*;

    fn read(document: &Value) -> (SandboxSettings, Vec<String>) {
        let used = UsedKeys::default();
        let mut problems = Vec::new();
        let settings = SandboxSettings::read(&Node::root(document, Path::new("pinch.json"), &used), &mut problems);
        (settings, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn only_members_without_an_effect_are_reported_as_ignored() {
        let document = json!({"agents": {"defaults": {"sandbox": {
            "mode": "off", "prune": {"idleHours": 1, "maxAgeDays": 2, "idleHour": 1}, "browser": {"enabled": true},
            "docker": {"memory": "1g", "memroy": "1g", "gpus": "all", "env": {"A": "b"}},
        }}}});
        let used = UsedKeys::default();
        SandboxSettings::read(&Node::root(&document, Path::new("pinch.json"), &used), &mut Vec::new());
        let mut ignored = used.ignored(document.as_object().unwrap());
        ignored.sort_unstable();
        let expect = ["browser", "docker.gpus", "docker.memroy", "prune.idleHour"];
        assert_eq!(ignored, expect.map(|key| format!("agents.defaults.sandbox.{key}")));
    }

    #[test]
    fn the_section_of_an_agent_overrides_the_defaults() {
        let (settings, problems) = read(&json!({"agents": {
            "defaults": {"sandbox": {"mode": "all", "backend": "landlock"}},
            "list": [{"id": "Ops Team", "sandbox": {"mode": "non-main", "scope": "session"}}, {"id": "main"}],
        }}));
        assert_eq!(problems, [""; 0]);
        let of = |id: &str| settings.of(&AgentId::normalise(id));
        assert_eq!((of("Ops Team").mode, of("Ops Team").scope), (SandboxMode::NonMain, SandboxScope::Session));
        assert_eq!(of("Ops Team").backend.as_deref(), Some("landlock"));
        assert_eq!((of("main").mode, of("elsewhere").mode), (SandboxMode::All, SandboxMode::All));
    }

    #[test]
    fn an_invalid_default_is_reported_once_and_enables_the_sandbox() {
        let (settings, problems) = read(&json!({"agents": {
            "defaults": {"sandbox": {"mode": "some"}}, "list": [{"id": "a"}, {"id": "b"}],
        }}));
        assert_eq!(
            problems,
            ["pinch.json:agents.defaults.sandbox.mode: expected off, non-main or all; all is used. Correct it"]
        );
        assert_eq!(settings.of(&AgentId::normalise("b")).mode, SandboxMode::All);
    }
}
