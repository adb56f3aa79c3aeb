//! The built-in runtime: one session of `pinch-coding-agent` per model.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::queue::{QueueKind, SteeringPoint};
use pinch_coding_agent::auth::{Authorised, FixedAuth, RequestAuth};
use pinch_coding_agent::compaction::{Compacted, CompactionReason};
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::recovery::RecoveryPlan;
use pinch_coding_agent::session::{
    AgentSession, Prompt, PromptFor, SessionControl, SessionError, SessionParts, SessionRun,
};
use pinch_coding_agent::session_log::RecentSessions;
use pinch_coding_agent::store::{SessionStore, StoreError};
use pinch_llm::message::{Block, Image, Message, Usage};
use pinch_llm::model::Model;
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::{Auth, ToolChoice};
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::copy_on_write::CopyOnWrite;
use pinch_stdx::host::Host;
use pinch_stdx::pull::pulled;
use pinch_tools::loops::LoopGuard;
use serde_json::json;

use super::{AttemptEvent, AttemptRuntime, Attempts, CompactRefusal, PendingMessage, QueueRefusal, RunControl};
use crate::compaction::pruning::Pruner;
use crate::compaction::summaries::Summaries;
use crate::plugin::{LlmInput, RunHooks};
use crate::run::decide::{Repair, RepairOutcome};
use crate::run::outcome::AttemptStart;
use crate::run::scope::RunScope;
use crate::run::tools::ArrangedTools;
use crate::run::{AttemptPlan, RunError, RunRequest};

mod fitting;
mod seen_images;
mod entities;
mod notes;
mod options;
pub mod history;
pub mod images;
mod repair;
mod outcome;
mod client_results;
mod answers;
mod skill_call;

use answers::AnswerHooks;
use history::PreparedHistory;
use images::PromptFiles;
use outcome::Watcher;
use skill_call::SkillCallProvider;

/// How long a session stays in memory after a run, as in OpenClaw.
const KEPT_FOR: Duration = Duration::from_secs(45);

/// Name of the tool that reads files.
const READ: &str = "read";

/// Type of the entry that records why a model failed for good.
const PROMPT_ERROR: &str = "openclaw:prompt-error";

/// Runs attempts in this process.
pub struct NativeRuntime {
    providers: Arc<ProviderRegistry>,
    store: Arc<dyn SessionStore>,
    recent: Arc<RecentSessions>,
}

impl NativeRuntime {
    /// Creates a runtime with these providers, which stores sessions in this store.
    pub fn new(providers: ProviderRegistry, store: Arc<dyn SessionStore>) -> Self {
        Self { providers: Arc::new(providers), store, recent: Arc::new(RecentSessions::new(KEPT_FOR)) }
    }

    /// Sets how long a session stays in memory after a run, so that the next run does not read it again unless its file has changed. The
    /// default is 45 seconds; zero keeps none.
    #[must_use]
    pub fn with_sessions_kept_for(mut self, time: Duration) -> Self {
        self.recent = Arc::new(RecentSessions::new(time));
        self
    }

    async fn open_session(&self, scope: &RunScope, model: Arc<Model>) -> Result<NativeAttempts, RunError> {
        let ArrangedTools { tools, arrange } =
            scope.tools.for_session(&model, &scope.request.client_tools, &scope.extensions)?;
        let provider = self.providers.get(&model.api).map_err(|error| RunError::Config(error.to_string()))?;
        let request = &scope.request;
        let mut log = history::open_log(&self.store, scope, Some(&self.recent)).await.map_err(store_error)?;
        let model_changed = history::begin(&mut log, &model, scope).await.map_err(store_error)?;
        let pruner = history::pruner(&log, scope, &model);
        let mut provider: Arc<dyn Provider> = Arc::new(PreparedHistory::new(provider, model_changed, pruner.clone()));
        if let Some(call) = &scope.skill_call {
            provider = Arc::new(SkillCallProvider::new(call.clone(), provider));
        }
        let options = CopyOnWrite::from(options::of_run(scope, &model));
        // Credentials come with each attempt.
        let nobody = authorised(&provider, Arc::new(FixedAuth(Auth::default())));
        let mut parts = SessionParts::new(scope.host.clone(), log, model, nobody);
        parts.thinking = Some(request.think_level.unwrap_or_default());
        parts.hooks = Arc::new(AnswerHooks::new(Arc::clone(&scope.loops), parts.model.dialect.replies.html_entities));
        parts.tools = tools.clone();
        parts.arrange_tools = Some(arrange);
        parts.images = scope.images.clone();
        parts.block_images = scope.block_images;
        parts.facts = scope.facts.clone();
        let prompt = scope.prompt.for_model(&parts.model);
        parts.prompt_for = Some(Arc::clone(&prompt));
        parts.extensions = scope.extensions.clone();
        parts.compaction = scope.compaction.clone();
        let summaries = Arc::new(Summaries::new(
            scope.summaries.clone(),
            Arc::clone(&self.providers),
            Arc::clone(&parts.model),
            options.clone(),
            scope.host.clone(),
        ));
        parts.summaries = summaries.clone();
        parts.plan = RecoveryPlan::report();
        parts.options = options;
        let session = AgentSession::start(parts).await.map_err(session_error)?;
        session.control().set_steering_point(SteeringPoint::BeforeCalls);
        let is_compacting = Arc::new(AtomicBool::new(false));
        // A run without the tool that reads files must not read any.
        let reads = tools.get(READ).is_some().then(|| PromptFiles::of(scope));
        Ok(NativeAttempts {
            session,
            provider,
            summaries,
            pruner,
            request: Arc::clone(request),
            reads,
            is_compacting,
            loops: Arc::clone(&scope.loops),
            hooks: scope.hooks.clone(),
            prompt,
            host: scope.host.clone(),
            recent: Arc::clone(&self.recent),
        })
    }
}

