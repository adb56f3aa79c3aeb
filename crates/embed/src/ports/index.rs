//! Stores session keys in `sessions.json` of each agent, which OpenClaw also reads and writes.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_coding_agent::document;
use pinch_ports::{EntryChange, Fence, PortError, SessionEntry, SessionIndex};
use pinch_stdx::fs::{Access, FileStamp, write_atomic};
use pinch_stdx::host::Host;
use serde_json::{Map, Value};
use tokio::sync::OwnedMutexGuard;
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
    /// Writers of this process, per index: they queue in order, and only poll for other processes.
    writers: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
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

    async fn lock(&self, path: &Path) -> Result<(SessionLock, OwnedMutexGuard<()>), PortError> {
        let writer = {
            let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(writers.entry(path.to_owned()).or_default())
        };
        let writer = writer.lock_owned().await;
        let lock = SessionLock::path_for(path).map_err(|error| unwritable(path, error))?;
        let mut waited = Duration::ZERO;
        loop {
            let owner = match SessionLock::try_acquire(&lock, &self.host).map_err(|error| unwritable(path, error))? {
                LockAttempt::Held(lock) => return Ok((lock, writer)),
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

/// Reads, changes and writes an index. The caller holds its lock.
fn change_file(
    path: &Path,
    key: &str,
    fence: Option<&dyn Fence>,
    change: &EntryChange,
) -> Result<(Map<String, Value>, Option<SessionEntry>), PortError> {
    let mut entries = read(path)?;
    let before = entries.get(key).map(|value| entry(path, key, value)).transpose()?;
    let after = change(before.clone());
    PortError::check(fence)?;
    if before != after {
        match &after {
            Some(after) => {
                let value = serde_json::to_value(after).map_err(|error| unwritable(path, io::Error::from(error)))?;
                entries.insert(key.to_owned(), value);
            }
            None => drop(entries.shift_remove(key)),
        }
        let text = serde_json::to_vec_pretty(&entries).map_err(|error| unwritable(path, io::Error::from(error)))?;
        write_atomic(path, &text, Access::Private).map_err(|error| unwritable(path, error))?;
    }
    Ok((entries, after))
}

impl SessionIndex for FileIndex {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SessionEntry>, PortError>> {
        Box::pin(async move {
            let path = self.path_of_key(key);
            let entries = self.entries(path.clone()).await?;
            entries.get(key).map(|value| entry(&path, key, value)).transpose()
        })
    }

    fn list<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<BTreeMap<String, SessionEntry>, PortError>> {
        Box::pin(async move {
            let path = self.path_of_agent(agent);
            let entries = self.entries(path.clone()).await?;
            entries.iter().map(|(key, value)| Ok((key.clone(), entry(&path, key, value)?))).collect()
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
            let lock = self.lock(&path).await?;
            let (writing, key) = (path.clone(), key.to_owned());
            // The lock moves into the task, so that dropping the future does not release it before the file is written.
            let written = spawn_blocking(move || {
                let changed = change_file(&writing, &key, fence.as_deref(), &change);
                let stamp = FileStamp::of(&writing);
                drop(lock);
                changed.map(|(entries, after)| (stamp, entries, after))
            });
            let (stamp, entries, after) = written.await.map_err(|error| unwritable(&path, error))??;
            self.keep(path, stamp, entries);
            Ok(after)
        })
    }
}
