//! One session: a tree of entries, appended to and never rewritten.
//!
//! The log keeps an index and the bytes of the session (those of a long one stay in its file); entries are parsed on demand. Everything
//! except loading and appending is synchronous. Three rules always hold: every tool call has exactly one result before the next message
//! (see [`heal`]); an entry that could not be written does not exist in memory either; and entries appended by other programs are followed
//! or branched from, never overwritten.
//!
//! A new session has no file until its first message from the user or a model; earlier entries wait in memory.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_llm::ids::SessionId;
use pinch_llm::message::{AssistantMessage, Message, ToolCall};
use pinch_stdx::host::Host;

mod threads;
mod slots;
mod parts;
mod segment;
mod circles;
pub(crate) mod index;
pub mod roles;
mod guard;
pub mod heal;
mod append;
mod branch;
mod context;
mod fork;
mod snapshot;
mod recent;
mod open;
mod export;
mod problems;

pub use branch::{Branch, EntryTree, TreeNode};
pub(crate) use context::edited_messages;
pub use context::{BranchModel, Context, context_of};
pub use fork::NewSession;
pub use index::Label;
pub use recent::RecentSessions;
pub use roles::convert_to_llm;

use crate::entry::scan::EntryType;
use crate::entry::{BranchSummary, Entry, EntryBody, EntryId, Header, VERSION};
use crate::store::{Fence, Journal, SessionStore, StoreError};
use index::Index;

/// Maximum tries for a write while other processes keep writing in between.
const MAX_TRIES: usize = 64;

/// Entries that other programs appended while the session was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// Number of entries they appended.
    pub n_entries: usize,
    /// Whether the active branch continues after them; otherwise it is a sibling branch.
    pub followed: bool,
}

/// One session.
pub struct SessionLog {
    host: Host,
    store: Option<Arc<dyn SessionStore>>,
    journal: Option<Box<dyn Journal>>,
    /// File of the session that this one is a snapshot of.
    snapshot_of: Option<PathBuf>,
    header: Header,
    cwd: String,
    /// Shared with snapshots; changing the log leaves theirs unchanged.
    index: Arc<Index>,
    leaf: Option<usize>,
    /// Last known end of the journal.
    end: u64,
    /// Lines not written yet, header included; `None` once the file exists.
    waiting: Option<Vec<u8>>,
    /// Calls without results at the leaf; `None` if not computed yet.
    awaited: Option<Vec<ToolCall>>,
    /// Entries held back until the last of those results.
    held: Vec<(EntryId, EntryBody)>,
    /// Text a model reads in place of a missing result.
    missing_result: &'static str,
    conflicts: VecDeque<Conflict>,
    /// How many of the last compactions saved hardly anything.
    n_ineffective: u32,
}

