//! Storage backends for credentials.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use futures::future::BoxFuture;
use pinch_stdx::fs::Access;
use pinch_stdx::fs::dir_lock::DirLockOptions;
use pinch_stdx::host::Host;
use serde_json::{Map, Value};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::document::{self, ChangeError, Folder, LockedDocument, Problem};

/// Stored credentials, by provider.
pub type StoredCredentials = Map<String, Value>;

/// Identifies a version of a store's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision(pub String);

/// The result of reading a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BackendRead {
    /// Unchanged since the given revision.
    Same,
    /// Changed content.
    New(StoredCredentials, Revision),
    /// Unreadable content.
    Broken(Problem, Revision),
}

/// A credential store that several programs may share.
pub trait AuthBackend: fmt::Debug + Send + Sync {
    /// Reads the current content. Takes no lock, and is fast if nothing changed since `seen`.
    fn read(&self, seen: Option<&Revision>) -> BackendRead;

    /// Returns the store's file, if it has one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Opens the store exclusively, waiting for others according to `terms`. Dropping the future gives up.
    ///
    /// # Errors
    /// [`ChangeError`].
    fn open<'a>(
        &'a self,
        terms: &'a DirLockOptions,
        host: &'a Host,
    ) -> BoxFuture<'a, Result<Box<dyn OpenAuth>, ChangeError>>;
}

/// Exclusive access to a store, released on drop.
pub trait OpenAuth: Send + Sync {
    /// Reads the stored content.
    ///
    /// # Errors
    /// [`ChangeError::Damaged`]: the store must not be written then.
    fn read(&self) -> Result<(StoredCredentials, Revision), ChangeError>;

    /// Replaces the stored entries.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing has changed.
    fn write(&self, entries: &StoredCredentials) -> Result<Revision, ChangeError>;

    /// Returns whether the lock is still held.
    fn is_held(&self) -> bool {
        true
    }

    /// Renews the lock; call it every few seconds. Returns whether it is still held.
    fn renew(&mut self, host: &Host) -> bool {
        let _ = host;
        true
    }
}

/// auth.json: the same file and lock as pi's.
#[derive(Clone, Debug)]
pub(super) struct FileBackend {
    pub(super) path: PathBuf,
}

impl AuthBackend for FileBackend {
    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn read(&self, seen: Option<&Revision>) -> BackendRead {
        // Read the revision first: a change while reading then shows as a difference next time.
        let revision = revision_of(&self.path);
        if Some(&revision) == seen {
            return BackendRead::Same;
        }
        match document::read_object(&self.path) {
            Ok(entries) => BackendRead::New(entries, revision),
            Err(problem) => BackendRead::Broken(problem, revision),
        }
    }

    fn open<'a>(
        &'a self,
        terms: &'a DirLockOptions,
        host: &'a Host,
    ) -> BoxFuture<'a, Result<Box<dyn OpenAuth>, ChangeError>> {
        Box::pin(async move {
            let document = LockedDocument::open(&self.path, Folder::Private, terms, host).await?;
            Ok(Box::new(OpenFile { path: self.path.clone(), document }) as Box<dyn OpenAuth>)
        })
    }
}

struct OpenFile {
    path: PathBuf,
    document: LockedDocument,
}

impl OpenAuth for OpenFile {
    fn read(&self) -> Result<(StoredCredentials, Revision), ChangeError> {
        let revision = revision_of(&self.path);
        Ok((self.document.read()?, revision))
    }

    fn write(&self, entries: &StoredCredentials) -> Result<Revision, ChangeError> {
        self.document.write(entries, Access::Secret)?;
        Ok(revision_of(&self.path))
    }

    fn is_held(&self) -> bool {
        self.document.is_held()
    }

    fn renew(&mut self, host: &Host) -> bool {
        self.document.renew(host)
    }
}

/// Computes a revision from modification time, length and, where available, inode: each replacement has a new one.
fn revision_of(path: &Path) -> Revision {
    let Ok(meta) = std::fs::metadata(path) else { return Revision(String::new()) };
    let changed = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let number = 0;
    Revision(format!("{}-{}-{number}", changed.as_nanos(), meta.len()))
}

/// Credentials that last as long as the program.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryBackend {
    state: Arc<Mutex<(StoredCredentials, u64)>>,
    turn: Arc<AsyncMutex<()>>,
}

impl MemoryBackend {
    pub(super) fn new(entries: StoredCredentials) -> Self {
        Self { state: Arc::new(Mutex::new((entries, 0))), turn: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, (StoredCredentials, u64)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuthBackend for MemoryBackend {
    fn read(&self, seen: Option<&Revision>) -> BackendRead {
        let state = self.state();
        let revision = Revision(state.1.to_string());
        if Some(&revision) == seen { BackendRead::Same } else { BackendRead::New(state.0.clone(), revision) }
    }

    fn open<'a>(&'a self, _: &'a DirLockOptions, _: &'a Host) -> BoxFuture<'a, Result<Box<dyn OpenAuth>, ChangeError>> {
        Box::pin(async move {
            let turn = Arc::clone(&self.turn).lock_owned().await;
            Ok(Box::new(OpenMemory { backend: self.clone(), _turn: turn }) as Box<dyn OpenAuth>)
        })
    }
}

struct OpenMemory {
    backend: MemoryBackend,
    _turn: OwnedMutexGuard<()>,
}

impl OpenAuth for OpenMemory {
    fn read(&self) -> Result<(StoredCredentials, Revision), ChangeError> {
        let state = self.backend.state();
        Ok((state.0.clone(), Revision(state.1.to_string())))
    }

    fn write(&self, entries: &StoredCredentials) -> Result<Revision, ChangeError> {
        let mut state = self.backend.state();
        *state = (entries.clone(), state.1 + 1);
        Ok(Revision(state.1.to_string()))
    }
}
