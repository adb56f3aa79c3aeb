//! A resolved request: everything an attempt may use.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_coding_agent::compaction::CompactionRules;
use pinch_coding_agent::extension::Extensions;
use pinch_coding_agent::images::Intake;
use pinch_coding_agent::machine::Machine;
use pinch_coding_agent::tools::facts::SessionFacts;
use pinch_llm::model::Model;
use pinch_llm::request::Timeouts;
use pinch_ports::Fence;
use pinch_stdx::host::Host;
use pinch_tools::loops::LoopGuard;

use super::cli_sessions::CliSessions;
use super::request::{RunRequest, StreamParams};
use super::system_prompt::RunPrompt;
use super::tools::ToolOffer;
use crate::compaction::SummaryPlan;
use crate::config::cli::CliBackends;
use crate::config::preset::SilenceLimits;
use crate::config::pruning::PruningConfig;
use crate::key::AgentId;
use crate::plugin::RunHooks;
use crate::prompt::SandboxPrompt;

/// A resolved run: attempts borrow it, and a runtime builds none of this by itself.
#[derive(Clone)]
#[non_exhaustive]
pub struct RunScope {
    /// The request, with its caller completed.
    pub request: RunRequest,
    /// The agent that runs.
    pub agent_id: AgentId,
    /// The directory that tools work in; it exists.
    pub workspace: PathBuf,
    /// Where built-in tools act.
    pub machine: Arc<dyn Machine>,
    /// What confines `machine`, if the run is in a sandbox: a runtime starts nothing on behalf of the model elsewhere then.
    pub sandbox: Option<SandboxPrompt>,
    /// The tools that are offered, for each model after policy.
    pub tools: ToolOffer,
    /// Finds calls that go round in circles; one for all attempts of the run.
    pub loops: Arc<LoopGuard>,
    /// Makes images fit that enter the conversation, those of tools included.
    pub images: Intake,
    /// No image is sent to a model; a note replaces each.
    pub block_images: bool,
    /// What the tools know about the session; a runtime with a session keeps it up to date.
    pub facts: SessionFacts,
    /// Creates the system prompt for a model and the active tools.
    pub prompt: RunPrompt,
    /// The extensions of this run's session.
    pub extensions: Extensions,
    /// What plugins say about the run; a runtime asks them for the prompt.
    pub hooks: RunHooks,
    /// When conversations are compacted.
    pub compaction: CompactionRules,
    /// How their summaries are made.
    pub summaries: SummaryPlan,
    /// How old results of tools are shortened in requests.
    pub pruning: Option<PruningConfig>,
    /// Parameters of models, as `provider/model`, from the configuration.
    pub model_params: Vec<(String, StreamParams)>,
    /// Time limits of model requests; see [`RunScope::timeouts_for`].
    pub timeouts: Timeouts,
    /// How long models may be silent, instead of what `timeouts` says.
    pub silence: Option<SilenceLimits>,
    /// Command-line agents.
    pub cli_backends: CliBackends,
    /// What they call the conversation.
    pub cli_sessions: CliSessions,
    /// Clock, ids and environment.
    pub host: Host,
    /// The lease of the run, which its session's log checks at every write.
    pub fence: Arc<dyn Fence>,
}

impl RunScope {
    /// The time limits of a model's requests.
    pub fn timeouts_for(&self, model: &Model) -> Timeouts {
        match self.silence.map(|limits| limits.of_server(&model.base_url)) {
            None => self.timeouts,
            limit => self.timeouts.with_first_content(limit).with_idle(limit),
        }
    }

    /// The parameters of a model's calls: those of the request, then those of the configuration.
    pub fn stream_params(&self, model: &Model) -> StreamParams {
        let name = format!("{}/{}", model.provider, model.id);
        let configured = self.model_params.iter().find(|(of, _)| *of == name).map(|(_, params)| params.clone());
        let mut params = self.request.stream_params.clone().over(configured.unwrap_or_default());
        if model.provider.as_str() != ANTHROPIC {
            params.cache_retention = None;
        }
        params
    }
}

/// The provider whose cache retention can be configured.
const ANTHROPIC: &str = "anthropic";

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
