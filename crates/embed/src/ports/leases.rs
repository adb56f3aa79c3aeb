//! Leases within one process, which also lock session files against other processes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_ports::{Fence, LeaseError, LeaseRequest, LeaseWait, RunLease, RunLeases};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use super::session_lock::{LockAttempt, LockFile, SessionLock};
use crate::lanes::{LaneError, Lanes, Permit};

/// First delay before a locked file is inspected again; each further one is longer by the same amount, up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Renewal interval of a lease. Other programs consider a lock file abandoned after 30 minutes.
const RENEWAL: Duration = Duration::from_secs(60);

/// The leases of one process: a lane for each session, and global lanes with slots. Session files are locked against other processes with
/// OpenClaw's lock.
#[derive(Debug)]
pub struct LocalLeases {
    lanes: Lanes,
    host: Host,
    last_epoch: Mutex<u64>,
}

impl LocalLeases {
    /// Creates leases over these lanes.
    pub fn new(lanes: Lanes, host: Host) -> Self {
        Self { lanes, host, last_epoch: Mutex::new(0) }
    }

    /// Returns an epoch greater than all before it, including those of processes that ended before this one started.
    fn next_epoch(&self) -> u64 {
        let now = u64::try_from(self.host.now_ms()).unwrap_or(0);
        let mut last = self.last_epoch.lock().unwrap_or_else(PoisonError::into_inner);
        *last = now.max(*last + 1);
        *last
    }

    /// Waits for a slot of the lane while no other process has locked the file. The slot is not held while waiting for the file.
    async fn slot_and_file(
        &self,
        request: LeaseRequest<'_>,
        on_lane_wait: &(dyn Fn(usize) + Sync),
    ) -> Result<(Permit, Option<SessionLock>), LeaseError> {
        let path = request.file.map(SessionLock::path_for).transpose().map_err(|error| locking(request.file, error))?;
        let mut pause = Duration::ZERO;
        let mut last_owner = None;
        loop {
            let slot = self.lanes.acquire_with(request.lane, request.session, request.cancel, on_lane_wait).await;
            let slot = slot.map_err(lane_error)?;
            let Some(path) = &path else { return Ok((slot, None)) };
            let owner =
                match SessionLock::try_acquire(path, &self.host).map_err(|error| locking(request.file, error))? {
                    LockAttempt::Held(lock) => return Ok((slot, Some(lock))),
                    LockAttempt::Busy { owner } => owner,
                };
            drop(slot);
            if last_owner != Some(owner) {
                last_owner = Some(owner);
                (request.on_wait)(LeaseWait::Process { owner, lock: path.clone() });
            }
            pause = (pause + PAUSE).min(LONGEST_PAUSE);
            let waited = request.cancel.run(tokio::time::sleep(pause)).await;
            waited.map_err(|cancelled| LeaseError::Cancelled(cancelled.reason))?;
        }
    }
}

impl RunLeases for LocalLeases {
    fn acquire<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, Result<Box<dyn RunLease>, LeaseError>> {
        Box::pin(async move {
            let on_wait = |ahead| (request.on_wait)(LeaseWait::Session { ahead });
            let session = self.lanes.acquire_with(request.session, request.session, request.cancel, &on_wait).await;
            let session = session.map_err(lane_error)?;
            let on_wait = |ahead| (request.on_wait)(LeaseWait::Slot { ahead });
            let (slot, lock) = self.slot_and_file(request, &on_wait).await?;
            let fence = LocalFence {
                epoch: self.next_epoch(),
                is_released: AtomicBool::new(false),
                file: lock.as_ref().map(|lock| Arc::clone(lock.file())),
            };
            let lease: Box<dyn RunLease> = Box::new(LocalLease {
                slot: Mutex::new(Some(slot)),
                lock,
                fence: Arc::new(fence),
                lanes: self.lanes.clone(),
                lane: request.lane.to_owned(),
                session_name: request.session.to_owned(),
                host: self.host.clone(),
                _session: session,
            });
            Ok(lease)
        })
    }
}

fn lane_error(error: LaneError) -> LeaseError {
    match error {
        LaneError::Cleared => LeaseError::Cleared,
        LaneError::Cancelled(reason) => LeaseError::Cancelled(reason),
    }
}

fn locking(file: Option<&Path>, error: std::io::Error) -> LeaseError {
    let file = file.map(Path::to_owned).unwrap_or_default();
    LeaseError::Unavailable(format!("cannot lock the session file {}: {error}", file.display()).into())
}

/// A lease. Its fields are released in this order.
#[derive(Debug)]
struct LocalLease {
    slot: Mutex<Option<Permit>>,
    lock: Option<SessionLock>,
    fence: Arc<LocalFence>,
    lanes: Lanes,
    lane: String,
    session_name: String,
    host: Host,
    _session: Permit,
}

impl LocalLease {
    fn slot(&self) -> MutexGuard<'_, Option<Permit>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunLease for LocalLease {
    fn fence(&self) -> Arc<dyn Fence> {
        Arc::clone(&self.fence) as Arc<dyn Fence>
    }

    fn release_slot(&self) {
        // Drop the slot after the lock, because it wakes the next waiter.
        let slot = self.slot().take();
        drop(slot);
    }

    fn retake_slot<'a>(&'a self, cancel: &'a Cancel) -> BoxFuture<'a, Result<(), LeaseError>> {
        Box::pin(async move {
            if self.slot().is_none() {
                let slot = self.lanes.acquire(&self.lane, &self.session_name, cancel).await.map_err(lane_error)?;
                *self.slot() = Some(slot);
            }
            Ok(())
        })
    }

    fn keep(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(lock) = &self.lock else { return std::future::pending().await };
            loop {
                tokio::time::sleep(RENEWAL).await;
                if !lock.renew(&self.host) {
                    return;
                }
            }
        })
    }
}

impl Drop for LocalLease {
    fn drop(&mut self) {
        self.fence.is_released.store(true, Ordering::Release);
    }
}

/// The fence of a lease, which may outlive it.
#[derive(Debug)]
struct LocalFence {
    epoch: u64,
    is_released: AtomicBool,
    file: Option<Arc<LockFile>>,
}

impl Fence for LocalFence {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn is_current(&self) -> bool {
        !self.is_released.load(Ordering::Acquire) && self.file.as_ref().is_none_or(|file| file.is_ours())
    }
}
