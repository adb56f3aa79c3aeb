//! Carries a run out: asks [`decide`] what to do, does it, and tells what happened.
//!
//! The only loop is runner ⇄ decide. Everything that could be a judgement is in the pure functions of [`crate::run`].

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::model::Model;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::Giver;
use tokio::time::Instant;

use crate::delivery::ReplyEvent;
use crate::engine::parts::Parts;
use crate::replies::{Out, Replies};
use crate::run::decide::{Action, Decision, Finish, Mark, Repair, Repaired, RunState, Seen, Wait, decide};
use crate::run::result::AttemptReport;
use crate::run::scope::RunScope;
use crate::run::{AttemptOutcome, AttemptPlan, FailoverError, RunError, RunResult};
use crate::runtime::{AttemptEvent, Attempts};

mod finish;
mod terms;

/// What a run tells, in the order in which it happens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RunEvent {
    /// Both lanes were granted.
    Granted {
        /// How long that took, in milliseconds.
        waited_ms: u64,
    },
    /// A model is tried.
    Model {
        /// Who serves it.
        provider: String,
        /// Its name.
        model: String,
    },
    /// An attempt begins.
    Attempt(AttemptPlan),
    /// An event of the attempt's session.
    Session(Box<SessionEvent>),
    /// A part of the reply.
    Reply(ReplyEvent),
    /// An attempt is over, and what follows is decided.
    Decided {
        /// The attempt.
        report: AttemptReport,
        /// The failure in words, when there was one.
        error: Option<String>,
    },
    /// The conversation is being repaired.
    Repair(Repair),
    /// The repair is over.
    Repaired(Repaired),
    /// The run waits.
    Wait(Wait),
    /// The model failed with all its profiles.
    FailedOver {
        /// Why.
        error: String,
        /// The next model, when there is one.
        next: Option<String>,
    },
}

/// A run under way.
pub(crate) struct Runner<'r> {
    pub(crate) parts: &'r Parts,
    pub(crate) scope: &'r RunScope,
    pub(crate) tell: &'r Giver<RunEvent>,
    pub(crate) cancel: Cancel,
    pub(crate) began: Instant,
    pub(crate) replies: Replies,
    pub(crate) reports: Vec<AttemptReport>,
    pub(crate) outcomes: Vec<AttemptOutcome>,
}

/// How one model did.
enum Tried {
    Done(Box<RunResult>),
    Failed(Box<FailoverError>, Box<RunState>),
}

