//! Sessions that were closed a moment ago. One that is opened again, and whose file has not changed since, is not read and parsed again.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pinch_stdx::fs::stamp::FileStamp;

use super::SessionLog;
use super::index::Index;
use crate::entry::Header;

/// The most sessions that are kept.
const MAX_SESSIONS: usize = 32;

/// The most bytes of session files that are kept.
const MAX_BYTES: u64 = 64 << 20;

/// A cache of closed sessions, for programs that open the same ones again and again: at most 32 of them, with at most 64 MiB of text.
///
/// A session is used only if its file has the same length, modification time and identity as when it was closed; otherwise it is read anew.
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

/// What is known of a stored session.
#[derive(Debug)]
pub(super) struct StoredSession {
    pub(super) header: Header,
    pub(super) index: Arc<Index>,
    pub(super) end: u64,
}

impl RecentSessions {
    /// A cache that keeps sessions for a time after they were closed; zero keeps none.
    pub fn new(keep_for: Duration) -> Self {
        Self { keep_for, closed: Mutex::default() }
    }

    /// Remembers a session that nobody will append to any more. Sessions without a file of their own are not kept.
    pub fn keep(&self, log: &SessionLog) {
        let Some(path) = log.path().filter(|_| log.is_saved() && log.snapshot_of.is_none()) else { return };
        if self.keep_for.is_zero() || log.end > MAX_BYTES {
            return;
        }
        // A file that has grown holds entries of others, which are not in the index.
        let Some(stamp) = FileStamp::of(path).filter(|stamp| stamp.len() == log.end) else { return };
        let stored = StoredSession { header: log.header.clone(), index: Arc::clone(&log.index), end: log.end };
        let mut closed = self.lock();
        closed.retain(|session| session.path != path);
        closed.push_back(ClosedSession { path: path.to_owned(), stamp, at: Instant::now(), stored });
        self.purge(&mut closed);
    }

    /// Takes a session out, if its file is as it was. Two logs never share one, so that none copies the index when it appends.
    pub(super) fn take(&self, path: &Path) -> Option<StoredSession> {
        let session = {
            let mut closed = self.lock();
            self.purge(&mut closed);
            let at = closed.iter().position(|session| session.path == path)?;
            closed.remove(at)?
        };
        (FileStamp::of(path) == Some(session.stamp)).then_some(session.stored)
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
