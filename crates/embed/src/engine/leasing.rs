//! Waits until a run may begin, and renews its lease while it is active.

use std::sync::{Arc, Mutex, PoisonError};

use pinch_llm::model::Model;
use pinch_ports::{LeaseError, LeaseRequest, LeaseWait, RunLease};
use pinch_stdx::cancel::{Cancel, CancelReason, Deadline};
use pinch_stdx::pull::Emitter;
use tokio::sync::mpsc;

use crate::key;
use crate::parts::Parts;
use crate::run::{RunError, RunRequest};
use crate::runner::{BoxedRunResult, RunEvent, Runner};
use crate::runtime::AttemptRuntime;

/// Maximum number of queued notices about waiting; further ones are dropped.
const MAX_NOTICES: usize = 16;

/// Waits for the lease of a run within the run's own time limit, and reports to the listener what it waits for.
pub(super) async fn acquire(
    parts: &Parts,
    request: &RunRequest,
    runtime: &dyn AttemptRuntime,
    emitter: Option<&Emitter<RunEvent>>,
    cancel: &Cancel,
) -> Result<Box<dyn RunLease>, RunError> {
    let session = key::session_lane(request.session_key.as_deref(), &request.session_id);
    let file = runtime.session_file(request);
    let limit = request.timeout.into_iter().chain(parts.wait_limit).min();
    let limited = limit.map_or_else(|| cancel.child(), |limit| cancel.child_until(Deadline::after(limit)));
    let last = Mutex::new(None);
    let (sender, mut notices) = mpsc::channel(MAX_NOTICES);
    let on_wait = |wait: LeaseWait| {
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(wait.clone());
        // A slow listener only misses notices.
        drop(sender.try_send(wait));
    };
    let wanted = LeaseRequest::new(&session, key::global_lane(request.lane.as_deref()), &limited)
        .file(file.as_deref())
        .on_wait(&on_wait);
    let mut acquiring = request.leases.as_ref().unwrap_or(&parts.leases).acquire(wanted);
    let acquired = loop {
        tokio::select! {
            biased;
            acquired = &mut acquiring => break acquired,
            () = parts.gate.closed() => return Err(RunError::Draining),
            Some(wait) = notices.recv() => {
                if let Some(emitter) = emitter {
                    emitter.emit(RunEvent::Waiting(wait)).await;
                }
            }
        }
    };
    drop(acquiring);
    acquired.map_err(|error| match (error, limit) {
        (LeaseError::Cancelled(CancelReason::Deadline), Some(limit)) if cancel.reason().is_none() => {
            let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
            RunError::Busy(gave_up(last, u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)))
        }
        (error, _) => lease_error(error),
    })
}

/// Describes what a run was waiting for when its time limit passed. The text about a locked file is OpenClaw's.
fn gave_up(last: Option<LeaseWait>, ms: u64) -> String {
    match last {
        Some(LeaseWait::Process { owner, lock }) => {
            let owner = owner.map_or_else(|| "unknown".to_owned(), |pid| format!("pid={pid}"));
            format!("session file locked (timeout {ms}ms): {owner} {}", lock.display())
        }
        Some(LeaseWait::Slot { .. }) => format!("all slots of the lane were taken for {ms} ms"),
        _ => format!("another run of this session did not end within {ms} ms"),
    }
}

fn lease_error(error: LeaseError) -> RunError {
    match error {
        LeaseError::Cancelled(reason) => RunError::Cancelled(reason),
        LeaseError::Cleared => RunError::Busy(error.to_string()),
        error => RunError::Internal(error.to_string()),
    }
}

/// Carries out a run while renewing its lease. If the lease passes to another process, the run is stopped, since it could no longer write
/// anything.
pub(super) async fn run(runner: &mut Runner<'_>, candidates: &[Arc<Model>], lease: &dyn RunLease) -> BoxedRunResult {
    let stop = runner.stop.clone();
    let mut running = Box::pin(runner.run(candidates));
    tokio::select! {
        biased;
        result = &mut running => return result,
        () = lease.keep() => stop.cancel(CancelReason::Superseded),
    }
    // The outcome is discarded: the session belongs to another process.
    drop(running.await);
    Err(RunError::Busy("another process took over the session".to_owned()))
}

#[cfg(test)]
mod tests;
