//! The sub-agents of an engine, and their file `subagents/runs.json`.
//!
//! The file belongs to one engine at a time, which holds a kernel lock for that: an engine that finds unfinished sub-agents knows that
//! nobody runs them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinch_coding_agent::document;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::fs::lock::LockError;
use pinch_stdx::fs::{Access, FileLock, create_private_dir, write_atomic};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::record::SubagentRecord;

/// The directory, the file and its lock in the state directory.
const DIR: &str = "subagents";
const FILE: &str = "runs.json";
const LOCK: &str = "runs.lock";
/// Version of the file.
const VERSION: u64 = 2;
/// Maximum number of sub-agents, so that the file stays short enough to be read. If there are more, the oldest that have reported are
/// forgotten.
const MAX_RECORDS: usize = 500;
/// Minimum time between two messages to the same sub-agent.
const STEER_PAUSE: Duration = Duration::from_secs(2);

/// Why the sub-agents of a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubagentStoreError {
    /// Another engine runs them.
    #[error("another program runs the sub-agents of this state directory ({} is locked)", .0.display())]
    Busy(PathBuf),
    /// The file cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    Unusable { path: PathBuf, reason: String },
    /// Too many sub-agents are unfinished.
    #[error("{MAX_RECORDS} sub-agents have not ended or not reported yet. Stop some, or wait")]
    Full,
}

/// What became of a message to a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SteerOutcome {
    /// Its run is stopped, and starts again with the message.
    Accepted,
    /// The last message is too recent.
    TooSoon,
    /// It has ended.
    Ended,
}

/// The sub-agents of an engine. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct SubagentRegistry(Arc<SharedRegistry>);

#[derive(Debug)]
struct SharedRegistry {
    state: Mutex<SubagentState>,
    /// Held by whoever opens or writes the file.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct SubagentState {
    file: Option<RegistryFile>,
    records: BTreeMap<String, SubagentRecord>,
    /// Entries of the file that could not be read, which are kept.
    unread: Map<String, Value>,
    live: HashMap<String, LiveRun>,
}

#[derive(Debug)]
struct RegistryFile {
    path: PathBuf,
    _lock: FileLock,
}

/// A sub-agent that is being run.
#[derive(Debug, Default)]
struct LiveRun {
    /// Stops it for good.
    stop: Cancel,
    /// Stops its current run.
    current: Cancel,
    /// The message that its next run starts with.
    restart: Option<String>,
    steered_at: Option<Instant>,
}

impl Default for SubagentRegistry {
    fn default() -> Self {
        Self(Arc::new(SharedRegistry { state: Mutex::default(), turn: Arc::default(), changes: watch::Sender::new(0) }))
    }
}

impl SubagentRegistry {
    fn lock(&self) -> MutexGuard<'_, SubagentState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.0.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Opens the file if it is not open yet. Returns whether it was opened now.
    pub(crate) async fn open(&self, state_dir: &Path) -> Result<bool, SubagentStoreError> {
        let _turn = Arc::clone(&self.0.turn).lock_owned().await;
        if self.lock().file.is_some() {
            return Ok(false);
        }
        let dir = state_dir.join(DIR);
        let path = dir.join(FILE);
        let opened = spawn_blocking(move || open(&dir)).await;
        let (file, records, unread) =
            opened.map_err(|error| SubagentStoreError::Unusable { path, reason: error.to_string() })??;
        let mut state = self.lock();
        (state.file, state.records, state.unread) = (Some(file), records, unread);
        Ok(true)
    }

    /// Writes the file. Changes made meanwhile are part of it, or of a later write.
    pub(crate) async fn save(&self) -> Result<(), SubagentStoreError> {
        let turn = Arc::clone(&self.0.turn).lock_owned().await;
        let (path, records, mut runs) = {
            let state = self.lock();
            let Some(file) = &state.file else { return Ok(()) };
            (file.path.clone(), state.records.clone(), state.unread.clone())
        };
        let failed = |reason: String| SubagentStoreError::Unusable { path: path.clone(), reason };
        let target = path.clone();
        // The turn moves into the task, so that dropping the future does not let another write begin.
        let written = spawn_blocking(move || -> io::Result<()> {
            let _turn = turn;
            for (id, record) in records {
                runs.insert(id, serde_json::to_value(record)?);
            }
            let document = json!({"version": VERSION, "runs": runs});
            write_atomic(&target, &serde_json::to_vec_pretty(&document)?, Access::Private)
        });
        written.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
    }

