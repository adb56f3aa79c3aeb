//! The request of one run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinch_agent_core::tool::ToolSpec;
use pinch_coding_agent::store::SessionRef;
use pinch_llm::message::{Image, Provenance, Usage};
use pinch_llm::thinking::ThinkingLevel;
use pinch_ports::{Caller, RunLeases};
use pinch_stdx::cancel::{Cancel, Deadline, DeadlineExtension};

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
use crate::replies::tool_notes::{ToolFormat, Verbose, VerboseNow};
use crate::skills::AgentSkills;
use crate::workspace;

mod reply;
mod trigger;
mod setters;

pub use reply::{BlockReplies, ReplyExpectation, UsageLine};
pub use trigger::RunTrigger;

pub use crate::config::exec::ExecOverrides;
pub use crate::prompt::bootstrap::BootstrapContext;

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
    /// Directory of the credentials, models and settings, for example one per user of a service; relative to the state directory. `None`: that
    /// of the agent. Its documents are layered over those of the main agent.
    pub agent_dir: Option<PathBuf>,
    /// Where the transcript is stored (`sessionFile`).
    pub session: SessionRef,
    /// Working directory of the tools; `None`: the agent's. A leading `~` is the home directory.
    pub workspace_dir: Option<PathBuf>,
    /// The user's message.
    pub prompt: String,
    /// Images after the message.
    pub images: Vec<Image>,
    /// Who sent the message in the user's name, if not the user, such as another session; stored with it (`inputProvenance`).
    pub provenance: Option<Provenance>,
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
    /// Decides that anew before each message about a tool, for levels that change during the run (`shouldEmitToolResult`,
    /// `shouldEmitToolOutput`).
    pub verbose_now: Option<VerboseNow>,
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
    /// Who grants the lease of the run, instead of the engine's [`leases`](crate::EngineBuilder::leases). A run that is started inside of another one,
    /// and must not wait for a slot of the same lane, brings its own (`enqueue`).
    pub leases: Option<Arc<dyn RunLeases>>,
    /// Replaces the whole system prompt (`systemPromptOverride`). Surrounding white space is removed, and a blank text replaces nothing.
    pub system_prompt: Option<String>,
    /// Which workspace files the system prompt contains (`bootstrapContextMode`).
    pub bootstrap_context: BootstrapContext,
    /// Parts of the system prompt; `None`: all of it, fewer for sub-agents and cron jobs.
    pub prompt_mode: Option<PromptMode>,
    /// Skills that [`Engine::skills`](crate::Engine::skills) returned earlier, for this agent: its directories are not read again, so that the
    /// system prompt stays the same. `None`: those that exist now (`skillsSnapshot`).
    pub skills: Option<Arc<AgentSkills>>,
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
    /// How deeply the session is nested in sub-agents, as stored (`spawnDepth`); `None`: derived from its key and `caller.spawned_by`.
    /// Sub-agents have fewer tools.
    pub spawn_depth: Option<u32>,
    /// Whether the run must be in a sandbox, whatever the configuration says: its commands never leave the sandbox, and the workspace of the
    /// agent is at most readable.
    pub requires_sandbox: bool,
    /// Where commands run and which of them, instead of the configuration. Approvals and `permission_mode` still restrict them.
    pub exec_overrides: ExecOverrides,
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
    /// Whether the session comes from the index, which notifies plugins of new sessions.
    pub(crate) is_indexed: bool,
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

impl Budget {
    /// Returns the limit of tokens that this usage has reached.
    pub(crate) fn reached_tokens(&self, used: &Usage) -> Option<u64> {
        self.tokens.filter(|limit| used.context_tokens() >= *limit)
    }

    /// Returns the limit of costs that this usage has reached.
    pub(crate) fn reached_cost(&self, used: &Usage) -> Option<f64> {
        self.cost_usd.filter(|limit| used.cost.total >= *limit)
    }
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
            agent_dir: None,
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
            verbose_now: None,
            reasoning_level: ReasoningLevel::default(),
            tool_result_format: None,
            suppress_tool_error_warnings: false,
            enforce_final_tag: false,
            timeout: Some(Duration::from_secs(600)),
            lane: None,
            leases: None,
            system_prompt: None,
            provenance: None,
            prompt_mode: None,
            bootstrap_context: BootstrapContext::default(),
            exec_overrides: ExecOverrides::default(),
            skills: None,
            extra_system_prompt: None,
            owner_numbers: Vec::new(),
            block_replies: None,
            memory_flush_write_path: None,
            permission_mode: None,
            spawn_depth: None,
            requires_sandbox: false,
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
            is_indexed: false,
            preview: None,
            usage_line: UsageLine::default(),
            media_roots: Vec::new(),
        }
    }

    /// Returns the agent of the run: the one in the request, else the one in its session key, else the default one.
    pub(crate) fn agent(&self, agents: &Agents) -> AgentId {
        workspace::agent_of(agents, self.agent_id.as_deref(), self.session_key.as_deref()).0
    }

    /// Returns the name under which the session's commands and events are kept: its key, or its id if it has none.
    pub(crate) fn scope_key(&self) -> &str {
        self.session_key.as_deref().unwrap_or(&self.session_id)
    }

    /// Returns a child of `stop` that is also cancelled when the run's time limit, measured from now, expires. Compactions can extend that
    /// limit by `more`. The deadline of the budget is fixed.
    pub(crate) fn limited(&self, stop: &Cancel, more: Duration) -> (Cancel, Option<DeadlineExtension>) {
        let limit = |timeout: Option<Duration>| timeout.into_iter().chain(self.budget.deadline).min();
        let later = self.timeout.map(|timeout| timeout.saturating_add(more));
        match limit(self.timeout).zip(limit(later)) {
            Some((at, later)) => {
                let (cancel, extension) = stop.child_until_extended(Deadline::after(at), Deadline::after(later));
                (cancel, Some(extension))
            }
            None => (stop.child(), None),
        }
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
