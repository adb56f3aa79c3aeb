//! Admission of runs, and the shutdown of an engine.

use std::sync::Arc;
use std::time::Duration;

use pinch_stdx::cancel::{Cancel, CancelReason};
use tokio::sync::watch;

use crate::run::RunError;

/// Counts the runs of an engine. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct RunGate {
    n_runs: Arc<watch::Sender<usize>>,
    closing: Cancel,
}

impl Default for RunGate {
    fn default() -> Self {
        Self { n_runs: Arc::new(watch::Sender::new(0)), closing: Cancel::new() }
    }
}

/// An admitted run, until it is dropped.
#[derive(Debug)]
pub(crate) struct AdmittedRun(RunGate);

impl RunGate {
    /// Admits a run.
    pub(crate) fn admit(&self) -> Result<AdmittedRun, RunError> {
        self.n_runs.send_modify(|n| *n += 1);
        let admitted = AdmittedRun(self.clone());
        // Count first: a gate that closes now either sees the run or turns it away.
        if self.is_closed() { Err(RunError::Draining) } else { Ok(admitted) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closing.reason().is_some()
    }

    /// Admits no more runs. Those waiting for their session or slot are turned away.
    pub(crate) fn close(&self) {
        self.closing.cancel(CancelReason::Shutdown);
    }

    /// Completes when the gate is closed.
    pub(crate) async fn closed(&self) {
        self.closing.cancelled().await;
    }

    /// Waits until no runs are left. Returns whether that happened within the limit.
    pub(crate) async fn wait_until_empty(&self, limit: Duration) -> bool {
        let mut n_runs = self.n_runs.subscribe();
        let empty = n_runs.wait_for(|n| *n == 0);
        tokio::time::timeout(limit, empty).await.is_ok()
    }
}

impl Drop for AdmittedRun {
    fn drop(&mut self) {
        self.0.n_runs.send_modify(|n| *n = n.saturating_sub(1));
    }
}
