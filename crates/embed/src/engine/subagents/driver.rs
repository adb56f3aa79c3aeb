//! Carries out the runs of a sub-agent until it ends, then has its end reported.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use futures::FutureExt as _;
use pinch_ports::Caller;
use pinch_stdx::cancel::CancelReason;

use super::super::engine_run::EngineRun;
use super::{announce, child};
use crate::inbox::{Arrival, InboundMessage, Outcome, TurnGuard};
use crate::parts::Parts;
use crate::parts::background::BackgroundTasks;
use crate::run::{FailureKind, RunError, RunResult};
use crate::subagents::record::{SubagentOutcome, SubagentRecord, SubagentStatus};

/// A sub-agent that a task runs.
pub(super) struct SubagentDriver {
    pub(super) background: Weak<BackgroundTasks>,
    /// Id of the sub-agent.
    pub(super) id: String,
    /// Whose message its requester works on.
    pub(super) caller: Caller,
}

/// Why a sub-agent is no longer run.
enum DriveEnd {
    /// It has ended.
    Ended,
    /// It was stopped for good.
    Stopped,
    /// The engine ends first, and the next one goes on.
    Interrupted,
}

impl SubagentDriver {
    /// Runs a sub-agent with its first message, and reports its end.
    pub(super) async fn run(self, first: String) {
        let Some(parts) = self.parts() else { return };
        let end = Box::pin(self.drive(&parts, first)).await;
        parts.subagents.save_or_warn().await;
        match end {
            DriveEnd::Ended => Box::pin(self.report()).await,
            DriveEnd::Stopped => self.finish(&parts).await,
            DriveEnd::Interrupted => {}
        }
        parts.subagents.rest(&self.id);
    }

    fn parts(&self) -> Option<Arc<Parts>> {
        self.background.upgrade()?.parts()
    }

    /// Reports the end of a sub-agent, once its own sub-agents have reported to it.
    pub(super) async fn report(&self) {
        let Some(parts) = self.parts() else { return };
        let Some(record) = parts.subagents.get(&self.id) else { return };
        let stop = parts.subagents.stopped(&self.id);
        let key = record.child_session_key.clone();
        let settled = parts
            .subagents
            .wait_until_none(|other| other.requester_session_key == key && other.cleanup_completed_at.is_none());
        tokio::select! {
            biased;
            _ = stop.cancelled() => return self.finish(&parts).await,
            () = parts.gate.closed() => return,
            () = settled => {}
        }
        let has_reported = tokio::select! {
            biased;
            _ = stop.cancelled() => true,
            done = announce::announce(&self.background, &self.id) => done,
        };
        if has_reported {
            self.finish(&parts).await;
        }
    }

    /// Records that nothing is left to do for the sub-agent.
    async fn finish(&self, parts: &Arc<Parts>) {
        let now = parts.host.now_ms();
        let record = parts.subagents.change(&self.id, |record| {
            record.cleanup_handled = true;
            record.forget_details();
        });
        if let Some(record) = record.filter(announce::deletes_session) {
            child::delete(parts, &record).await;
        }
        parts.subagents.change(&self.id, |record| record.cleanup_completed_at = Some(now));
        parts.subagents.save_or_warn().await;
    }