    /// Writes the file, and logs a failure. For changes that have already taken effect.
    pub(crate) async fn save_or_warn(&self) {
        if let Err(error) = self.save().await {
            tracing::warn!(%error, "could not store the state of sub-agents");
        }
    }

    /// Adds a sub-agent that is about to run.
    pub(crate) fn add(&self, record: SubagentRecord) -> Result<(), SubagentStoreError> {
        let mut state = self.lock();
        if state.records.len() >= MAX_RECORDS {
            let done = |record: &&SubagentRecord| record.cleanup_completed_at.is_some();
            let oldest = state.records.values().filter(done).min_by_key(|record| record.created_at);
            let oldest = oldest.map(|record| record.run_id.to_string()).ok_or(SubagentStoreError::Full)?;
            state.records.remove(&oldest);
        }
        let id = record.run_id.to_string();
        state.records.insert(id.clone(), record);
        state.live.insert(id, LiveRun::default());
        drop(state);
        self.changed();
        Ok(())
    }

    /// Removes a sub-agent.
    pub(crate) fn remove(&self, id: &str) {
        let mut state = self.lock();
        state.records.remove(id);
        state.live.remove(id);
        drop(state);
        self.changed();
    }

    /// Returns the sub-agents that fit, oldest first.
    pub(crate) fn find(&self, fits: impl Fn(&SubagentRecord) -> bool) -> Vec<SubagentRecord> {
        let mut found: Vec<_> = self.lock().records.values().filter(|record| fits(record)).cloned().collect();
        found.sort_by_key(|record| record.created_at);
        found
    }

    /// Returns a sub-agent by its id.
    pub(crate) fn get(&self, id: &str) -> Option<SubagentRecord> {
        self.lock().records.get(id).cloned()
    }

    /// Returns the newest sub-agent of a session.
    pub(crate) fn of_session(&self, key: &str) -> Option<SubagentRecord> {
        self.find(|record| record.child_session_key == key).pop()
    }

    /// Returns how many sub-agents of a session have not ended.
    pub(crate) fn n_active(&self, requester: &str) -> usize {
        let is_active =
            |record: &&SubagentRecord| record.requester_session_key == requester && record.ended_at.is_none();
        self.lock().records.values().filter(is_active).count()
    }

    /// Changes a sub-agent, and returns its new state.
    pub(crate) fn change(&self, id: &str, change: impl FnOnce(&mut SubagentRecord)) -> Option<SubagentRecord> {
        let mut state = self.lock();
        let record = state.records.get_mut(id)?;
        change(record);
        let after = record.clone();
        drop(state);
        self.changed();
        Some(after)
    }

    /// Registers that an earlier sub-agent is run again. Returns false if it already is.
    pub(crate) fn revive(&self, id: &str) -> bool {
        let mut state = self.lock();
        let is_idle = !state.live.contains_key(id);
        if is_idle {
            state.live.insert(id.to_owned(), LiveRun::default());
        }
        is_idle
    }

    /// Registers that nobody runs a sub-agent any more.
    pub(crate) fn rest(&self, id: &str) {
        self.lock().live.remove(id);
    }

    /// Returns what cancels the next run of a sub-agent.
    pub(crate) fn begin(&self, id: &str) -> Cancel {
        let mut state = self.lock();
        let Some(live) = state.live.get_mut(id) else { return Cancel::new() };
        live.current = live.stop.child();
        live.current.clone()
    }

    /// Returns what stops a sub-agent for good.
    pub(crate) fn stopped(&self, id: &str) -> Cancel {
        self.lock().live.get(id).map_or_else(Cancel::new, |live| live.stop.clone())
    }

