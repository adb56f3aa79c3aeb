//! Where credentials are kept.

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

/// Credentials by provider, as they are stored.
pub type StoredCredentials = Map<String, Value>;

/// Identifies a state of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision(pub String);

/// What a store holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BackendRead {
    /// What it held when it had the revision asked for.
    Same,
    /// Something else.
    New(StoredCredentials, Revision),
    /// Nothing that can be read.
    Broken(Problem, Revision),
}

/// A store of credentials that several programs may use.
pub trait AuthBackend: fmt::Debug + Send + Sync {
    /// What is stored now. Takes no lock, and is quick when nothing has changed since `seen`.
    fn read(&self, seen: Option<&Revision>) -> BackendRead;

    /// The file of the store, if it is one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Keeps all others out, waiting for them as the terms say. Dropping the future gives up.
    ///
    /// # Errors
    /// [`ChangeError`].
    fn open<'a>(
        &'a self,
        terms: &'a DirLockOptions,
        host: &'a Host,
    ) -> BoxFuture<'a, Result<Box<dyn OpenAuth>, ChangeError>>;
}

/// A store that is kept to oneself until this is dropped.
pub trait OpenAuth: Send + Sync {
    /// What is stored.
    ///
    /// # Errors
    /// [`ChangeError::Damaged`]: it must not be written.
    fn read(&self) -> Result<(StoredCredentials, Revision), ChangeError>;

    /// Stores these entries and no others.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing has changed then.
    fn write(&self, entries: &StoredCredentials) -> Result<Revision, ChangeError>;

    /// Whether it is still ours.
    fn is_held(&self) -> bool {
        true
    }

    /// Says that its holder is alive: to be called every few seconds. Whether it is still ours.
    fn renew(&mut self, host: &Host) -> bool {
        let _ = host;
        true
    }
}

/// auth.json: the same file and the same lock as pi's.
#[derive(Clone, Debug)]
pub(super) struct FileBackend {
    pub(super) path: PathBuf,
}

impl AuthBackend for FileBackend {
    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn read(&self, seen: Option<&Revision>) -> BackendRead {
        // The revision first: what changes while the file is read differs from it the next time.
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

/// Time of change, length and, where there is one, the number of the file: every replacement has another one.
fn revision_of(path: &Path) -> Revision {
    let Ok(meta) = std::fs::metadata(path) else { return Revision(String::new()) };
    let changed = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&meta);
    #[cfg(not(unix))]
    let number = 0;
    Revision(format!("{}-{}-{number}", changed.as_nanos(), meta.len()))
}

/// Credentials that end with the program.
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
