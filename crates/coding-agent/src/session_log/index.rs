//! Where each entry stands in the bytes of a session, and how entries hang together.

use std::collections::HashMap;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Map;

use crate::entry::scan::{self, Kind, Role};
use crate::entry::{Entry, EntryBody, EntryId};

/// Stands for "no entry" in a slot.
const NONE: u32 = u32::MAX;

/// Where one entry is and what it is.
#[derive(Debug)]
pub(crate) struct Slot {
    segment: u32,
    start: u32,
    len: u32,
    parent: u32,
    pub(crate) id: EntryId,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
}

/// A mark on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The mark.
    pub text: String,
    /// ISO time at which it was set.
    pub timestamp: String,
}

/// The bytes of a session as they came, and a slot for each entry. Entries are parsed when asked for.
#[derive(Debug, Default)]
pub(crate) struct Index {
    segments: Vec<Bytes>,
    slots: Vec<Slot>,
    ids: HashMap<EntryId, u32>,
    labels: HashMap<EntryId, Label>,
    /// Some entry stands before its parent, so chains may be circles.
    out_of_order: bool,
    /// Lines that are no entries.
    pub(crate) n_skipped: usize,
    /// Entries of the live context, parsed.
    parsed: Mutex<HashMap<u32, Arc<Entry>>>,
}

impl Index {
    /// Adds the lines of a text; returns the slots of its entries.
    pub(crate) fn push(&mut self, text: Bytes) -> Range<usize> {
        let first = self.slots.len();
        let segment = number(self.segments.len());
        let mut parents = Vec::new();
        for (at, line) in scan::lines(&text) {
            let seen = scan::line(line).map(|seen| (seen.kind, seen.role, seen.id, seen.parent_id));
            let Some((kind, role, Some(id), parent)) = seen else {
                self.n_skipped += usize::from(!matches!(seen, Some((Kind::Session, ..))));
                continue;
            };
            if kind == Kind::Session {
                continue;
            }
            let id = EntryId::new(id);
            self.ids.insert(id.clone(), number(self.slots.len()));
            parents.push(parent);
            self.slots.push(Slot { segment, start: number(at), len: number(line.len()), parent: NONE, id, kind, role });
        }
        for (at, parent) in (first..).zip(parents) {
            let parent = parent.and_then(|id| self.ids.get(&*id).copied()).unwrap_or(NONE);
            self.out_of_order |= parent != NONE && parent as usize >= at;
            self.slots[at].parent = parent;
        }
        self.segments.push(text);
        for at in first..self.slots.len() {
            if self.slots[at].kind == Kind::Label {
                self.note_label(at);
            }
        }
        first..self.slots.len()
    }

    /// Adds what was appended after the text that is known. When that ended inside of a line, it was read while somebody was writing: the
    /// line is whole now.
    pub(crate) fn push_tail(&mut self, tail: Bytes) -> Range<usize> {
        let known = self.segments.last().map_or(&[][..], |last| last);
        let torn = &known[memchr::memrchr(b'\n', known).map_or(0, |at| at + 1)..];
        let is_whole = torn.trim_ascii().is_empty() || scan::line(torn.trim_ascii()).is_some();
        if is_whole {
            return self.push(tail);
        }
        let joined = Bytes::from([torn, &tail].concat());
        self.n_skipped = self.n_skipped.saturating_sub(1);
        self.push(joined)
    }

    fn note_label(&mut self, at: usize) {
        let Some(entry) = Entry::parse(self.line(at)) else { return };
        if let EntryBody::Label { target_id, label } = entry.body {
            match label {
                Some(text) => drop(self.labels.insert(target_id, Label { text, timestamp: entry.timestamp })),
                None => drop(self.labels.remove(&target_id)),
            }
        }
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The last entry with this id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.ids.get(id).map(|at| *at as usize)
    }

    pub(crate) fn parent(&self, at: usize) -> Option<usize> {
        Some(self.slots[at].parent).filter(|parent| *parent != NONE).map(|parent| parent as usize)
    }

    pub(crate) fn label(&self, id: &EntryId) -> Option<&Label> {
        self.labels.get(id)
    }

    pub(crate) fn labels(&self) -> impl Iterator<Item = (&EntryId, &Label)> {
        self.labels.iter()
    }

    /// The bytes of an entry's line.
    pub(crate) fn line(&self, at: usize) -> &[u8] {
        let slot = &self.slots[at];
        let start = slot.start as usize;
        &self.segments[slot.segment as usize][start..start + slot.len as usize]
    }

    /// The entry, parsed now or before.
    pub(crate) fn entry(&self, at: usize) -> Arc<Entry> {
        if let Some(entry) = self.parsed().get(&number(at)) {
            return Arc::clone(entry);
        }
        let slot = &self.slots[at];
        let entry = Entry::parse(self.line(at)).unwrap_or_else(|| Entry {
            id: slot.id.clone(),
            parent_id: self.parent(at).map(|parent| self.slots[parent].id.clone()),
            timestamp: String::new(),
            body: EntryBody::Other(Map::new()),
        });
        Arc::new(entry)
    }

    /// Keeps an entry parsed.
    pub(crate) fn keep(&self, at: usize, entry: Arc<Entry>) {
        self.parsed().insert(number(at), entry);
    }

    /// Keeps exactly these entries parsed.
    pub(crate) fn keep_only(&self, entries: impl Iterator<Item = (usize, Arc<Entry>)>) {
        *self.parsed() = entries.map(|(at, entry)| (number(at), entry)).collect();
    }

    fn parsed(&self) -> MutexGuard<'_, HashMap<u32, Arc<Entry>>> {
        self.parsed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way from a root to an entry. A circle is cut where it closes.
    pub(crate) fn path(&self, leaf: Option<usize>) -> Vec<usize> {
        let mut path = Vec::new();
        let mut seen = HashSet::new();
        let mut next = leaf;
        while let Some(at) = next {
            if self.out_of_order && !seen.insert(at) {
                break;
            }
            path.push(at);
            next = self.parent(at);
        }
        path.reverse();
        path
    }
}

/// Places are kept in 32 bits: a session of 4 GiB cannot be in memory twice over anyway.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_cut() {
        let mut index = Index::default();
        index.push(Bytes::from_static(
            b"{\"type\":\"x\",\"id\":\"a\",\"parentId\":\"b\"}\n{\"type\":\"x\",\"id\":\"b\",\"parentId\":\"a\"}\n",
        ));
        assert_eq!(index.path(Some(1)), [0, 1]);
        assert_eq!(index.path(Some(0)), [1, 0]);
    }
}