    /// Records the end of a run. If a message waits for the sub-agent, it is returned, and nothing is recorded.
    pub(crate) fn end(&self, id: &str, record_end: impl FnOnce(&mut SubagentRecord)) -> Option<String> {
        let mut state = self.lock();
        let live = state.live.get_mut(id);
        if let Some(message) = live.and_then(|live| live.restart.take().filter(|_| live.stop.reason().is_none())) {
            return Some(message);
        }
        if let Some(record) = state.records.get_mut(id) {
            record_end(record);
        }
        drop(state);
        self.changed();
        None
    }

    /// Stops a sub-agent for good. Returns whether it was being run.
    pub(crate) fn stop(&self, id: &str, why: CancelReason) -> bool {
        let stop = self.lock().live.get(id).map(|live| live.stop.clone());
        stop.inspect(|stop| stop.cancel(why)).is_some()
    }

    /// Stops all sub-agents of a session for good, and theirs. Returns how many there were.
    pub(crate) fn stop_of(&self, requester: &str, why: CancelReason) -> usize {
        let mut stops: BTreeMap<String, Cancel> = BTreeMap::new();
        {
            let state = self.lock();
            let mut sessions = vec![requester.to_owned()];
            while let Some(session) = sessions.pop() {
                let of_session = |record: &&SubagentRecord| record.requester_session_key == session.as_str();
                for record in state.records.values().filter(of_session) {
                    let Some(live) = state.live.get(record.run_id.as_str()) else { continue };
                    if stops.insert(record.run_id.to_string(), live.stop.clone()).is_none() {
                        sessions.push(record.child_session_key.to_string());
                    }
                }
            }
        }
        stops.values().for_each(|stop| stop.cancel(why));
        stops.len()
    }

    /// Stops the run of a sub-agent, which then starts again with a message.
    pub(crate) fn steer(&self, id: &str, message: String) -> SteerOutcome {
        let mut state = self.lock();
        let has_ended = state.records.get(id).is_none_or(|record| record.ended_at.is_some());
        let Some(live) = state.live.get_mut(id).filter(|live| !has_ended && live.stop.reason().is_none()) else {
            return SteerOutcome::Ended;
        };
        if live.steered_at.is_some_and(|at| at.elapsed() < STEER_PAUSE) {
            return SteerOutcome::TooSoon;
        }
        live.steered_at = Some(Instant::now());
        live.restart = Some(match live.restart.take() {
            Some(before) => format!("{before}\n\n{message}"),
            None => message,
        });
        let current = live.current.clone();
        drop(state);
        current.cancel(CancelReason::Superseded);
        SteerOutcome::Accepted
    }

