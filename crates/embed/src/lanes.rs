//! Lanes: queues that limit concurrent runs. A run first holds its session's lane, so that a conversation has one run at a time, and then a
//! slot in a global lane.
//!
//! Lanes are always entered in this order, so runs cannot deadlock. Permits are guards: dropping a run frees its lanes, and dropping a
//! waiting future leaves the queue.
//!
//! tokio's semaphore, which serves in order of arrival, does not fit: a slot goes to the least recently served session, so that a session
//! with many waiting runs does not delay others, and a lane can shrink while all its slots are taken.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use pinch_embed::lanes::Lanes;
//! use pinch_embed::stdx::cancel::Cancel;
//!
//! let lanes = Lanes::default();
//! let permit = lanes.acquire("main", "session:s1", &Cancel::new()).await.unwrap();
//! assert_eq!(lanes.size("main"), 1);
//! drop(permit);
//! assert_eq!(lanes.size("main"), 0);
//! # });
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinch_stdx::cancel::{Cancel, CancelReason};
use tokio::sync::oneshot;

mod queue;

#[cfg(test)]
mod laws;

use self::queue::{Queues, Ticket};

/// Longer waits are logged.
const WARN_AFTER: Duration = Duration::from_secs(2);

/// All lanes of one engine. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Lanes(Arc<Mutex<Queues>>);

/// A slot of one lane; dropping it passes the slot to the next waiter.
#[derive(Debug)]
pub struct Permit {
    lanes: Lanes,
    lane: String,
}

/// Why no slot was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaneError {
    /// The lane was cleared.
    #[error("the lane was cleared while the run was waiting")]
    Cleared,
    /// The waiter was cancelled.
    #[error("cancelled while waiting ({0:?})")]
    Cancelled(CancelReason),
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how many runs a lane admits; the default is one. Waiters for new slots are admitted immediately.
    pub fn set_concurrency(&self, lane: &str, places: usize) {
        let granted = {
            let mut queues = self.lock();
            queues.set_places(lane, places);
            queues.pump(lane)
        };
        self.hand_out(lane, granted);
    }

    /// Waits for a slot in a lane. The least recently served session goes first; within a session it is first come, first served.
    ///
    /// # Errors
    /// [`LaneError`]. In that case, and if the future is dropped, nothing is held or queued.
    pub async fn acquire(&self, lane: &str, session: &str, cancel: &Cancel) -> Result<Permit, LaneError> {
        self.acquire_with(lane, session, cancel, &|_| {}).await
    }

    /// Like [`Lanes::acquire`], but calls `on_wait` with the number of runs ahead if no slot is free.
    pub(crate) async fn acquire_with(
        &self,
        lane: &str,
        session: &str,
        cancel: &Cancel,
        on_wait: &(dyn Fn(usize) + Sync),
    ) -> Result<Permit, LaneError> {
        let (send, mut receive) = oneshot::channel();
        let (ticket, ahead, granted) = {
            let mut queues = self.lock();
            let (ticket, ahead) = queues.enqueue(lane, session, send);
            (ticket, ahead, queues.pump(lane))
        };
        let _leave = Leave { lanes: self, lane, ticket };
        self.hand_out(lane, granted);
        if let Ok(permit) = receive.try_recv() {
            return Ok(permit);
        }
        on_wait(ahead);
        let wait = async {
            match tokio::time::timeout(WARN_AFTER, &mut receive).await {
                Ok(granted) => granted,
                Err(_) => {
                    tracing::warn!(lane, ahead, "a run has been waiting in its lane for two seconds");
                    receive.await
                }
            }
        };
        match cancel.run(wait).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(LaneError::Cleared),
            Err(cancelled) => Err(LaneError::Cancelled(cancelled.reason)),
        }
    }

    /// Ends all waits for a lane with [`LaneError::Cleared`] and returns their number; admitted runs continue.
    pub fn clear(&self, lane: &str) -> usize {
        // Their channels must be closed outside the lock.
        let waiters = self.lock().clear(lane);
        waiters.len()
    }

    /// Returns the number of admitted and waiting runs of a lane.
    pub fn size(&self, lane: &str) -> usize {
        self.lock().size(lane)
    }

    /// Must be called without the lock: a permit whose waiter is gone is dropped here, which takes the lock.
    fn hand_out(&self, lane: &str, granted: Vec<oneshot::Sender<Permit>>) {
        for waiter in granted {
            let permit = Permit { lanes: self.clone(), lane: lane.to_owned() };
            drop(waiter.send(permit));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let granted = {
            let mut queues = self.lanes.lock();
            queues.release(&self.lane);
            queues.pump(&self.lane)
        };
        self.lanes.hand_out(&self.lane, granted);
    }
}

