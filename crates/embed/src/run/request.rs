//! The request of one run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinch_agent_core::tool::ToolSpec;
use pinch_coding_agent::store::SessionRef;
use pinch_llm::message::Image;
use pinch_llm::thinking::ThinkingLevel;
use pinch_ports::Caller;
use pinch_stdx::cancel::{Cancel, Deadline};

pub use pinch_tools::policy::PermissionMode;
pub use pinch_tools::process::ElevatedLevel;

use super::client_tools::ClientToolResult;
use crate::config::agents::Agents;
pub use crate::config::params::StreamParams;
use crate::inbox::TurnGuard;
use crate::key::{self, AgentId};
use crate::profiles::ProfileId;
pub use crate::profiles::choice::{ProfileChoice, ProfileSource};
use crate::prompt::PromptMode;
use crate::replies::ReasoningLevel;
use crate::replies::directives::threading::ReplyToMode;
use crate::replies::preview::Preview;
use crate::replies::tool_notes::{ToolFormat, Verbose};
use crate::workspace;

mod reply;
mod trigger;

pub use reply::{BlockReplies, ReplyExpectation, UsageLine};
pub use trigger::RunTrigger;

/// One prompt and the settings of its run. Built with [`RunRequest::new`] and the methods named after the fields, or with
/// [`Engine::request`](crate::Engine::request), which fills in what the configuration says.
///
/// Names in parentheses are those of OpenClaw's run parameters, where they differ.
///
/// ```
/// use pinch_embed::run::RunRequest;
/// use pinch_embed::coding_agent::store::SessionRef;
///
/// let session = SessionRef::Path("/tmp/s1.jsonl".into());
/// let request = RunRequest::new("s1", session, "hello").workspace_dir("/tmp").model("anthropic", "claude-opus-4-6");
/// assert_eq!(request.run_id, "s1");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunRequest {
    /// Identifies the conversation; any non-empty text. Failures of ids that start with `probe-` are not logged.
    pub session_id: String,
    /// The routing key of the session, which also names its lane. Without a key the session id takes its place.
    pub session_key: Option<String>,
    /// The agent, instead of the one the key names.
    pub agent_id: Option<String>,
    /// Where the transcript is stored (`sessionFile`).
    pub session: SessionRef,
    /// The directory that tools work in; `None`: the agent's. A leading `~` is the home directory.
    pub workspace_dir: Option<PathBuf>,
    /// The user's message.
    pub prompt: String,
    /// Images that follow the message.
    pub images: Vec<Image>,
    /// Tools that the caller runs (`clientTools`). The run ends at the first answer that calls one, with the calls in
    /// [`RunMeta::pending_tool_calls`](crate::run::result::RunMeta::pending_tool_calls); the next run of the session brings the results.
    pub client_tools: Vec<ToolSpec>,
    /// Results of calls that a run of the session ended with. Calls without one count as not run. With results, the prompt may be empty.
    pub client_results: Vec<ClientToolResult>,
    /// Who sent the message, and through what. The engine fills in agent and session key.
    pub caller: Caller,
    /// What started the run.
    pub trigger: RunTrigger,
    /// The runtime that carries out attempts, by the id it was registered with; `None`: the configured one, else `native`.
    pub runtime: Option<String>,
    /// The provider; `None`: the configured one.
    pub provider: Option<String>,
    /// The model; `None`: the configured one.
    pub model: Option<String>,
    /// Models to fall back to, as `provider/model` or by alias, instead of the configured ones; an empty list: none (`fallbacksOverride`).
    pub fallbacks: Option<Vec<String>>,
    /// The credentials to use, or to try first.
    pub auth_profile: Option<ProfileChoice>,
    /// How much the model thinks.
    pub think_level: Option<ThinkingLevel>,
    /// How much the user sees of tool calls.
    pub verbose_level: Verbose,
    /// How much the user sees of the model's reasoning.
    pub reasoning_level: ReasoningLevel,
    /// How messages about tools are formatted; `None`: by the channel, Markdown unless it is known not to render it.
    pub tool_result_format: Option<ToolFormat>,
    /// Never adds a note about a failed tool to the reply.
    pub suppress_tool_error_warnings: bool,
    /// Shows only text inside `<final>` tags.
    pub enforce_final_tag: bool,
    /// Time limit of the whole run, from the moment both lanes are granted, with all attempts, repairs and waits; `None`: no limit.
    /// Saving memories before a compaction has the same limit for itself.
    pub timeout: Option<Duration>,
    /// Correlates all events; the session id unless set.
    pub run_id: String,
    /// Name of the global lane; `None`: `main`.
    pub lane: Option<String>,
    /// Replaces the whole system prompt (`systemPromptOverride`); surrounding white space is removed, and a blank text replaces nothing.
    pub system_prompt: Option<String>,
    /// How much of the system prompt there is; `None`: all of it, less for sub-agents and cron jobs.
    pub prompt_mode: Option<PromptMode>,
    /// A section appended to the system prompt.
    pub extra_system_prompt: Option<String>,
    /// Phone numbers or ids of the agent's owners, for the system prompt.
    pub owner_numbers: Vec<String>,
    /// When and in which blocks replies are delivered during the run; `None`: only with the result.
    pub block_replies: Option<BlockReplies>,
    /// Whether the sink gets a notice about the tokens of the run at its end.
    pub usage_line: UsageLine,
    /// The draft that changes while the run continues; `None`: as the configuration says for the channel. Replies in blocks have none.
    pub preview: Option<Preview>,
    /// Directories whose files the model may name by an absolute path in `MEDIA:` lines, beside the workspace.
    pub media_roots: Vec<PathBuf>,
    /// The one file of the workspace that a run with [`RunTrigger::Memory`] may append to; it has no other tools then but `read`.
    pub memory_flush_write_path: Option<String>,
    /// What the run may do at most; `None`: what the configuration says. A configuration can only restrict it further.
    pub permission_mode: Option<PermissionMode>,
    /// At which level commands leave the sandbox, if the sender may do that; `None`: the configured one.
    pub elevated_level: Option<ElevatedLevel>,
    /// Offers no tools to the model.
    pub disable_tools: bool,
    /// Does not offer the tool `message`.
    pub disable_message_tool: bool,
    /// Where a message tool sends without an explicit target (`messageTo`).
    pub message_to: Option<String>,
    /// Whether a message tool refuses to send without an explicit target; `None`: only in sessions of sub-agents.
    pub require_explicit_message_target: Option<bool>,
    /// Which blocks and payloads keep the message they reply to; `None`: as the configuration says for the channel, else all.
    pub reply_to_mode: Option<ReplyToMode>,
    /// Whether the user must get an answer.
    pub reply: ReplyExpectation,
    /// Model parameters for this run.
    pub stream_params: StreamParams,
    /// Limits of the whole run.
    pub budget: Budget,
    /// Stops the run.
    pub cancel: Cancel,
    /// Allows one attempt although every profile is in cooldown.
    pub allow_cooldown_probe: bool,
    /// The turn of the session that the run takes, if [`Engine::send`](crate::Engine::send) gave it one. The next turn begins when it is
    /// dropped.
    pub(crate) turn: Option<Arc<TurnGuard>>,
    /// `block_replies` is what the configuration says for all channels: what it says for the channel of the run counts more.
    pub(crate) blocks_are_default: bool,
}

