//! The methods of [`RunRequest`] that set one field each.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinch_llm::message::{Image, Provenance};
use pinch_llm::thinking::ThinkingLevel;
use pinch_ports::{Caller, RunLeases};
use pinch_stdx::cancel::Cancel;

use super::{
    BlockReplies, BootstrapContext, Budget, ElevatedLevel, ExecOverrides, PermissionMode, Preview, ProfileChoice,
    ProfileId, ProfileSource, PromptMode, ReasoningLevel, ReplyExpectation, ReplyToMode, RunRequest, RunTrigger,
    StreamParams, ToolFormat, UsageLine, Verbose, VerboseNow,
};
use crate::key::{AgentId, RunId, SessionKey};
use crate::skills::AgentSkills;

impl RunRequest {
    /// Sets the routing key of the session.
    #[must_use]
    pub fn session_key(mut self, key: impl Into<SessionKey>) -> Self {
        self.session_key = Some(key.into());
        self
    }

    /// Sets the directory of the credentials, models and settings.
    #[must_use]
    pub fn agent_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.agent_dir = Some(dir.into());
        self
    }

    /// Sets the skills, instead of those that exist when the run begins.
    #[must_use]
    pub fn skills(mut self, skills: impl Into<Arc<AgentSkills>>) -> Self {
        self.skills = Some(skills.into());
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

    /// Limits the run's permissions. The stricter limit remains, if there is one already.
    #[must_use]
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.permission_mode = Some(self.permission_mode.map_or(mode, |known| known.stricter(mode)));
        self
    }

    /// Requires a sandbox.
    #[must_use]
    pub fn require_sandbox(mut self) -> Self {
        self.requires_sandbox = true;
        self
    }

    /// Sets how deeply the session is nested in sub-agents.
    #[must_use]
    pub fn spawn_depth(mut self, depth: u32) -> Self {
        self.spawn_depth = Some(depth);
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

    /// Lets a function decide before each message about a tool how much the user sees.
    #[must_use]
    pub fn verbose_now(mut self, decide: impl Fn() -> Verbose + Send + Sync + 'static) -> Self {
        self.verbose_now = Some(VerboseNow::new(decide));
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

    /// Sets who grants the lease of the run, instead of the engine's leases.
    #[must_use]
    pub fn leases(mut self, leases: Arc<dyn RunLeases>) -> Self {
        self.leases = Some(leases);
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

    /// Sets who sent the message in the user's name.
    #[must_use]
    pub fn provenance(mut self, provenance: Provenance) -> Self {
        self.provenance = Some(provenance);
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

    /// Sets which workspace files the system prompt contains.
    #[must_use]
    pub fn bootstrap_context(mut self, context: BootstrapContext) -> Self {
        self.bootstrap_context = context;
        self
    }

    /// Sets where commands run and which of them, instead of the configuration.
    #[must_use]
    pub fn exec_overrides(mut self, overrides: ExecOverrides) -> Self {
        self.exec_overrides = overrides;
        self
    }
}