    /// Runs the sub-agent until its run ends and no message waits for it.
    async fn drive(&self, parts: &Arc<Parts>, first: String) -> DriveEnd {
        let Some(record) = parts.subagents.get(&self.id) else { return DriveEnd::Interrupted };
        let turn = match turn(parts, &record).await {
            Ok(turn) => turn.map(Arc::new),
            Err(()) => return DriveEnd::Interrupted,
        };
        let (mut message, mut is_first) = (first, record.started_at.is_none());
        if is_first {
            let now = parts.host.now_ms();
            parts.subagents.change(&self.id, |record| record.started_at = Some(now));
            parts.subagents.save_or_warn().await;
        }
        loop {
            let result = self.run_once(parts, &record, &message, is_first, turn.clone()).await;
            is_first = false;
            let stop = parts.subagents.stopped(&self.id);
            let was_stopped = matches!(stop.reason(), Some(reason) if reason != CancelReason::Shutdown);
            let outcome = outcome_of(&result);
            let is_draining = matches!(result, Err(RunError::Draining)) || announce::was_cancelled(&result);
            if !was_stopped && parts.gate.is_closed() && is_draining {
                return DriveEnd::Interrupted;
            }
            let now = parts.host.now_ms();
            let (meta, answer) = announce::facts_of(&result);
            let usage = meta.map(|meta| meta.agent.usage);
            parts.subagents.change(&self.id, |record| {
                usage.iter().for_each(|usage| record.usage.add(usage));
            });
            let next = parts.subagents.end(&self.id, |record| {
                record.ended_at = Some(now);
                record.outcome = Some(match was_stopped {
                    true => SubagentOutcome::new(SubagentStatus::Error, Some("stopped".to_owned())),
                    false => outcome,
                });
                record.keep_result(&answer);
            });
            match next {
                Some(next) => message = next,
                None if was_stopped => return DriveEnd::Stopped,
                None => return DriveEnd::Ended,
            }
        }
    }

    /// Carries out one run.
    async fn run_once(
        &self,
        parts: &Arc<Parts>,
        record: &SubagentRecord,
        message: &str,
        is_first: bool,
        turn: Option<Arc<TurnGuard>>,
    ) -> Result<RunResult, RunError> {
        let cancel = parts.subagents.begin(&self.id);
        let mut request = child::request(parts, record, &self.caller, message).await?;
        if is_first {
            request.run_id = record.run_id.clone();
        }
        request.cancel = cancel;
        request.turn = turn;
        let run = AssertUnwindSafe(EngineRun::new(Arc::clone(parts), request).finish()).catch_unwind();
        run.await.unwrap_or_else(|_| Err(RunError::Internal("the run panicked".to_owned())))
    }
}

/// Takes the turn of a sub-agent's session, so that messages to it wait or are read by its run. Fails if the engine ends first.
async fn turn(parts: &Parts, record: &SubagentRecord) -> Result<Option<TurnGuard>, ()> {
    let stop = parts.subagents.stopped(&record.run_id);
    let key = record.child_session_key.as_str();
    loop {
        match parts.inbox.arrive(key, &InboundMessage::new(key, ""), false, &parts.config.messages) {
            Arrival::Leads(guard) => return Ok(Some(guard)),
            // Whoever has filled the queue does not keep the sub-agent from its work; the lane of the session still orders the runs.
            Arrival::Dropped => return Ok(None),
            Arrival::Waits(outcome) => tokio::select! {
                biased;
                outcome = outcome => match outcome {
                    Ok(Outcome::Leads(guard)) => return Ok(Some(guard)),
                    Ok(Outcome::Joined { .. } | Outcome::Dropped) => return Ok(None),
                    Err(_) => {}
                },
                () = parts.gate.closed() => return Err(()),
                // Its run ends at once.
                _ = stop.cancelled() => return Ok(None),
            },
        }
    }
}

/// Returns how a run ended. A run without a word is a success without a result.
fn outcome_of(result: &Result<RunResult, RunError>) -> SubagentOutcome {
    let failure = match result {
        Ok(result) => result.failure().map(|failure| (failure.kind, failure.message)),
        Err(error) => Some((error.kind(), error.to_string())),
    };
    match failure {
        None => SubagentOutcome::new(SubagentStatus::Ok, None),
        Some((FailureKind::Empty, _)) if result.is_ok() => SubagentOutcome::new(SubagentStatus::Ok, None),
        Some((FailureKind::Timeout, _)) => SubagentOutcome::new(SubagentStatus::Timeout, None),
        Some((_, message)) => SubagentOutcome::new(SubagentStatus::Error, Some(message)),
    }
}
