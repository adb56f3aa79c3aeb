//! A resolved request: everything an attempt may use.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_coding_agent::compaction::CompactionRules;
use pinch_coding_agent::extension::Extensions;
use pinch_coding_agent::images::ImageIntake;
use pinch_coding_agent::machine::Machine;
use pinch_coding_agent::tools::facts::SessionFacts;
use pinch_llm::keys;
use pinch_llm::model::Model;
use pinch_llm::request::{CacheRetention, Timeouts};
use pinch_ports::Fence;
use pinch_stdx::host::Host;
use pinch_tools::loops::LoopGuard;

use super::cli_sessions::CliSessions;
use super::request::{RunRequest, StreamParams};
use super::system_prompt::RunPrompt;
use super::tools::ToolOffer;
use crate::compaction::SummaryPlan;
use crate::config::cli::CliBackends;
use crate::config::params::ModelParams;
use crate::config::preset::SilenceLimits;
use crate::config::pruning::PruningConfig;
use crate::key::AgentId;
use crate::plugin::RunHooks;
use crate::prompt::SandboxPrompt;
use crate::skills::SkillCall;

/// A resolved run. Attempts borrow it; runtimes build none of this themselves.
#[derive(Clone)]
#[non_exhaustive]
pub struct RunScope {
    /// The request, with its caller completed.
    pub request: Arc<RunRequest>,
    /// The agent of the run.
    pub agent_id: AgentId,
    /// Working directory of the tools; it exists.
    pub workspace: PathBuf,
    /// The machine that built-in tools act on.
    pub machine: Arc<dyn Machine>,
    /// Description of the sandbox that confines `machine`, if any. A runtime must then start nothing elsewhere on behalf of the model.
    pub sandbox: Option<SandboxPrompt>,
    /// The tools to offer, subject to policies per model.
    pub tools: ToolOffer,
    /// Detects loops of calls across all attempts of the run.
    pub loops: Arc<LoopGuard>,
    /// Resizes images that enter the conversation, including those from tools.
    pub images: ImageIntake,
    /// Whether to send no images to models; a note replaces each.
    pub block_images: bool,
    /// Facts about the session for tools; a runtime with a session keeps them up to date.
    pub facts: SessionFacts,
    /// The tool that the command of a skill calls, in place of the model's first answer. Only the built-in runtime gets it.
    pub skill_call: Option<SkillCall>,
    /// Builds the system prompt for a model and the active tools.
    pub prompt: RunPrompt,
    /// The extensions of this run's session.
    pub extensions: Extensions,
    /// Plugin hooks of the run; the runtime asks them for the prompt.
    pub hooks: RunHooks,
    /// What must decide about each tool call or command, if anything: a runtime with tools of its own must refuse such a run.
    pub call_guard: Option<String>,
    /// When conversations are compacted.
    pub compaction: CompactionRules,
    /// How their summaries are made.
    pub summaries: SummaryPlan,
    /// How old tool results are shortened in requests.
    pub pruning: Option<PruningConfig>,
    /// Configured parameters of models.
    pub model_params: ModelParams,
    /// Time limits of model requests; see [`RunScope::timeouts_for`].
    pub timeouts: Timeouts,
    /// How long models may be silent, overriding `timeouts`.
    pub silence: Option<SilenceLimits>,
    /// Command-line agents.
    pub cli_backends: CliBackends,
    /// Conversation ids of command-line agents.
    pub cli_sessions: CliSessions,
    /// Configured names of environment variables with credentials of providers; see [`RunScope::is_credential`].
    pub credential_variables: Arc<BTreeSet<String>>,
    /// Clock, ids and environment.
    pub host: Host,
    /// Fence of the run's lease, which the log of its session checks on every write.
    pub fence: Arc<dyn Fence>,
}

impl RunScope {
    /// Returns whether an environment variable contains a credential of a provider. Programs must not inherit it unless the configuration
    /// says so.
    pub fn is_credential(&self, variable: &str) -> bool {
        keys::is_credential(variable) || self.credential_variables.contains(variable)
    }

    /// Returns the time limits for requests to a model.
    pub fn timeouts_for(&self, model: &Model) -> Timeouts {
        match self.silence.map(|limits| limits.of_server(&model.base_url)) {
            None => self.timeouts,
            limit => self.timeouts.with_first_content(limit).with_idle(limit),
        }
    }

    /// Returns the parameters for calls of a model: those of the request, then the configured ones.
    pub fn stream_params(&self, model: &Model) -> StreamParams {
        let name = format!("{}/{}", model.provider, model.id);
        let mut params = self.request.stream_params.clone().over(self.model_params.of(&name));
        let wire = &model.dialect.wire;
        if !wire.takes_cache_retention() {
            params.cache_retention = None;
        } else if !wire.caches_by_default && self.host.env().get("PI_CACHE_RETENTION").is_none() {
            params.cache_retention.get_or_insert(CacheRetention::None);
        }
        params
    }
}

impl fmt::Debug for RunScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunScope")
            .field("request", &self.request)
            .field("agent_id", &self.agent_id)
            .field("workspace", &self.workspace)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
