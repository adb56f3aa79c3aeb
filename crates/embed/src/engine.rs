//! The entry point: an engine that runs agents, one per process or tenant.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::document::Problem;
use pinch_llm::message::Image;
use pinch_ports::SessionEntry;
use pinch_stdx::cancel::CancelReason;
use pinch_tools::policy::PolicyDecision;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::delivery::{EngineEvents, Lifecycle, ReplyEvent};
use crate::inbox::InboundMessage;
use crate::key::{self, AgentId, Peer, SessionKey};
use crate::parts::Parts;
pub use crate::parts::active::{ActiveRun, QueueError, RunTarget};
use crate::parts::background::BackgroundTasks;
use crate::plugin::RunHooks;
use crate::run::{RunError, RunRequest, RunResult};
use crate::runner::{BoxedRunResult, RunEvent, Runner, millis, spans};
use crate::runtime::NATIVE;
use crate::skills::AgentSkills;

mod published;
mod directories;
mod sandboxed;
mod prompting;
mod offering;
mod resolve;
mod replying;
mod engine_run;
mod configured;
mod agents;
mod entries;
mod replaced;
mod inbound;
mod leasing;
mod turns;
mod hooked;
mod cli_sessions;
mod flush;
mod subagents;
mod builder;
mod shutdown;
mod compact;
mod conversation;

use resolve::RunModels;

pub use builder::EngineBuilder;
pub use compact::{CompactedSession, CompactionOutcome};
pub use engine_run::{DeliveredRun, EngineRun, ReplyDelivery};
pub use turns::Turn;

/// Runs agents. Clones are cheap and share everything: lanes, profiles, connections.
#[derive(Clone)]
pub struct Engine {
    current: Arc<RwLock<Current>>,
    /// Work that ends with the last clone of the engine.
    background: Arc<BackgroundTasks>,
}

/// The parts of an engine, built from its current configuration.
struct Current {
    parts: Arc<Parts>,
    problems: Arc<Vec<Problem>>,
}

impl Engine {
    /// Starts building an engine with its state (sessions, credentials, configuration) in `state_dir`. Everything else is optional.
    pub fn builder(state_dir: impl AsRef<Path>) -> EngineBuilder {
        EngineBuilder::new(state_dir.as_ref())
    }

