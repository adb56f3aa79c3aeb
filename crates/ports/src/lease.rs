//! Who may work on a session, and how many runs go on at once.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_session::store::Fence;
use pinch_stdx::cancel::{Cancel, CancelReason};

use crate::error::BoxError;

/// Grants leases: each session has one run at a time, and each lane a limited number of them.
///
/// The default of an engine covers the runs of its process, and keeps other processes on the same machine away from session files. An
/// engine that shares its sessions with other hosts needs an implementation of its own.
pub trait RunLeases: fmt::Debug + Send + Sync {
    /// Waits until a run may begin. Runs of one session begin in the order of their requests.
    ///
    /// # Errors
    /// [`LeaseError`]. Dropping the future gives up waiting, and whatever was granted already.
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
    /// The file of the session, which other programs may have locked.
    pub file: Option<&'a Path>,
    /// Gives up waiting.
    pub cancel: &'a Cancel,
    /// Called when the run has to wait, and again when it waits for something else.
    pub on_wait: &'a (dyn Fn(LeaseWait) + Send + Sync),
}

impl<'a> LeaseRequest<'a> {
    /// A request without a file.
    pub fn new(session: &'a str, lane: &'a str, cancel: &'a Cancel) -> Self {
        Self { session, lane, file: None, cancel, on_wait: &|_| {} }
    }

    /// Sets the file of the session.
    #[must_use]
    pub fn file(self, file: Option<&'a Path>) -> Self {
        Self { file, ..self }
    }

    /// Sets what is called when the run has to wait.
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
        /// How many runs come before it.
        ahead: usize,
    },
    /// A slot of its lane.
    Slot {
        /// How many runs come before it.
        ahead: usize,
    },
    /// Another process that works on the session.
    Process {
        /// Its process id, if it is known.
        owner: Option<u32>,
        /// The lock file.
        lock: PathBuf,
    },
}

/// The right to work on a session, given up when dropped.
pub trait RunLease: fmt::Debug + Send + Sync {
    /// What writes to the session carry. It outlives the lease, and is not current after that.
    fn fence(&self) -> Arc<dyn Fence>;

    /// Gives the slot of the lane back while the run sleeps. The session stays leased.
    fn release_slot(&self);

    /// Waits for a slot again. Does nothing when the run has one.
    ///
    /// # Errors
    /// [`LeaseError`].
    fn retake_slot<'a>(&'a self, cancel: &'a Cancel) -> BoxFuture<'a, Result<(), LeaseError>>;

    /// Keeps the lease alive. Completes only when it was lost to another process, which the run cannot survive.
    fn keep(&self) -> BoxFuture<'_, ()>;
}

/// Why no lease was granted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The queue was cleared.
    #[error("the lane was cleared while the run was waiting")]
    Cleared,
    /// The request was cancelled.
    #[error("cancelled while waiting ({0:?})")]
    Cancelled(CancelReason),
    /// Leases cannot be granted now.
    #[error("{0}")]
    Unavailable(#[source] BoxError),
}
