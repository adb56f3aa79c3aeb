//! Records the outcomes of profiles: immediately in memory, and in the store from a background task.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_ports::{HealthChange, HealthRecords, HealthStore};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::health::{Health, health_of};
use crate::key::ProfileId;

/// The health of all profiles as known to this process. Changes that arrive during a write are batched.
pub(super) struct HealthMarks {
    shared: Arc<Shared>,
    /// The writing task; there is at most one.
    writer: Mutex<JoinSet<()>>,
}

struct Shared {
    store: Arc<dyn HealthStore>,
    state: Mutex<MarkState>,
    is_writing: watch::Sender<bool>,
}

#[derive(Default)]
struct MarkState {
    records: Arc<HealthRecords>,
    pending: Vec<HealthChange>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HealthMarks {
    pub(super) fn new(store: Arc<dyn HealthStore>) -> Self {
        let shared = Shared { store, state: Mutex::default(), is_writing: watch::Sender::new(false) };
        Self { shared: Arc::new(shared), writer: Mutex::default() }
    }

    /// Sets the records to use before the first refresh.
    pub(super) fn start_with(&self, records: HealthRecords) {
        let mut state = locked(&self.shared.state);
        if state.records.profiles.is_empty() && state.pending.is_empty() {
            state.records = Arc::new(records);
        }
    }

    /// Returns the entry recorded for a profile.
    pub(super) fn entry(&self, id: &ProfileId) -> Option<Map<String, Value>> {
        locked(&self.shared.state).records.profiles.get(id.as_str()).cloned()
    }

    /// Returns the health of a profile.
    pub(super) fn health(&self, id: &ProfileId) -> Health {
        health_of(&locked(&self.shared.state).records, id)
    }

    /// Applies a change immediately, and passes it to the writer.
    pub(super) fn change(&self, change: impl Fn(&mut HealthRecords) + Send + Sync + 'static) {
        let change: HealthChange = Arc::new(change);
        let mut state = locked(&self.shared.state);
        change(Arc::make_mut(&mut state.records));
        state.pending.push(change);
        let must_start = !self.shared.is_writing.send_replace(true);
        drop(state);
        if must_start {
            let writing = Writing { shared: Arc::clone(&self.shared), is_finished: false };
            let mut writer = locked(&self.writer);
            while writer.try_join_next().is_some() {}
            writer.spawn(writing.run());
        }
    }

    /// Reads records of other processes, unless a write is in progress, which does the same.
    pub(super) async fn refresh(&self) {
        if *self.shared.is_writing.borrow() {
            return;
        }
        match self.shared.store.load().await {
            Ok(records) => {
                let mut state = locked(&self.shared.state);
                if !*self.shared.is_writing.borrow() && state.pending.is_empty() {
                    state.records = Arc::new(records);
                }
            }
            Err(error) => tracing::warn!(%error, "could not read the health of profiles"),
        }
    }

    /// Waits until everything is written.
    pub(super) async fn flush(&self) {
        let mut writing = self.shared.is_writing.subscribe();
        // An error would mean that `self` is gone.
        writing.wait_for(|is_writing| !is_writing).await.ok();
    }
}

/// The writer. However it ends, those waiting for it are notified.
struct Writing {
    shared: Arc<Shared>,
    is_finished: bool,
}

impl Writing {
    async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        loop {
            let batch = {
                let mut state = locked(&shared.state);
                if state.pending.is_empty() {
                    // Under the lock: a change that arrives now starts another writer.
                    shared.is_writing.send_replace(false);
                    self.is_finished = true;
                    return;
                }
                std::mem::take(&mut state.pending)
            };
            let written =
                shared.store.update(Arc::new(move |records| batch.iter().for_each(|change| change(records)))).await;
            let mut state = locked(&shared.state);
            match written {
                Ok(records) => {
                    let state = &mut *state;
                    state.records = Arc::new(records);
                    let known = Arc::make_mut(&mut state.records);
                    state.pending.iter().for_each(|change| change(known));
                }
                // The changes stay in memory.
                Err(error) => tracing::warn!(%error, "could not write the health of profiles"),
            }
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // Otherwise the task was cancelled together with its runtime.
        if !self.is_finished {
            self.shared.is_writing.send_replace(false);
        }
    }
}

impl Drop for HealthMarks {
    fn drop(&mut self) {
        // Pending records are still written.
        locked(&self.writer).detach_all();
    }
}

impl fmt::Debug for HealthMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthMarks").field("store", &self.shared.store).finish_non_exhaustive()
    }
}
