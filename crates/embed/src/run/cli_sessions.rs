//! What command-line agents call the conversation of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The names by backend: those that are remembered, and those that the run learns. Clones share them.
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

    /// What a backend calls the conversation.
    pub fn get(&self, backend: &str) -> Option<String> {
        let names = self.names();
        names.learned.get(backend).or_else(|| names.known.get(backend)).cloned()
    }

    /// A backend has named the conversation.
    pub fn learn(&self, backend: &str, id: &str) {
        self.names().learned.insert(backend.to_owned(), id.to_owned());
    }

    /// The names that the run has learned.
    pub(crate) fn learned(&self) -> BTreeMap<String, String> {
        self.names().learned.clone()
    }
}