/// Leaves the queue when a waiting future ends, however it ends.
struct Leave<'a> {
    lanes: &'a Lanes,
    lane: &'a str,
    ticket: Ticket,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.lanes.lock().leave(self.lane, self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// Lets all other tasks run until they are idle.
    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_take_turns_and_runs_of_one_session_keep_their_order() {
        let lanes = Lanes::default();
        let cancel = Cancel::new();
        let first = lanes.acquire("main", "a", &cancel).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiters = ["a1", "a2", "b1", "c1", "b2"].map(|name| {
            let (lanes, cancel, order) = (lanes.clone(), cancel.clone(), Arc::clone(&order));
            async move {
                let _permit = lanes.acquire("main", &name[..1], &cancel).await.unwrap();
                order.lock().unwrap().push(name);
                settle().await;
            }
        });
        let all = futures::future::join_all(waiters);
        futures::future::join(all, async {
            settle().await;
            drop(first);
        })
        .await;
        assert_eq!(*order.lock().unwrap(), ["b1", "c1", "a1", "b2", "a2"]);
        assert_eq!(lanes.size("main"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_new_sessions_does_not_starve_an_old_one() {
        let lanes = Lanes::default();
        let cancel = Cancel::new();
        let mut held = lanes.acquire("main", "old", &cancel).await.unwrap();
        let mut old = Box::pin(lanes.acquire("main", "old", &cancel));
        assert!((&mut old).now_or_never().is_none());
        for n in 0..100 {
            let name = format!("new {n}");
            let mut new = Box::pin(lanes.acquire("main", &name, &cancel));
            assert!((&mut new).now_or_never().is_none());
            drop(held);
            if (&mut old).now_or_never().is_some() {
                assert!(n > 3, "the most recently served session does not go first");
                return;
            }
            held = new.await.unwrap();
        }
        panic!("the old session was overtaken a hundred times");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_or_cancelled_waiter_leaves_the_queue() {
        let lanes = Lanes::default();
        let cancel = Cancel::new();
        let held = lanes.acquire("main", "a", &cancel).await.unwrap();
        {
            let mut waiting = Box::pin(lanes.acquire("main", "b", &cancel));
            assert!((&mut waiting).now_or_never().is_none());
            assert_eq!(lanes.size("main"), 2);
        }
        assert_eq!(lanes.size("main"), 1);
        let child = cancel.child();
        let waiting = lanes.acquire("main", "b", &child);
        let stop = async { child.cancel(CancelReason::User) };
        let (got, ()) = futures::future::join(waiting, stop).await;
        assert_eq!(got.unwrap_err(), LaneError::Cancelled(CancelReason::User));
        drop(held);
        assert_eq!(lanes.size("main"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_granted_to_a_dropped_waiter_passes_to_the_next() {
        let lanes = Lanes::default();
        let cancel = Cancel::new();
        let held = lanes.acquire("main", "a", &cancel).await.unwrap();
        let mut waiting = Box::pin(lanes.acquire("main", "b", &cancel));
        assert!((&mut waiting).now_or_never().is_none());
        drop(held);
        // The slot is in the channel of a future that is never polled again.
        assert_eq!(lanes.size("main"), 1);
        drop(waiting);
        assert_eq!(lanes.size("main"), 0);
        assert!(lanes.acquire("main", "c", &cancel).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn clearing_rejects_waiters_and_new_slots_admit_them() {
        let lanes = Lanes::default();
        let cancel = Cancel::new();
        let _held = lanes.acquire("main", "a", &cancel).await.unwrap();
        let waiting = lanes.acquire("main", "b", &cancel);
        let (got, n) = futures::future::join(waiting, async { lanes.clear("main") }).await;
        assert_eq!((got.unwrap_err(), n), (LaneError::Cleared, 1));
        let waiting = lanes.acquire("main", "b", &cancel);
        let (got, ()) = futures::future::join(waiting, async { lanes.set_concurrency("main", 2) }).await;
        assert_eq!(lanes.size("main"), 2);
        drop(got);
        assert_eq!(lanes.size("main"), 1);
    }
}
