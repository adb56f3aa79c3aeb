//! A session store: rows of an in-memory table, like those of a database.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::{BoxFuture, ready};
use pinch_session::entry::Header;
use pinch_session::store::list::{sort, summarise};
use pinch_session::store::{Appended, Fence, Journal, ListScope, SessionRef, SessionStore, SessionSummary, StoreError};

/// The rows of each session, by session ID.
type Rows = BTreeMap<String, Vec<Bytes>>;

/// The table. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct StoreTable(Arc<Mutex<Rows>>);

impl StoreTable {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the content of a session with this text.
    pub fn put(&self, id: &str, text: &[u8]) {
        self.rows().insert(id.to_owned(), vec![Bytes::copy_from_slice(text)]);
    }
}

fn id_of(at: &SessionRef) -> String {
    match at {
        SessionRef::Id(id) => id.to_string(),
        SessionRef::Path(path) => path.display().to_string(),
    }
}

impl SessionStore for StoreTable {
    fn list(&self, scope: ListScope) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let rows = self.rows();
        let summaries = rows.iter().filter_map(|(id, rows)| summarise(&rows.concat(), id.into(), 0));
        let mut found: Vec<_> = summaries
            .filter(|summary| match &scope {
                ListScope::Cwd(cwd) => summary.cwd == *cwd,
                _ => true,
            })
            .collect();
        sort(&mut found);
        Box::pin(ready(Ok(found)))
    }

    fn create(&self, header: &Header) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        self.open(&SessionRef::Id(header.id.clone()))
    }

    fn open(&self, at: &SessionRef) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        let journal = TableJournal { table: self.clone(), id: id_of(at), exists: false, fence: None };
        Box::pin(ready(Ok(Box::new(journal) as Box<dyn Journal>)))
    }

    fn remove(&self, at: &SessionRef) -> BoxFuture<'_, Result<(), StoreError>> {
        let id = id_of(at);
        let removed = self.rows().remove(&id).map(drop);
        Box::pin(ready(removed.ok_or(StoreError::NotFound { name: id })))
    }
}

struct TableJournal {
    table: StoreTable,
    id: String,
    /// Whether the session existed when it was loaded, or was created here.
    exists: bool,
    fence: Option<Arc<dyn Fence>>,
}

impl TableJournal {
    /// A database compares epochs in its own transaction; here the lock of the table is the transaction.
    fn check_fence(&self) -> Result<(), StoreError> {
        match &self.fence {
            Some(fence) if !fence.is_current() => Err(StoreError::Fenced { path: self.path() }),
            _ => Ok(()),
        }
    }

    fn path(&self) -> PathBuf {
        self.id.clone().into()
    }

    fn append_rows(&mut self, lines: Bytes, end: u64) -> Result<Appended, StoreError> {
        let mut table = self.table.rows();
        self.check_fence()?;
        let rows = match table.get_mut(&self.id) {
            Some(_) if !self.exists => return Err(StoreError::Exists { path: self.path() }),
            None if self.exists || end > 0 => return Err(StoreError::Cut { path: self.path() }),
            Some(rows) => rows,
            None => table.entry(self.id.clone()).or_default(),
        };
        if let Some(moved) = foreign(rows, end) {
            return moved.ok_or_else(|| StoreError::Cut { path: self.id.clone().into() });
        }
        if rows.last().is_some_and(|last| !last.ends_with(b"\n")) {
            rows.push(Bytes::from_static(b"\n"));
        }
        rows.push(lines);
        self.exists = true;
        Ok(Appended::At(length(rows)))
    }

    fn replace_rows(&mut self, lines: Bytes, end: u64) -> Result<Appended, StoreError> {
        let mut table = self.table.rows();
        self.check_fence()?;
        let rows = table.get_mut(&self.id).ok_or_else(|| StoreError::NotFound { name: self.id.clone() })?;
        if let Some(moved) = foreign(rows, end) {
            return moved.ok_or_else(|| StoreError::Cut { path: self.id.clone().into() });
        }
        *rows = vec![lines];
        Ok(Appended::At(length(rows)))
    }
}

fn length(rows: &[Bytes]) -> u64 {
    rows.iter().map(|row| row.len() as u64).sum()
}

/// What another writer appended after this end, if the rows do not end there; `Some(None)` if they end before it.
fn foreign(rows: &[Bytes], end: u64) -> Option<Option<Appended>> {
    let text = rows.concat();
    let tail = usize::try_from(end).ok().and_then(|end| text.get(end..));
    match tail {
        Some([]) => None,
        Some(tail) => Some(Some(Appended::Moved { tail: Bytes::copy_from_slice(tail) })),
        None => Some(None),
    }
}

impl Journal for TableJournal {
    fn set_fence(&mut self, fence: Arc<dyn Fence>) {
        self.fence = Some(fence);
    }

    fn load(&mut self) -> BoxFuture<'_, Result<Bytes, StoreError>> {
        let text = self.table.rows().get(&self.id).map(|rows| Bytes::from(rows.concat()));
        self.exists = text.is_some();
        Box::pin(ready(text.ok_or_else(|| StoreError::NotFound { name: self.id.clone() })))
    }

    fn append(&mut self, lines: Bytes, end: u64) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move { self.append_rows(lines, end) })
    }

    fn replace<'a>(
        &'a mut self,
        lines: Bytes,
        end: u64,
        _backup: &'a str,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        Box::pin(async move { self.replace_rows(lines, end) })
    }
}
