//! A cache of recently closed sessions, so that reopening one does not read and parse an unchanged file again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pinch_stdx::fs::stamp::FileStamp;

use super::SessionLog;
use super::index::Index;
use crate::entry::Header;
use crate::store::aside;

/// Maximum number of cached sessions.
const MAX_SESSIONS: usize = 32;

/// Maximum total size of the cached session files, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Recently closed sessions, for programs that reopen the same ones: at most 32, with at most 64 MiB of text.
///
/// A cached session is used only if its file has the same length, modification time and identity as when it was closed. Expired sessions are
/// freed when the cache is next used.
#[derive(Debug)]
pub struct RecentSessions {
    keep_for: Duration,
    closed: Mutex<VecDeque<ClosedSession>>,
}

#[derive(Debug)]
struct ClosedSession {
    path: PathBuf,
    stamp: FileStamp,
    at: Instant,
    stored: StoredSession,
}

/// The contents of a stored session.
#[derive(Debug)]
pub(super) struct StoredSession {
    pub(super) header: Header,
    pub(super) index: Arc<Index>,
    pub(super) end: u64,
    pub(super) n_ineffective: u32,
}

impl RecentSessions {
    /// Creates a cache that keeps each session for `keep_for` after it is closed; zero disables it.
    pub fn new(keep_for: Duration) -> Self {
        Self { keep_for, closed: Mutex::default() }
    }

    /// Caches a session that is about to be closed. Sessions without a file, and files with unread changes, are not cached. Inspects the file
    /// once.
    pub fn keep(&self, log: &SessionLog) {
        let Some(path) = log.path().filter(|_| log.is_saved() && log.snapshot_of.is_none()) else { return };
        if self.keep_for.is_zero() || log.end > MAX_BYTES {
            return;
        }
        // A longer file contains entries of other processes, which are not in the index.
        let Some(stamp) = FileStamp::of(path).filter(|stamp| stamp.size() == log.end) else { return };
        let stored = StoredSession {
            header: log.header.clone(),
            index: Arc::clone(&log.index),
            end: log.end,
            n_ineffective: log.n_ineffective,
        };
        let mut closed = self.lock();
        closed.retain(|session| session.path != path);
        closed.push_back(ClosedSession { path: path.to_owned(), stamp, at: Instant::now(), stored });
        self.purge(&mut closed);
    }

    /// Removes a session from the cache and returns it if its file is unchanged. Removing it leaves the index unshared, so that appending
    /// does not copy it.
    pub(super) async fn take(&self, path: &Path) -> Option<StoredSession> {
        let session = {
            let mut closed = self.lock();
            self.purge(&mut closed);
            let at = closed.iter().position(|session| session.path == path)?;
            closed.remove(at)?
        };
        let path = session.path;
        let stamp = aside(move || FileStamp::of(&path)).await.ok()?;
        (stamp == Some(session.stamp)).then_some(session.stored)
    }

    fn purge(&self, closed: &mut VecDeque<ClosedSession>) {
        closed.retain(|session| session.at.elapsed() < self.keep_for);
        let bytes = |closed: &VecDeque<ClosedSession>| closed.iter().map(|session| session.stored.end).sum::<u64>();
        while closed.len() > MAX_SESSIONS || bytes(closed) > MAX_BYTES {
            closed.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<ClosedSession>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
