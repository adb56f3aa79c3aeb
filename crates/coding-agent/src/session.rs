//! A session: a conversation with a model, its log, and the logic that drives both.
//!
//! An [`AgentSession`] is owned by one caller. [`AgentSession::prompt`] returns a [`SessionRun`], a stream of events that the caller polls;
//! an event is in the log before it is emitted. Other code controls the session through a [`SessionControl`].

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::Agent;
use pinch_agent_core::tool::ToolSet;
use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::{AssistantMessage, Message};
use pinch_llm::model::{Model, thinking};
use pinch_llm::provider::Provider;
use pinch_llm::request::CallOptions;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use crate::auth::{AuthError, RequestAuth};
use crate::compaction::{CompactError, Compacted, CompactionReason, CompactionRules, SummaryHooks};
use crate::entry::EntryId;
use crate::event::SessionEvent;
use crate::extension::actions::SessionSnapshot;
use crate::prompt::PromptSections as SystemPrompt;
use crate::recovery::{OverflowRecovery, RecoveryPlan, RecoveryState};
use crate::resources::{Commands, ExtraPaths};
use crate::session_log::SessionLog;
use crate::store::StoreError;

mod input;
mod view;
mod requests;
mod tooling;
pub mod control;
mod image_intake;
pub mod stats;
mod answering;
mod notify;
pub mod models;
mod extension_models;
mod parts;
mod observer;
mod hooks;
mod extension_session;
mod emitter;
mod changes;
mod boundary;
mod compacting;
pub mod tree;
pub mod replace;
mod run_requests;
mod run;
mod bash;
mod custom;
pub mod create;

pub use control::{Change, SessionBusy, SessionControl};
pub use create::{CreateError, Created, SessionOptions, create};
pub(crate) use emitter::EventListener;
pub use input::Prompt;
pub(crate) use models::ChooseModel;
pub use models::{CycleDirection, FindModel, ScopedModel};
pub use parts::{LoadFound, SessionParts};
pub use replace::{ForkAt, ForkError};
pub use requests::HostRequest;
pub use run::SessionRun;
pub use stats::{ContextUsage, SessionStats};
pub use tooling::{ArrangeTools, PromptFor};
pub use tree::{NavigateError, Navigated, Navigation};
pub use view::SessionView;

use tooling::Tooling;

/// A conversation with its log.
pub struct AgentSession {
    log: SessionLog,
    agent: Agent,
    system: SystemPrompt,
    compaction: CompactionRules,
    summaries: Arc<dyn SummaryHooks>,
    branch_reserve_tokens: u64,
    plan: RecoveryPlan,
    state: RecoveryState,
    auth: Option<Arc<dyn RequestAuth>>,
    usual_thinking: Option<ThinkingLevel>,
    find_model: Option<FindModel>,
    /// Selects the model of a conversation that replaces this one; `None` uses the branch's model.
    choose_model: Option<ChooseModel>,
    control: SessionControl,
    calls: Arc<extension_models::ExtensionCalls>,
    host: Host,
    /// Resources found by extensions.
    found: Vec<ExtraPaths>,
    load_found: Option<LoadFound>,
    is_shut_down: bool,
    _bound: ExtensionBinding,
}

/// Keeps extensions bound to the session.
struct ExtensionBinding(SessionControl);

impl Drop for ExtensionBinding {
    fn drop(&mut self) {
        self.0.extensions().bind(None);
        self.0.share(|state| state.requests.close());
    }
}

/// Why a session could not continue. Provider failures are not errors here but answers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The log could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing to continue from.
    #[error(transparent)]
    ContinueError(#[from] pinch_agent_core::ContinueError),
    /// There are no credentials for a prompt.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// An extension prevented leaving the session.
    #[error("an extension cancelled the switch")]
    SwitchCancelled,
    /// There are no credentials for the model to switch to.
    #[error("No API key for {provider}/{model}")]
    NoKey {
        /// Provider of the model.
        provider: ProviderId,
        /// Id of the model.
        model: ModelId,
    },
}