impl AttemptRuntime for NativeRuntime {
    fn id(&self) -> &str {
        super::NATIVE
    }

    fn session_file(&self, request: &RunRequest) -> Option<PathBuf> {
        self.store.file_of(&request.session)
    }

    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        Box::pin(async move {
            let attempts: Box<dyn Attempts + 'a> = Box::new(self.open_session(scope, model).await?);
            Ok(attempts)
        })
    }
}

/// A session in which attempts are made.
struct NativeAttempts {
    session: AgentSession,
    provider: Arc<dyn Provider>,
    summaries: Arc<Summaries>,
    pruner: Option<Arc<Pruner>>,
    request: Arc<RunRequest>,
    /// Where to find files named by a prompt; `None`: they are not read.
    reads: Option<PromptFiles>,
    is_compacting: Arc<AtomicBool>,
    loops: Arc<LoopGuard>,
    hooks: RunHooks,
    prompt: PromptFor,
    host: Host,
    recent: Arc<RecentSessions>,
}

impl Drop for NativeAttempts {
    fn drop(&mut self) {
        self.recent.keep(self.session.log());
    }
}

impl NativeAttempts {
    /// Sets the credentials for all further requests.
    fn authorise(&mut self, auth: Arc<dyn RequestAuth>) {
        self.summaries.authorise(Arc::clone(&auth));
        self.session.set_provider(authorised(&self.provider, auth));
    }

    /// Leaves an answer that broke off out of the conversation. Returns whether the model is to be told: once is enough, however often an
    /// answer breaks off.
    async fn omit_interrupted(&mut self) -> Result<bool, SessionError> {
        if !self.session.messages().last().is_some_and(notes::broke_off) {
            return Ok(false);
        }
        self.session.omit_failed().await?;
        Ok(!self.session.messages().last().is_some_and(notes::is_interrupted_note))
    }

