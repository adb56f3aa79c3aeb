//! A request and what it resolved to: everything an attempt may look at.

use std::path::PathBuf;

use pinch_coding_agent::compaction::CompactionRules;
use pinch_coding_agent::tools::bash::Shell;
use pinch_llm::request::Deadlines;
use pinch_stdx::host::Host;

use super::request::RunRequest;
use crate::key::AgentId;

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
    /// When conversations are compacted.
    pub compaction: CompactionRules,
    /// Time limits of requests.
    pub deadlines: Deadlines,
    /// Clock, ids and environment.
    pub host: Host,
}
