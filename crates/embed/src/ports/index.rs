//! Stores session keys in `sessions.json` of each agent, which OpenClaw also reads and writes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_coding_agent::document;
use pinch_ports::{EntryChange, Fence, PortError, SessionEntry, SessionIndex, SessionKey};
use pinch_stdx::fs::{Access, FileStamp, write_atomic};
use pinch_stdx::host::Host;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::session_lock::{LockAttempt, SessionLock};
use crate::key;

/// How long to wait for another process that is changing the same index, and how often to check.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(25);

/// The indexes of all agents of a state directory: `agents/<agent>/sessions/sessions.json`.
#[derive(Debug)]
pub struct FileIndex {
    state_dir: PathBuf,
    host: Host,
    loaded: Mutex<HashMap<PathBuf, LoadedIndex>>,
    writers: Mutex<HashMap<PathBuf, Arc<IndexWriter>>>,
}

/// Writes this process's changes to one index.
#[derive(Debug, Default)]
struct IndexWriter {
    /// Held by the update that writes. Other updates of this process wait for it in order, so only one of them polls for other processes.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Waiting changes. The next update that writes applies all of them, with one read and one write of the file.
    pending: Mutex<Vec<PendingChange>>,
}

type Updated = Result<Option<SessionEntry>, PortError>;

/// A change waiting to be written.
struct PendingChange {
    key: String,
    fence: Option<Arc<dyn Fence>>,
    change: EntryChange,
    reply: oneshot::Sender<Updated>,
}

impl fmt::Debug for PendingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingChange").field("key", &self.key).field("fence", &self.fence).finish_non_exhaustive()
    }
}

/// An index as it was last read.
#[derive(Debug)]
struct LoadedIndex {
    stamp: Option<FileStamp>,
    entries: Arc<Map<String, Value>>,
}

impl FileIndex {
    /// Creates the indexes of a state directory.
    pub fn new(state_dir: impl Into<PathBuf>, host: Host) -> Self {
        Self { state_dir: state_dir.into(), host, loaded: Mutex::default(), writers: Mutex::default() }
    }

    fn path_of_agent(&self, agent: &str) -> PathBuf {
        self.state_dir.join("agents").join(agent).join("sessions/sessions.json")
    }

    /// Returns the path of the index for the agent of a key.
    fn path_of_key(&self, key: &str) -> PathBuf {
        self.path_of_agent(key::agent(key).as_str())
    }

    /// Returns the entries of an index; rereads the file only if it has changed.
    async fn entries(&self, path: PathBuf) -> Result<Arc<Map<String, Value>>, PortError> {
        let stamp = FileStamp::of(&path);
        if let Some(entries) = self.known(&path, stamp) {
            return Ok(entries);
        }
        let reading = path.clone();
        let entries = spawn_blocking(move || read(&reading)).await.map_err(|error| unreadable(&path, error))??;
        Ok(self.keep(path, stamp, entries))
    }

    fn known(&self, path: &Path, stamp: Option<FileStamp>) -> Option<Arc<Map<String, Value>>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let found = loaded.get(path).filter(|loaded| loaded.stamp == stamp)?;
        Some(Arc::clone(&found.entries))
    }

    fn keep(&self, path: PathBuf, stamp: Option<FileStamp>, entries: Map<String, Value>) -> Arc<Map<String, Value>> {
        let entries = Arc::new(entries);
        let loaded = LoadedIndex { stamp, entries: Arc::clone(&entries) };
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(path, loaded);
        entries
    }

    fn writer(&self, path: &Path) -> Arc<IndexWriter> {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(writers.entry(path.to_owned()).or_default())
    }

    /// Locks an index against other processes.
    async fn lock(&self, path: &Path) -> Result<SessionLock, PortError> {
        let lock = SessionLock::path_for(path).map_err(|error| unwritable(path, error))?;
        let mut waited = Duration::ZERO;
        loop {
            let owner = match SessionLock::try_acquire(&lock, &self.host).map_err(|error| unwritable(path, error))? {
                LockAttempt::Held(lock) => return Ok(lock),
                LockAttempt::Busy { owner } => owner,
            };
            if waited >= PATIENCE {
                let owner = owner.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
                return Err(unwritable(path, io::Error::other(format!("{owner} has locked it"))));
            }
            tokio::time::sleep(PAUSE).await;
            waited += PAUSE;
        }
    }
}

fn read(path: &Path) -> Result<Map<String, Value>, PortError> {
    document::read_object(path).map_err(|problem| unreadable(path, io::Error::other(problem.to_string())))
}

fn unreadable(path: &Path, error: impl Into<io::Error>) -> PortError {
    PortError::unavailable(format!("read the session index {}", path.display()), error.into())
}

fn unwritable(path: &Path, error: impl Into<io::Error>) -> PortError {
    PortError::unavailable(format!("write the session index {}", path.display()), error.into())
}

fn entry(path: &Path, key: &str, value: &Value) -> Result<SessionEntry, PortError> {
    serde_json::from_value(value.clone()).map_err(|error| {
        PortError::unavailable(format!("read \"{key}\" of the session index {}", path.display()), error)
    })
}