    /// Returns the problems found in documents and registrations, which were skipped.
    pub fn problems(&self) -> Vec<Problem> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).problems.to_vec()
    }

    fn parts(&self) -> Arc<Parts> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).parts)
    }

    /// Returns the policy decision about each tool of a request, for the model that would be asked first. Writes nothing.
    ///
    /// # Errors
    /// As for a run: an unusable configuration, a restriction that is not enforced, or no model.
    pub fn tool_policy(&self, request: RunRequest) -> Result<PolicyDecision, RunError> {
        let parts = self.parts();
        if let Some(problem) = &parts.config.unusable {
            return Err(RunError::Config(problem.clone()));
        }
        let parts = agents::of_request(&parts, &request);
        let hooks = hooked::of_run(&parts, &request);
        resolve::tool_policy(&parts, request, &hooks)
    }

    /// Returns the skills of the request's agent: which it may use, why not the others, and their slash commands.
    ///
    /// # Errors
    /// [`RunError::Config`] if the configuration is unusable or the session key is malformed.
    pub fn skills(&self, request: &RunRequest) -> Result<AgentSkills, RunError> {
        let parts = self.parts();
        if let Some(problem) = &parts.config.unusable {
            return Err(RunError::Config(problem.clone()));
        }
        let workspace = resolve::workspace(&parts, request)?;
        Ok(prompting::skills(&parts, &workspace.agent_id, &workspace.dir))
    }

    /// Creates a request with the configured defaults filled in: agent, session file, workspace, time limit.
    pub fn request(
        &self,
        session_id: &str,
        session_key: Option<&str>,
        agent_id: Option<&str>,
        prompt: &str,
    ) -> RunRequest {
        resolve::request(&self.parts(), session_id, session_key, agent_id, prompt)
    }

    /// Creates the request for a message from its session key. The session is the key's current one; a new one begins if there is none or
    /// if the configured reset rules say so. The request includes what is stored about that session: model, thinking level, profile. A
    /// message that begins with `/new` or `/reset` also starts a new session.
    ///
    /// Keys without `agent:` belong to the default agent, and `main` is its main session. [`Engine::session_key`] returns the key of a
    /// chat.
    ///
    /// # Errors
    /// [`RunError::Config`] if the key is malformed, or if the index of sessions cannot be read or written.
    pub fn message<'a>(&'a self, key: &'a str, text: &'a str) -> BoxFuture<'a, Result<RunRequest, RunError>> {
        Box::pin(async move { inbound::message(&self.parts(), key, text).await })
    }

    /// Sends a message to a session that may be busy, and waits until its fate is decided: it gets its own run, which the caller must
    /// start, or an active run reads it. The message's mode decides, or else `messages.queue` of the configuration; see
    /// [`InboxMode`](crate::config::messages::InboxMode).
    ///
    /// A message that arrives while its session is being compacted or waits for a provider is read after that run. Dropping the future
    /// withdraws the message unless a run has read it.
    ///
    /// # Errors
    /// As for [`Engine::message`]; also if another message of the session had the same idempotency key.
    pub fn send(&self, message: InboundMessage) -> BoxFuture<'_, Result<Turn, RunError>> {
        Box::pin(async move { turns::send(&self.parts(), message).await })
    }

    /// Returns the session key of a chat, according to `session.dmScope`, `session.mainKey` and `session.identityLinks`. `agent`: the agent
    /// that the message is for; `None`: the default one.
    pub fn session_key(&self, agent: Option<&str>, peer: &Peer<'_>) -> String {
        let parts = self.parts();
        let config = &parts.config;
        let agent = agent.map_or_else(|| config.agents.default_id(), AgentId::normalise);
        let session = &config.session;
        key::peer_key(&agent, peer, session.dm_scope, &session.main_key, &session.identity_links)
    }

    /// Returns the stored entries of an agent's sessions, by key.
    ///
    /// # Errors
    /// [`RunError::Config`] if the index of sessions cannot be read.
    pub fn sessions<'a>(
        &'a self,
        agent: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<SessionKey, SessionEntry>, RunError>> {
        Box::pin(async move {
            self.parts().index.list(AgentId::normalise(agent).as_str()).await.map_err(inbound::port_error)
        })
    }

    /// Updates the stored entry of a session, for example the model chosen by its user; `None` means no entry. `change` may be called more
    /// than once.
    ///
    /// # Errors
    /// [`RunError::Config`] if the key is malformed, or if the index of sessions cannot be read or written.
    pub async fn update_session(
        &self,
        key: &str,
        change: impl Fn(Option<SessionEntry>) -> Option<SessionEntry> + Send + Sync + 'static,
    ) -> Result<Option<SessionEntry>, RunError> {
        let key = inbound::canonical(&self.parts(), key)?;
        self.parts().index.update(&key, None, Arc::new(change)).await.map_err(inbound::port_error)
    }

    /// Returns the active runs, oldest first. Runs that still wait for a lane are not included.
    pub fn active(&self) -> Vec<ActiveRun> {
        self.parts().active.list()
    }

    /// Stops runs, and the sub-agents that their sessions have started, and returns how many there were. Each run ends soon with what it
    /// has; [`RunMeta::aborted`](crate::run::result::RunMeta) is set in its result. Stopped sub-agents report nothing.
    pub fn abort(&self, target: RunTarget<'_>, why: CancelReason) -> usize {
        let parts = self.parts();
        let mut keys = parts.active.keys(target);
        if let RunTarget::Session(name) = target {
            // Sub-agents may be active although no run of the session is.
            keys.extend(inbound::canonical(&parts, name));
        }
        let n_runs = parts.active.abort(target, why);
        keys.sort();
        keys.dedup();
        n_runs + keys.iter().map(|key| parts.subagents.stop_of(key, why)).sum::<usize>()
    }

    /// Adds a user message to an active run: the model reads it at its next turn (`Steering`) or when it would otherwise finish
    /// (`FollowUp`). Returns once the message is part of the conversation and its transcript; dropping the future does not withdraw it. The
    /// message survives retries and a change of model.
    ///
    /// # Errors
    /// [`QueueError`]: the message is not in the conversation, and the caller may start a run with it.
    pub fn queue_message<'a>(
        &'a self,
        target: RunTarget<'a>,
        text: impl Into<String>,
        images: Vec<Image>,
        kind: QueueKind,
    ) -> BoxFuture<'a, Result<(), QueueError>> {
        let text = text.into();
        Box::pin(async move { self.parts().active.queue(target, text, images, kind).await })
    }

    /// Waits until the currently active runs have ended. Returns false if `limit` passes first, and true immediately if there are none.
    pub async fn wait_for_end(&self, target: RunTarget<'_>, limit: Duration) -> bool {
        self.parts().active.wait_for_end(target, limit).await
    }

    /// Waits until the newest matching run has finished compacting its conversation and has got past the request that the compaction
    /// interrupted. From then on [`Engine::queue_message`] no longer refuses for this reason. Returns immediately if no compaction is in
    /// progress.
    ///
    /// # Errors
    /// [`QueueError::NoActiveRun`], and [`QueueError::RunEnded`] if the run ends or is stopped first.
    pub async fn wait_for_compaction(&self, target: RunTarget<'_>) -> Result<(), QueueError> {
        self.parts().active.wait_for_compaction(target).await
    }

    /// Creates a run of a request. Nothing happens until the run is polled; dropping it stops everything and releases the lanes.
    pub fn run(&self, request: RunRequest) -> EngineRun {
        EngineRun::new(self.parts(), request)
    }

    /// Compacts a session now, whatever its length: waits for its turn like a run, and replaces old messages with a summary. Only the
    /// session, agent, model, profile, time limit and cancellation of the request are used. `instructions`: what the summary should focus
    /// on.
    ///
    /// It never fails as a call: the outcome says why nothing was compacted.
    pub fn compact<'a>(
        &'a self,
        request: RunRequest,
        instructions: Option<&'a str>,
    ) -> BoxFuture<'a, CompactionOutcome> {
        Box::pin(async move { compact::compact(&self.parts(), request, instructions).await })
    }

    /// Subscribes to the future events of all runs of this engine, in the form of [`Envelope`](crate::delivery::Envelope). Any number of
    /// listeners may subscribe, and none can slow a run down. Events are published when their run is polled.
    pub fn subscribe(&self) -> EngineEvents {
        self.parts().bus.subscribe()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("agent_dir", &self.parts().agent_dir).finish_non_exhaustive()
    }
}

