//! Kernel locks on files: they end with the process that holds them, however it ends.
//!
//! They are visible only to programs that use the same system call. For locks shared with JavaScript programs, use [`super::dir_lock`].

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The first delay between two attempts; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A locked file. Dropping it unlocks.
///
/// The lock is exclusive and belongs to the open file: a second lock in the same process waits too.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

/// Reasons why a lock was not acquired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process held it for the whole time.
    #[error("{} is locked by another process", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened or locked.
    #[error("cannot lock {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl FileLock {
    /// Locks a file, creating it (readable only by the user) if it does not exist, and waits for at most `patience`. Blocks the thread.
    ///
    /// # Errors
    /// Returns [`LockError`] if the lock was not acquired.
    pub fn acquire(path: &Path, patience: Duration) -> Result<Self, LockError> {
        let mut wait = LockWait::new(patience);
        loop {
            if let Some(lock) = Self::try_acquire(path)? {
                return Ok(lock);
            }
            std::thread::sleep(wait.next_pause(path)?);
        }
    }

    /// Locks a file like [`FileLock::acquire`], without blocking the thread. Cancel by dropping the future.
    ///
    /// # Errors
    /// Returns [`LockError`] if the lock was not acquired.
    pub async fn acquire_async(path: &Path, patience: Duration) -> Result<Self, LockError> {
        let mut wait = LockWait::new(patience);
        loop {
            if let Some(lock) = Self::try_acquire(path)? {
                return Ok(lock);
            }
            tokio::time::sleep(wait.next_pause(path)?).await;
        }
    }

    /// Locks a file unless it is locked; returns `None` if another process holds the lock.
    ///
    /// # Errors
    /// Returns [`LockError::Io`].
    pub fn try_acquire(path: &Path) -> Result<Option<Self>, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let file = options.open(path).map_err(failed)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Ok(()) => {}
            }
            // The previous holder may have replaced or removed the file meanwhile: then this locks nothing, so open it again.
            if is_still(&file, path).map_err(failed)? {
                return Ok(Some(Self { file }));
            }
        }
    }

    /// Returns the locked file, open for reading and writing. If the path was replaced, this is still the old file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Returns whether the open file is the one that the path names.
///
/// # Errors
/// Returns an error if the files cannot be inspected.
#[cfg(unix)]
pub fn is_still(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok(ours.nlink() > 0 && (ours.dev(), ours.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns true: on this platform open files cannot be replaced.
///
/// # Errors
/// Never returns an error.
#[cfg(not(unix))]
pub fn is_still(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Delays between attempts, up to a time limit.
struct LockWait {
    until: Option<Instant>,
    pause: Duration,
}

impl LockWait {
    fn new(patience: Duration) -> Self {
        Self { until: Instant::now().checked_add(patience), pause: FIRST_PAUSE }
    }

    fn next_pause(&mut self, path: &Path) -> Result<Duration, LockError> {
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        let Some(until) = self.until else { return Ok(pause) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(LockError::Busy { path: path.to_owned() }) } else { Ok(pause.min(left)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::{Access, write_atomic};

    #[test]
    fn a_lock_has_one_holder_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let held = FileLock::acquire(&path, Duration::ZERO).unwrap();
        assert!(matches!(FileLock::acquire(&path, Duration::from_millis(5)), Err(LockError::Busy { .. })));
        drop(held);
        assert!(FileLock::try_acquire(&path).unwrap().is_some());
    }

    #[tokio::test]
    async fn waiting_ends_when_the_holder_lets_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let held = FileLock::acquire(&path, Duration::ZERO).unwrap();
        let (second, ()) = tokio::join!(FileLock::acquire_async(&path, Duration::from_secs(10)), async {
            tokio::task::yield_now().await;
            drop(held);
        });
        second.unwrap();
    }

    #[test]
    fn a_lock_on_a_replaced_file_is_invalid() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let old = FileLock::acquire(&path, Duration::ZERO).unwrap();
        write_atomic(&path, b"new", Access::Keep).unwrap();
        assert!(!is_still(old.file(), &path).unwrap());
        let new = FileLock::try_acquire(&path).unwrap().unwrap();
        assert_eq!(new.file().metadata().unwrap().len(), 3);
    }
}
