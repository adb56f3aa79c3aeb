//! How long a call may wait for a person, or for other work.

use std::time::Duration;

use pinch_stdx::cancel::Cancel;

/// Share of the run's remaining time, and the maximum, that is kept for continuing without an answer.
const KEPT_SHARE: u32 = 10;
const MAX_KEPT: Duration = Duration::from_secs(60);

/// Returns how long a call can wait if it wants to wait this long, so that its run can still continue without an answer.
pub fn time_to_wait(cancel: &Cancel, wanted: Duration) -> Duration {
    cancel.deadline().map_or(wanted, |deadline| {
        let left = deadline.left();
        wanted.min(left.saturating_sub((left / KEPT_SHARE).min(MAX_KEPT)))
    })
}
