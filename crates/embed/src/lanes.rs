//! Lanes: who runs when. A run holds its session's lane, so that a conversation has one run at a time, and then a place in a global lane.
//!
//! The order of waiting is fixed, session lane first, so there is no cycle. Permits are guards: dropping a run frees its lanes, dropping a
//! waiting future leaves the queue.
//!
//! Not the semaphore of tokio, which serves in order of arrival: here a place goes to the session that was served longest ago, so that one with
//! many waiting runs holds up no other, and a lane can become smaller while all its places are taken.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use pinch_embed::lanes::Lanes;
//! use pinch_embed::stdx::cancel::Cancel;
//!
//! let lanes = Lanes::default();
//! let permit = lanes.enter("session:s1", "main", &Cancel::new()).await.unwrap();
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

use self::queue::{Queues, Ticket};

/// After this time in a queue a waiter is reported.
const WARN_AFTER: Duration = Duration::from_secs(2);

/// All lanes of one engine. Cloning gives another handle of the same lanes.
#[derive(Clone, Debug, Default)]
pub struct Lanes(Arc<Mutex<Queues>>);

/// A place in one lane; dropping it gives the place to the next.
#[derive(Debug)]
pub struct Permit {
    lanes: Lanes,
    lane: String,
}

/// The places of one run.
#[derive(Debug)]
pub struct RunPermit {
    // Dropped in this order: the session's next run must find a global place free.
    _global: Permit,
    _session: Permit,
}

/// Why a waiter got no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
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

    /// Sets how many places a lane has; without it a lane has one. Waiters move up at once.
    pub fn set_concurrency(&self, lane: &str, places: usize) {
        let granted = {
            let mut queues = self.lock();
            queues.set_places(lane, places);
            queues.pump(lane)
        };
        self.hand_out(lane, granted);
    }

    /// Waits for a place in a lane. When places are scarce, the session served longest ago goes first; within a session it is first come,
    /// first served.
    ///
    /// # Errors
    /// [`LaneError`]; nothing is held and nothing is queued then, nor when the future is dropped.
    pub async fn acquire(&self, lane: &str, session: &str, cancel: &Cancel) -> Result<Permit, LaneError> {
        let (send, mut receive) = oneshot::channel();
        let (ticket, ahead, granted) = {
            let mut queues = self.lock();
            let (ticket, ahead) = queues.enqueue(lane, session, send);
            (ticket, ahead, queues.pump(lane))
        };
        let _leave = Leave { lanes: self, lane, ticket };
        self.hand_out(lane, granted);
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

    /// Waits for the session's lane, then for a place in a global lane.
    ///
    /// # Errors
    /// [`LaneError`]; nothing is held then.
    pub async fn enter(&self, session: &str, global: &str, cancel: &Cancel) -> Result<RunPermit, LaneError> {
        let session_permit = self.acquire(session, session, cancel).await?;
        let global_permit = self.acquire(global, session, cancel).await?;
        Ok(RunPermit { _global: global_permit, _session: session_permit })
    }

    /// Sends all waiters of a lane away with [`LaneError::Cleared`]; who runs goes on. Returns how many there were.
    pub fn clear(&self, lane: &str) -> usize {
        // Their channels are closed outside the lock.
        let waiters = self.lock().clear(lane);
        waiters.len()
    }

    /// How many run and wait in a lane.
    pub fn size(&self, lane: &str) -> usize {
        self.lock().size(lane)
    }

    /// Outside the lock, because a permit nobody takes comes back at once.
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

    /// Starts waiters and says, after each step, who holds a place.
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
    async fn a_place_granted_to_a_waiter_that_is_gone_goes_on() {
        let lanes = Lanes::default();
        let cancel = Cancel::new();
        let held = lanes.acquire("main", "a", &cancel).await.unwrap();
        let mut waiting = Box::pin(lanes.acquire("main", "b", &cancel));
        assert!((&mut waiting).now_or_never().is_none());
        drop(held);
        // The place lies in the channel of a future that is never polled again.
        assert_eq!(lanes.size("main"), 1);
        drop(waiting);
        assert_eq!(lanes.size("main"), 0);
        assert!(lanes.acquire("main", "c", &cancel).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn clearing_sends_waiters_away_and_more_places_let_them_in() {
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

    #[tokio::test(start_paused = true)]
    async fn a_run_dropped_while_it_waits_for_the_global_lane_frees_its_session() {
        let lanes = Lanes::default();
        let cancel = Cancel::new();
        let _held = lanes.acquire("main", "x", &cancel).await.unwrap();
        let mut waiting = Box::pin(lanes.enter("session:s", "main", &cancel));
        assert!((&mut waiting).now_or_never().is_none());
        assert_eq!((lanes.size("session:s"), lanes.size("main")), (1, 2));
        drop(waiting);
        assert_eq!((lanes.size("session:s"), lanes.size("main")), (0, 1));
    }
}