/// Limits of a whole run. The deadline applies at any time, the others are checked between attempts. Exceeding one ends the run with
/// [`RunErrorKind::Budget`](crate::run::RunErrorKind::Budget).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Maximum number of attempts.
    pub attempts: Option<u32>,
    /// Maximum number of tokens of all calls together.
    pub tokens: Option<u64>,
    /// Maximum cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Maximum duration, measured like [`RunRequest::timeout`].
    pub deadline: Option<Duration>,
}

impl RunRequest {
    /// A request with all values that have no default. The run id is the session id unless [`Self::run_id`] sets another.
    pub fn new(session_id: impl Into<String>, session: SessionRef, prompt: impl Into<String>) -> Self {
        let session_id = session_id.into();
        Self {
            run_id: session_id.clone(),
            session_id,
            session_key: None,
            agent_id: None,
            session,
            workspace_dir: None,
            prompt: prompt.into(),
            client_tools: Vec::new(),
            client_results: Vec::new(),
            images: Vec::new(),
            caller: Caller::default(),
            trigger: RunTrigger::default(),
            runtime: None,
            provider: None,
            model: None,
            fallbacks: None,
            auth_profile: None,
            think_level: None,
            verbose_level: Verbose::default(),
            reasoning_level: ReasoningLevel::default(),
            tool_result_format: None,
            suppress_tool_error_warnings: false,
            enforce_final_tag: false,
            timeout: Some(Duration::from_secs(600)),
            lane: None,
            system_prompt: None,
            prompt_mode: None,
            extra_system_prompt: None,
            owner_numbers: Vec::new(),
            block_replies: None,
            memory_flush_write_path: None,
            permission_mode: None,
            elevated_level: None,
            disable_tools: false,
            disable_message_tool: false,
            message_to: None,
            require_explicit_message_target: None,
            reply_to_mode: None,
            reply: ReplyExpectation::default(),
            stream_params: StreamParams::default(),
            budget: Budget::default(),
            cancel: Cancel::new(),
            allow_cooldown_probe: false,
            turn: None,
            blocks_are_default: false,
            preview: None,
            usage_line: UsageLine::default(),
            media_roots: Vec::new(),
        }
    }

