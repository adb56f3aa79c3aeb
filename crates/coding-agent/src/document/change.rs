//! Changing documents that other programs write as well.

use std::io;
use std::path::{Path, PathBuf};

use pinch_stdx::fs::create_private_dir;
use pinch_stdx::fs::dir_lock::{DirLock, DirLockError, DirLockOptions};
use pinch_stdx::fs::{Access, real_path, write_atomic};
use pinch_stdx::host::Host;
use pinch_stdx::json;
use serde_json::{Map, Value};

use super::{Problem, read_to_write};

/// Why a document could not be changed. It is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// It is damaged; writing would lose its content.
    #[error("{0}")]
    Damaged(Problem),
    /// Another program holds the lock.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: DirLockError,
    },
    /// An I/O operation failed.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl ChangeError {
    /// Converts the error into a problem for people, with file, cause and remedy.
    pub fn into_problem(self) -> Problem {
        match self {
            Self::Damaged(problem) => problem,
            Self::Lock { path, source } => Problem::new(&path, format!("cannot be written: {source}"))
                .remedy("Stop the program that holds the lock, or wait ten seconds"),
            Self::Io { path, source } => {
                Problem::new(&path, format!("cannot be written: {source}")).remedy("Check permissions and free space")
            }
        }
    }
}

/// Permissions of a directory to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// Accessible to the user only (0700).
    Private,
    /// The system's default.
    Usual,
}

/// A document under the lock that all its writers take, including pi. Links are followed, so programs that use different paths to the file
/// take the same lock. Unlocked on drop.
#[derive(Debug)]
pub struct LockedDocument {
    path: PathBuf,
    lock: DirLock,
}

impl LockedDocument {
    /// Creates the directory if necessary and waits for the lock according to `terms`. Dropping the future gives up.
    ///
    /// # Errors
    /// [`ChangeError::Lock`] or [`ChangeError::Io`].
    pub async fn open(path: &Path, folder: Folder, terms: &DirLockOptions, host: &Host) -> Result<Self, ChangeError> {
        if let Some(parent) = path.parent() {
            let made = match folder {
                Folder::Private => create_private_dir(parent),
                Folder::Usual => std::fs::create_dir_all(parent),
            };
            made.map_err(|source| ChangeError::Io { path: path.to_owned(), source })?;
        }
        let lock = DirLock::acquire_async(&real_path(path), terms, host).await;
        let lock = lock.map_err(|source| ChangeError::Lock { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), lock })
    }

    /// Reads the current content.
    ///
    /// # Errors
    /// [`ChangeError::Damaged`].
    pub fn read(&self) -> Result<Map<String, Value>, ChangeError> {
        read_to_write(&self.path).map_err(ChangeError::Damaged)
    }

    /// Writes the document if the lock is still held.
    ///
    /// # Errors
    /// [`ChangeError::Lock`] or [`ChangeError::Io`].
    pub fn write(&self, root: &Map<String, Value>, access: Access) -> Result<(), ChangeError> {
        let io_error = |source| ChangeError::Io { path: self.path.clone(), source };
        let text = json::to_pretty(root).map_err(|error| io_error(error.into()))?;
        self.lock.check().map_err(|source| ChangeError::Lock { path: self.path.clone(), source })?;
        write_atomic(&self.path, text.as_bytes(), access).map_err(io_error)
    }

    /// Returns whether the lock is still held.
    pub fn is_held(&self) -> bool {
        self.lock.check().is_ok()
    }

    /// Renews the lock; returns whether it is still held.
    pub fn renew(&mut self, host: &Host) -> bool {
        self.lock.renew(host).is_ok()
    }
}

/// Changes a document under its lock, after reading what others have written meanwhile. Returns the new document; an unchanged one is not
/// written. Dropping the future changes everything or nothing.
///
/// # Errors
/// [`ChangeError`]; nothing has changed.
pub async fn change(
    path: &Path,
    (folder, access): (Folder, Access),
    terms: &DirLockOptions,
    host: &Host,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Result<Map<String, Value>, ChangeError> {
    let locked = LockedDocument::open(path, folder, terms, host).await?;
    let old = locked.read()?;
    let mut new = old.clone();
    change(&mut new);
    if new != old {
        locked.write(&new, access)?;
    }
    Ok(new)
}

/// Blocking version of [`change`]: `edit` returns whether there is anything to write, and so does the function. A new directory is
/// accessible to the user only.
///
/// # Errors
/// [`ChangeError`]; the document is unchanged.
pub fn change_object(
    path: &Path,
    access: Access,
    host: &Host,
    edit: impl FnOnce(&mut Map<String, Value>) -> Result<bool, Problem>,
) -> Result<bool, ChangeError> {
    let failed = |source| ChangeError::Io { path: path.to_owned(), source };
    create_private_dir(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    let lock = DirLock::acquire(&real_path(path), &DirLockOptions::QUICK, host);
    let lock = lock.map_err(|source| ChangeError::Lock { path: path.to_owned(), source })?;
    let locked = LockedDocument { path: path.to_owned(), lock };
    let mut object = locked.read()?;
    let has_changed = edit(&mut object).map_err(ChangeError::Damaged)?;
    if has_changed {
        locked.write(&object, access)?;
    }
    Ok(has_changed)
}
