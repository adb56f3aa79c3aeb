//! Atomic application of a plan.
//!
//! The new contents are first written to a journal, a file in the same root or in a directory for journals. From then on the patch counts as applied: an error rolls it
//! back, and after a crash the journal is completed. A journal names the process that works on it, so that no other one completes it early.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pinch_machine::{Machine, MachineError};
use pinch_stdx::process::{is_alive, start_ticks};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::plan::FileChange;
use crate::paths::PathRoot;

const PREFIX: &str = ".pinch-patch-";
const SUFFIX: &str = ".json";
const VERSION: u64 = 1;
/// Maximum bytes of a journal.
const MAX_JOURNAL: u64 = 256 * 1024 * 1024;

/// The names of the journals that this process works on. Global, because engines of one process may share a directory.
static AT_WORK: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn at_work() -> MutexGuard<'static, BTreeSet<String>> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A journal that this process works on until this is dropped.
struct OwnJournal {
    path: PathBuf,
    name: String,
}

impl OwnJournal {
    fn begin(root: &Path, id: &str) -> Self {
        let name = format!("{PREFIX}{id}{SUFFIX}");
        at_work().insert(name.clone());
        Self { path: root.join(&name), name }
    }
}

impl Drop for OwnJournal {
    fn drop(&mut self) {
        at_work().remove(&self.name);
    }
}

/// Returns whether another process still works on a journal. Journals of this process that it does not work on were abandoned.
fn is_at_work(journal: &Value) -> bool {
    let writer = &journal["writer"];
    let Some(pid) = writer["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()) else { return false };
    let is_same = |started: u64| start_ticks(pid).is_none_or(|ticks| ticks == started);
    pid != std::process::id() && is_alive(pid) && writer["started"].as_u64().is_none_or(is_same)
}

/// Why a patch could not be applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// Everything was rolled back.
    #[error("{0}; nothing was changed")]
    Undone(PatchWriteError),
    /// These files could not be restored.
    #[error("{failure}; these files could not be restored: {}", lost.join(", "))]
    Lost { failure: PatchWriteError, lost: Vec<String> },
}

/// Why a file could not be changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatchWriteError {
    /// The machine reported an error.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Another program has changed it.
    #[error("{} was changed by another program meanwhile: read it again", .0.display())]
    Conflict(PathBuf),
}

/// Where journals are, and which files they may change.
#[derive(Clone, Copy, Debug)]
pub struct JournalPlace<'a> {
    directory: &'a Path,
    root: Option<&'a Path>,
}

impl<'a> JournalPlace<'a> {
    /// Journals in a directory that others can write to as well. They only change files below it, because anyone could have put them there.
    pub fn within(root: &'a Path) -> Self {
        Self { directory: root, root: Some(root) }
    }

    /// Journals in a directory that only this program writes to. They can change any file.
    pub fn private(directory: &'a Path) -> Self {
        Self { directory, root: None }
    }
}

/// Applies all changes or none. `id` names the journal.
pub(super) async fn apply(
    changes: &[FileChange],
    place: JournalPlace<'_>,
    id: &str,
    machine: &dyn Machine,
) -> Result<(), ApplyError> {
    let created = missing_parents(changes, machine).await;
    // Replacing a single file is atomic anyway.
    let journal = (changes.len() > 1).then(|| OwnJournal::begin(place.directory, id));
    let journal = journal.as_ref().map(|journal| journal.path.as_path());
    if let Some(journal) = journal {
        machine.write(journal, content(changes)).await.map_err(|error| ApplyError::Undone(error.into()))?;
    }
    for (at, change) in changes.iter().enumerate() {
        if let Err(failure) = make(change, machine).await {
            return Err(undo(&changes[..=at], &created, journal, failure, machine).await);
        }
    }
    if let Some(journal) = journal {
        forget(journal, machine).await;
    }
    Ok(())
}

/// Makes a change, unless the file is not what the plan started from. Other programs can come in between only for a moment.
async fn make(change: &FileChange, machine: &dyn Machine) -> Result<(), PatchWriteError> {
    if contents(&change.path, machine).await? != change.before {
        return Err(PatchWriteError::Conflict(change.path.clone()));
    }
    Ok(carry_out(&change.path, change.after.as_ref(), machine).await?)
}

/// Reads a file; `None` if it does not exist.
async fn contents(path: &Path, machine: &dyn Machine) -> Result<Option<Bytes>, MachineError> {
    match machine.read(path, MAX_JOURNAL).await {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.code == "ENOENT" => Ok(None),
        Err(error) => Err(error),
    }
}

