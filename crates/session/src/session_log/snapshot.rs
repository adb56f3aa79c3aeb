//! Snapshots of a session, for readers while the session changes.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::SessionLog;

impl SessionLog {
    /// Returns a snapshot of the session. It shares the text with this log; entries appended to it stay in memory.
    pub fn snapshot(&self) -> Self {
        Self {
            host: self.host.clone(),
            store: None,
            journal: None,
            snapshot_of: self.path().map(Path::to_owned),
            header: self.header.clone(),
            cwd: self.cwd.clone(),
            index: Arc::clone(&self.index),
            leaf: self.leaf,
            end: self.end,
            waiting: None,
            awaited: None,
            held: Vec::new(),
            missing_result: self.missing_result,
            conflicts: VecDeque::new(),
            n_ineffective: self.n_ineffective,
        }
    }
}