/// Runs a request to its end without delivering the reply during the run; its payloads are in the result.
///
/// # Errors
/// [`RunError`].
pub async fn run_embedded_agent(engine: &Engine, request: RunRequest) -> Result<RunResult, RunError> {
    engine.run(request).finish().await
}

/// Carries out one run and notifies plugins of its end.
async fn carry_out(
    parts: &Arc<Parts>,
    request: Box<RunRequest>,
    emitter: &pinch_stdx::pull::Emitter<RunEvent>,
    has_started: &mut bool,
) -> BoxedRunResult {
    let hooks = hooked::of_run(parts, &request);
    let notice = hooked::EndNotice::new(&hooks);
    let span = spans::of_run(&request);
    let result = Box::pin(run_with_hooks(parts, request, hooks, emitter, has_started)).instrument(span.clone()).await;
    spans::record_end(&span, &result);
    notice.ended(&result);
    result
}

/// Carries out one run: waits for its lease, resolves the request and starts the runner. What precedes and follows the runner is boxed: the
/// future of a run exists as long as the run, and keeps room for all that is not.
async fn run_with_hooks(
    parts: &Arc<Parts>,
    mut request: Box<RunRequest>,
    hooks: RunHooks,
    emitter: &pinch_stdx::pull::Emitter<RunEvent>,
    has_started: &mut bool,
) -> BoxedRunResult {
    if request.prompt.trim().is_empty() && request.images.is_empty() && request.client_results.is_empty() {
        return Err(RunError::Config("The prompt is empty".to_owned()));
    }
    if let Some(why) = &parts.config.unusable {
        return Err(RunError::Config(why.clone()));
    }
    let _admitted = parts.gate.admit()?;
    let parts = &agents::of_request(parts, &request);
    let cancel = request.cancel.child();
    let asked = Instant::now();
    let runtimes = resolve::runtimes(parts, &request)?;
    Box::pin(hooked::choose_model(parts, &hooks, &mut request)).await;
    // A run without a model must not wait or create anything.
    let RunModels { wanted, known: candidates, unknown } = resolve::models(parts, &request)?;
    let runtime = runtimes.of(candidates.first().ok_or(RunError::NoModel)?);
    let lease = Box::pin(leasing::acquire(parts, &request, &*runtime, Some(emitter), &cancel)).await?;
    let waited_ms = millis(asked.elapsed());
    Box::pin(parts.profiles.refresh()).await;
    let mut scope = Box::new(Box::pin(resolve::scope(parts, request, hooks, lease.fence())).await?);
    if runtime.id() != NATIVE {
        scope.skill_call = None;
    }
    if candidates.iter().any(|model| scope.cli_backends.get(model.provider.as_str()).is_some()) {
        scope.cli_sessions = Box::pin(cli_sessions::known(parts, &scope.request)).await;
    }
    spans::record_wait(waited_ms);
    emitter.emit(RunEvent::Granted { waited_ms }).await;
    *has_started = true;
    let started_at_ms = parts.host.now_ms();
    emitter.emit(RunEvent::Reply(ReplyEvent::Lifecycle(Lifecycle::Start { started_at_ms }))).await;
    let request = &scope.request;
    let active = parts.active.register(request, cancel.clone());
    if let Some(first) = candidates.first()
        && let Some(result) =
            Box::pin(hooked::rejected(parts, &scope.hooks, request, first.provider.as_str(), first.id.as_str())).await
    {
        return Ok(Box::new(result));
    }
    let before = flush::BeforeRun {
        parts,
        request,
        runtimes: &runtimes,
        candidates: &candidates,
        lease: &*lease,
        cancel: &cancel,
    };
    Box::pin(flush::save_memories(&before)).await;
    let began = Instant::now();
    let (limited, extension) = request.limited(&cancel, scope.summaries.timeout());
    let mut runner = Runner {
        parts,
        scope: &scope,
        runtimes: &runtimes,
        runtime,
        lease: &*lease,
        active: &active,
        emitter,
        cancel: limited,
        extension,
        stop: cancel.clone(),
        began,
        replies: replying::replies(parts, &scope)?,
        held: Vec::new(),
        reports: Vec::new(),
        outcomes: Vec::new(),
        unknown_models: unknown,
        requested: Some(wanted),
        has_fallbacks: false,
        failed_candidates: Vec::new(),
        failed: None,
    };
    let mut result = leasing::run(&mut runner, &candidates, &*lease).await;
    drop(runner);
    Box::pin(cli_sessions::remember(parts, &scope, lease.fence(), &mut result)).await;
    let meta = match &result {
        Ok(result) => Some(&result.meta),
        Err(error) => error.meta(),
    };
    if let Some(meta) = meta {
        Box::pin(inbound::record(parts, request, lease.fence(), meta)).await;
    }
    result
}
