//! Appending entries to the log and to disk.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_llm::message::{Message, ToolCall};

use super::guard::{self, Verdict};
use super::{Conflict, MAX_TRIES, SessionLog, heal};
use crate::entry::migrate::fresh_id;
use crate::entry::{Entry, EntryBody, EntryId};
use crate::store::{Appended, StoreError};

/// The entries written by one append.
struct AppendBatch {
    entries: Vec<(EntryId, EntryBody)>,
    /// Index of the requested entry.
    own: usize,
    with_held: bool,
}

/// Number of compactions in a row that may save hardly anything.
const MAX_INEFFECTIVE: u32 = 2;

impl SessionLog {
    /// Notes whether a compaction saved hardly anything.
    pub(crate) fn note_saving(&mut self, is_ineffective: bool) {
        self.n_ineffective = if is_ineffective { self.n_ineffective + 1 } else { 0 };
    }

    /// Returns whether the last two compactions since the log was opened each saved less than a tenth of the context. Another one would most
    /// likely be as useless: the rest, such as the system prompt, is too large for the window.
    pub fn is_compaction_futile(&self) -> bool {
        self.n_ineffective >= MAX_INEFFECTIVE
    }

    /// Appends an entry to the active branch and makes it the leaf.
    ///
    /// If tool calls still await results, missing results are appended before a message, whereas a message from the user's own shell
    /// command waits for the results. A result without a call is ignored with a warning, and the leaf is returned.
    ///
    /// # Errors
    /// Fails if nothing could be written; memory is unchanged then.
    pub fn append(&mut self, body: EntryBody) -> BoxFuture<'_, Result<EntryId, StoreError>> {
        Box::pin(async move {
            let body = guard::complete(body);
            for _ in 0..MAX_TRIES {
                let awaited = match self.awaited.take() {
                    Some(awaited) => awaited,
                    None => guard::awaited_at(&self.index, self.leaf),
                };
                let verdict = guard::judge(&body, &awaited);
                let batch = match verdict {
                    Verdict::Hold => {
                        self.awaited = Some(awaited);
                        let id = self.fresh_id(&[]);
                        self.held.push((id.clone(), body));
                        return Ok(id);
                    }
                    Verdict::Refuse => {
                        self.awaited = Some(awaited);
                        tracing::warn!(path = ?self.path(), "ignored a tool result without its call, or an incomplete call");
                        return Ok(self.leaf_id().cloned().unwrap_or_else(|| EntryId::new("")));
                    }
                    Verdict::Write { missing } => self.batch(&body, &missing, &awaited),
                };
                let after = batch.entries.iter().fold(awaited, |awaited, (_, body)| guard::after(body, awaited));
                let id = batch.entries[batch.own].0.clone();
                if self.write(batch.entries).await? {
                    self.awaited = Some(after);
                    if batch.with_held {
                        self.held.clear();
                    }
                    return Ok(id);
                }
            }
            Err(StoreError::Contended)
        })
    }

    /// Collects what to write for one entry: missing results and held entries before it, and held entries after the last awaited result.
    fn batch(&self, body: &EntryBody, missing: &[ToolCall], awaited: &[ToolCall]) -> AppendBatch {
        let mut entries: Vec<(EntryId, EntryBody)> = Vec::with_capacity(1 + missing.len());
        for call in missing {
            entries
                .push((self.fresh_id(&entries), heal::missing_result(call, self.missing_result, self.host.now_ms())));
        }
        let held_before = missing.len() == awaited.len();
        if held_before {
            entries.extend(self.held.iter().cloned());
        }
        let own = entries.len();
        let (id, mut body) = (self.fresh_id(&entries), body.clone());
        if let EntryBody::Compaction(compaction) = &mut body {
            // A compaction that keeps nothing refers to itself.
            compaction.first_kept_entry_id.get_or_insert_with(|| id.clone());
        }
        let held_after = !held_before && guard::after(&body, awaited.to_vec()).is_empty();
        entries.push((id, body));
        if held_after {
            entries.extend(self.held.iter().cloned());
        }
        AppendBatch { entries, own, with_held: held_before || held_after }
    }

    fn fresh_id(&self, batch: &[(EntryId, EntryBody)]) -> EntryId {
        let is_used = |id: &str| {
            self.index.find(id).is_some() || batch.iter().chain(&self.held).any(|(used, _)| used.as_str() == id)
        };
        EntryId::new(fresh_id(&self.host, is_used))
    }

    /// Writes entries as a chain below the leaf. Returns false if another process wrote first and the append must be retried.
    async fn write(&mut self, batch: Vec<(EntryId, EntryBody)>) -> Result<bool, StoreError> {
        let mut lines = Vec::new();
        let mut entries = Vec::with_capacity(batch.len());
        let mut parent_id = self.leaf_id().cloned();
        for (id, body) in batch {
            let entry =
                Entry { id: id.clone(), parent_id: parent_id.replace(id), timestamp: self.host.now_iso(), body };
            let line = entry.to_line().into_bytes();
            // Reuse the first line, to avoid copying a long one.
            if lines.is_empty() {
                lines = line;
            } else {
                lines.extend_from_slice(&line);
            }
            lines.push(b'\n');
            entries.push(Arc::new(entry));
        }
        let lines = Bytes::from(lines);
        if let Some(journal) = &mut self.journal {
            match &mut self.waiting {
                Some(waiting) if !entries.iter().any(|entry| begins_file(entry)) => waiting.extend_from_slice(&lines),
                waiting => {
                    let all = match waiting.as_deref() {
                        Some(waiting) => Bytes::from([waiting, &lines].concat()),
                        None => lines.clone(),
                    };
                    match journal.append(all, self.end).await? {
                        Appended::At(end) => self.end = end,
                        // Another process created a session under this name.
                        Appended::Moved { .. } if self.waiting.is_some() => {
                            let path = self.path().map_or_else(|| self.header.id.as_str().into(), Path::to_owned);
                            return Err(StoreError::Exists { path });
                        }
                        Appended::Moved { tail } => {
                            self.absorb(tail);
                            return Ok(false);
                        }
                    }
                    self.waiting = None;
                }
            }
        }
        let slots = Arc::make_mut(&mut self.index).push_written(&lines, entries);
        self.leaf = slots.end.checked_sub(1);
        Ok(true)
    }

    /// Adds entries appended by another process: those that continue our leaf are followed, others leave it unchanged.
    fn absorb(&mut self, tail: Bytes) {
        self.end += tail.len() as u64;
        let leaf = self.leaf;
        let slots = Arc::make_mut(&mut self.index).push_tail(tail);
        for at in slots.clone() {
            let continues = self.leaf.is_some() || at == 0;
            if continues && self.index.parent(at) == self.leaf {
                self.leaf = Some(at);
            }
        }
        self.awaited = None;
        self.conflicts.push_back(Conflict { n_entries: slots.len(), followed: self.leaf != leaf });
        tracing::warn!(path = ?self.path(), n_entries = slots.len(), "another program wrote to the session");
    }
}

/// Returns whether this entry creates the session's file: no prompt may be lost, let alone an answer.
fn begins_file(entry: &Entry) -> bool {
    matches!(entry.body.as_message().map(|message| &**message), Some(Message::User(_) | Message::Assistant(_)))
}
