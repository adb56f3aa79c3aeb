//! Stores the health of profiles in `auth-profiles.json`, as OpenClaw does.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, ready};
use pinch_coding_agent::document::{self, Folder};
use pinch_ports::{HealthChange, HealthRecords, HealthStore, PortError};
use pinch_stdx::fs::dir_lock::DirLockOptions;
use pinch_stdx::fs::{Access, FileStamp};
use pinch_stdx::host::Host;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// Health in the members `usageStats` and `lastGood` of a document. The rest of the document is preserved.
#[derive(Debug)]
pub struct FileHealth {
    path: Arc<Path>,
    host: Host,
    /// The last records read, and the state of the file before that.
    known: Mutex<Option<(FileStamp, HealthRecords)>>,
}

impl FileHealth {
    /// Uses the file at `path`, which need not exist.
    pub fn new(path: PathBuf, host: Host) -> Self {
        Self { path: path.into(), host, known: Mutex::default() }
    }

    /// Returns the records of a document. Entries of the wrong type count as missing, and are kept.
    pub fn records(document: &Map<String, Value>) -> HealthRecords {
        let member = |name: &str| document.get(name).and_then(Value::as_object).into_iter().flatten();
        HealthRecords {
            profiles: member("usageStats")
                .filter_map(|(id, entry)| Some((id.clone(), entry.as_object()?.clone())))
                .collect(),
            last_good: member("lastGood")
                .filter_map(|(name, id)| Some((name.clone(), id.as_str()?.to_owned())))
                .collect(),
        }
    }
}

/// Applies a change to a document and returns the new records.
fn apply(document: &mut Map<String, Value>, change: &HealthChange) -> HealthRecords {
    let before = FileHealth::records(document);
    let mut after = before.clone();
    change(&mut after);
    if before == after {
        return after;
    }
    if document.is_empty() {
        document.insert("version".to_owned(), 1.into());
        document.insert("profiles".to_owned(), Value::Object(Map::new()));
    }
    let profiles = after.profiles.iter().map(|(id, entry)| (id, Value::Object(entry.clone())));
    write(document, "usageStats", before.profiles.keys(), profiles);
    let last_good = after.last_good.iter().map(|(name, id)| (name, Value::from(id.as_str())));
    write(document, "lastGood", before.last_good.keys(), last_good);
    after
}

/// Writes the entries of one member: missing ones are removed, and entries of the wrong type stay.
fn write<'a>(
    document: &mut Map<String, Value>,
    name: &str,
    before: impl Iterator<Item = &'a String>,
    after: impl Iterator<Item = (&'a String, Value)>,
) {
    let mut member = document.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let after: Vec<(&String, Value)> = after.collect();
    before.filter(|id| after.iter().all(|(left, _)| left != id)).for_each(|id| drop(member.shift_remove(id)));
    for (id, entry) in after {
        member.insert(id.clone(), entry);
    }
    if !member.is_empty() || document.contains_key(name) {
        document.insert(name.to_owned(), Value::Object(member));
    }
}

impl HealthStore for FileHealth {
    fn load(&self) -> BoxFuture<'_, Result<HealthRecords, PortError>> {
        let path = Arc::clone(&self.path);
        Box::pin(async move {
            let stamp = FileStamp::of(&path);
            if let Some((of, records)) = &*self.known.lock().unwrap_or_else(PoisonError::into_inner)
                && Some(*of) == stamp
            {
                return Ok(records.clone());
            }
            let document = spawn_blocking(move || document::read_object(&path)).await;
            let document = document.map_err(|error| PortError::unavailable("read the health of profiles", error))?;
            match document {
                Ok(document) => {
                    let records = Self::records(&document);
                    *self.known.lock().unwrap_or_else(PoisonError::into_inner) =
                        stamp.map(|stamp| (stamp, records.clone()));
                    Ok(records)
                }
                Err(problem) => {
                    Err(PortError::unavailable("read the health of profiles", io::Error::other(problem.to_string())))
                }
            }
        })
    }

    fn update(&self, change: HealthChange) -> BoxFuture<'_, Result<HealthRecords, PortError>> {
        let (path, host, runtime) = (Arc::clone(&self.path), self.host.clone(), Handle::current());
        Box::pin(async move {
            // The file is synced to disk, which must not block an async thread.
            let written = spawn_blocking(move || {
                let mut records = HealthRecords::default();
                let change_document = |root: &mut Map<String, Value>| records = apply(root, &change);
                let options = (Folder::Private, Access::Private);
                let changed = document::change(&path, options, &DirLockOptions::PATIENT, &host, change_document);
                runtime.block_on(changed).map(|_| records)
            });
            let written =
                written.await.map_err(|error| PortError::unavailable("write the health of profiles", error))?;
            written.map_err(|error| PortError::unavailable("write the health of profiles", error))
        })
    }
}

/// Health that lasts as long as the process.
#[derive(Debug, Default)]
pub struct MemoryHealth(Mutex<HealthRecords>);

impl HealthStore for MemoryHealth {
    fn load(&self) -> BoxFuture<'_, Result<HealthRecords, PortError>> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(ready(Ok(records)))
    }

    fn update(&self, change: HealthChange) -> BoxFuture<'_, Result<HealthRecords, PortError>> {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut records);
        Box::pin(ready(Ok(records.clone())))
    }
}
