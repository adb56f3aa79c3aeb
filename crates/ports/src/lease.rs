//! Leases: which run may work on a session, and how many runs are active at a time.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_session::store::Fence;
use pinch_stdx::cancel::{Cancel, CancelReason};

use crate::error::BoxError;

/// Grants leases: each session has one run at a time, and each lane a limited number of them.
///
/// An engine's default covers the runs of its process, and keeps other processes on the same machine away from session files. Engines that
/// share sessions across hosts need their own implementation.
pub trait RunLeases: fmt::Debug + Send + Sync {
    /// Waits until a run may start. Runs of one session start in the order of their requests.
    ///
    /// # Errors
    /// Returns [`LeaseError`] if no lease is granted. Dropping the future stops waiting and releases anything already granted.
    fn acquire<'a>(&'a self, request: LeaseRequest<'a>) -> BoxFuture<'a, Result<Box<dyn RunLease>, LeaseError>>;
}

/// A request for a lease.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct LeaseRequest<'a> {
    /// The session, by key or id.
    pub session: &'a str,
    /// The lane whose slots the run counts against.
    pub lane: &'a str,
    /// The session's file, which other programs may have locked.
    pub file: Option<&'a Path>,
    /// Cancels the wait.
    pub cancel: &'a Cancel,
    /// Called when the run has to wait, and again when it starts to wait for something else.
    pub on_wait: &'a (dyn Fn(LeaseWait) + Send + Sync),
}

impl<'a> LeaseRequest<'a> {
    /// Creates a request without a file.
    pub fn new(session: &'a str, lane: &'a str, cancel: &'a Cancel) -> Self {
        Self { session, lane, file: None, cancel, on_wait: &|_| {} }
    }

    /// Sets the file of the session.
    #[must_use]
    pub fn file(self, file: Option<&'a Path>) -> Self {
        Self { file, ..self }
    }

    /// Sets the callback for waits.
    #[must_use]
    pub fn on_wait(self, on_wait: &'a (dyn Fn(LeaseWait) + Send + Sync)) -> Self {
        Self { on_wait, ..self }
    }
}

impl fmt::Debug for LeaseRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseRequest")
            .field("session", &self.session)
            .field("lane", &self.lane)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseWait {
    /// Other runs of the session.
    Session {
        /// Number of runs ahead of it.
        ahead: usize,
    },
    /// A slot of its lane.
    Slot {
        /// Number of runs ahead of it.
        ahead: usize,
    },
    /// Another process that uses the session.
    Process {
        /// Its process id, if it is known.
        owner: Option<u32>,
        /// The lock file.
        lock: PathBuf,
    },
}

/// The right to work on a session, released when dropped.
pub trait RunLease: fmt::Debug + Send + Sync {
    /// Returns the fence that writes to the session carry. It outlives the lease, and is no longer current after that.
    fn fence(&self) -> Arc<dyn Fence>;

    /// Releases the slot of the lane while the run sleeps. The session stays leased.
    fn release_slot(&self);

    /// Waits for a slot again. Does nothing if the run has one.
    ///
    /// # Errors
    /// Returns [`LeaseError`] if no slot is granted.
    fn retake_slot<'a>(&'a self, cancel: &'a Cancel) -> BoxFuture<'a, Result<(), LeaseError>>;

    /// Keeps the lease alive. Completes only if the lease was lost to another process, in which case the run must end.
    fn keep(&self) -> BoxFuture<'_, ()>;
}

/// Reasons why no lease was granted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The queue was cleared.
    #[error("the lane was cleared while the run was waiting")]
    Cleared,
    /// The request was cancelled.
    #[error("cancelled while waiting ({0:?})")]
    Cancelled(CancelReason),
    /// Leases cannot be granted at the moment.
    #[error("{0}")]
    Unavailable(#[source] BoxError),
}
