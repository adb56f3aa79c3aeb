//! `agents`: defaults for all agents, and settings for individual agents.

use std::time::Duration;

use pinch_coding_agent::document::Problem;
use pinch_llm::thinking::ThinkingLevel;
use pinch_tools::process::ElevatedLevel;
use serde_json::Value;

use super::cli::CliBackends;
use super::compaction::CompactionConfig;
use super::elevated::ElevatedConfig;
use super::exec::ExecConfig;
use super::models::read_model;
use super::node::Node;
use super::params::{ModelParams, StreamParams};
use super::prompt::PromptConfig;
use super::pruning::PruningSetting;
use super::streaming::{BlockStreaming, HumanDelay};
use super::subagents::{SubagentChoices, SubagentLimits};
use super::thinking::read_level;
use super::tool_search::ToolSearchConfig;
use super::tools;
use crate::key::AgentId;
use crate::replies::tool_notes::Verbose;

/// The agents of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// Defaults for all agents (`agents.defaults`).
    pub defaults: AgentDefaults,
    /// Named agents (`agents.list`).
    pub list: Vec<AgentConfig>,
}

/// Defaults for all agents.
#[derive(Clone, Debug, Default)]
pub struct AgentDefaults {
    /// The models to use.
    pub model: ModelSetting,
    /// Settings of models by reference. If not empty, only the models listed here may be used, unless `allowed_models` is set.
    pub models: Vec<(String, ModelEntry)>,
    /// Parameters for requests to any model (`params`).
    pub params: StreamParams,
    /// The only models that may be used (`modelPolicy.allow`); takes precedence over the keys of `models`.
    pub allowed_models: Option<Vec<String>>,
    /// Working directory of the tools.
    pub workspace: Option<String>,
    /// Whether workspaces get no first files (`skipBootstrap`).
    pub skip_bootstrap: bool,
    /// Time limit per run, in seconds.
    pub timeout_seconds: Option<f64>,
    /// Runtime that carries out attempts.
    pub runtime: Option<String>,
    /// Maximum number of concurrent runs in the global lane.
    pub max_concurrent: Option<usize>,
    /// Limits of sub-agents (`subagents`).
    pub subagent_limits: SubagentLimits,
    /// Sub-agents of all agents (`subagents`).
    pub subagents: SubagentChoices,
    /// Thinking level.
    pub thinking: Option<ThinkingLevel>,
    /// How much tool output replies include (`verboseDefault`).
    pub verbose: Option<Verbose>,
    /// Upper limit for the context of any model, in tokens.
    pub context_tokens: Option<u64>,
    /// Level at which commands that may leave the sandbox do so (`elevatedDefault`).
    pub elevated_level: Option<ElevatedLevel>,
    /// Longer side of images, in pixels (`imageMaxDimensionPx`); `None`: the model's limit.
    pub image_max_side: Option<u32>,
    /// Command-line agents (`cliBackends`).
    pub cli_backends: CliBackends,
    /// Compaction.
    pub compaction: CompactionConfig,
    /// Shortening of old tool results in requests (`contextPruning`).
    pub pruning: PruningSetting,
    /// Delivery of replies in blocks during the run.
    pub block_streaming: BlockStreaming,
    /// Pauses between blocks.
    pub human_delay: Option<HumanDelay>,
    /// Maximum number of attempts per run.
    pub run_retries: RunRetries,
    /// Names of the skills that agents may use; `None`: all (`skills`).
    pub skills: Option<Vec<String>>,
    /// Contents of the system prompt.
    pub prompt: PromptConfig,
}

/// Models to use, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSetting {
    /// The primary model.
    pub primary: Option<String>,
    /// Fallbacks, tried in order when the primary model fails.
    pub fallbacks: Vec<String>,
}

/// Settings of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelEntry {
    /// An alias for the model.
    pub alias: Option<String>,
    /// Parameters for its requests.
    pub params: StreamParams,
}

/// Maximum number of attempts per run: `base + per_profile · profiles`, between `min` and `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRetries {
    /// Attempts regardless of the number of profiles.
    pub base: u32,
    /// Additional attempts for each profile.
    pub per_profile: u32,
    /// Minimum.
    pub min: u32,
    /// Maximum.
    pub max: u32,
}

impl Default for RunRetries {
    fn default() -> Self {
        Self { base: 24, per_profile: 8, min: 32, max: 160 }
    }
}

impl RunRetries {
    /// Returns the number of attempts allowed with this many profiles.
    pub fn bound(&self, n_profiles: usize) -> u32 {
        let n = u32::try_from(n_profiles.max(1)).unwrap_or(u32::MAX);
        let wanted = self.base.max(1).saturating_add(self.per_profile.saturating_mul(n));
        let min = self.min.max(1);
        wanted.clamp(min, self.max.max(min))
    }
}

