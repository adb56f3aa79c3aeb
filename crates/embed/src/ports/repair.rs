//! Repairs session files that no run is using.

use std::io;
use std::path::{Path, PathBuf};

use pinch_coding_agent::store::repair::{FileRepair, repair_file};
use pinch_stdx::host::Host;

use super::session_lock::{LockAttempt, SessionLock};

/// Why a session file was not repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// A run is using the session.
    #[error("{} is in use{}", file.display(), owner.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    InUse {
        /// The session file.
        file: PathBuf,
        /// Id of the process that uses it, if known.
        owner: Option<u32>,
    },
    /// The session cannot be locked.
    #[error("cannot lock {}: {source}", file.display())]
    Lock {
        /// The session file.
        file: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

/// Removes unreadable lines from a session file, as [`repair_file`] does, while holding the lock that runs take.
///
/// # Errors
/// If a run is using the session, in this process or another, or the lock cannot be taken.
pub fn repair_session_file(file: &Path, host: &Host) -> Result<FileRepair, RepairError> {
    // Create nothing next to a missing file.
    if !file.is_file() {
        return Ok(repair_file(file, host.now_ms()));
    }
    let failed = |source| RepairError::Lock { file: file.to_owned(), source };
    let lock = SessionLock::path_for(file).map_err(failed)?;
    match SessionLock::try_acquire(&lock, host).map_err(failed)? {
        LockAttempt::Held(_lock) => Ok(repair_file(file, host.now_ms())),
        LockAttempt::Busy { owner } => Err(RepairError::InUse { file: file.to_owned(), owner }),
    }
}