    /// Prepares the conversation for an attempt and begins it.
    async fn begin(&mut self, plan: &AttemptPlan, cancel: &Cancel) -> Result<SessionRun<'_>, RunError> {
        self.session.set_thinking(plan.thinking).await.map_err(session_error)?;
        self.is_compacting.store(false, Ordering::Relaxed);
        let mut start = plan.start;
        if start == AttemptStart::Prompt && !self.request.client_results.is_empty() {
            client_results::append(&mut self.session, &self.request.client_results, &self.hooks, &self.host).await?;
            if self.request.prompt.trim().is_empty() && self.request.images.is_empty() {
                start = AttemptStart::Resume;
            }
        }
        self.answer_interrupted_calls().await.map_err(store_error)?;
        let (text, images) = match start {
            AttemptStart::Prompt => self.take_prompt().await.map_err(store_error)?,
            AttemptStart::Resume | AttemptStart::Continue | AttemptStart::FinalReply => Default::default(),
        };
        let was_interrupted = match start {
            AttemptStart::Resume => self.omit_interrupted().await.map_err(session_error)?,
            _ => false,
        };
        let model = self.session.model();
        self.hooks.llm_input(|| LlmInput {
            provider: model.provider.to_string(),
            model: model.id.to_string(),
            system_prompt: Some((self.prompt)(self.session.tools()).as_sent()),
            prompt: text.clone(),
            history: self.session.messages().to_vec(),
            n_images: images.len(),
        });
        Ok(match start {
            AttemptStart::Prompt => self.session.prompt(Prompt {
                text,
                images,
                verbatim: true,
                provenance: self.request.provenance.clone(),
                cancel: cancel.clone(),
                ..Prompt::default()
            }),
            AttemptStart::Resume if was_interrupted => self.session.prompt_custom(&notes::interrupted_note(), cancel),
            AttemptStart::Resume => self.session.resume(cancel),
            AttemptStart::Continue => self.session.prompt_custom(&notes::continue_note(), cancel),
            AttemptStart::FinalReply => {
                self.session.options_mut().tool_choice = Some(ToolChoice::None);
                self.session.prompt_custom(&notes::final_reply_note(), cancel)
            }
        })
    }

    async fn answer_interrupted_calls(&mut self) -> Result<(), StoreError> {
        if history::answer_interrupted_calls(self.session.log_mut(), &self.hooks, &self.host).await? {
            self.session.reload();
        }
        Ok(())
    }

    /// Takes the prompt, together with unanswered earlier messages of the user and the images that it names.
    async fn take_prompt(&mut self) -> Result<(String, Vec<Image>), StoreError> {
        let mut images = self.request.images.clone();
        if let Some(files) = self.reads.as_ref().filter(|_| self.session.model().images) {
            images.extend(files.images(&self.request.prompt).await);
        }
        let prepared = self.hooks.prepare(&self.request.prompt, self.session.messages()).await;
        if prepared.changes_system {
            let system = (self.prompt)(self.session.tools());
            self.session.set_system(system);
        }
        let before = self.session.log().leaf_id().cloned();
        let prompt = history::take_prompt(self.session.log_mut(), &prepared.prompt, &images)?;
        if self.session.log().leaf_id() != before.as_ref() {
            self.session.reload();
        }
        Ok(prompt)
    }
}

impl Attempts for NativeAttempts {
    fn attempt<'a>(
        &'a mut self,
        plan: &'a AttemptPlan,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxStream<'a, AttemptEvent> {
        Box::pin(pulled(move |emitter| async move {
            let cancel = cancel.child();
            self.authorise(auth);
            let window = self.session.model().context_window;
            let mut watcher = Watcher::new(self.session.tools().clone(), window);
            let (is_compacting, loops) = (Arc::clone(&self.is_compacting), Arc::clone(&self.loops));
            // Boxed, so that what only the beginning needs is freed before the answer streams.
            let mut run = match Box::pin(self.begin(plan, &cancel)).await {
                Ok(run) => run,
                Err(error) => {
                    emitter.emit(AttemptEvent::Broken(error)).await;
                    return;
                }
            };
            while let Some(event) = run.next().await {
                match event {
                    Ok(event) => {
                        watcher.observe(&event, &cancel);
                        // A model that still calls a tool is stopped before the tool runs.
                        if plan.start == AttemptStart::FinalReply && calls_tools(&event) {
                            cancel.cancel(CancelReason::Yield);
                        }
                        match &event {
                            SessionEvent::CompactionStart { .. } => is_compacting.store(true, Ordering::Relaxed),
                            SessionEvent::CompactionEnd { result, .. } => {
                                is_compacting.store(false, Ordering::Relaxed);
                                if result.is_some() {
                                    loops.compacted();
                                }
                            }
                            _ => {}
                        }
                        // What follows a run, and its end, are the runner's business.
                        if !matches!(event, SessionEvent::Settled { .. }) {
                            emitter.emit(AttemptEvent::Session(event)).await;
                        }
                    }
                    Err(error) => {
                        emitter.emit(AttemptEvent::Broken(session_error(error))).await;
                        return;
                    }
                }
            }
            drop(run);
            if plan.start == AttemptStart::FinalReply {
                self.session.options_mut().tool_choice = None;
            }
            let mut outcome = watcher.finish(&cancel, self.session.messages());
            outcome.usage.add(&self.take_repair_usage());
            // An entry after a compaction would make the compaction look older.
            if let Some(pruner) = self.pruner.clone().filter(|_| outcome.compactions == 0) {
                let model = Arc::clone(self.session.model());
                if let Err(error) = Box::pin(history::stamp(self.session.log_mut(), &pruner, &model)).await {
                    emitter.emit(AttemptEvent::Broken(store_error(error))).await;
                    return;
                }
            }
            emitter.emit(AttemptEvent::End(Box::new(outcome))).await;
        }))
    }