    /// Sets the routing bucket.
    #[must_use]
    pub fn session_key(mut self, key: impl Into<String>) -> Self {
        self.session_key = Some(key.into());
        self
    }

    /// Sets the agent.
    #[must_use]
    pub fn agent_id(mut self, id: impl Into<String>) -> Self {
        self.agent_id = Some(id.into());
        self
    }

    /// Sets the images.
    #[must_use]
    pub fn images(mut self, images: Vec<Image>) -> Self {
        self.images = images;
        self
    }

    /// Sets who sent the message.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Sets what started the run.
    #[must_use]
    pub fn trigger(mut self, trigger: RunTrigger) -> Self {
        self.trigger = trigger;
        self
    }

    /// Selects a runtime by the id it was registered with.
    #[must_use]
    pub fn runtime(mut self, id: impl Into<String>) -> Self {
        self.runtime = Some(id.into());
        self
    }

    /// Sets how messages about tools are formatted.
    #[must_use]
    pub fn tool_result_format(mut self, format: ToolFormat) -> Self {
        self.tool_result_format = Some(format);
        self
    }

    /// Never adds a note about a failed tool to the reply.
    #[must_use]
    pub fn suppress_tool_error_warnings(mut self) -> Self {
        self.suppress_tool_error_warnings = true;
        self
    }

    /// Shows only text inside `<final>` tags.
    #[must_use]
    pub fn enforce_final_tag(mut self) -> Self {
        self.enforce_final_tag = true;
        self
    }

    /// Sets the owners named in the system prompt.
    #[must_use]
    pub fn owner_numbers(mut self, numbers: Vec<String>) -> Self {
        self.owner_numbers = numbers;
        self
    }

