//! Session stores: a store has journals, each an ordered list of lines.
//!
//! A store has no trees, guards or versions: those are the log's. [`jsonl`] uses files that pi reads and writes as well,
//! [`memory`] keeps sessions in memory only.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::entry::Header;

pub mod list;

pub mod search;

pub mod repair;

pub mod jsonl;
pub mod memory;

pub use jsonl::JsonlStore;
pub use list::{ListProgress, SessionSummary};
pub use memory::MemoryStore;

/// Bytes of the longest session that is opened: places in it are kept in 32 bits.
pub(crate) const MAX_TEXT: u64 = u32::MAX as u64 - 1;

/// Keeps sessions.
pub trait SessionStore: Send + Sync {
    /// Lists sessions, the latest changed first. Sessions that cannot be read are skipped.
    fn list(&self, scope: ListScope) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Finds sessions by a prefix of their id, the latest changed first; one with exactly this id comes first.
    fn find_by_id<'a>(
        &'a self,
        beginning: &'a str,
        scope: ListScope,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move {
            let mut found = self.list(scope).await?;
            found.retain(|summary| summary.id.starts_with(beginning));
            found.sort_by_key(|summary| summary.id != beginning);
            Ok(found)
        })
    }

    /// Like [`SessionStore::list`]; `progress` is called with the number of sessions read and the total.
    fn list_with_progress(
        &self,
        scope: ListScope,
        progress: ListProgress,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move {
            let found = self.list(scope).await?;
            progress(found.len(), found.len());
            Ok(found)
        })
    }

    /// Finds the session of a working directory that was written last.
    fn most_recent<'a>(&'a self, cwd: &'a str) -> BoxFuture<'a, Result<Option<SessionRef>, StoreError>> {
        Box::pin(async move {
            let found = self.list(ListScope::Cwd(cwd.to_owned())).await?;
            // Of those written at the same time the one that was changed last: it comes first.
            let last = found.into_iter().rev().max_by_key(|summary| summary.file_modified);
            Ok(last.map(|summary| SessionRef::Id(summary.id)))
        })
    }

    /// Creates a session. Nothing is written before the first append, whose first line is the header.
    fn create(&self, header: &Header) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>>;

    /// Opens a session. Whether it exists is found out by [`Journal::load`]; one that does not is created with the first append.
    fn open(&self, at: &SessionRef) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>>;

    /// The file of a session, whether it exists or not: the file to lock. `None` when the store has no files.
    fn file_of(&self, _at: &SessionRef) -> Option<PathBuf> {
        None
    }

    /// Removes a session for good.
    fn remove(&self, at: &SessionRef) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// The text of a session where it is stored: read piece by piece, and again when an entry is wanted. What was there when it was opened stays
/// readable, also when the session is removed.
#[expect(clippy::len_without_is_empty, reason = "nobody asks")]
pub trait StoredText: fmt::Debug + Send + Sync {
    /// Bytes it had when it was opened.
    fn len(&self) -> u64;

    /// Fills a buffer with the text at an offset.
    ///
    /// # Errors
    /// When that cannot be read, or the text has become shorter.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// The right to write to a session, which its holder can lose, for example to a run that took over an abandoned lease.
pub trait Fence: fmt::Debug + Send + Sync {
    /// A number that is greater for every later holder, for stores that compare it within their own transaction.
    fn epoch(&self) -> u64;

    /// Whether the holder still has it.
    fn is_current(&self) -> bool;
}

/// The ordered lines of one session.
pub trait Journal: Send + Sync {
    /// From now on nothing is written unless `fence` is current. It is checked where no other writer can come between the check and the
    /// write; otherwise the result is [`StoreError::Fenced`].
    fn set_fence(&mut self, fence: Arc<dyn Fence>);

    /// In place of [`Journal::load`] for texts so long that a copy in memory would be a waste; `None` for all others.
    fn stored(&mut self) -> Option<Arc<dyn StoredText>> {
        None
    }

    /// All lines as they are stored.
    fn load(&mut self) -> BoxFuture<'_, Result<Bytes, StoreError>>;

