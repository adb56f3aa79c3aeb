//! Carries out a run: asks [`decide`] for the next step, carries it out, and emits events about it.
//!
//! The runner and `decide` alternate in a single loop. All decisions are made by the pure functions of [`crate::run`].

use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use pinch_agent_core::event::AgentEvent;
use pinch_coding_agent::auth::{AuthError, FixedAuth, RequestAuth};
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::message::StopReason;
use pinch_llm::model::Model;
use pinch_llm::request::Auth;
use pinch_ports::{LeaseError, LeaseWait, RunLease};
use pinch_stdx::cancel::{Cancel, CancelReason, DeadlineExtension};
use pinch_stdx::pull::Emitter;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::delivery::ReplyEvent;
use crate::models::ModelRef;
use crate::models::window::Window;
use crate::parts::Parts;
use crate::parts::active::Registered;
use crate::parts::credentials::advice;
use crate::replies::{Pieces, Replies};
use crate::run::decide::{Action, Decision, Finish, Mark, Observation, Repair, RepairOutcome, RunState, Wait, decide};
use crate::run::failover::{
    Candidate, CandidateAttempt, CandidateObservation, FailoverState, NextCandidate, ProviderHealth, next_candidate,
};
use crate::run::outcome::AttemptStart;
use crate::run::request::ProfileSource;
use crate::run::result::{AttemptReport, FailedCandidate, RunMeta};
use crate::run::scope::RunScope;
use crate::run::{AttemptEnd, AttemptOutcome, AttemptPlan, FailoverError, RunError, RunResult};
use crate::runtime::choice::RuntimeChoice;
use crate::runtime::{AttemptEvent, AttemptRuntime, Attempts};

pub(crate) mod spans;
mod budget;
mod terms;
mod finish;
mod final_reply;
mod notice;
mod hooks;
mod stopping;
mod repair;

use budget::BudgetMeter;

pub(crate) use finish::terminal_event;
pub(crate) use notice::{notice, short_count, usage_line};
pub(crate) use stopping::{HARD_END, hard_end};

/// An event of a run. Events are emitted in chronological order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunEvent {
    /// The run has to wait before it can begin.
    Waiting(LeaseWait),
    /// The run may begin: it holds its session and a slot of its lane.
    Granted {
        /// Duration of the wait, in milliseconds.
        waited_ms: u64,
    },
    /// A model is about to be tried.
    Model {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
    },
    /// An attempt begins.
    Attempt(AttemptPlan),
    /// An event of the attempt's session.
    Session(Box<SessionEvent>),
    /// A part of the reply.
    Reply(ReplyEvent),
    /// An attempt has ended, and the next step is decided.
    Decided {
        /// Report of the attempt.
        report: AttemptReport,
        /// The error message, if it failed.
        error: Option<String>,
    },
    /// The conversation is being repaired.
    Repair(Repair),
    /// The repair has ended.
    Repaired(RepairOutcome),
    /// The run waits.
    Wait(Wait),
    /// The model failed with all its profiles, and another one is tried.
    FailedOver {
        /// The failure.
        error: RunError,
        /// The next model, as `provider/model`.
        next: String,
    },
    /// The outcome of a profile was recorded.
    Marked(Mark),
}

/// An active run.
pub(crate) struct Runner<'r> {
    pub(crate) parts: &'r Parts,
    pub(crate) scope: &'r RunScope,
    pub(crate) runtimes: &'r RuntimeChoice,
    /// Runtime of the current model.
    pub(crate) runtime: Arc<dyn AttemptRuntime>,
    pub(crate) lease: &'r dyn RunLease,
    pub(crate) active: &'r Registered,
    pub(crate) emitter: &'r Emitter<RunEvent>,
    /// Cancelled when the run is stopped or its time limit expires.
    pub(crate) cancel: Cancel,
    /// Extends the time limit during compactions.
    pub(crate) extension: Option<DeadlineExtension>,
    /// Cancelled only when the run is stopped.
    pub(crate) stop: Cancel,
    pub(crate) began: Instant,
    pub(crate) replies: Replies,
    /// Final events of an answer that failed or was stopped. They are emitted once it is known that no other attempt follows.
    pub(crate) held: Vec<SessionEvent>,
    pub(crate) reports: Vec<AttemptReport>,
    pub(crate) outcomes: Vec<AttemptOutcome>,
    /// Configured models that do not exist.
    pub(crate) unknown_models: Vec<CandidateAttempt>,
    /// The model that the run started with, and whether there are fallbacks.
    pub(crate) requested: Option<ModelRef>,
    pub(crate) has_fallbacks: bool,
    /// Models that failed or were skipped so far.
    pub(crate) failed_candidates: Vec<FailedCandidate>,
    /// Metadata at the end of the last model that failed.
    pub(crate) failed: Option<Box<RunMeta>>,
}

