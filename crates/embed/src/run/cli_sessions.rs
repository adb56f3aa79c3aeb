//! Conversation ids that command-line agents use for a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ids by backend: stored ones, and those learned during the run. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct CliSessions(Arc<Mutex<CliSessionNames>>);

#[derive(Debug, Default)]
struct CliSessionNames {
    known: BTreeMap<String, String>,
    learned: BTreeMap<String, String>,
}

impl CliSessions {
    pub(crate) fn new(known: BTreeMap<String, String>) -> Self {
        Self(Arc::new(Mutex::new(CliSessionNames { known, learned: BTreeMap::new() })))
    }

    fn names(&self) -> MutexGuard<'_, CliSessionNames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the conversation id of a backend.
    pub fn get(&self, backend: &str) -> Option<String> {
        let names = self.names();
        names.learned.get(backend).or_else(|| names.known.get(backend)).cloned()
    }

    /// Records a conversation id reported by a backend.
    pub fn record(&self, backend: &str, id: &str) {
        self.names().learned.insert(backend.to_owned(), id.to_owned());
    }

    /// Returns the ids learned during the run.
    pub(crate) fn recorded(&self) -> BTreeMap<String, String> {
        self.names().learned.clone()
    }
}
