//! Sessions that last as long as the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::future::{BoxFuture, ready};

use super::list::{self, SessionSummary};
use super::{Appended, Fence, Journal, ListScope, SessionRef, SessionStore, StoreError, check_fence};
use crate::entry::Header;

type Texts = Arc<Mutex<BTreeMap<String, BytesMut>>>;

/// Keeps sessions in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    texts: Texts,
}

impl MemoryStore {
    /// Creates a store without sessions.
    pub fn new() -> Self {
        Self::default()
    }
}

fn lock(texts: &Texts) -> MutexGuard<'_, BTreeMap<String, BytesMut>> {
    texts.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name(at: &SessionRef) -> String {
    match at {
        SessionRef::Id(id) => id.to_string(),
        SessionRef::Path(path) => path.display().to_string(),
    }
}

impl SessionStore for MemoryStore {
    fn list(&self, scope: ListScope) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        let mut found: Vec<SessionSummary> = lock(&self.texts)
            .iter()
            .filter_map(|(id, text)| list::summarise(text, id.into(), 0))
            .filter(|summary| match &scope {
                ListScope::All => true,
                ListScope::Cwd(cwd) => summary.cwd == *cwd,
            })
            .collect();
        list::sort(&mut found);
        Box::pin(ready(Ok(found)))
    }

    fn create(&self, header: &Header) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        self.open(&SessionRef::Id(header.id.clone()))
    }

    fn open(&self, at: &SessionRef) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        let journal = MemoryJournal { texts: Arc::clone(&self.texts), id: name(at), exists: false, fence: None };
        Box::pin(ready(Ok(Box::new(journal) as Box<dyn Journal>)))
    }

    fn remove(&self, at: &SessionRef) -> BoxFuture<'_, Result<(), StoreError>> {
        let id = name(at);
        let removed = lock(&self.texts).remove(&id).map(drop);
        Box::pin(ready(removed.ok_or(StoreError::NotFound { name: id })))
    }
}

struct MemoryJournal {
    texts: Texts,
    id: String,
    /// Whether the session existed when it was loaded or was started here.
    exists: bool,
    fence: Option<Arc<dyn Fence>>,
}

impl MemoryJournal {
    fn append_now(&mut self, lines: &[u8], end: u64) -> Result<Appended, StoreError> {
        let mut texts = lock(&self.texts);
        let path = || self.id.clone().into();
        check_fence(self.fence.as_ref(), path)?;
        let text = match texts.get_mut(&self.id) {
            Some(_) if !self.exists => return Err(StoreError::Exists { path: path() }),
            None if self.exists || end > 0 => return Err(StoreError::Cut { path: path() }),
            Some(text) => text,
            None => texts.entry(self.id.clone()).or_default(),
        };
        match usize::try_from(end).ok().and_then(|end| text.get(end..)) {
            None => return Err(StoreError::Cut { path: path() }),
            Some([]) => {}
            Some(tail) => return Ok(Appended::Moved { tail: Bytes::copy_from_slice(tail) }),
        }
        if text.last().is_some_and(|last| *last != b'\n') {
            text.extend_from_slice(b"\n");
        }
        text.extend_from_slice(lines);
        self.exists = true;
        Ok(Appended::At(text.len() as u64))
    }

    fn replace_now(&mut self, lines: &[u8], end: u64) -> Result<Appended, StoreError> {
        let mut texts = lock(&self.texts);
        check_fence(self.fence.as_ref(), || self.id.clone().into())?;
        let text = texts.get_mut(&self.id).ok_or_else(|| StoreError::NotFound { name: self.id.clone() })?;
        if text.len() as u64 != end {
            let tail = usize::try_from(end).ok().and_then(|end| text.get(end..)).unwrap_or_default();
            return Ok(Appended::Moved { tail: Bytes::copy_from_slice(tail) });
        }
        *text = BytesMut::from(lines);
        Ok(Appended::At(lines.len() as u64))
    }
}

impl Journal for MemoryJournal {
    fn set_fence(&mut self, fence: Arc<dyn Fence>) {
        self.fence = Some(fence);
    }

    fn load(&mut self) -> BoxFuture<'_, Result<Bytes, StoreError>> {
        let text = lock(&self.texts).get(&self.id).map(|text| Bytes::copy_from_slice(text));
        self.exists = text.is_some();
        Box::pin(ready(text.ok_or_else(|| StoreError::NotFound { name: self.id.clone() })))
    }

    fn append(&mut self, lines: Bytes, end: u64) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move { self.append_now(&lines, end) })
    }

    fn replace<'a>(
        &'a mut self,
        lines: Bytes,
        end: u64,
        _backup: &'a str,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        Box::pin(async move { self.replace_now(&lines, end) })
    }
}