/// How a run ended. The result is boxed, since the future of every caller keeps room for it.
pub(crate) type BoxedRunResult = Result<Box<RunResult>, RunError>;

/// Outcome of one candidate.
enum CandidateOutcome {
    Done(Box<RunResult>),
    Failed(Box<FailoverError>, Box<RunState>),
}

impl Runner<'_> {
    /// Tries one model after another, as decided by [`next_candidate`].
    pub(crate) async fn run(&mut self, candidates: &[Arc<Model>]) -> BoxedRunResult {
        let refs: Vec<ModelRef> =
            candidates.iter().map(|m| ModelRef::new(m.provider.as_str(), m.id.as_str())).collect();
        self.requested = self.requested.take().or_else(|| refs.first().cloned());
        self.has_fallbacks = refs.len() > 1;
        let is_locked = (self.scope.request.auth_profile.as_ref()).is_some_and(|c| c.source == ProfileSource::User);
        let windows = candidates.iter().map(|model| model.context_window).collect();
        let mut failover = FailoverState::new(refs)
            .windows(windows)
            .locked(is_locked)
            .skipped(std::mem::take(&mut self.unknown_models));
        let mut next = self.next(&mut failover, CandidateObservation::Start);
        let mut before: Option<Box<RunState>> = None;
        loop {
            let candidate = match next {
                NextCandidate::Run(candidate) => candidate,
                NextCandidate::Fail(error) => {
                    self.close_replies().await;
                    self.failed_candidates = failover.attempts().iter().map(finish::failed_candidate).collect();
                    let error = self.with_meta(error);
                    return Err(self.with_retry_time(error, candidates));
                }
            };
            let (provider, name) = (&candidate.model.provider, &candidate.model.model);
            let is_it = |m: &&Arc<Model>| ModelRef::new(m.provider.as_str(), m.id.as_str()) == candidate.model;
            let model = candidates
                .iter()
                .find(is_it)
                .ok_or_else(|| RunError::Internal(format!("{provider}/{name} is not a candidate of this run")))?;
            self.failed_candidates = failover.attempts().iter().map(finish::failed_candidate).collect();
            self.emitter.emit(RunEvent::Model { provider: provider.to_string(), model: name.to_string() }).await;
            let began = Instant::now();
            self.runtime = self.runtimes.of(model);
            let error = match self.try_model(model, &candidate, before.take()).await {
                Ok(CandidateOutcome::Done(result)) => return Ok(result),
                Ok(CandidateOutcome::Failed(error, state)) => {
                    before = Some(state);
                    RunError::Failover(error)
                }
                Err(error) => error,
            };
            let seen = CandidateObservation::Failed { error: &error, duration_ms: millis(began.elapsed()) };
            next = self.next(&mut failover, seen);
            if let NextCandidate::Run(candidate) = &next {
                let next = format!("{}/{}", candidate.model.provider, candidate.model.model);
                self.emitter.emit(RunEvent::FailedOver { error, next }).await;
            }
        }
    }

    /// Adds the metadata of the run to an error, so that what it used is not lost.
    fn with_meta(&mut self, error: RunError) -> RunError {
        let RunError::Failover(mut error) = error else { return error };
        error.meta = self.failed.take();
        if let Some(meta) = &mut error.meta {
            meta.agent.failed_candidates.clone_from(&self.failed_candidates);
        }
        RunError::Failover(error)
    }

    /// Adds the soonest time at which one of the run's providers can be used again to an error.
    fn with_retry_time(&self, error: RunError, candidates: &[Arc<Model>]) -> RunError {
        let RunError::Failover(mut error) = error else { return error };
        let now = self.scope.host.now_ms();
        let left = |model: &Arc<Model>| match self.parts.profiles.health(&model.provider, model.id.as_str()) {
            ProviderHealth::CoolingDown { until, .. } => u64::try_from(until - now).ok().map(Duration::from_millis),
            ProviderHealth::Usable => None,
        };
        // If a provider can be used immediately, the error keeps its own time.
        let waits: Option<Vec<Duration>> = candidates.iter().map(left).collect();
        if let Some(soonest) = waits.and_then(|waits| waits.into_iter().min()) {
            error.retry_after = Some(soonest);
        }
        RunError::Failover(error)
    }

    fn next(&self, state: &mut FailoverState, seen: CandidateObservation<'_>) -> NextCandidate {
        let mut throttle = self.parts.throttle.lock().unwrap_or_else(PoisonError::into_inner);
        let health = |model: &ModelRef| self.parts.profiles.health(&model.provider, model.model.as_str());
        next_candidate(state, seen, &mut throttle, self.scope.host.now_ms(), health)
    }

    async fn try_model(
        &mut self,
        model: &Arc<Model>,
        candidate: &Candidate,
        before: Option<Box<RunState>>,
    ) -> Result<CandidateOutcome, RunError> {
        let request = &self.scope.request;
        let has_client_tools = !(request.client_tools.is_empty() && request.client_results.is_empty());
        if has_client_tools && !self.runtime.capabilities().client_tools {
            let runtime = self.runtime.id();
            return Err(RunError::Config(format!(
                "the runtime {runtime} does not support client tools. Leave them out, or choose another runtime"
            )));
        }
        let terms = terms::of(self.parts, self.scope, self.runtime.capabilities(), model, candidate)?;
        // Boxed, as it is kept while the answer streams, and passed on.
        let mut state = Box::new(match before {
            Some(before) => before.next_model(terms),
            None => RunState::new(terms),
        });
        let window = Window { tokens: model.context_window, ..terms::window(self.parts, model) };
        if window.is_too_small() {
            let error = FailoverError::window_too_small(window, model.provider.as_str(), model.id.as_str());
            return Ok(CandidateOutcome::Failed(Box::new(error), state));
        }
        if window.is_small() {
            let (provider, id) = (model.provider.as_str(), model.id.as_str());
            tracing::warn!(
                provider,
                model = id,
                tokens = window.tokens,
                source = window.source.as_str(),
                "the context window is small"
            );
        }
        let runtime = Arc::clone(&self.runtime);
        let began = Instant::now();
        let opened = tokio::select! {
            biased;
            opened = runtime.open(self.scope, Arc::clone(model)) => opened,
            reason = hard_end(&self.cancel) => Err(RunError::Cancelled(reason)),
        };
        let mut attempts = opened.inspect_err(|error| self.first_attempt_failed_to_begin(error, began))?;
        self.active.attach(attempts.control());
        let mut auth: Option<Arc<dyn RequestAuth>> = None;
        let mut decision = decide(&mut state, Observation::Start);
        loop {
            self.mark(&decision.marks, model).await;
            decision = match decision.action {
                Action::Attempt(plan) => match self.auth(&plan, model) {
                    Err(error) => decide(&mut state, Observation::NoCredential { message: &advice(&error) }),
                    Ok(found) => {
                        auth = Some(Arc::clone(&found));
                        let span = spans::attempt(self.outcomes.len() + 1, &plan, model);
                        let attempt = self.attempt(&mut *attempts, &plan, found, model, &mut state);
                        attempt.instrument(span).await?
                    }
                },
                Action::Repair(repair) => {
                    let repaired = match &auth {
                        Some(auth) => {
                            Box::pin(self.repair(&mut *attempts, &repair, Arc::clone(auth), &mut state)).await
                        }
                        None => RepairOutcome::NotCompacted { reason: "There was no attempt yet".to_owned() },
                    };
                    self.look_at_the_clock(&mut state);
                    // The result of a stopped repair is discarded.
                    let seen = state.stopped.map_or(Observation::Repaired(&repaired), Observation::Stopped);
                    decide(&mut state, seen)
                }
                Action::Wait(wait) => {
                    self.emitter.emit(RunEvent::Wait(wait)).await;
                    let delay = wait.jittered(self.scope.host.ids().fraction());
                    let stopped = sleep(delay, self.lease, &self.cancel).await?;
                    self.look_at_the_clock(&mut state);
                    decide(&mut state, stopped.map_or(Observation::Waited, Observation::Stopped))
                }
                Action::Finish(finish) => {
                    let finish = match auth.filter(|_| self.lacks_reply(&finish)) {
                        Some(auth) => Box::pin(self.final_reply(&mut *attempts, auth, model, &mut state)).await?,
                        None => finish,
                    };
                    return Ok(self.conclude(&finish, &state, model).await);
                }
                Action::FailOver(error) => {
                    attempts.note_failure(&error.to_string()).await;
                    self.failed = Some(Box::new(self.meta(&state, model)));
                    return Ok(CandidateOutcome::Failed(Box::new(error), state));
                }
                Action::Fail(error) => {
                    attempts.note_failure(&error.to_string()).await;
                    self.failed = Some(Box::new(self.meta(&state, model)));
                    // The next model, if there is one, still continues from this state.
                    return match error {
                        RunError::Failover(error) => Ok(CandidateOutcome::Failed(error, state)),
                        error => Err(error),
                    };
                }
            };
        }
    }

    /// Makes one attempt and decides the next step.
    async fn attempt(
        &mut self,
        attempts: &mut dyn Attempts,
        plan: &AttemptPlan,
        auth: Arc<dyn RequestAuth>,
        model: &Arc<Model>,
        state: &mut RunState,
    ) -> Result<Decision, RunError> {
        self.emitter.emit(RunEvent::Attempt(plan.clone())).await;
        let began = Instant::now();
        if !self.outcomes.is_empty() {
            self.held.clear();
            // What a model showed before it was asked to go on is kept.
            if plan.start != AttemptStart::Continue {
                self.replies.restart();
            }
        }
        self.replies.enforce_final_tag(self.scope.prompt.asks_for_final_tags(model));
        self.replies.set_model(model, plan.thinking);
        let mut meter = BudgetMeter::new(state);
        // Boxed until it is recorded.
        let mut outcome = self.pull(attempts, model, plan, Arc::clone(&auth), &self.cancel.clone(), &mut meter).await?;
        outcome.has_sent = self.replies.sent().any();
        self.look_at_the_clock(state);
        if state.may_renew_login(&outcome) {
            let is_renewed = auth.renew(model, &self.cancel).await;
            state.renewed_login(is_renewed);
        }
        state.refresh_profiles(|id| self.parts.profiles.is_usable(id, model));
        let decision = decide(state, Observation::Attempt(&outcome));
        Box::pin(self.report(model, plan, *outcome, &decision.action, began)).await;
        Ok(decision)
    }

    /// Records an attempt that has ended.
    async fn report(
        &mut self,
        model: &Model,
        plan: &AttemptPlan,
        outcome: AttemptOutcome,
        action: &Action,
        began: Instant,
    ) {
        let report = AttemptReport {
            provider: model.provider.to_string(),
            model: model.id.to_string(),
            profile: plan.profile.clone(),
            outcome: finish::outcome_id(&outcome),
            action: finish::action_id(action).to_owned(),
            result: finish::attempt_result(&outcome, action, plan),
            stage: outcome.stage(),
            status: outcome.error().and_then(|error| error.status).map(|status| status.as_u16()),
            duration_ms: millis(began.elapsed()),
        };
        let error = outcome.error().map(|error| error.text.clone());
        spans::decided(&report);
        self.reports.push(report.clone());
        self.outcomes.push(outcome);
        self.emitter.emit(RunEvent::Decided { report, error }).await;
    }

    /// Returns the credentials for an attempt; none for a runtime that has its own.
    fn auth(&self, plan: &AttemptPlan, model: &Model) -> Result<Arc<dyn RequestAuth>, AuthError> {
        match self.runtime.capabilities().profiles {
            true => self.parts.profiles.auth(plan.profile.as_ref(), model),
            false => Ok(Arc::new(FixedAuth(Auth::default()))),
        }
    }

    fn look_at_the_clock(&self, state: &mut RunState) {
        state.elapsed = self.began.elapsed();
        state.stopped = self.cancel.reason();
    }

    /// Drives an attempt to its end and passes its events through the reply stages. An attempt that has not ended [`HARD_END`] after the run
    /// was stopped is dropped. An attempt that exceeds the run's budget is stopped before its next tool calls or request.
    async fn drive(
        &mut self,
        attempts: &mut dyn Attempts,
        plan: &AttemptPlan,
        auth: Arc<dyn RequestAuth>,
        cancel: &Cancel,
        meter: &mut BudgetMeter,
    ) -> Result<Box<AttemptOutcome>, RunError> {
        let cancel = cancel.child();
        let mut events = attempts.attempt(plan, auth, cancel.clone());
        let mut hard_end = pin!(hard_end(&cancel));
        let mut ready = Pieces::new();
        loop {
            let wake_at = self.replies.wake_at();
            let event = tokio::select! {
                biased;
                // First, since an attempt may have an event ready at any time.
                reason = &mut hard_end => {
                    if !self.scope.request.is_probe() {
                        tracing::warn!(run = self.scope.request.run_id.as_str(), "an attempt did not end after the run was stopped");
                    }
                    return Ok(Box::new(AttemptOutcome::new(AttemptEnd::stopped(reason, false))));
                }
                event = events.next() => event,
                () = sleep_until(wake_at) => {
                    self.replies.wake(&mut ready);
                    self.emit_replies(&mut ready).await;
                    continue;
                }
            };
            match event {
                Some(AttemptEvent::Session(event)) => {
                    if meter.is_exceeded_by(&event) {
                        // The attempt goes on only when its next event is pulled.
                        cancel.cancel(CancelReason::Yield);
                    }
                    if let SessionEvent::Agent(AgentEvent::MessageStart(message)) = &event {
                        self.active.entered(message);
                    }
                    if let SessionEvent::Agent(AgentEvent::MessageEnd { message, .. }) = &event {
                        self.scope.hooks.added(message);
                    }
                    self.follow_compaction(&event);
                    if is_broken_off(&event) || !self.held.is_empty() {
                        self.held.push(event.clone());
                    } else {
                        self.replies.push(&event, &mut ready);
                    }
                    self.emitter.emit(RunEvent::Session(Box::new(event))).await;
                    self.emit_replies(&mut ready).await;
                }
                Some(AttemptEvent::End(outcome)) => {
                    self.set_compacting(false);
                    return Ok(outcome);
                }
                Some(AttemptEvent::Broken(error)) => return Err(error),
                None => return Err(RunError::Internal("an attempt ended without an outcome".to_owned())),
            }
        }
    }

    async fn emit_replies(&mut self, ready: &mut Pieces) {
        for event in ready.drain(..).filter_map(ReplyEvent::of) {
            self.emitter.emit(RunEvent::Reply(event)).await;
        }
    }

    /// Flushes the reply stages and builds the result.
    async fn conclude(&mut self, finish: &Finish, state: &RunState, model: &Arc<Model>) -> CandidateOutcome {
        self.close_replies().await;
        CandidateOutcome::Done(Box::new(self.finish(finish, state, model)))
    }

    async fn close_replies(&mut self) {
        let mut rest = Pieces::new();
        for event in std::mem::take(&mut self.held) {
            self.replies.push(&event, &mut rest);
        }
        self.replies.finish(&mut rest);
        self.emit_replies(&mut rest).await;
    }

    /// Records the marks of profiles.
    async fn mark(&mut self, marks: &[Mark], model: &Model) {
        for mark in marks {
            self.parts.profiles.mark(mark, model);
            self.emitter.emit(RunEvent::Marked(mark.clone())).await;
        }
    }
}

/// A run that sleeps for at least this long releases its slot.
const MIN_SLOT_RELEASE: Duration = Duration::from_secs(1);

/// Sleeps unless the run is stopped, and returns the reason in that case. Other runs may use its slot in the meantime.
async fn sleep(delay: Duration, lease: &dyn RunLease, cancel: &Cancel) -> Result<Option<CancelReason>, RunError> {
    if delay >= MIN_SLOT_RELEASE {
        lease.release_slot();
    }
    if let Err(stop) = cancel.run(tokio::time::sleep(delay)).await {
        return Ok(Some(stop.reason));
    }
    match lease.retake_slot(cancel).await {
        Ok(()) => Ok(None),
        Err(LeaseError::Cancelled(reason)) => Ok(Some(reason)),
        Err(error) => Err(RunError::Busy(error.to_string())),
    }
}

/// Returns whether an event ends an answer that failed or was stopped.
fn is_broken_off(event: &SessionEvent) -> bool {
    let SessionEvent::Agent(AgentEvent::MessageEnd { message, .. }) = event else { return false };
    message.as_assistant().is_some_and(|answer| matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted))
}

async fn sleep_until(at: Option<pinch_stdx::cancel::Deadline>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.at().into()).await,
        None => std::future::pending().await,
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