async fn carry_out(path: &Path, content: Option<&Bytes>, machine: &dyn Machine) -> Result<(), MachineError> {
    match content {
        Some(content) => machine.write(path, content.clone()).await,
        None => match machine.remove(path).await {
            Err(error) if error.code == "ENOENT" => Ok(()),
            other => other,
        },
    }
}

/// Rolls back changes, newest first, and removes directories created for them. What another program has written meanwhile stays.
async fn undo(
    changes: &[FileChange],
    created: &[PathBuf],
    journal: Option<&Path>,
    failure: PatchWriteError,
    machine: &dyn Machine,
) -> ApplyError {
    let mut lost = Vec::new();
    for change in changes.iter().rev() {
        let is_restored = match contents(&change.path, machine).await {
            Ok(now) if now == change.before => true,
            Ok(now) if now == change.after => carry_out(&change.path, change.before.as_ref(), machine).await.is_ok(),
            Ok(_) => matches!(&failure, PatchWriteError::Conflict(path) if *path == change.path),
            Err(_) => false,
        };
        if !is_restored {
            lost.push(change.path.display().to_string());
        }
    }
    for directory in created.iter().rev() {
        // Another program may use it by now.
        if let Err(error) = machine.remove(directory).await {
            tracing::debug!(%error, "a directory stays");
        }
    }
    if let Some(journal) = journal {
        forget(journal, machine).await;
    }
    if lost.is_empty() { ApplyError::Undone(failure) } else { ApplyError::Lost { failure, lost } }
}

/// Returns the directories to create, parents first.
async fn missing_parents(changes: &[FileChange], machine: &dyn Machine) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = Vec::new();
    for change in changes.iter().filter(|change| change.after.is_some() && change.before.is_none()) {
        for parent in change.path.ancestors().skip(1) {
            if missing.iter().any(|known| known == parent) || machine.stat(parent).await.is_ok() {
                break;
            }
            missing.push(parent.to_owned());
        }
    }
    missing.sort();
    missing
}

/// Removes a journal. If this fails, it is completed again later, which changes nothing.
async fn forget(journal: &Path, machine: &dyn Machine) {
    if let Err(error) = machine.remove(journal).await {
        tracing::warn!(%error, "cannot remove the journal of a patch");
    }
}

fn digest(content: Option<&Bytes>) -> Value {
    content.map_or(Value::Null, |content| {
        Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
    })
}

fn content(changes: &[FileChange]) -> Bytes {
    let change = |change: &FileChange| {
        let after = change.after.as_ref().map(|after| String::from_utf8_lossy(after).into_owned());
        json!({"path": change.path.to_string_lossy(), "before": digest(change.before.as_ref()), "content": after})
    };
    let changes: Vec<Value> = changes.iter().map(change).collect();
    let pid = std::process::id();
    let writer = json!({"pid": pid, "started": start_ticks(pid)});
    Bytes::from(json!({"version": VERSION, "writer": writer, "changes": changes}).to_string())
}

/// Completes patches that were interrupted by a crash, and returns their number. Changes only files that are unchanged since the patch was
/// planned. Patches that are still being applied are left alone.
///
/// # Errors
/// Fails if a file cannot be read or written; the journal is kept for the next call.
pub async fn finish_interrupted(place: JournalPlace<'_>, machine: &dyn Machine) -> Result<usize, MachineError> {
    let Ok(names) = machine.list(place.directory).await else { return Ok(0) };
    let mut n_finished = 0;
    for name in names.iter().filter(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX)) {
        // Asked before reading: a journal that is gone by then was completed.
        if at_work().contains(name) {
            continue;
        }
        let path = place.directory.join(name);
        let Ok(journal) = machine.read(&path, MAX_JOURNAL).await else { continue };
        let journal: Value = serde_json::from_slice(&journal).unwrap_or_default();
        if journal["version"] != VERSION || is_at_work(&journal) {
            continue;
        }
        for change in journal["changes"].as_array().into_iter().flatten() {
            finish(change, place.root, machine).await?;
        }
        machine.remove(&path).await?;
        n_finished += 1;
    }
    Ok(n_finished)
}

async fn finish(change: &Value, root: Option<&Path>, machine: &dyn Machine) -> Result<(), MachineError> {
    let Some(path) = change["path"].as_str() else { return Ok(()) };
    let path = match root {
        // A journal planted in the directory must not reach outside of it.
        Some(root) => match PathRoot::new(root).contain(path, machine).await {
            Ok(target) => target.path,
            Err(_) => return Ok(()),
        },
        None => PathBuf::from(path),
    };
    let now = contents(&path, machine).await?;
    if digest(now.as_ref()) != change["before"] {
        return Ok(());
    }
    let content = change["content"].as_str().map(|content| Bytes::copy_from_slice(content.as_bytes()));
    carry_out(&path, content.as_ref(), machine).await
}
