//! A request and what it resolved to: everything an attempt may look at.

use std::path::PathBuf;

use pinch_coding_agent::compaction::CompactionRules;
use pinch_coding_agent::tools::bash::Shell;
use pinch_llm::request::Timeouts;
use pinch_stdx::host::Host;

use super::request::RunRequest;
use crate::config::ToolsConfig;
use crate::key::AgentId;

/// Which tools a run may not use: those that no agent may, and those that its agent may not.
#[derive(Clone, Debug, Default)]
pub struct ToolPolicy {
    /// For all agents, then for the one that runs.
    pub layers: Vec<ToolsConfig>,
}

impl ToolPolicy {
    /// Whether a tool may be offered.
    pub fn allows(&self, tool: &str) -> bool {
        !self.layers.iter().any(|layer| layer.denies(tool))
    }
}

/// One run with its surroundings. Attempts borrow it; nothing is copied out of it field by field.
#[derive(Clone, Debug)]
pub struct RunScope {
    /// What is asked.
    pub request: RunRequest,
    /// Which agent runs.
    pub agent_id: AgentId,
    /// Where tools work; it exists.
    pub workspace: PathBuf,
    /// How commands are run.
    pub shell: Shell,
    /// Which tools are not offered.
    pub tools: ToolPolicy,
    /// When conversations are compacted.
    pub compaction: CompactionRules,
    /// Time limits of requests.
    pub timeouts: Timeouts,
    /// Clock, ids and environment.
    pub host: Host,
}