    /// Appends whole lines after position `end`, all of them or none. When another process has written since, nothing is appended and the
    /// foreign tail is returned.
    fn append(&mut self, lines: Bytes, end: u64) -> BoxFuture<'_, Result<Appended, StoreError>>;

    /// Replaces all lines, if they still end at `end`: for migrations only. When another process has written since, nothing is replaced, and the
    /// journal has to be loaded again. The old text is kept under a name that ends in `backup`, where the store has names.
    fn replace<'a>(
        &'a mut self,
        lines: Bytes,
        end: u64,
        backup: &'a str,
    ) -> BoxFuture<'a, Result<Appended, StoreError>>;

    /// Makes sure that what was appended survives a loss of power.
    fn sync(&mut self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// The file, when the session is one.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// Fails when a journal is fenced off.
pub(crate) fn check_fence(fence: Option<&Arc<dyn Fence>>, path: impl FnOnce() -> PathBuf) -> Result<(), StoreError> {
    match fence {
        Some(fence) if !fence.is_current() => Err(StoreError::Fenced { path: path() }),
        _ => Ok(()),
    }
}

/// Runs blocking work on a thread for such work.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

/// How an append went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Everything is written; the journal ends here now.
    At(u64),
    /// Another process wrote this in the meantime; nothing was appended.
    Moved {
        /// The text after the expected end.
        tail: Bytes,
    },
}

/// Which session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRef {
    /// The file.
    Path(PathBuf),
    /// The session's id.
    Id(String),
}

impl SessionRef {
    /// A path for messages to people: the file, or the id in its place.
    pub(crate) fn to_path(&self) -> PathBuf {
        match self {
            Self::Path(path) => path.clone(),
            Self::Id(id) => id.into(),
        }
    }
}

/// Which sessions to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListScope {
    /// All of the store.
    All,
    /// Those of one working directory.
    Cwd(String),
}

/// When appended lines are forced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// When the operating system sees fit.
    #[default]
    Os,
    /// At the end of each turn, by [`Journal::sync`].
    Turn,
    /// After each append.
    Entry,
}

impl Durability {
    /// Reads the word of a setting: `os`, `turn` or `entry`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "os" => Some(Self::Os),
            "turn" => Some(Self::Turn),
            "entry" => Some(Self::Entry),
            _ => None,
        }
    }
}

/// A session could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// There is no such session.
    #[error("No session found matching '{name}'")]
    NotFound {
        /// What was requested.
        name: String,
    },
    /// Another process held the lock for too long.
    #[error("Session file is locked: {}", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file holds something else; it was not touched.
    #[error("Session file is not a valid pi session: {}", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
        /// What is wrong with its first line. The text is pi's, for scripts that look for it, and leaves this out.
        problem: Option<String>,
    },
    /// The file became shorter, was removed or was replaced while it was open.
    #[error("Session file was truncated or removed by another program: {}", path.display())]
    Cut {
        /// The file.
        path: PathBuf,
    },
    /// The file to take over is not there.
    #[error("File not found: {}", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// The session to create already exists.
    #[error("session already exists: {}", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The session is longer than a program should read.
    #[error("Session is larger than 4 GB: {}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The writer has lost its right to write to the session; nothing was written.
    #[error("another run has taken over the session: {}", path.display())]
    Fenced {
        /// The file, or the id of the session.
        path: PathBuf,
    },
    /// Other writers were faster again and again.
    #[error("another process keeps changing the session file")]
    Contended,
    /// The session to fork from holds nothing.
    #[error("Cannot fork: source session file is empty or invalid: {}", path.display())]
    ForkEmpty {
        /// The source.
        path: PathBuf,
    },
    /// The session to fork from has no header.
    #[error("Cannot fork: source session has no header: {}", path.display())]
    ForkNoHeader {
        /// The source.
        path: PathBuf,
    },
    /// No entry has this id.
    #[error("Entry {id} not found")]
    NoEntry {
        /// The id.
        id: String,
    },
    /// The name does not fit for a session id.
    #[error("Invalid session id: {id}")]
    BadId {
        /// The id.
        id: String,
    },
}

impl StoreError {
    /// Wraps a failure of the operating system.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Whether a session was requested that does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}