/// Settings of one agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Its id.
    pub id: AgentId,
    /// Whether this agent is used when a request names none.
    pub is_default: bool,
    /// Its name for people (`identity.name`).
    pub name: Option<String>,
    /// Working directory of its tools.
    pub workspace: Option<String>,
    /// Directory with its settings, models and credentials.
    pub agent_dir: Option<String>,
    /// Its primary model.
    pub primary: Option<String>,
    /// Its fallbacks. If set, even to an empty list, they replace the default ones.
    pub fallbacks: Option<Vec<String>>,
    /// Parameters of its models by reference (`models`).
    pub model_params: Vec<(String, StreamParams)>,
    /// Parameters for its requests to any model (`params`).
    pub params: StreamParams,
    /// Runtime that carries out its attempts.
    pub runtime: Option<String>,
    /// Thinking level of its models.
    pub thinking: Option<ThinkingLevel>,
    /// Names of the skills it may use, instead of the default ones.
    pub skills: Option<Vec<String>>,
    /// Its sub-agents (`subagents`); its members override those for all agents.
    pub subagents: SubagentChoices,
    /// Maximum number of attempts per run.
    pub run_retries: Option<RunRetries>,
    /// Pauses between its blocks; `Some(None)`: no pauses.
    pub human_delay: Option<Option<HumanDelay>>,
    /// `tools.exec`: its command settings; they override those for all agents.
    pub exec: ExecConfig,
    /// `tools.elevated`: further restricts who may run commands outside the sandbox.
    pub elevated: ElevatedConfig,
    /// `tools.loopDetection`: when repeated calls count as a loop; overrides the settings for all agents.
    pub loop_detection: Value,
    /// `tools.toolSearch`: whether its tools are searched for; its members override those for all agents.
    pub tool_search: ToolSearchConfig,
    /// `tools.fs.workspaceOnly`; overrides the setting for all agents.
    pub workspace_only: Option<bool>,
    /// Paths of keys whose restrictions of its tools are not enforced.
    pub unenforced: Vec<String>,
    /// Paths of its tool keys that are enforced only for sandboxed runs.
    pub need_sandbox: Vec<String>,
}

impl Agents {
    pub(super) fn read(node: &Node<'_>, compaction: &CompactionConfig, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let defaults = AgentDefaults::read(&node.get("defaults"), compaction, problems);
        let mut list: Vec<AgentConfig> = Vec::new();
        for item in node.get("list").items(problems) {
            if item.object(problems).is_none() {
                continue;
            }
            let id = item.get("id");
            let Some(name) = id.text(problems) else {
                if !id.is_there() {
                    problems.push(id.problem("is missing").remedy("Give the agent a name"));
                }
                continue;
            };
            let name = AgentId::normalise(&name);
            if list.iter().any(|agent| agent.id == name) {
                problems.push(
                    id.problem(format!("\"{name}\" is already the name of another agent"))
                        .remedy("Give each agent a unique name"),
                );
                continue;
            }
            list.push(AgentConfig::read(name, &item, problems));
        }
        Self { defaults, list }
    }

    /// Returns the agent to use when none is named: the one marked as default, else the first, else `main`.
    pub fn default_id(&self) -> AgentId {
        let marked = self.list.iter().find(|agent| agent.is_default);
        marked.or(self.list.first()).map(|agent| agent.id.clone()).unwrap_or_default()
    }

    /// Returns the ids of the configured agents.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &AgentId> {
        self.list.iter().map(|agent| &agent.id)
    }

    /// Returns the settings of an agent.
    pub fn get(&self, id: &AgentId) -> Option<&AgentConfig> {
        self.list.iter().find(|agent| agent.id == *id)
    }

    /// Returns the request parameters of an agent's models.
    pub(crate) fn params_of(&self, id: &AgentId) -> ModelParams {
        let of_model = |name: &str, params: &StreamParams| (Some(name.to_owned()), params.clone());
        let of_all = |params: &StreamParams| (None, params.clone());
        let mut levels = vec![of_all(&self.defaults.params)];
        levels.extend(self.defaults.models.iter().map(|(name, entry)| of_model(name, &entry.params)));
        if let Some(own) = self.get(id) {
            levels.extend(own.model_params.iter().map(|(name, params)| of_model(name, params)));
            levels.push(of_all(&own.params));
        }
        levels.into_iter().collect()
    }

    /// Returns the models of an agent; the defaults fill in what it does not set.
    pub fn models_of(&self, id: &AgentId) -> ModelSetting {
        let own = self.get(id);
        let defaults = &self.defaults.model;
        ModelSetting {
            primary: own.and_then(|agent| agent.primary.clone()).or_else(|| defaults.primary.clone()),
            fallbacks: own.and_then(|agent| agent.fallbacks.clone()).unwrap_or_else(|| defaults.fallbacks.clone()),
        }
    }
}

/// The longest time limit of a run, in milliseconds. It means no limit.
const MAX_TIMEOUT_MS: u64 = 2_147_000_000;

/// Time limit of a run in seconds if none is configured.
pub(super) const DEFAULT_TIMEOUT_SECONDS: f64 = 600.0;

