//! Where each entry stands in the bytes of a session, and how entries hang together.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Map;

use super::threads;
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
        let parts = parts(&text, threads::worth(text.len()));
        for part in threads::map(&parts, parts.len(), |part| Part::scan(&text, part.clone(), segment)) {
            self.n_skipped += part.n_skipped;
            self.ids.reserve(part.found.len());
            for (slot, parent) in part.found {
                self.ids.insert(slot.id.clone(), number(self.slots.len()));
                self.slots.push(slot);
                parents.push(parent);
            }
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

    /// Several entries, parsed now or before.
    pub(crate) fn entries(&self, places: &[usize]) -> Vec<Arc<Entry>> {
        let n_bytes = places.iter().map(|at| self.slots[*at].len as usize).sum();
        threads::map(places, threads::worth(n_bytes), |at| self.entry(*at))
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

/// The entries of a part of a text, each with the id of its parent.
#[derive(Default)]
struct Part<'a> {
    found: Vec<(Slot, Option<Cow<'a, str>>)>,
    n_skipped: usize,
}

impl<'a> Part<'a> {
    fn scan(text: &'a [u8], part: Range<usize>, segment: u32) -> Self {
        let mut all = Self::default();
        for (at, line) in scan::lines_in(text, part) {
            let seen = scan::line(line).map(|seen| (seen.kind, seen.role, seen.id, seen.parent_id));
            match seen {
                Some((Kind::Session, ..)) => {}
                Some((kind, role, Some(id), parent)) => {
                    let (start, len, id) = (number(at), number(line.len()), EntryId::new(id));
                    all.found.push((Slot { segment, start, len, parent: NONE, id, kind, role }, parent));
                }
                _ => all.n_skipped += 1,
            }
        }
        all
    }
}

/// Parts of whole lines that make up a text.
fn parts(text: &[u8], n_parts: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::with_capacity(n_parts);
    let mut start = 0;
    for n in 1..=n_parts {
        let from = (text.len() / n_parts * n).max(start);
        let end = memchr::memchr(b'\n', &text[from..]).filter(|_| n < n_parts).map_or(text.len(), |at| from + at + 1);
        parts.push(start..end);
        start = end;
    }
    parts
}

/// Places are kept in 32 bits: a session of 4 GiB cannot be in memory twice over anyway.
fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_find_what_the_whole_holds() {
        let line = |n: usize| match n % 7 {
            0 => "no entry\n".to_owned(),
            1 => "\n".to_owned(),
            _ => format!("{{\"type\":\"x\",\"id\":\"{n}\",\"parentId\":\"{}\"}}\n", n - 1),
        };
        let text: String = std::iter::once("\u{feff}".to_owned()).chain((0..50).map(line)).collect();
        let whole: Vec<String> = Part::scan(text.as_bytes(), 0..text.len(), 0).found.iter().map(told).collect();
        assert_eq!(whole.len(), 35);
        for n_parts in 1..60 {
            let parts = parts(text.as_bytes(), n_parts).into_iter().map(|part| Part::scan(text.as_bytes(), part, 0));
            let (found, n_skipped) = parts.fold((Vec::new(), 0), |(mut found, n_skipped), part| {
                found.extend(part.found.iter().map(told));
                (found, n_skipped + part.n_skipped)
            });
            assert_eq!((found, n_skipped), (whole.clone(), 8), "{n_parts} parts");
        }
        assert_eq!(parts(b"", 3), [0..0, 0..0, 0..0]);
    }

    fn told((slot, parent): &(Slot, Option<Cow<'_, str>>)) -> String {
        format!("{slot:?} {parent:?}")
    }

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
