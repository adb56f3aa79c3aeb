//! Sessions that live as long as the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::future::{BoxFuture, ready};

use super::list::{self, SessionSummary};
use super::{Appended, Journal, ListScope, SessionRef, SessionStore, StoreError};
use crate::entry::Header;

type Texts = Arc<Mutex<BTreeMap<String, BytesMut>>>;

/// Keeps sessions in memory. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    texts: Texts,
}

impl MemoryStore {
    /// A store without sessions.
    pub fn new() -> Self {
        Self::default()
    }
}

fn lock(texts: &Texts) -> MutexGuard<'_, BTreeMap<String, BytesMut>> {
    texts.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name(at: &SessionRef) -> String {
    match at {
        SessionRef::Id(id) => id.clone(),
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
        let journal = MemoryJournal { texts: Arc::clone(&self.texts), id: name(at) };
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
}

impl Journal for MemoryJournal {
    fn load(&mut self) -> BoxFuture<'_, Result<Bytes, StoreError>> {
        let text = lock(&self.texts).get(&self.id).map(|text| Bytes::copy_from_slice(text));
        Box::pin(ready(text.ok_or_else(|| StoreError::NotFound { name: self.id.clone() })))
    }

    fn append(&mut self, lines: Bytes, end: u64) -> BoxFuture<'_, Result<Appended, StoreError>> {
        let mut texts = lock(&self.texts);
        let text = texts.entry(self.id.clone()).or_default();
        let known = usize::try_from(end).unwrap_or(usize::MAX);
        let answer = match text.get(known..) {
            None => Err(StoreError::Cut { path: (&self.id).into() }),
            Some([]) => {
                if text.last().is_some_and(|last| *last != b'\n') {
                    text.extend_from_slice(b"\n");
                }
                text.extend_from_slice(&lines);
                Ok(Appended::At(text.len() as u64))
            }
            Some(tail) => Ok(Appended::Moved { tail: Bytes::copy_from_slice(tail) }),
        };
        Box::pin(ready(answer))
    }

    fn replace<'a>(&'a mut self, lines: Bytes, _backup: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        let end = lines.len() as u64;
        lock(&self.texts).insert(self.id.clone(), BytesMut::from(&lines[..]));
        Box::pin(ready(Ok(end)))
    }
}
