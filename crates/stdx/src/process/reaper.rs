//! Kills dropped processes without blocking the dropping thread: searching for those that have left their group can take seconds.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::process::Child;

use super::group::ProcessGroup;
use super::watchdog::RunningMark;

/// Number of kills in progress. Global, because processes belong to the whole program.
static N_AT_WORK: Mutex<usize> = Mutex::new(0);
static IS_LESS: Condvar = Condvar::new();

fn n_at_work() -> MutexGuard<'static, usize> {
    N_AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that is not awaited. Dropping it kills its whole process tree.
struct Orphan {
    group: ProcessGroup,
    /// Whether the child has not been reaped yet.
    has_leader: bool,
    /// Not reaped before the family is dead, so that its id is not reused.
    _child: Child,
    _running: Option<RunningMark>,
}

impl Drop for Orphan {
    fn drop(&mut self) {
        self.group.kill(self.has_leader);
        *n_at_work() -= 1;
        IS_LESS.notify_all();
    }
}

/// Kills a child with all its descendants: its group immediately, the others on a separate thread.
pub(super) fn kill_aside(child: Child, has_leader: bool, group: ProcessGroup, running: Option<RunningMark>) {
    group.halt_known();
    *n_at_work() += 1;
    let orphan = Orphan { group, has_leader, _child: child, _running: running };
    // Without a thread it is done here: a closure that cannot be started is dropped.
    drop(std::thread::Builder::new().name("pinch-reaper".to_owned()).spawn(move || drop(orphan)));
}

/// Waits until all dropped processes are dead, but not longer than `limit`; returns whether they are. Call this before a program exits:
/// processes that are still alive then are not killed. Blocks.
pub fn wait_for_killed(limit: Duration) -> bool {
    let waited = IS_LESS.wait_timeout_while(n_at_work(), limit, |n_at_work| *n_at_work > 0);
    *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
}
