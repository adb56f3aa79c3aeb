//! Session stores: a store contains journals, each an ordered list of lines.
//!
//! Trees, guards and versions are the log's business, not the store's. [`jsonl`] uses files that pi also reads and writes; [`memory`] keeps
//! sessions in memory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_llm::ids::SessionId;

use crate::entry::Header;

pub mod list;

pub mod search;

pub mod repair;

pub mod jsonl;
pub mod memory;

pub use jsonl::JsonlStore;
pub use list::{ListProgress, SessionSummary};
pub use memory::MemoryStore;

/// Maximum bytes of a session that can be opened: offsets have 32 bits.
pub(crate) const MAX_TEXT: u64 = u32::MAX as u64 - 1;

/// Stores sessions.
pub trait SessionStore: Send + Sync {
    /// Lists sessions, most recently changed first. Unreadable sessions are skipped.
    fn list(&self, scope: ListScope) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Finds sessions by id prefix, most recently changed first; an exact match comes first.
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

    /// Like [`SessionStore::list`], calling `progress` with the number of sessions read and the total.
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

    /// Finds the most recently written session of a working directory.
    fn most_recent<'a>(&'a self, cwd: &'a str) -> BoxFuture<'a, Result<Option<SessionRef>, StoreError>> {
        Box::pin(async move {
            let found = self.list(ListScope::Cwd(cwd.to_owned())).await?;
            // Among those written at the same time, the first listed was changed last.
            let last = found.into_iter().rev().max_by_key(|summary| summary.file_modified);
            Ok(last.map(|summary| SessionRef::Id(summary.id)))
        })
    }

    /// Creates a session. Nothing is written before the first append, whose first line must be the header.
    fn create(&self, header: &Header) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>>;

    /// Opens a session. [`Journal::load`] reports whether it exists; a missing one is created by the first append.
    fn open(&self, at: &SessionRef) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>>;

    /// Returns the file of a session, for locking, even if it does not exist yet. `None` if the store has no files.
    fn file_of(&self, _at: &SessionRef) -> Option<PathBuf> {
        None
    }

    /// Removes a session permanently.
    fn remove(&self, at: &SessionRef) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// The text of a session in its store, read in pieces on demand. The text present when it was opened stays readable even after the session
/// is removed.
#[expect(clippy::len_without_is_empty, reason = "nobody asks")]
pub trait StoredText: fmt::Debug + Send + Sync {
    /// Returns the number of bytes when it was opened.
    fn len(&self) -> u64;

    /// Fills a buffer with the text at an offset.
    ///
    /// # Errors
    /// Fails if the text cannot be read or became shorter.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// The right to write to a session. Its holder can lose it, for example to a run that took over an abandoned lease.
pub trait Fence: fmt::Debug + Send + Sync {
    /// Returns a number that increases with every holder, for stores that compare it within their own transaction.
    fn epoch(&self) -> u64;

    /// Returns whether the holder still has the right to write.
    fn is_current(&self) -> bool;
}

/// The ordered lines of one session.
pub trait Journal: Send + Sync {
    /// Restricts writes to while `fence` is current. Checked where no other writer can come between the check and the write; if it is not
    /// current, the result is [`StoreError::Fenced`].
    fn set_fence(&mut self, fence: Arc<dyn Fence>);

    /// Returns the text without loading it, instead of [`Journal::load`], if it is too long to copy into memory; `None` for all others.
    fn stored(&mut self) -> Option<Arc<dyn StoredText>> {
        None
    }

    /// Returns all lines as stored.
    fn load(&mut self) -> BoxFuture<'_, Result<Bytes, StoreError>>;

    /// Called instead of [`Journal::load`] if the caller still knows the stored lines: appends follow without a load.
    fn resume(&mut self) {}

    /// Appends whole lines after position `end`, either all or none. If another process has written since, appends nothing and returns the
    /// foreign tail.
    fn append(&mut self, lines: Bytes, end: u64) -> BoxFuture<'_, Result<Appended, StoreError>>;

    /// Replaces all lines if they still end at `end`; for migrations only. If another process has written since, nothing is replaced and
    /// the journal must be reloaded. The old text is kept under a name that ends in `backup`, if the store has names.
    fn replace<'a>(
        &'a mut self,
        lines: Bytes,
        end: u64,
        backup: &'a str,
    ) -> BoxFuture<'a, Result<Appended, StoreError>>;

    /// Flushes appended lines to disk.
    fn sync(&mut self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the path of the file, if the session has one.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// Fails if the fence is no longer current.
pub(crate) fn check_fence(fence: Option<&Arc<dyn Fence>>, path: impl FnOnce() -> PathBuf) -> Result<(), StoreError> {
    match fence {
        Some(fence) if !fence.is_current() => Err(StoreError::Fenced { path: path() }),
        _ => Ok(()),
    }
}

/// Runs blocking work on tokio's blocking thread pool.
pub(crate) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

/// The outcome of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Everything was written; the journal now ends here.
    At(u64),
    /// Another process wrote in the meantime; nothing was appended.
    Moved {
        /// The text after the expected end.
        tail: Bytes,
    },
}

/// Identifies a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionRef {
    /// By its file.
    Path(PathBuf),
    /// By its id.
    Id(SessionId),
}

impl SessionRef {
    /// Returns a path for messages: the file, or the id in its place.
    pub(crate) fn to_path(&self) -> PathBuf {
        match self {
            Self::Path(path) => path.clone(),
            Self::Id(id) => id.as_str().into(),
        }
    }
}

/// Which sessions to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListScope {
    /// All sessions of the store.
    All,
    /// The sessions of one working directory.
    Cwd(String),
}

/// When appended lines are flushed to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// When the operating system decides to.
    #[default]
    Os,
    /// At the end of each turn, by [`Journal::sync`].
    Turn,
    /// After each append.
    Entry,
}

impl Durability {
    /// Parses the value of a setting: `os`, `turn` or `entry`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "os" => Some(Self::Os),
            "turn" => Some(Self::Turn),
            "entry" => Some(Self::Entry),
            _ => None,
        }
    }
}

/// Why a session could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An I/O operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The session does not exist.
    #[error("No session found matching '{name}'")]
    NotFound {
        /// Name of the requested session.
        name: String,
    },
    /// Another process held the lock for too long.
    #[error("Session file is locked: {}", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a session; it was left unchanged.
    #[error("Session file is not a valid pi session: {}", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
        /// What is wrong with its first line. Not part of the message, whose text is pi's, for scripts that match it.
        problem: Option<String>,
    },
    /// The file became shorter, was removed or was replaced while it was open.
    #[error("Session file was truncated or removed by another program: {}", path.display())]
    Cut {
        /// The file.
        path: PathBuf,
    },
    /// The file to import does not exist.
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
    /// The session is too long to open.
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
    /// Other writers kept getting ahead.
    #[error("another process keeps changing the session file")]
    Contended,
    /// The session to fork from is empty.
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
    /// The name is not a valid session id.
    #[error("Invalid session id: {id}")]
    BadId {
        /// The id.
        id: String,
    },
}

impl StoreError {
    /// Wraps an I/O error.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// Returns whether the session does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}
