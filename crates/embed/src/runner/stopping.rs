//! The end of runs that do not end by themselves when they are stopped.

use std::time::Duration;

use pinch_stdx::cancel::{Cancel, CancelReason};

/// How long an attempt or a repair may continue after the run was stopped.
pub(crate) const HARD_END: Duration = Duration::from_secs(10);

/// Completes [`HARD_END`] after the run was stopped, with the reason.
pub(crate) async fn hard_end(cancel: &Cancel) -> CancelReason {
    let reason = cancel.cancelled().await;
    tokio::time::sleep(HARD_END).await;
    reason
}

#[cfg(test)]
mod tests;