    fn repair<'a>(
        &'a mut self,
        repair: &'a Repair,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxFuture<'a, RepairOutcome> {
        Box::pin(async move {
            self.authorise(auth);
            match repair {
                Repair::Compact { .. } => {
                    self.is_compacting.store(true, Ordering::Relaxed);
                    let repaired = repair::compact(&mut self.session, CompactionReason::Overflow, &cancel).await;
                    self.is_compacting.store(false, Ordering::Relaxed);
                    if repaired == RepairOutcome::Compacted {
                        self.loops.compacted();
                    }
                    repaired
                }
                Repair::TruncateToolResults => repair::truncate_tool_results(&mut self.session).await,
            }
        })
    }

    fn note_failure<'a>(&'a mut self, error: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let model = Arc::clone(self.session.model());
            let data = json!({
                "timestamp": self.host.now_ms(),
                "runId": self.request.run_id.as_str(),
                "sessionId": self.request.session_id.as_str(),
                "provider": model.provider.as_str(),
                "model": model.id.as_str(),
                "api": model.api.as_str(),
                "error": error,
            });
            if let Err(error) = history::append(self.session.log_mut(), PROMPT_ERROR, data).await {
                tracing::warn!(%error, "could not record a failure");
            }
        })
    }

    fn take_repair_usage(&mut self) -> Usage {
        self.summaries.take_usage()
    }

    fn compact<'a>(
        &'a mut self,
        focus: Option<&'a str>,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxFuture<'a, Result<Compacted, CompactRefusal>> {
        Box::pin(async move {
            self.authorise(auth);
            self.is_compacting.store(true, Ordering::Relaxed);
            let compacted = repair::compact_now(&mut self.session, focus, &cancel).await;
            self.is_compacting.store(false, Ordering::Relaxed);
            compacted
        })
    }

    fn control(&self) -> Arc<dyn RunControl> {
        Arc::new(NativeControl { session: self.session.control(), is_compacting: Arc::clone(&self.is_compacting) })
    }
}

/// Controls a session borrowed by attempts.
struct NativeControl {
    session: SessionControl,
    is_compacting: Arc<AtomicBool>,
}

impl RunControl for NativeControl {
    fn queue(&self, kind: QueueKind, text: String, images: Vec<Image>) -> Result<(), QueueRefusal> {
        match kind {
            QueueKind::Steering => self.session.steer(text, images),
            QueueKind::FollowUp => self.session.follow_up(text, images),
        }
        Ok(())
    }

    fn take_queued(&self) -> Vec<PendingMessage> {
        let queued = |(kind, message): (QueueKind, Arc<Message>)| match &*message {
            Message::User(user) => {
                let images = user.content.images().cloned().collect();
                Some(PendingMessage { kind, text: user.content.text(""), images })
            }
            _ => None,
        };
        self.session.take_queued().into_iter().filter_map(queued).collect()
    }

    fn is_streaming(&self) -> bool {
        self.session.is_running()
    }

    fn is_compacting(&self) -> bool {
        self.is_compacting.load(Ordering::Relaxed)
    }
}

fn calls_tools(event: &SessionEvent) -> bool {
    let SessionEvent::Agent(AgentEvent::MessageEnd { message, .. }) = event else { return false };
    let is_call = |block: &Arc<Block>| matches!(&**block, Block::ToolCall(_));
    message.as_assistant().is_some_and(|answer| answer.content.iter().any(is_call))
}

fn authorised(provider: &Arc<dyn Provider>, auth: Arc<dyn RequestAuth>) -> Arc<dyn Provider> {
    Arc::new(Authorised::new(Arc::clone(provider), auth))
}

fn session_error(error: SessionError) -> RunError {
    match error {
        SessionError::Store(error) => store_error(error),
        error @ (SessionError::Auth(_) | SessionError::NoKey { .. }) => RunError::Config(error.to_string()),
        error => RunError::Internal(error.to_string()),
    }
}

pub(super) fn store_error(error: StoreError) -> RunError {
    match error {
        StoreError::Locked { .. } | StoreError::Contended | StoreError::Fenced { .. } => {
            RunError::Busy(error.to_string())
        }
        StoreError::NotASession { .. } | StoreError::BadId { .. } => RunError::Config(error.to_string()),
        other => {
            // The operating system's message is in the source.
            let cause = std::error::Error::source(&other).map(|cause| format!(": {cause}"));
            RunError::Internal(format!("{other}{}", cause.unwrap_or_default()))
        }
    }
}
