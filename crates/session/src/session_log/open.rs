//! Opening new and stored sessions.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_stdx::host::Host;

use super::index::Index;
use super::recent::{RecentSessions, StoredSession};
use super::{MAX_TRIES, NewSession, SessionLog, heal, line};
use crate::entry::migrate::migrate;
use crate::entry::scan;
use crate::entry::{Header, VERSION};
use crate::store::{Appended, Journal, MAX_TEXT, SessionRef, SessionStore, StoreError, StoredText, aside};

impl SessionLog {
    /// Opens a session. A missing one is created under this name with its first message; an empty file gets its header immediately.
    /// `default_cwd` applies to headers without a working directory.
    ///
    /// # Errors
    /// Fails if the session cannot be read or is not a session; it is left unchanged.
    pub fn open<'a>(
        host: &'a Host,
        store: Arc<dyn SessionStore>,
        at: &'a SessionRef,
        default_cwd: &'a str,
    ) -> BoxFuture<'a, Result<Self, StoreError>> {
        Self::open_or_create(host, store, at, NewSession::in_directory(default_cwd))
    }

    /// Like [`SessionLog::open`], with `new` describing the session to create if it is missing.
    ///
    /// # Errors
    /// Same as [`SessionLog::open`].
    pub fn open_or_create<'a>(
        host: &'a Host,
        store: Arc<dyn SessionStore>,
        at: &'a SessionRef,
        new: NewSession,
    ) -> BoxFuture<'a, Result<Self, StoreError>> {
        Box::pin(async move {
            let journal = store.open(at).await?;
            Self::read(host, store, journal, at, new).await
        })
    }

    /// Like [`SessionLog::open_or_create`], but takes a session from `recent` instead of reading it again, if its file is unchanged.
    ///
    /// # Errors
    /// Same as [`SessionLog::open`].
    pub fn reopen_or_create<'a>(
        host: &'a Host,
        store: Arc<dyn SessionStore>,
        at: &'a SessionRef,
        new: NewSession,
        recent: &'a RecentSessions,
    ) -> BoxFuture<'a, Result<Self, StoreError>> {
        Box::pin(async move {
            let mut journal = store.open(at).await?;
            let recent = match journal.path() {
                Some(path) => recent.take(path).await,
                None => None,
            };
            match recent {
                Some(stored) => {
                    journal.resume();
                    Ok(Self::indexed(host, store, journal, stored, new.cwd))
                }
                None => Self::read(host, store, journal, at, new).await,
            }
        })
    }

    /// Creates the log of a stored session whose entries are already indexed.
    fn indexed(
        host: &Host,
        store: Arc<dyn SessionStore>,
        journal: Box<dyn Journal>,
        stored: StoredSession,
        default_cwd: String,
    ) -> Self {
        let mut log = Self::empty(host, Some(store), Some(journal), stored.header);
        if log.header.cwd.is_none() {
            log.cwd = default_cwd;
        }
        log.index = stored.index;
        log.n_ineffective = stored.n_ineffective;
        log.loaded(stored.end);
        log
    }

    async fn read(
        host: &Host,
        store: Arc<dyn SessionStore>,
        mut journal: Box<dyn Journal>,
        at: &SessionRef,
        new: NewSession,
    ) -> Result<Self, StoreError> {
        // A text that cannot be indexed in place is loaded; loading reports what is wrong with it.
        let stored = match journal.stored() {
            Some(stored) => aside(move || index_stored(stored)).await.ok().flatten(),
            None => None,
        };
        if let Some(stored) = stored {
            return Ok(Self::indexed(host, store, journal, stored, new.cwd));
        }
        for _ in 0..MAX_TRIES {
            let text = match journal.load().await {
                Ok(text) => text,
                Err(error) if error.is_not_found() => {
                    return Ok(Self::empty(host, Some(store), Some(journal), new.into_header(host)));
                }
                Err(error) => return Err(error),
            };
            let end = text.len() as u64;
            let name = || match (journal.path(), at) {
                (Some(path), _) => path.to_owned(),
                (None, at) => at.to_path(),
            };
            if end > MAX_TEXT {
                return Err(StoreError::TooLarge { path: name() });
            }
            if scan::lines(&text).next().is_none() {
                let header = new.clone().into_header(host);
                let line = line(&header.to_line());
                // Another process created the session first: open that one.
                let Appended::At(end) = journal.append(line.into(), end).await? else { continue };
                let mut log = Self::empty(host, Some(store), Some(journal), header);
                log.load(Bytes::new(), end);
                return Ok(log);
            }
            let header = Header::of_text(&text)
                .map_err(|problem| StoreError::NotASession { path: name(), problem: Some(problem) })?;
            let (text, end) = match migrate(&text, host) {
                None => (text, end),
                Some(migrated) => {
                    let (new, backup) = (Bytes::from(migrated.text), format!("v{}.bak", migrated.from));
                    match journal.replace(new.clone(), end, &backup).await? {
                        Appended::At(end) => (new, end),
                        Appended::Moved { .. } => continue,
                    }
                }
            };
            let mut log = Self::empty(host, Some(store), Some(journal), header);
            if log.header.cwd.is_none() {
                log.cwd = new.cwd;
            }
            log.load(text, end);
            return Ok(log);
        }
        Err(StoreError::Contended)
    }

    /// Opens the most recent session of a working directory, or creates one.
    ///
    /// # Errors
    /// Same as [`SessionLog::open`].
    pub fn continue_recent<'a>(
        host: &'a Host,
        store: Arc<dyn SessionStore>,
        cwd: &'a str,
    ) -> BoxFuture<'a, Result<Self, StoreError>> {
        Box::pin(async move {
            match store.most_recent(cwd).await? {
                Some(at) => Ok(Self::open(host, store, &at, cwd).await?.with_cwd(cwd)),
                None => Self::create(host, store, NewSession::in_directory(cwd)).await,
            }
        })
    }

    pub(super) fn empty(
        host: &Host,
        store: Option<Arc<dyn SessionStore>>,
        journal: Option<Box<dyn Journal>>,
        header: Header,
    ) -> Self {
        let waiting = journal.is_some().then(|| line(&header.to_line()));
        Self {
            host: host.clone(),
            store,
            journal,
            snapshot_of: None,
            cwd: header.cwd.clone().unwrap_or_default(),
            header,
            index: Arc::default(),
            leaf: None,
            end: 0,
            waiting,
            awaited: None,
            held: Vec::new(),
            missing_result: heal::MISSING_RESULT,
            conflicts: VecDeque::new(),
            n_ineffective: 0,
        }
    }

    /// Takes over the stored text.
    pub(super) fn load(&mut self, text: Bytes, end: u64) {
        Arc::make_mut(&mut self.index).push(text);
        self.loaded(end);
    }

    fn loaded(&mut self, end: u64) {
        self.leaf = self.index.slots().len().checked_sub(1);
        self.end = end;
        self.waiting = None;
        if self.index.n_skipped > 0 {
            tracing::warn!(n_lines = self.index.n_skipped, path = ?self.path(), "skipped invalid session lines");
        }
        for problem in self.problems() {
            tracing::warn!(path = ?self.path(), "{problem}");
        }
    }
}

/// Indexes a text without loading it and returns its header, entries and length. Returns `None` if it must be loaded, because it has an
/// older version or an unusual beginning.
fn index_stored(text: Arc<dyn StoredText>) -> Option<StoredSession> {
    const MAX_HEADER: u64 = 1 << 20;
    let end = text.len();
    let mut beginning = vec![0; usize::try_from(end.min(MAX_HEADER)).ok()?];
    text.read_at(0, &mut beginning).ok()?;
    let whole = memchr::memrchr(b'\n', &beginning)?;
    let header = Header::of_text(&beginning[..whole]).ok()?;
    if header.version < VERSION || end > MAX_TEXT {
        return None;
    }
    Some(StoredSession { header, index: Arc::new(Index::of_stored(text).ok()?), end, n_ineffective: 0 })
}