/// A request for a compaction.
#[derive(Clone, Debug)]
pub struct CompactRequest {
    /// What triggered it.
    pub reason: CompactionReason,
    /// What the summary should focus on.
    pub focus: Option<String>,
    /// Cancels it; the log is unchanged.
    pub cancel: Cancel,
}

impl CompactRequest {
    /// Creates a request made by the caller.
    pub fn manual(focus: Option<String>) -> Self {
        Self { reason: CompactionReason::Manual, focus, cancel: Cancel::default() }
    }
}

impl AgentSession {
    /// Starts a session on a log. A new log gets the model and the thinking level as its first entries; an existing one gets what has
    /// changed.
    ///
    /// # Errors
    /// Fails if the log cannot be written.
    pub fn start(parts: SessionParts) -> BoxFuture<'static, Result<Self, SessionError>> {
        Box::pin(async move {
            let reason = parts.reason;
            let mut session = Self::assemble(parts).await?;
            session.arrive(reason, None).await;
            Ok(session)
        })
    }

    /// Like [`AgentSession::start`], without notifying the extensions: see [`AgentSession::arrive`].
    pub(crate) async fn assemble(parts: SessionParts) -> Result<Self, SessionError> {
        let SessionParts { host, mut log, model, .. } = parts;
        let context = log.context();
        let is_new = context.messages.is_empty();
        let wanted = parts.thinking.or_else(|| ThinkingLevel::parse(&context.thinking_level)).unwrap_or_default();
        let thinking = thinking::clamp(&model, wanted);
        // If no model has answered yet, as in old files, the first answer will name one.
        let is_other = match &context.model {
            Some(of_branch) => of_branch.provider != model.provider || of_branch.model_id != model.id,
            None => is_new,
        };
        if is_other {
            log.append(models::model_change(&model)).await?;
        }
        let has_level = log.active_branch().has_level();
        if is_new || !has_level || context.thinking_level != thinking.as_str() {
            log.append(models::level_change(thinking)).await?;
        }
        let calls =
            extension_models::ExtensionCalls::new(Arc::clone(&parts.provider), parts.options.clone(), host.clone());
        let calls = Arc::new(calls);
        let mut agent = Agent::new(host.clone(), model, parts.provider);
        agent.messages = context.messages;
        agent.thinking = thinking;
        let mut tooling = Tooling::new(&parts.tools, parts.all_tools, parts.allowed_tools, parts.prompt_for);
        tooling.arrange = parts.arrange_tools;
        tooling.begin_again(&agent.messages, &parts.extensions);
        let active_tools = tooling.active(&parts.extensions);
        agent.tools = tooling.offered(&active_tools);
        let system = tooling.prompt_for.as_ref().map_or(parts.system, |make| make(&agent.tools));
        agent.options = parts.options;
        agent.options.session_id.get_or_insert_with(|| log.id().to_owned());
        let commands = Arc::new(Commands { skills: parts.skills, templates: parts.templates });
        agent.options.observer = observer::observer(agent.options.observer.take(), &parts.extensions);
        let now = SessionSnapshot {
            session_id: log.id().to_owned(),
            session_file: log.path().map(PathBuf::from),
            session_name: log.name(),
            cwd: PathBuf::from(log.cwd()),
            model: Arc::clone(&agent.model),
            thinking,
            active_tools,
            all_tools: tooling.all(&parts.extensions),
            system: system.clone(),
            is_project_trusted: parts.is_project_trusted,
        };
        let queues = agent.queues();
        let control = SessionControl::new(queues, host.clone(), commands, parts.extensions.clone(), now, tooling)
            .keeping(parts.facts)
            .taking(parts.images);
        agent.hooks = Arc::new(hooks::SessionHooks::new(parts.hooks, control.clone(), parts.block_images));
        let models = parts.models.unwrap_or_else(|| Arc::new(extension_models::OwnModel(control.clone())));
        let bound = extension_session::ExtensionSession::new(
            control.clone(),
            parts.find_model.clone(),
            models,
            Arc::clone(&calls),
        );
        parts.extensions.bind(Some(Arc::new(bound)));
        Ok(Self {
            log,
            agent,
            system,
            compaction: parts.compaction,
            summaries: parts.summaries,
            branch_reserve_tokens: parts.branch_reserve_tokens,
            plan: parts.plan,
            state: RecoveryState::default(),
            auth: parts.auth,
            usual_thinking: parts.usual_thinking,
            find_model: parts.find_model,
            choose_model: None,
            _bound: ExtensionBinding(control.clone()),
            control,
            calls,
            host,
            found: Vec::new(),
            load_found: parts.load_found,
            is_shut_down: false,
        })
    }

    /// Sends a prompt. Nothing happens until the run is polled; dropping it stops everything.
    pub fn prompt(&mut self, prompt: Prompt) -> SessionRun<'_> {
        let cancel = prompt.cancel.child();
        SessionRun::new(self, run::RunInput::Prompt(Box::new(prompt)), cancel)
    }

    /// Continues from the log's leaf without a new message: after a failed answer, which is removed from the context, or with queued
    /// messages.
    pub fn resume(&mut self, cancel: &Cancel) -> SessionRun<'_> {
        SessionRun::new(self, run::RunInput::Nothing, cancel.child())
    }

    /// Performs what extensions have requested while no run was polled: changes, actions and prompts. The run ends when nothing is left.
    pub fn run_requests(&mut self, cancel: &Cancel) -> SessionRun<'_> {
        SessionRun::new(self, run::RunInput::Rest, cancel.child())
    }

    /// Renames the session; a blank name clears it.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn set_name<'a>(&'a mut self, name: &'a str) -> BoxFuture<'a, Result<(), SessionError>> {
        Box::pin(async move {
            self.log.append_name(name).await?;
            let event = SessionEvent::InfoChanged { name: self.log.name() };
            self.control.name_changed(&event, &self.log).await;
            Ok(())
        })
    }

    /// Compacts the conversation now, regardless of the settings. [`SessionControl::cancel`] also cancels it. `on_event` receives its start,
    /// its end, and retries of summary requests.
    ///
    /// # Errors
    /// [`CompactError`]; the log is unchanged.
    pub fn compact<'a>(
        &'a mut self,
        request: CompactRequest,
        on_event: &'a (dyn Fn(SessionEvent) + Send + Sync),
    ) -> BoxFuture<'a, Result<Compacted, CompactError>> {
        Box::pin(async move { self.compact_with(request, &emitter::CallbackListener(on_event)).await })
    }

    /// Like [`Self::compact`], waiting for each event to be handled.
    pub(crate) async fn compact_with(
        &mut self,
        request: CompactRequest,
        emitter: &dyn emitter::EventListener,
    ) -> Result<Compacted, CompactError> {
        let cancel = request.cancel.child();
        let _entered = self.control.enter(&cancel);
        let summariser = compacting::Summariser::of(self);
        let wanted =
            compacting::CompactionTask { reason: request.reason, focus: request.focus.as_deref(), will_retry: false };
        let done = summariser.compact(&mut self.log, wanted, emitter, &cancel).await?;
        self.reload();
        Ok(done)
    }

    /// Returns a handle for controlling the session while a run borrows it.
    pub fn control(&self) -> SessionControl {
        self.control.clone()
    }

    /// Returns the log.
    pub fn log(&self) -> &SessionLog {
        &self.log
    }

    /// Returns the log, for appending entries that are not part of the conversation.
    pub fn log_mut(&mut self) -> &mut SessionLog {
        &mut self.log
    }

    /// Returns the conversation as the model sees it, before roles are converted.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.agent.messages
    }

    /// Returns the tools offered to the model: the active ones, including those of extensions, as
    /// [arranged](SessionParts::arrange_tools).
    pub fn tools(&self) -> &ToolSet {
        &self.agent.tools
    }

    /// Returns the model.
    pub fn model(&self) -> &Arc<Model> {
        &self.agent.model
    }

    /// Returns the thinking level.
    pub fn thinking(&self) -> ThinkingLevel {
        self.agent.thinking
    }

    /// Returns the rules for automatic compaction, for changing them.
    pub fn compaction_mut(&mut self) -> &mut CompactionRules {
        &mut self.compaction
    }

    /// Returns the recovery plan, for changing it.
    pub fn plan_mut(&mut self) -> &mut RecoveryPlan {
        &mut self.plan
    }

    /// Replaces the active tools and the system prompt from the next prompt on; the model is informed of the change.
    pub fn set_tools(&mut self, tools: ToolSet, system: SystemPrompt) {
        self.control.tools_changed(&tools, &system);
        self.agent.tools = self.control.offered(&tools);
        self.system = system;
    }

    /// Replaces the system prompt from the next prompt on; the model is informed of the change.
    pub fn set_system(&mut self, system: SystemPrompt) {
        self.control.update_snapshot(|now| now.system = system.clone());
        self.system = system;
    }

    /// Replaces the provider from the next request on, for example to use other credentials.
    pub fn set_provider(&mut self, provider: Arc<dyn Provider>) {
        self.calls.set_provider(Arc::clone(&provider));
        self.agent.provider = provider;
    }

    /// Returns the options of subsequent requests, for changing them.
    pub fn options_mut(&mut self) -> &mut CallOptions {
        &mut self.agent.options
    }

    /// Removes a failed last answer from the context; it stays in the log.
    ///
    /// # Errors
    /// Fails if the edit cannot be written.
    pub fn omit_failed(&mut self) -> BoxFuture<'_, Result<(), SessionError>> {
        Box::pin(async move {
            self.omit_failed_answer().await?;
            Ok(())
        })
    }

    /// Reloads the conversation from the log, after entries were appended directly.
    pub fn reload(&mut self) {
        self.agent.messages = self.log.context().messages;
    }

    /// Returns the text of the last answer, skipping empty cancelled ones.
    pub fn last_text(&self) -> Option<String> {
        self.view().last_text()
    }

    /// Returns a view of the session.
    pub fn view(&self) -> SessionView<'_> {
        SessionView {
            log: &self.log,
            model: &self.agent.model,
            thinking: self.agent.thinking,
            conversation: Some(&self.agent.messages),
        }
    }

    /// Calls the observers still waiting at the end of a run: see [`SessionControl::observe`].
    pub fn notify_observers(&self) {
        answering::notify_observers(&self.control, &self.view());
    }

    /// Returns whether automatic compaction is enabled, by settings or [`SessionControl::set_auto_compaction`].
    pub fn auto_compaction(&self) -> bool {
        self.control.switches().compaction.unwrap_or(self.compaction.settings.enabled)
    }

    /// Returns the recovery plan with the current switches applied.
    fn plan_now(&self) -> RecoveryPlan {
        let switches = self.control.switches();
        let usual = RecoveryPlan::default();
        let mut plan = self.plan;
        if let Some(max_retries) = switches.retries {
            plan.turn.max_retries = max_retries;
        }
        match switches.compaction {
            Some(false) => plan.overflow = OverflowRecovery::Off,
            Some(true) if plan.overflow == OverflowRecovery::Off => plan.overflow = usual.overflow,
            _ => {}
        }
        plan
    }

    /// Returns the session's file, if it has one.
    pub fn path(&self) -> Option<PathBuf> {
        self.log.path().map(PathBuf::from)
    }

    /// Removes a failed last answer from the context; it stays in the log. Returns the entry that does so.
    async fn omit_failed_answer(&mut self) -> Result<Option<EntryId>, StoreError> {
        self.omit_last(|answer| answer.stop_reason.is_failure()).await
    }

    /// Removes the last message from the context if it is an answer that matches; it stays in the log.
    async fn omit_last(&mut self, is_such: impl Fn(&AssistantMessage) -> bool) -> Result<Option<EntryId>, StoreError> {
        let omitted = self.log.omit_last_answer(is_such).await?;
        if omitted.is_some() {
            self.reload();
        }
        Ok(omitted)
    }
}

impl fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSession").field("log", &self.log).field("agent", &self.agent).finish_non_exhaustive()
    }
}
