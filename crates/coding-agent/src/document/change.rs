//! Changing documents that other programs write too.

use std::io;
use std::path::{Path, PathBuf};

use pinch_stdx::fs::create_private_dir;
use pinch_stdx::fs::dir_lock::{DirLock, DirLockError, DirLockOptions};
use pinch_stdx::fs::{Access, real_path, write_atomic};
use pinch_stdx::host::Host;
use pinch_stdx::json;
use serde_json::{Map, Value};

use super::{Problem, read_to_write};

/// A document could not be changed. It is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// It is damaged; writing would lose what is in it.
    #[error("{0}")]
    Damaged(Problem),
    /// Another program holds it.
    #[error("cannot lock {}", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: DirLockError,
    },
    /// The system refused.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl ChangeError {
    /// The same for people: file, what is wrong, and what to do.
    pub fn into_problem(self) -> Problem {
        match self {
            Self::Damaged(problem) => problem,
            Self::Lock { path, source } => Problem::new(&path, format!("cannot be written: {source}"))
                .remedy("End the program that holds it, or wait ten seconds"),
            Self::Io { path, source } => {
                Problem::new(&path, format!("cannot be written: {source}")).remedy("Check permissions and free space")
            }
        }
    }
}

/// What a directory is like that has to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// For the user alone (0700).
    Private,
    /// As the system makes it.
    Usual,
}

/// A document under the lock that all its writers take, pi's too. Links are followed: programs that name the file by other ways lock the same
/// one. Dropping it unlocks.
#[derive(Debug)]
pub struct LockedDocument {
    path: PathBuf,
    lock: DirLock,
}

impl LockedDocument {
    /// Makes the directory if it is not there and waits for the lock as the terms say. Dropping the future gives up.
    ///
    /// # Errors
    /// [`ChangeError::Lock`] and [`ChangeError::Io`].
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

    /// What is in the document now.
    ///
    /// # Errors
    /// [`ChangeError::Damaged`].
    pub fn read(&self) -> Result<Map<String, Value>, ChangeError> {
        read_to_write(&self.path).map_err(ChangeError::Damaged)
    }

    /// Writes the document, if the lock is still ours.
    ///
    /// # Errors
    /// [`ChangeError::Lock`] and [`ChangeError::Io`].
    pub fn write(&self, root: &Map<String, Value>, access: Access) -> Result<(), ChangeError> {
        let io_error = |source| ChangeError::Io { path: self.path.clone(), source };
        let text = json::to_pretty(root).map_err(|error| io_error(error.into()))?;
        self.lock.check().map_err(|source| ChangeError::Lock { path: self.path.clone(), source })?;
        write_atomic(&self.path, text.as_bytes(), access).map_err(io_error)
    }

    /// Whether the lock is still ours.
    pub fn is_held(&self) -> bool {
        self.lock.check().is_ok()
    }

    /// Renews the lock; returns whether it is still held.
    pub fn renew(&mut self, host: &Host) -> bool {
        self.lock.renew(host).is_ok()
    }
}

/// Changes a document under its lock: what others have written meanwhile is read first. Answers with the document as it is then; one that
/// comes out unchanged is not written. Dropping the future changes nothing or everything.
///
/// # Errors
/// [`ChangeError`]; nothing has changed then.
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

/// Like [`change`], for those who can wait: `edit` answers with whether there is anything to write, and so does the function. A directory that is
/// made is for the user alone.
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
