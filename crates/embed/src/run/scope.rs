//! A resolved request: everything an attempt may use.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_agent_core::tool::ToolSet;
use pinch_coding_agent::compaction::CompactionRules;
use pinch_coding_agent::extension::Extensions;
use pinch_coding_agent::machine::Machine;
use pinch_coding_agent::prompt::{PromptParts, PromptSections};
use pinch_coding_agent::session::PromptFor;
use pinch_coding_agent::tools::CODING;
use pinch_coding_agent::tools::facts::SessionFacts;
use pinch_llm::model::Model;
use pinch_llm::request::Timeouts;
use pinch_ports::Fence;
use pinch_stdx::host::Host;
use pinch_tools::loops::LoopGuard;

use super::cli_sessions::CliSessions;
use super::request::{RunRequest, StreamParams};
use super::tools::ToolOffer;
use crate::compaction::SummaryPlan;
use crate::config::cli::CliBackends;
use crate::config::preset::SilenceLimits;
use crate::config::pruning::PruningConfig;
use crate::key::AgentId;
use crate::plugin::RunHooks;

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
    /// The tools that are offered, for each model after policy.
    pub tools: ToolOffer,
    /// Finds calls that go round in circles; one for all attempts of the run.
    pub loops: Arc<LoopGuard>,
    /// What the tools know about the session; a runtime with a session keeps it up to date.
    pub facts: SessionFacts,
    /// Creates the system prompt for the active tools. Called again when they change.
    pub prompt: PromptFor,
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

/// The system prompt of an agent without coding tools.
const ASSISTANT: &str =
    "You are a personal assistant. Answer the user's messages briefly, and use your tools where they help.";

/// The input for a system prompt.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PromptInputs<'a> {
    /// The request, with its caller completed.
    pub request: &'a RunRequest,
    /// The active tools.
    pub tools: &'a ToolSet,
    /// The directory that tools work in.
    pub workspace: &'a Path,
}

impl<'a> PromptInputs<'a> {
    pub(crate) fn new(request: &'a RunRequest, tools: &'a ToolSet, workspace: &'a Path) -> Self {
        Self { request, tools, workspace }
    }

    /// The default system prompt, with the request's own section: that of a coding agent if one of the coding tools is active, else that of
    /// an assistant.
    pub fn default_prompt(&self) -> PromptSections {
        let has_coding_tool = self.tools.iter().any(|tool| CODING.contains(&tool.spec().name.as_str()));
        let owners = self.request.owner_numbers.join(", ");
        let owners = (!owners.is_empty()).then(|| format!("Owners of this agent: {owners}"));
        let sections: Vec<&str> =
            owners.as_deref().into_iter().chain(self.request.extra_system_prompt.as_deref()).collect();
        let addendum = sections.join("\n\n");
        PromptSections::coding(&PromptParts {
            custom: (!has_coding_tool).then_some(ASSISTANT),
            addendum: Some(addendum.as_str()).filter(|text| !text.is_empty()),
            ..PromptParts::new(self.tools, self.workspace)
        })
    }
}
