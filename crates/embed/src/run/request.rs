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
use crate::key::{self, AgentId, RunId, SessionId, SessionKey};
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

/// One prompt and the settings of its run. Build it with [`RunRequest::new`] and the methods named after the fields, or with
/// [`Engine::request`](crate::Engine::request), which fills in configured values.
///
/// Names in parentheses are those of OpenClaw's run parameters, if different.
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
    pub session_id: SessionId,
    /// Routing key of the session, which also names its lane. Without a key, the session id is used.
    pub session_key: Option<SessionKey>,
    /// The agent, if not the one in the key.
    pub agent_id: Option<AgentId>,
    /// Where the transcript is stored (`sessionFile`).
    pub session: SessionRef,
    /// Working directory of the tools; `None`: the agent's. A leading `~` is the home directory.
    pub workspace_dir: Option<PathBuf>,
    /// The user's message.
    pub prompt: String,
    /// Images after the message.
    pub images: Vec<Image>,
    /// Tools that the caller executes (`clientTools`). The run ends at the first answer that calls one, with the calls in
    /// [`RunMeta::pending_tool_calls`](crate::run::result::RunMeta::pending_tool_calls); the next run of the session supplies the results.
    pub client_tools: Vec<ToolSpec>,
    /// Results of calls that the previous run of the session ended with. Calls without a result count as not run. With results, the prompt
    /// may be empty.
    pub client_results: Vec<ClientToolResult>,
    /// The sender, and the channel it came through. The engine fills in the agent and the session key.
    pub caller: Caller,
    /// What started the run.
    pub trigger: RunTrigger,
    /// Runtime that carries out attempts, by its registered id; `None`: the configured one, else `native`.
    pub runtime: Option<String>,
    /// The provider; `None`: the configured one.
    pub provider: Option<String>,
    /// The model; `None`: the configured one.
    pub model: Option<String>,
    /// Fallback models, as `provider/model` or by alias, instead of the configured ones; an empty list: none (`fallbacksOverride`).
    pub fallbacks: Option<Vec<String>>,
    /// Credentials to use, or to try first.
    pub auth_profile: Option<ProfileChoice>,
    /// Thinking level.
    pub think_level: Option<ThinkingLevel>,
    /// How much the user sees of tool calls.
    pub verbose_level: Verbose,
    /// How reasoning is shown to the user.
    pub reasoning_level: ReasoningLevel,
    /// Format of messages about tools; `None`: by channel, Markdown unless the channel is known not to render it.
    pub tool_result_format: Option<ToolFormat>,
    /// Whether never to add a note about a failed tool to the reply.
    pub suppress_tool_error_warnings: bool,
    /// Whether to show only text inside `<final>` tags.
    pub enforce_final_tag: bool,
    /// Time limit of the whole run, including all attempts, repairs and waits, measured from when both lanes are granted; `None`: no limit.
    /// A memory flush before a compaction has the same limit separately.
    pub timeout: Option<Duration>,
    /// Id that correlates all events; by default the session id.
    pub run_id: RunId,
    /// Name of the global lane; `None`: `main`.
    pub lane: Option<String>,
    /// Replaces the whole system prompt (`systemPromptOverride`). Surrounding white space is removed, and a blank text replaces nothing.
    pub system_prompt: Option<String>,
    /// Parts of the system prompt; `None`: all of it, fewer for sub-agents and cron jobs.
    pub prompt_mode: Option<PromptMode>,
    /// A section appended to the system prompt.
    pub extra_system_prompt: Option<String>,
    /// Phone numbers or ids of the agent's owners, for the system prompt.
    pub owner_numbers: Vec<String>,
    /// Whether and how replies are delivered in blocks during the run; `None`: only with the result.
    pub block_replies: Option<BlockReplies>,
    /// Whether the sink gets a notice about the run's token usage at its end.
    pub usage_line: UsageLine,
    /// The draft that is edited during the run; `None`: according to the configuration of the channel. Replies in blocks have none.
    pub preview: Option<Preview>,
    /// Directories whose files the model may name by an absolute path in `MEDIA:` lines, besides the workspace.
    pub media_roots: Vec<PathBuf>,
    /// The only workspace file that a run with [`RunTrigger::Memory`] may append to; its only other tool is `read`.
    pub memory_flush_write_path: Option<String>,
    /// Upper limit for the run's permissions; `None`: as configured. The configuration can only restrict it further.
    pub permission_mode: Option<PermissionMode>,
    /// Level at which commands leave the sandbox, if the sender may do that; `None`: the configured one.
    pub elevated_level: Option<ElevatedLevel>,
    /// Whether to offer no tools to the model.
    pub disable_tools: bool,
    /// Whether to withhold the tool `message`.
    pub disable_message_tool: bool,
    /// Default target of message tools (`messageTo`).
    pub message_to: Option<String>,
    /// Whether message tools refuse to send without an explicit target; `None`: only in sessions of sub-agents.
    pub require_explicit_message_target: Option<bool>,
    /// Which blocks and payloads keep the message they reply to; `None`: as configured for the channel, else all.
    pub reply_to_mode: Option<ReplyToMode>,
    /// Whether the model must answer the user.
    pub reply: ReplyExpectation,
    /// Model parameters for this run.
    pub stream_params: StreamParams,
    /// Limits of the whole run.
    pub budget: Budget,
    /// Cancellation that stops the run.
    pub cancel: Cancel,
    /// Whether one attempt may be made even if every profile is in cooldown.
    pub allow_cooldown_probe: bool,
    /// The turn of the session, if [`Engine::send`](crate::Engine::send) granted one. The next turn begins when it is dropped.
    pub(crate) turn: Option<Arc<TurnGuard>>,
    /// Whether `block_replies` is the configuration for all channels, so that the configuration of the run's channel takes precedence.
    pub(crate) blocks_are_default: bool,
}