impl std::fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionLog")
            .field("header", &self.header)
            .field("n_entries", &self.index.slots().len())
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl SessionLog {
    /// Creates a session; nothing is written yet.
    ///
    /// # Errors
    /// Fails if the store cannot create it.
    pub fn create(
        host: &Host,
        store: Arc<dyn SessionStore>,
        new: NewSession,
    ) -> BoxFuture<'_, Result<Self, StoreError>> {
        Box::pin(async move {
            let header = new.into_header(host);
            let journal = store.create(&header).await?;
            Ok(Self::empty(host, Some(store), Some(journal), header))
        })
    }

    /// Creates a session that is never stored.
    pub fn in_memory(host: &Host, new: NewSession) -> Self {
        Self::empty(host, None, None, new.into_header(host))
    }

    /// Overrides the working directory of the header.
    #[must_use]
    pub fn with_cwd(mut self, cwd: &str) -> Self {
        cwd.clone_into(&mut self.cwd);
        self
    }

    /// Restricts appends to while `fence` is current; otherwise they fail with [`StoreError::Fenced`].
    pub fn set_fence(&mut self, fence: Arc<dyn Fence>) {
        if let Some(journal) = &mut self.journal {
            journal.set_fence(fence);
        }
    }

    /// Sets the text that a model reads in place of a missing result.
    #[must_use]
    pub fn with_missing_result(mut self, text: &'static str) -> Self {
        self.missing_result = text;
        self
    }

    /// Flushes appended entries to disk, if the store is configured to do so at the end of turns.
    ///
    /// # Errors
    /// Fails if the disk reports an error.
    pub fn sync(&mut self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            match &mut self.journal {
                Some(journal) if self.waiting.is_none() => journal.sync().await,
                _ => Ok(()),
            }
        })
    }

    /// Returns the next report of entries appended by other programs; each is returned once.
    pub fn take_conflict(&mut self) -> Option<Conflict> {
        self.conflicts.pop_front()
    }

    /// Appends a message.
    ///
    /// # Errors
    /// Same as [`SessionLog::append`].
    pub async fn append_message(&mut self, message: impl Into<Arc<Message>>) -> Result<EntryId, StoreError> {
        self.append(EntryBody::Message(message.into())).await
    }

    /// Labels an entry; an empty label clears it. The label's entry becomes the leaf.
    ///
    /// # Errors
    /// Fails if the entry does not exist, and like [`SessionLog::append`].
    pub fn append_label<'a>(
        &'a mut self,
        target: &'a EntryId,
        label: Option<&'a str>,
    ) -> BoxFuture<'a, Result<EntryId, StoreError>> {
        Box::pin(async move {
            self.find(target)?;
            let label = label.filter(|label| !label.is_empty()).map(str::to_owned);
            self.append(EntryBody::Label { target_id: target.clone(), label }).await
        })
    }

    /// Removes the last message from the context if it is an answer that matches; the answer stays in the log. Returns the entry that removes
    /// it.
    ///
    /// # Errors
    /// Same as [`SessionLog::append`].
    pub async fn omit_last_answer(
        &mut self,
        is_such: impl Fn(&AssistantMessage) -> bool,
    ) -> Result<Option<EntryId>, StoreError> {
        let context = self.context();
        let is_last = context.messages.last().and_then(|m| m.as_assistant()).is_some_and(|answer| is_such(answer));
        let Some(target_id) = context.entry_ids.last().filter(|_| is_last).cloned() else { return Ok(None) };
        self.append(EntryBody::ContextEdit { target_id, replacement: None }).await.map(Some)
    }

    /// Names the session; a blank name clears it. Line breaks become spaces.
    ///
    /// # Errors
    /// Same as [`SessionLog::append`].
    pub fn append_name<'a>(&'a mut self, name: &'a str) -> BoxFuture<'a, Result<EntryId, StoreError>> {
        Box::pin(async move {
            let lines: Vec<&str> = name.split(['\r', '\n']).map(str::trim).filter(|line| !line.is_empty()).collect();
            self.append(EntryBody::SessionInfo { name: lines.join(" ") }).await
        })
    }

    /// Moves the leaf to an entry and appends the summary of the branch left behind. `None` moves before the first entry.
    ///
    /// # Errors
    /// Fails if the entry does not exist, and like [`SessionLog::append`]; the leaf does not move then.
    pub fn branch_with_summary<'a>(
        &'a mut self,
        target: Option<&'a EntryId>,
        mut summary: BranchSummary,
    ) -> BoxFuture<'a, Result<EntryId, StoreError>> {
        Box::pin(async move {
            let target = target.map(|id| self.find(id)).transpose()?;
            let left = self.leaf;
            summary.from_id = self.leaf_id().map_or_else(|| "root".to_owned(), EntryId::to_string);
            self.set_leaf(target);
            let appended = self.append(EntryBody::BranchSummary(summary)).await;
            if appended.is_err() {
                self.set_leaf(left);
            }
            appended
        })
    }

    /// Makes an entry the leaf: the next entry follows it.
    ///
    /// # Errors
    /// Fails if the entry does not exist.
    pub fn move_to(&mut self, id: &EntryId) -> Result<(), StoreError> {
        let at = self.find(id)?;
        self.set_leaf(Some(at));
        Ok(())
    }

    /// Moves before the first entry: the next entry becomes a new root.
    pub fn reset_leaf(&mut self) {
        self.set_leaf(None);
    }

    fn set_leaf(&mut self, leaf: Option<usize>) {
        self.leaf = leaf;
        self.awaited = None;
    }

    fn find(&self, id: &EntryId) -> Result<usize, StoreError> {
        self.index.find(id.as_str()).ok_or_else(|| StoreError::NoEntry { id: id.to_string() })
    }

    /// Returns the context of the active branch.
    pub fn context(&self) -> Context {
        context::context_at(&self.index, &self.index.path(self.leaf), true)
    }

    /// Returns the context of the branch that ends in `leaf`; an empty one for `None`.
    ///
    /// # Errors
    /// Fails if the entry does not exist.
    pub fn context_at(&self, leaf: Option<&EntryId>) -> Result<Context, StoreError> {
        let leaf = leaf.map(|id| self.find(id)).transpose()?;
        Ok(context::context_at(&self.index, &self.index.path(leaf), false))
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.header.id
    }

    /// Returns the working directory.
    pub fn cwd(&self) -> &str {
        &self.cwd
    }

    /// Returns the path of the file, even before it exists; `None` for sessions in memory.
    pub fn path(&self) -> Option<&Path> {
        self.journal.as_ref().and_then(|journal| journal.path()).or(self.snapshot_of.as_deref())
    }

    /// Returns whether the session is stored anywhere.
    pub fn is_persisted(&self) -> bool {
        self.journal.is_some()
    }

    /// Returns whether everything appended is stored: false while a new session waits for its first message.
    pub fn is_saved(&self) -> bool {
        self.waiting.is_none()
    }

    /// Returns the entry that the next one follows.
    pub fn leaf_id(&self) -> Option<&EntryId> {
        self.leaf.map(|at| &self.index.slots()[at].id)
    }

    /// Returns the ids of all entries in file order, duplicates included.
    pub fn entry_ids(&self) -> impl ExactSizeIterator<Item = &EntryId> {
        self.index.slots().iter().map(|slot| &slot.id)
    }

    /// Returns an entry.
    pub fn entry(&self, id: &EntryId) -> Option<Arc<Entry>> {
        self.index.find(id.as_str()).map(|at| self.index.entry(at))
    }

    /// Returns the line of an entry, as stored.
    pub fn line(&self, id: &EntryId) -> Option<Cow<'_, [u8]>> {
        self.index.find(id.as_str()).map(|at| self.index.line(at))
    }

    /// Returns the line of the entry at an index, as stored, or `None` if it cannot be read any more.
    pub fn line_at(&self, at: usize) -> Option<Cow<'_, [u8]>> {
        self.index.try_line(at).ok()
    }

    /// Returns the line of an entry, to copy it.
    fn stored_line(&self, at: usize) -> Result<Cow<'_, [u8]>, StoreError> {
        self.index.try_line(at).map_err(StoreError::io("read", self.path().unwrap_or(Path::new(""))))
    }

    /// Returns the entry at an index in file order.
    ///
    /// # Errors
    /// Fails if its line cannot be read any more.
    pub fn try_entry(&self, at: usize) -> Result<Arc<Entry>, StoreError> {
        self.index.try_entry(at).map_err(StoreError::io("read", self.path().unwrap_or(Path::new(""))))
    }

    /// Returns all entries in file order, parsed one by one.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = Arc<Entry>> + '_ {
        (0..self.index.slots().len()).map(|at| self.index.entry(at))
    }

    /// Returns the state that an extension recorded last, on any branch.
    pub fn last_custom(&self, wanted: &str) -> Option<Option<serde_json::Value>> {
        let slots = self.index.slots();
        let customs = (0..slots.len()).rev().filter(|at| slots[*at].kind == EntryType::Custom);
        customs.map(|at| self.index.entry(at)).find_map(|entry| match &entry.body {
            EntryBody::Custom { custom_type, data } if custom_type == wanted => Some(data.clone()),
            _ => None,
        })
    }

    /// Returns the label of an entry.
    pub fn label(&self, id: &EntryId) -> Option<&Label> {
        self.index.label(id)
    }

    /// Returns all labels.
    pub fn labels(&self) -> impl Iterator<Item = (&EntryId, &Label)> {
        self.index.labels()
    }

    /// Returns the session's name.
    pub fn name(&self) -> Option<String> {
        let last = self.index.slots().iter().rposition(|slot| slot.kind == EntryType::SessionInfo)?;
        match &self.index.entry(last).body {
            EntryBody::SessionInfo { name } => Some(name.trim().to_owned()).filter(|name| !name.is_empty()),
            _ => None,
        }
    }
}

fn line(text: &str) -> Vec<u8> {
    let mut line = text.as_bytes().to_vec();
    line.push(b'\n');
    line
}

/// Creates a header of the current version.
pub(crate) fn new_header(host: &Host, id: Option<SessionId>, cwd: &str, parent: Option<String>) -> Header {
    let now = host.now_ms();
    Header {
        version: VERSION,
        id: id.unwrap_or_else(|| host.ids().uuid_v7(now).into()),
        timestamp: pinch_stdx::host::iso_from_ms(now),
        cwd: Some(cwd.to_owned()),
        parent_session: parent,
    }
}