impl IndexWriter {
    /// Adds a change to the waiting ones. Its result arrives through the returned channel.
    fn add(&self, key: &str, fence: Option<Arc<dyn Fence>>, change: EntryChange) -> oneshot::Receiver<Updated> {
        let (reply, updated) = oneshot::channel();
        let pending = PendingChange { key: key.to_owned(), fence, change, reply };
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push(pending);
        updated
    }

    /// Takes the waiting changes, except those whose callers are gone.
    fn take(&self) -> Vec<PendingChange> {
        let mut pending = mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        pending.retain(|pending| !pending.reply.is_closed());
        pending
    }

    /// Applies all waiting changes to the index and returns its new entries, or `None` if it could not be read or written. The caller must
    /// hold the lock of the file.
    fn write(&self, path: &Path) -> Option<Map<String, Value>> {
        let batch = self.take();
        let mut entries = match document::read_object(path) {
            Ok(entries) => entries,
            Err(problem) => {
                for pending in batch {
                    pending.answer(Err(unreadable(path, io::Error::other(problem.to_string()))));
                }
                return None;
            }
        };
        let mut is_changed = false;
        let mut applied = Vec::with_capacity(batch.len());
        for pending in batch {
            match pending.apply(path, &mut entries) {
                Ok((after, changes)) => {
                    is_changed |= changes;
                    applied.push((pending, after));
                }
                Err(error) => pending.answer(Err(error)),
            }
        }
        let written = if is_changed { write(path, &entries) } else { Ok(()) };
        let failure = written.err().map(|error| (error.kind(), error.to_string()));
        for (pending, after) in applied {
            pending.answer(match &failure {
                None => Ok(after),
                Some((kind, reason)) => Err(unwritable(path, io::Error::new(*kind, reason.clone()))),
            });
        }
        failure.is_none().then_some(entries)
    }
}

impl PendingChange {
    /// Changes the entry of the key, and returns its new state and whether that differs from the old one.
    fn apply(&self, path: &Path, entries: &mut Map<String, Value>) -> Result<(Option<SessionEntry>, bool), PortError> {
        let before = entries.get(&self.key).map(|value| entry(path, &self.key, value)).transpose()?;
        // A panic concerns only its caller; the other changes of the batch must not be lost.
        let changed = panic::catch_unwind(AssertUnwindSafe(|| (self.change)(before.clone())));
        let after = changed.map_err(|_| unwritable(path, io::Error::other("the change to the entry panicked")))?;
        PortError::check(self.fence.as_deref())?;
        if before == after {
            return Ok((after, false));
        }
        match &after {
            Some(after) => {
                let value = serde_json::to_value(after).map_err(|error| unwritable(path, io::Error::from(error)))?;
                entries.insert(self.key.clone(), value);
            }
            None => drop(entries.shift_remove(&self.key)),
        }
        Ok((after, true))
    }

    fn answer(self, updated: Updated) {
        // The caller may be gone.
        drop(self.reply.send(updated));
    }
}

fn write(path: &Path, entries: &Map<String, Value>) -> io::Result<()> {
    write_atomic(path, &serde_json::to_vec_pretty(entries)?, Access::Private)
}

impl SessionIndex for FileIndex {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SessionEntry>, PortError>> {
        Box::pin(async move {
            let path = self.path_of_key(key);
            let entries = self.entries(path.clone()).await?;
            entries.get(key).map(|value| entry(&path, key, value)).transpose()
        })
    }

    fn list<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<BTreeMap<SessionKey, SessionEntry>, PortError>> {
        Box::pin(async move {
            let path = self.path_of_agent(agent);
            let entries = self.entries(path.clone()).await?;
            entries.iter().map(|(key, value)| Ok((SessionKey::from(key), entry(&path, key, value)?))).collect()
        })
    }

    fn update<'a>(
        &'a self,
        key: &'a str,
        fence: Option<Arc<dyn Fence>>,
        change: EntryChange,
    ) -> BoxFuture<'a, Result<Option<SessionEntry>, PortError>> {
        Box::pin(async move {
            let path = self.path_of_key(key);
            let writer = self.writer(&path);
            let mut updated = writer.add(key, fence, change);
            let turn = Arc::clone(&writer.turn).lock_owned().await;
            // An earlier update may have written this change along with its own.
            if let Ok(updated) = updated.try_recv() {
                return updated;
            }
            let lock = self.lock(&path).await?;
            let writing = path.clone();
            // Lock and turn move into the task, so that dropping the future does not release them before the file is written.
            let written = spawn_blocking(move || {
                let entries = writer.write(&writing);
                let stamp = FileStamp::of(&writing);
                drop((lock, turn));
                (stamp, entries)
            });
            let (stamp, entries) = written.await.map_err(|error| unwritable(&path, error))?;
            if let Some(entries) = entries {
                self.keep(path.clone(), stamp, entries);
            }
            updated.try_recv().map_err(|error| unwritable(&path, io::Error::other(error)))?
        })
    }
}