/// Limits of a whole run. The deadline applies at any time; tokens and cost are checked before each request and before the tool calls of each
/// answer, attempts between attempts. Exceeding one ends the run with [`RunErrorKind::Budget`](crate::run::RunErrorKind::Budget).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Maximum number of attempts.
    pub attempts: Option<u32>,
    /// Maximum number of tokens of all calls.
    pub tokens: Option<u64>,
    /// Maximum cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Maximum duration, measured like [`RunRequest::timeout`].
    pub deadline: Option<Duration>,
}

impl RunRequest {
    /// Creates a request from the values that have no default. The run id is the session id unless [`Self::run_id`] sets another.
    pub fn new(session_id: impl Into<SessionId>, session: SessionRef, prompt: impl Into<String>) -> Self {
        let session_id = session_id.into();
        Self {
            run_id: RunId::new(&session_id),
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

    /// Sets the routing key of the session.
    #[must_use]
    pub fn session_key(mut self, key: impl Into<SessionKey>) -> Self {
        self.session_key = Some(key.into());
        self
    }

    /// Sets the agent.
    #[must_use]
    pub fn agent_id(mut self, id: impl Into<AgentId>) -> Self {
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

    /// Sets the runtime, by its registered id.
    #[must_use]
    pub fn runtime(mut self, id: impl Into<String>) -> Self {
        self.runtime = Some(id.into());
        self
    }

    /// Sets the format of messages about tools.
    #[must_use]
    pub fn tool_result_format(mut self, format: ToolFormat) -> Self {
        self.tool_result_format = Some(format);
        self
    }

    /// Disables notes about failed tools in the reply.
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

    /// Sets the upper limit for the run's permissions.
    #[must_use]
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.permission_mode = Some(mode);
        self
    }

    /// Sets the level at which commands leave the sandbox.
    #[must_use]
    pub fn elevated_level(mut self, level: ElevatedLevel) -> Self {
        self.elevated_level = Some(level);
        self
    }

    /// Withholds the tool `message`.
    #[must_use]
    pub fn without_message_tool(mut self) -> Self {
        self.disable_message_tool = true;
        self
    }

    /// Sets the default target of message tools.
    #[must_use]
    pub fn message_to(mut self, target: impl Into<String>) -> Self {
        self.message_to = Some(target.into());
        self
    }

    /// Sets whether message tools refuse to send without an explicit target.
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

    /// Replaces the configured fallbacks; an empty list means none.
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

    /// Sets the thinking level.
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

    /// Sets how reasoning is shown to the user.
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
    pub fn run_id(mut self, id: impl Into<RunId>) -> Self {
        self.run_id = id.into();
        self
    }

    /// Sets the global lane.
    #[must_use]
    pub fn lane(mut self, lane: impl Into<String>) -> Self {
        self.lane = Some(lane.into());
        self
    }

    /// Sets the working directory of the tools.
    #[must_use]
    pub fn workspace_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.workspace_dir = Some(dir.into());
        self
    }

    /// Returns the agent of the run: the one in the request, else the one in its session key, else the default one.
    pub(crate) fn agent(&self, agents: &Agents) -> AgentId {
        workspace::agent_of(agents, self.agent_id.as_deref(), self.session_key.as_deref()).0
    }

    /// Returns a child of `stop` that is also cancelled when the run's time limit, measured from now, expires.
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

    /// Sets the parts of the system prompt.
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

    /// Sets how replies are delivered in blocks.
    #[must_use]
    pub fn block_replies(mut self, replies: BlockReplies) -> Self {
        (self.block_replies, self.blocks_are_default) = (Some(replies), false);
        self
    }

    /// Sets whether the sink gets a notice about the run's token usage at its end.
    #[must_use]
    pub fn usage_line(mut self, line: UsageLine) -> Self {
        self.usage_line = line;
        self
    }

    /// Sets the draft that is edited during the run.
    #[must_use]
    pub fn preview(mut self, preview: Preview) -> Self {
        self.preview = Some(preview);
        self
    }

    /// Sets the directories whose files the model may name by an absolute path, besides the workspace.
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

    /// Allows one attempt even if every profile is in cooldown.
    #[must_use]
    pub fn allow_cooldown_probe(mut self) -> Self {
        self.allow_cooldown_probe = true;
        self
    }

    /// Returns whether message tools must refuse to send without an explicit target: as set, else only in sessions of sub-agents.
    pub fn requires_explicit_message_target(&self) -> bool {
        let is_subagent = || self.session_key.as_deref().is_some_and(key::is_subagent);
        self.require_explicit_message_target.unwrap_or_else(is_subagent)
    }

    /// Returns whether failures of this run are expected and not logged.
    pub fn is_probe(&self) -> bool {
        self.session_id.starts_with("probe-")
    }
}