impl Runner<'_> {
    /// Tries one model after another.
    pub(crate) async fn run(&mut self, candidates: &[Arc<Model>]) -> Result<RunResult, RunError> {
        let mut before: Option<RunState> = None;
        let mut failed: Vec<FailoverError> = Vec::new();
        for (at, model) in candidates.iter().enumerate() {
            let next = candidates.get(at + 1).map(|next| format!("{}/{}", next.provider, next.id));
            let (provider, name) = (model.provider.to_string(), model.id.to_string());
            self.tell.give(RunEvent::Model { provider, model: name }).await;
            match self.try_model(model, next.is_some(), before.take()).await? {
                Tried::Done(result) => return Ok(*result),
                Tried::Failed(error, state) => {
                    self.tell.give(RunEvent::FailedOver { error: error.message.clone(), next }).await;
                    // A conversation that is too long for one model is not put before a smaller one.
                    if error.is_overflow {
                        return Err(RunError::Failover(error));
                    }
                    before = Some(*state);
                    failed.push(*error);
                }
            }
        }
        Err(all_failed(failed))
    }

    async fn try_model(
        &mut self,
        model: &Arc<Model>,
        has_fallbacks: bool,
        before: Option<RunState>,
    ) -> Result<Tried, RunError> {
        let terms = terms::of(self.parts, self.scope, model, has_fallbacks)?;
        let mut state = match before {
            Some(before) => before.next_model(terms),
            None => RunState::new(terms),
        };
        let runtime = self.parts.runtime();
        let mut attempts = runtime.open(self.scope, Arc::clone(model)).await?;
        let mut auth: Option<Arc<dyn RequestAuth>> = None;
        let mut decision = decide(&mut state, Seen::Start);
        loop {
            self.mark(&decision.marks, model).await;
            decision = match decision.action {
                Action::Attempt(plan) => match self.parts.profiles.auth(plan.profile.as_ref(), model) {
                    Err(error) => decide(&mut state, Seen::NoCredential { message: &error.to_string() }),
                    Ok(found) => {
                        auth = Some(Arc::clone(&found));
                        self.attempt(&mut *attempts, &plan, found, model, &mut state).await?
                    }
                },
                Action::Repair(repair) => {
                    let repaired = match &auth {
                        Some(auth) => self.repair(&mut *attempts, &repair, Arc::clone(auth)).await,
                        None => Repaired::NotCompacted { why: "There was no attempt yet".to_owned() },
                    };
                    state.elapsed = self.began.elapsed();
                    decide(&mut state, Seen::Repaired(&repaired))
                }
                Action::Wait(wait) => {
                    self.tell.give(RunEvent::Wait(wait)).await;
                    let delay = wait.jittered(self.scope.host.ids().fraction());
                    if self.cancel.run(tokio::time::sleep(delay)).await.is_err() {
                        return Ok(Tried::Done(Box::new(self.finish(&Finish::Aborted, &state, model))));
                    }
                    state.elapsed = self.began.elapsed();
                    decide(&mut state, Seen::Waited)
                }
                Action::Finish(finish) => {
                    return Ok(Tried::Done(Box::new(self.finish(&finish, &state, model))));
                }
                Action::FailOver(error) => return Ok(Tried::Failed(Box::new(error), Box::new(state))),
                Action::Fail(error) => return Err(error),
            };
        }
    }

    /// Makes one attempt and decides what follows.
    async fn attempt(
        &mut self,
        attempts: &mut dyn Attempts,
        plan: &AttemptPlan,
        auth: Arc<dyn RequestAuth>,
        model: &Arc<Model>,
        state: &mut RunState,
    ) -> Result<Decision, RunError> {
        self.tell.give(RunEvent::Attempt(plan.clone())).await;
        let began = Instant::now();
        if !self.outcomes.is_empty() {
            self.replies.restart();
        }
        let outcome = self.pull(attempts, plan, auth).await?;
        state.elapsed = self.began.elapsed();
        state.refresh_profiles(|id| self.parts.profiles.is_usable(id, model));
        let decision = decide(state, Seen::Attempt(&outcome));
        let report = AttemptReport {
            provider: model.provider.to_string(),
            model: model.id.to_string(),
            profile: plan.profile.clone(),
            outcome: finish::outcome_word(&outcome),
            action: finish::action_word(&decision.action).to_owned(),
            duration_ms: millis(began.elapsed()),
        };
        let error = outcome.error().map(|error| error.text.clone());
        self.reports.push(report.clone());
        self.outcomes.push(outcome);
        self.tell.give(RunEvent::Decided { report, error }).await;
        Ok(decision)
    }

    /// Pulls an attempt to its end; what it says goes through the reply stages.
    async fn pull(
        &mut self,
        attempts: &mut dyn Attempts,
        plan: &AttemptPlan,
        auth: Arc<dyn RequestAuth>,
    ) -> Result<AttemptOutcome, RunError> {
        let mut events = attempts.attempt(plan, auth, self.cancel.clone());
        loop {
            let wake_at = self.replies.wake_at();
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                () = sleep_until(wake_at) => {
                    let mut ready = Out::new();
                    self.replies.wake(&mut ready);
                    self.say(ready).await;
                    continue;
                }
            };
            match event {
                Some(AttemptEvent::Session(event)) => {
                    let mut ready = Out::new();
                    self.replies.push(&event, &mut ready);
                    self.tell.give(RunEvent::Session(Box::new(event))).await;
                    self.say(ready).await;
                }
                Some(AttemptEvent::End(outcome)) => {
                    return Ok(*outcome);
                }
                Some(AttemptEvent::Broken(error)) => return Err(error),
                None => return Err(RunError::Internal("an attempt ended without an outcome".to_owned())),
            }
        }
    }

    async fn say(&mut self, ready: Out) {
        for piece in ready {
            self.tell.give(RunEvent::Reply(ReplyEvent::of(piece))).await;
        }
    }

    async fn repair(&mut self, attempts: &mut dyn Attempts, repair: &Repair, auth: Arc<dyn RequestAuth>) -> Repaired {
        self.tell.give(RunEvent::Repair(*repair)).await;
        let repaired = attempts.repair(repair, auth, self.cancel.clone()).await;
        self.tell.give(RunEvent::Repaired(repaired.clone())).await;
        repaired
    }

    /// Remembers how profiles did. A mark that cannot be written is logged; the run goes on.
    async fn mark(&mut self, marks: &[Mark], model: &Model) {
        for mark in marks {
            if let Err(error) = self.parts.profiles.mark(mark, model).await {
                tracing::warn!(%error, ?mark, "a profile's health could not be written");
            }
        }
    }
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

/// What is said when no model could do it.
fn all_failed(mut failed: Vec<FailoverError>) -> RunError {
    match failed.len() {
        0 => RunError::Config("No model is configured".to_owned()),
        1 => RunError::Failover(Box::new(failed.remove(0))),
        n => {
            let each = |e: &FailoverError| {
                let reason = e.reason.map_or("unknown".to_owned(), |reason| reason.to_string());
                format!("{}/{}: {} ({reason})", e.provider, e.model, e.message)
            };
            let list: Vec<String> = failed.iter().map(each).collect();
            let mut last = failed.remove(n - 1);
            last.message = format!("All models failed ({n}): {}", list.join(" | "));
            RunError::Failover(Box::new(last))
        }
    }
}
