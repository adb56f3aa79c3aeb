//! Creating sessions from others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_llm::ids::SessionId;
use pinch_stdx::host::Host;
use serde_json::Value;

use super::{Header, SessionLog, line, new_header};
use crate::entry::migrate::{fresh_id, migrate};
use crate::entry::scan::{self, EntryType, MessageRole};
use crate::entry::{Entry, EntryBody, EntryId, text};
use crate::store::{Appended, SessionRef, SessionStore, StoreError};

/// The properties of a new session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Its working directory.
    pub cwd: String,
    /// Its id; `None` generates one.
    pub id: Option<SessionId>,
    /// The session it continues.
    pub parent_session: Option<String>,
}

impl NewSession {
    /// Creates the properties of a session in a working directory.
    pub fn in_directory(cwd: &str) -> Self {
        Self { cwd: cwd.to_owned(), ..Self::default() }
    }

    pub(super) fn into_header(self, host: &Host) -> Header {
        new_header(host, self.id, &self.cwd, self.parent_session)
    }
}

impl SessionLog {
    /// Copies a whole session, with all branches, into a new one that is written immediately. `new` describes the copy, except for its
    /// parent session.
    ///
    /// # Errors
    /// Fails if the source is empty or not a session, or if the copy cannot be written.
    pub fn fork_from<'a>(
        host: &'a Host,
        store: Arc<dyn SessionStore>,
        source: &'a SessionRef,
        new: NewSession,
    ) -> BoxFuture<'a, Result<Self, StoreError>> {
        Box::pin(async move {
            let mut from = store.open(source).await?;
            let name = match (from.path(), source) {
                (Some(path), _) => path.to_owned(),
                (None, at) => at.to_path(),
            };
            let mut text = match from.load().await {
                Ok(text) => text,
                Err(error) if error.is_not_found() => return Err(StoreError::ForkEmpty { path: name }),
                Err(error) => return Err(error),
            };
            let first = scan::lines(&text).find_map(|(_, line)| Some((line, scan::line(line)?)));
            match first {
                None => return Err(StoreError::ForkEmpty { path: name }),
                Some((line, _)) if Header::parse(line).is_none() => {
                    return Err(StoreError::ForkNoHeader { path: name });
                }
                Some(_) => {}
            }
            if let Some(migrated) = migrate(&text, host) {
                text = Bytes::from(migrated.text);
            }
            let header = NewSession { parent_session: Some(name.display().to_string()), ..new }.into_header(host);
            let mut copy = line(&header.to_line());
            for (_, text) in scan::lines(&text) {
                if scan::line(text).is_some_and(|line| line.kind != EntryType::Session) {
                    copy.extend_from_slice(text);
                    copy.push(b'\n');
                }
            }
            let mut log = Self::empty(host, Some(Arc::clone(&store)), Some(store.create(&header).await?), header);
            log.adopt(copy, true).await?;
            Ok(log)
        })
    }

    /// Switches to a new, empty session in the same store.
    ///
    /// # Errors
    /// Fails if the store cannot create it; the log then keeps the old session.
    pub fn new_session(&mut self, new: NewSession) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            *self = self.create_sibling(new).await?;
            Ok(())
        })
    }

    /// Creates a new, empty session in the same store.
    ///
    /// # Errors
    /// Fails if the store cannot create it.
    pub fn create_sibling(&self, new: NewSession) -> BoxFuture<'_, Result<Self, StoreError>> {
        Box::pin(async move {
            let header = new.into_header(&self.host);
            let journal = match &self.store {
                Some(store) => Some(store.create(&header).await?),
                None => None,
            };
            Ok(Self::empty(&self.host, self.store.clone(), journal, header))
        })
    }

    /// Opens another session of the same store; `None` if there is no store.
    ///
    /// # Errors
    /// Same as [`SessionLog::open`].
    pub fn open_sibling<'a>(&'a self, at: &'a SessionRef) -> BoxFuture<'a, Result<Option<Self>, StoreError>> {
        Box::pin(async move {
            match &self.store {
                Some(store) => Self::open(&self.host, Arc::clone(store), at, &self.cwd).await.map(Some),
                None => Ok(None),
            }
        })
    }

    /// Opens the same session again, for the caller to continue: reloaded from its store, or copied from memory if it has none. Only one of
    /// the two may be written to afterwards.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn reopen(&self) -> BoxFuture<'_, Result<Self, StoreError>> {
        Box::pin(async move {
            let at = self
                .path()
                .map_or_else(|| SessionRef::Id(self.id().to_owned()), |path| SessionRef::Path(path.to_owned()));
            let mut log = match &self.store {
                Some(store) if self.is_saved() => Self::open(&self.host, Arc::clone(store), &at, &self.cwd).await?,
                store => {
                    let journal = match store {
                        Some(store) => Some(store.open(&at).await?),
                        None => None,
                    };
                    let mut log = Self::empty(&self.host, store.clone(), journal, self.header.clone());
                    let mut text = Vec::new();
                    for at in 0..self.index.slots().len() {
                        text.extend_from_slice(&self.stored_line(at)?);
                        text.push(b'\n');
                    }
                    log.load(Bytes::from(text), self.end);
                    log.waiting.clone_from(&self.waiting);
                    log
                }
            };
            self.cwd.clone_into(&mut log.cwd);
            log.held.clone_from(&self.held);
            // A leaf at the end follows entries written by others meanwhile; any other stays.
            if self.leaf != self.index.slots().len().checked_sub(1) {
                match self.leaf_id() {
                    Some(leaf) => log.move_to(leaf)?,
                    None => log.reset_leaf(),
                }
            }
            Ok(log)
        })
    }

    /// Switches to a new session with the branch up to an entry. Labels are moved to the end of the branch. Written immediately if it
    /// contains a message from the user or a model, otherwise with the first one.
    ///
    /// # Errors
    /// Fails if the entry does not exist or the new session cannot be written; the log then keeps the old session.
    pub fn create_branched_session<'a>(&'a mut self, leaf: &'a EntryId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            *self = self.branched_session(leaf).await?;
            Ok(())
        })
    }

    /// Creates the session that [`SessionLog::create_branched_session`] switches to.
    ///
    /// # Errors
    /// Same as there.
    pub fn branched_session<'a>(&'a self, leaf: &'a EntryId) -> BoxFuture<'a, Result<Self, StoreError>> {
        Box::pin(async move {
            let path = self.index.path(Some(self.find(leaf)?));
            let parent = self.path().map(|path| path.display().to_string());
            let header = new_header(&self.host, None, &self.cwd, parent);
            let mut copy = line(&header.to_line());
            let n_before = copy.len();
            let last = self.copy_path(&path, &mut copy)?;
            self.copy_labels(&path, last, &mut copy);
            let begins = |role: MessageRole| matches!(role, MessageRole::User | MessageRole::Assistant);
            let at_once = path.iter().any(|at| begins(self.index.slots()[*at].role));
            let journal = match &self.store {
                Some(store) => Some(store.create(&header).await?),
                None => None,
            };
            let is_stored = journal.is_some();
            let mut log = Self::empty(&self.host, self.store.clone(), journal, header);
            if is_stored {
                log.adopt(copy, at_once).await?;
            } else {
                let end = copy.len() as u64;
                log.load(Bytes::from(copy.split_off(n_before)), end);
            }
            Ok(log)
        })
    }

    /// Makes these lines the whole session, written now or with the first message.
    async fn adopt(&mut self, text: Vec<u8>, now: bool) -> Result<(), StoreError> {
        let text = Bytes::from(text);
        if now && let Some(journal) = &mut self.journal {
            match journal.append(text.clone(), 0).await? {
                Appended::At(end) => self.load(text, end),
                Appended::Moved { .. } => return Err(StoreError::Contended),
            }
        } else {
            self.load(text.clone(), 0);
            self.waiting = Some(text.to_vec());
        }
        Ok(())
    }

    /// Copies the entries of a path without labels; an entry that followed a label follows the label's predecessor. Returns the last entry.
    fn copy_path(&self, path: &[usize], copy: &mut Vec<u8>) -> Result<Option<EntryId>, StoreError> {
        let slots = self.index.slots();
        // Replacements for labels: the previous entry where one is a parent, the next where one is the first kept entry.
        let mut next_of: HashMap<&str, &EntryId> = HashMap::new();
        let mut next: Option<&EntryId> = None;
        for at in path.iter().rev() {
            match slots[*at].kind {
                EntryType::Label => drop(next.map(|next| next_of.insert(slots[*at].id.as_str(), next))),
                _ => next = Some(&slots[*at].id),
            }
        }
        let mut before: Option<&EntryId> = None;
        let mut after_label = false;
        for at in path {
            let slot = &slots[*at];
            if slot.kind == EntryType::Label {
                after_label = true;
                continue;
            }
            let kept = match (&slot.kind, &self.index.entry(*at).body) {
                (EntryType::Compaction, EntryBody::Compaction(compaction)) => {
                    compaction.first_kept_entry_id.as_ref().and_then(|id| next_of.get(id.as_str()).copied())
                }
                _ => None,
            };
            let line = self.stored_line(*at)?;
            match text::parse_object(&line) {
                Some(mut raw) if after_label || kept.is_some() => {
                    if after_label {
                        raw.insert("parentId".into(), before.map_or(Value::Null, |id| id.as_str().into()));
                    }
                    if let Some(kept) = kept {
                        raw.insert("firstKeptEntryId".into(), kept.as_str().into());
                    }
                    copy.extend_from_slice(text::to_line(&raw).as_bytes());
                }
                _ => copy.extend_from_slice(&line),
            }
            copy.push(b'\n');
            before = Some(&slot.id);
            after_label = false;
        }
        Ok(before.cloned())
    }

    /// Repeats the labels of the path's entries as a chain after the last entry.
    fn copy_labels(&self, path: &[usize], last: Option<EntryId>, copy: &mut Vec<u8>) {
        let slots = self.index.slots();
        let mut parent_id = last;
        let mut used: HashSet<EntryId> = HashSet::new();
        for at in path {
            let target = &slots[*at].id;
            let Some(label) = self.index.label(target).filter(|_| slots[*at].kind != EntryType::Label) else {
                continue;
            };
            let is_used = |id: &str| self.index.find(id).is_some() || used.contains(&EntryId::new(id));
            let id = EntryId::new(fresh_id(&self.host, is_used));
            used.insert(id.clone());
            let entry = Entry {
                id: id.clone(),
                parent_id: parent_id.replace(id),
                timestamp: label.timestamp.clone(),
                body: EntryBody::Label { target_id: target.clone(), label: Some(label.text.clone()) },
            };
            copy.extend_from_slice(entry.to_line().as_bytes());
            copy.push(b'\n');
        }
    }
}