    /// Waits until no matching sub-agent is left.
    pub(crate) async fn wait_until_none(&self, fits: impl Fn(&SubagentRecord) -> bool) {
        let mut changes = self.0.changes.subscribe();
        while self.lock().records.values().any(&fits) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

type ReadFile = (RegistryFile, BTreeMap<String, SubagentRecord>, Map<String, Value>);

/// Locks and reads the file.
fn open(dir: &Path) -> Result<ReadFile, SubagentStoreError> {
    let path = dir.join(FILE);
    let unusable = |reason: String| SubagentStoreError::Unusable { path: path.clone(), reason };
    create_private_dir(dir).map_err(|error| unusable(error.to_string()))?;
    let lock = match FileLock::try_acquire(&dir.join(LOCK)) {
        Ok(Some(lock)) => lock,
        Ok(None) | Err(LockError::Busy { .. }) => return Err(SubagentStoreError::Busy(dir.join(LOCK))),
        Err(error) => return Err(unusable(pinch_stdx::text::with_causes(&error))),
    };
    let document = document::read_object(&path).map_err(|problem| unusable(problem.to_string()))?;
    let version = document.get("version").and_then(Value::as_u64).unwrap_or(VERSION);
    if version > VERSION {
        return Err(unusable(format!("version {version} is newer than {VERSION}")));
    }
    let (mut records, mut unread) = (BTreeMap::new(), Map::new());
    for (id, value) in document.get("runs").and_then(Value::as_object).into_iter().flatten() {
        match serde_json::from_value::<SubagentRecord>(value.clone()) {
            Ok(record) if record.run_id == id.as_str() && !record.child_session_key.is_empty() => {
                records.insert(id.clone(), record);
            }
            Ok(_) | Err(_) => {
                tracing::warn!(id, path = %path.display(), "an entry cannot be read and is kept as it is");
                unread.insert(id.clone(), value.clone());
            }
        }
    }
    Ok((RegistryFile { path, _lock: lock }, records, unread))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, created_at: i64) -> SubagentRecord {
        let child_session_key = format!("agent:main:subagent:{id}").into();
        let requester_session_key = "agent:main:main".into();
        SubagentRecord {
            run_id: id.into(),
            child_session_key,
            requester_session_key,
            created_at,
            ..SubagentRecord::default()
        }
    }

    #[tokio::test]
    async fn records_survive_in_a_private_file_that_one_engine_owns() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("subagents/runs.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, r#"{"version": 2, "runs": {"odd": {"createdAt": "now"}}}"#).unwrap();
        let first = SubagentRegistry::default();
        assert!(first.open(dir.path()).await.unwrap() && !first.open(dir.path()).await.unwrap());
        let mut one = record("one", 1);
        one.extra.insert("mode".to_owned(), "run".into());
        first.add(one.clone()).unwrap();
        first.save().await.unwrap();
        let busy = SubagentRegistry::default().open(dir.path()).await;
        assert!(matches!(busy, Err(SubagentStoreError::Busy(_))), "{busy:?}");
        drop(first);
        let stored: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!((stored["version"].as_u64(), &stored["runs"]["odd"]), (Some(2), &json!({"createdAt": "now"})));
        assert_eq!(stored["runs"]["one"]["cleanup"], "keep");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let second = SubagentRegistry::default();
        second.open(dir.path()).await.unwrap();
        assert_eq!(second.get("one"), Some(one));
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("subagents/runs.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for text in ["{\"version\": 2, \"runs\": {", "{\"version\": 3}"] {
            std::fs::write(&path, text).unwrap();
            let registry = SubagentRegistry::default();
            let failed = registry.open(dir.path()).await;
            assert!(matches!(failed, Err(SubagentStoreError::Unusable { .. })), "{failed:?}");
            registry.save().await.unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn the_oldest_that_reported_make_room() {
        let registry = SubagentRegistry::default();
        for n in 0..MAX_RECORDS {
            registry.add(record(&n.to_string(), n as i64)).unwrap();
        }
        assert!(matches!(registry.add(record("new", 0)), Err(SubagentStoreError::Full)));
        registry.change("7", |record| record.cleanup_completed_at = Some(1));
        registry.add(record("new", 0)).unwrap();
        assert!(registry.get("7").is_none() && registry.get("6").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_restarts_the_run_unless_it_comes_too_soon_or_too_late() {
        let registry = SubagentRegistry::default();
        registry.add(record("one", 1)).unwrap();
        let run = registry.begin("one");
        assert_eq!(registry.steer("one", "Hurry.".into()), SteerOutcome::Accepted);
        assert_eq!(run.reason(), Some(CancelReason::Superseded));
        assert_eq!(registry.steer("one", "More.".into()), SteerOutcome::TooSoon);
        tokio::time::advance(STEER_PAUSE).await;
        assert_eq!(registry.steer("one", "More.".into()), SteerOutcome::Accepted);
        let end = |registry: &SubagentRegistry| registry.end("one", |record| record.ended_at = Some(2));
        assert_eq!(end(&registry).as_deref(), Some("Hurry.\n\nMore."));
        assert_eq!((end(&registry), registry.get("one").unwrap().ended_at), (None, Some(2)));
        tokio::time::advance(STEER_PAUSE).await;
        assert_eq!(registry.steer("one", "Late.".into()), SteerOutcome::Ended);
    }
}