impl AgentDefaults {
    /// Returns the time limit of a run, or `None` if there is none. `override_ms` comes from the request: 0 means no limit, a negative
    /// value the configured one.
    pub fn timeout(&self, override_ms: Option<i64>) -> Option<Duration> {
        let configured = || self.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS).max(1.0).floor() * 1000.0;
        let ms = match override_ms.map(u64::try_from) {
            Some(Ok(0)) => MAX_TIMEOUT_MS,
            Some(Ok(ms)) => ms,
            // A value too large for the number type exceeds the longest limit.
            Some(Err(_)) | None => configured() as u64,
        };
        Some(ms).filter(|ms| *ms < MAX_TIMEOUT_MS).map(Duration::from_millis)
    }

    fn read(node: &Node<'_>, compaction: &CompactionConfig, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let (primary, fallbacks) = read_model(&node.get("model"), problems);
        let models = (node.get("models").members(problems).into_iter())
            .map(|(name, entry)| {
                let params = StreamParams::read(&entry.get("params"), problems);
                (name.to_owned(), ModelEntry { alias: entry.get("alias").text(problems), params })
            })
            .collect();
        Self {
            model: ModelSetting { primary, fallbacks: fallbacks.unwrap_or_default() },
            models,
            params: StreamParams::read(&node.get("params"), problems),
            allowed_models: node.get("modelPolicy").get("allow").texts(problems),
            workspace: node.get("workspace").text(problems),
            skip_bootstrap: node.get("skipBootstrap").flag(problems).unwrap_or(false),
            timeout_seconds: node.get("timeoutSeconds").seconds(problems),
            runtime: node.get("runtime").text(problems),
            subagent_limits: SubagentLimits::read(&node.get("subagents"), problems),
            subagents: SubagentChoices::read(&node.get("subagents"), problems),
            max_concurrent: node.get("maxConcurrent").count(problems).and_then(|n| usize::try_from(n).ok()),
            thinking: read_level(&node.get("thinkingDefault"), problems),
            verbose: node.get("verboseDefault").word(problems, &["off", "on", "full"], Verbose::parse),
            context_tokens: node.get("contextTokens").count(problems),
            elevated_level: node.get("elevatedDefault").word(
                problems,
                &["off", "on", "ask", "full"],
                ElevatedLevel::parse,
            ),
            image_max_side: node.get("imageMaxDimensionPx").count(problems).and_then(|n| u32::try_from(n.max(1)).ok()),
            cli_backends: CliBackends::read(&node.get("cliBackends"), problems),
            compaction: CompactionConfig::read(&node.get("compaction"), compaction, problems),
            pruning: PruningSetting::read(&node.get("contextPruning"), problems),
            block_streaming: BlockStreaming::read(node, problems),
            human_delay: HumanDelay::read(&node.get("humanDelay"), problems).flatten(),
            run_retries: read_retries(&node.get("runRetries"), problems).unwrap_or_default(),
            skills: node.get("skills").texts(problems),
            prompt: PromptConfig::read(node, problems),
        }
    }
}

impl AgentConfig {
    fn read(id: AgentId, node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let (primary, fallbacks) = read_model(&node.get("model"), problems);
        Self {
            id,
            is_default: node.get("default").flag(problems).unwrap_or(false),
            name: node.get("identity").get("name").text(problems),
            workspace: node.get("workspace").text(problems),
            agent_dir: node.get("agentDir").text(problems),
            primary,
            fallbacks,
            model_params: (node.get("models").members(problems).into_iter())
                .map(|(name, entry)| (name.to_owned(), StreamParams::read(&entry.get("params"), problems)))
                .collect(),
            params: StreamParams::read(&node.get("params"), problems),
            runtime: node.get("runtime").text(problems),
            thinking: read_level(&node.get("thinkingDefault"), problems),
            subagents: SubagentChoices::read(&node.get("subagents"), problems),
            run_retries: read_retries(&node.get("runRetries"), problems),
            skills: node.get("skills").texts(problems),
            human_delay: HumanDelay::read(&node.get("humanDelay"), problems),
            exec: ExecConfig::read(&node.get("tools").get("exec"), problems),
            elevated: ElevatedConfig::read(&node.get("tools").get("elevated"), problems),
            loop_detection: tools::loop_detection(&node.get("tools"), problems),
            tool_search: ToolSearchConfig::read(&node.get("tools"), problems),
            workspace_only: tools::workspace_only(&node.get("tools")),
            unenforced: tools::unenforced(&node.get("tools")),
            need_sandbox: tools::need_sandbox(&node.get("tools")),
        }
    }
}

fn read_retries(node: &Node<'_>, problems: &mut Vec<Problem>) -> Option<RunRetries> {
    node.object(problems)?;
    let default = RunRetries::default();
    let mut read = |name: &str, default: u32| {
        node.get(name).count(problems).map_or(default, |n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    Some(RunRetries {
        base: read("base", default.base),
        per_profile: read("perProfile", default.per_profile),
        min: read("min", default.min),
        max: read("max", default.max),
    })
}
