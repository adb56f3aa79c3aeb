//! Killing what was dropped, without holding up who dropped it: looking for those that have left their group can take seconds.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::process::Child;

use super::group::ProcessGroup;

/// How many are being killed. Processes belong to the whole program, and so does this.
static N_AT_WORK: Mutex<usize> = Mutex::new(0);
static IS_LESS: Condvar = Condvar::new();

fn n_at_work() -> MutexGuard<'static, usize> {
    N_AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that is not awaited. Dropping it kills its whole process tree.
struct Orphan {
    group: ProcessGroup,
    /// Its end is not taken note of before the family is dead: until then its id is its own.
    _child: Child,
}

impl Drop for Orphan {
    fn drop(&mut self) {
        self.group.kill(true);
        *n_at_work() -= 1;
        IS_LESS.notify_all();
    }
}

/// Kills a child with all its descendants: its group at once, the others on a thread of its own.
pub(super) fn kill_aside(child: Child, group: ProcessGroup) {
    group.halt_known();
    *n_at_work() += 1;
    let orphan = Orphan { group, _child: child };
    // Without a thread it is done here: what cannot be started is dropped.
    drop(std::thread::Builder::new().name("pinch-reaper".to_owned()).spawn(move || drop(orphan)));
}

/// Waits until everything that was dropped is dead, but not longer than `limit`; whether it is. For the end of a program: what still lives when
/// the program ends is not killed any more. Blocks.
pub fn wait_for_killed(limit: Duration) -> bool {
    let waited = IS_LESS.wait_timeout_while(n_at_work(), limit, |n_at_work| *n_at_work > 0);
    *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
}
