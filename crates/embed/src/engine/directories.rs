//! The directories of an engine and its agents.

use std::path::{Path, PathBuf};

use crate::config::paths::expand_home;
use crate::key::AgentId;
use crate::parts::Parts;

/// Returns the configured directory of an agent, or the default one if it exists.
pub(super) fn own_dir(parts: &Parts, agent: &AgentId) -> Option<PathBuf> {
    let named = parts.config.agents.get(agent).and_then(|agent| agent.agent_dir.as_deref());
    if let Some(dir) = named.map(str::trim).filter(|dir| !dir.is_empty()) {
        return Some(parts.state_dir.join(expand_home(Path::new(dir), parts.host.home())));
    }
    let is_main = *agent == AgentId::default();
    let dir = parts.state_dir.join("agents").join(agent.as_str()).join("agent");
    (!is_main && dir.is_dir()).then_some(dir)
}

/// Returns the files and directories by which an engine is configured, and those of its plugins. They name programs, and decide what agents
/// may do.
pub(super) fn own_files(parts: &Parts) -> Vec<PathBuf> {
    let mut files = vec![parts.state_dir.clone(), parts.agent_dir.clone()];
    files.extend(parts.config.agents.ids().filter_map(|agent| own_dir(parts, agent)));
    files.extend(parts.config.file.clone());
    let base = parts.config.file.as_deref().and_then(Path::parent).unwrap_or(&parts.state_dir);
    files.extend(parts.config.plugins.to_load(base, parts.host.home()));
    files
}
