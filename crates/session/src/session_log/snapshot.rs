//! A session at one moment, for those who read it while it goes on.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::SessionLog;

impl SessionLog {
    /// The session of this moment. It shares the text with this one, which goes on without it; what is appended to it is kept in memory only.
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
            conflicts: VecDeque::new(),
        }
    }
}