    /// Sets what the run may do at most.
    #[must_use]
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.permission_mode = Some(mode);
        self
    }

    /// Sets at which level commands leave the sandbox.
    #[must_use]
    pub fn elevated_level(mut self, level: ElevatedLevel) -> Self {
        self.elevated_level = Some(level);
        self
    }

    /// Does not offer the tool `message`.
    #[must_use]
    pub fn without_message_tool(mut self) -> Self {
        self.disable_message_tool = true;
        self
    }

    /// Sets where a message tool sends without an explicit target.
    #[must_use]
    pub fn message_to(mut self, target: impl Into<String>) -> Self {
        self.message_to = Some(target.into());
        self
    }

    /// Sets whether a message tool refuses to send without an explicit target.
    #[must_use]
    pub fn require_explicit_message_target(mut self, required: bool) -> Self {
        self.require_explicit_message_target = Some(required);
        self
    }

    /// Sets which payloads of the result keep the message they reply to.
    #[must_use]
    pub fn reply_to_mode(mut self, mode: ReplyToMode) -> Self {
        self.reply_to_mode = Some(mode);
        self
    }

    /// Sets provider and model.
    #[must_use]
    pub fn model(mut self, provider: impl Into<String>, model: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self.model = Some(model.into());
        self
    }

    /// Replaces the configured fallbacks, if need be by none.
    #[must_use]
    pub fn fallbacks(mut self, models: Vec<String>) -> Self {
        self.fallbacks = Some(models);
        self
    }

    /// Sets the credentials to use (`User`) or to try first (`Auto`).
    #[must_use]
    pub fn auth_profile(mut self, id: impl Into<ProfileId>, source: ProfileSource) -> Self {
        self.auth_profile = Some(ProfileChoice { id: id.into(), source });
        self
    }

    /// Sets how much the model thinks.
    #[must_use]
    pub fn think_level(mut self, level: ThinkingLevel) -> Self {
        self.think_level = Some(level);
        self
    }

    /// Sets how much the user sees of tool calls.
    #[must_use]
    pub fn verbose_level(mut self, level: Verbose) -> Self {
        self.verbose_level = level;
        self
    }

    /// Sets how much the user sees of the model's reasoning.
    #[must_use]
    pub fn reasoning_level(mut self, level: ReasoningLevel) -> Self {
        self.reasoning_level = level;
        self
    }

    /// Sets the time limit of the whole run; `None`: no limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the id that correlates all events.
    #[must_use]
    pub fn run_id(mut self, id: impl Into<String>) -> Self {
        self.run_id = id.into();
        self
    }

    /// Sets the global lane.
    #[must_use]
    pub fn lane(mut self, lane: impl Into<String>) -> Self {
        self.lane = Some(lane.into());
        self
    }

    /// Sets the directory that tools work in.
    #[must_use]
    pub fn workspace_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.workspace_dir = Some(dir.into());
        self
    }

    /// The agent of the run: the one the request names, else the one its session key names, else the default one.
    pub(crate) fn agent(&self, agents: &Agents) -> AgentId {
        workspace::agent_of(agents, self.agent_id.as_deref(), self.session_key.as_deref()).0
    }

    /// A cancellation below another that also comes when the time of the run is up, from now on.
    pub(crate) fn limited(&self, stop: &Cancel) -> Cancel {
        match self.timeout.into_iter().chain(self.budget.deadline).min() {
            Some(limit) => stop.child_until(Deadline::after(limit)),
            None => stop.child(),
        }
    }

    /// Replaces the whole system prompt.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }

    /// Sets how much of the system prompt there is.
    #[must_use]
    pub fn prompt_mode(mut self, mode: PromptMode) -> Self {
        self.prompt_mode = Some(mode);
        self
    }

    /// Adds a section to the system prompt.
    #[must_use]
    pub fn extra_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.extra_system_prompt = Some(text.into());
        self
    }

    /// Sets when and in which blocks replies are delivered.
    #[must_use]
    pub fn block_replies(mut self, replies: BlockReplies) -> Self {
        (self.block_replies, self.blocks_are_default) = (Some(replies), false);
        self
    }

    /// Sets whether the sink gets a notice about the tokens of the run at its end.
    #[must_use]
    pub fn usage_line(mut self, line: UsageLine) -> Self {
        self.usage_line = line;
        self
    }

    /// Sets the draft that changes while the run continues.
    #[must_use]
    pub fn preview(mut self, preview: Preview) -> Self {
        self.preview = Some(preview);
        self
    }

    /// Sets the directories whose files the model may name by an absolute path, beside the workspace.
    #[must_use]
    pub fn media_roots(mut self, dirs: Vec<PathBuf>) -> Self {
        self.media_roots = dirs;
        self
    }

    /// Offers no tools to the model.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.disable_tools = true;
        self
    }

    /// Requires an answer; see [`ReplyExpectation::Required`].
    #[must_use]
    pub fn require_reply(mut self) -> Self {
        self.reply = ReplyExpectation::Required;
        self
    }

    /// Sets model parameters.
    #[must_use]
    pub fn stream_params(mut self, params: StreamParams) -> Self {
        self.stream_params = params;
        self
    }

    /// Sets the limits of the whole run.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the cancellation that stops the run.
    #[must_use]
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Allows one attempt although every profile is in cooldown.
    #[must_use]
    pub fn allow_cooldown_probe(mut self) -> Self {
        self.allow_cooldown_probe = true;
        self
    }

    /// Whether a message tool must refuse to send without an explicit target: as set, else only in sessions of sub-agents.
    pub fn requires_explicit_message_target(&self) -> bool {
        let is_subagent = || self.session_key.as_deref().is_some_and(key::is_subagent);
        self.require_explicit_message_target.unwrap_or_else(is_subagent)
    }

    /// Whether failures of this run are expected and not logged.
    pub fn is_probe(&self) -> bool {
        self.session_id.starts_with("probe-")
    }
}
