//! The position of each entry in the bytes of a session, and the links between entries.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Map;

use super::circles;
use super::parts::{self, TextPart};
use super::segment::{LineWindow, Segment};
use super::slots::{EntrySlot, NONE, Slots, number};
use super::threads;
use crate::entry::scan::{self, EntryType};
use crate::entry::{Entry, EntryBody, EntryId};
use crate::store::StoredText;

/// A label on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Text of the label.
    pub text: String,
    /// ISO time at which it was set.
    pub timestamp: String,
}

/// The text of a session, in memory or in its store, with a slot for each entry. Entries are parsed on demand.
#[derive(Debug, Default)]
pub(crate) struct Index {
    segments: Vec<Segment>,
    slots: Slots,
    labels: HashMap<EntryId, Label>,
    /// Number of lines that are not entries.
    pub(crate) n_skipped: usize,
    /// Number of cycles among parents that were cut; the first entry of each is a root.
    pub(crate) n_cycles: usize,
    /// Parsed entries of the live context.
    parsed: Mutex<HashMap<u32, Arc<Entry>>>,
}

impl Clone for Index {
    fn clone(&self) -> Self {
        Self {
            segments: self.segments.clone(),
            slots: self.slots.clone(),
            labels: self.labels.clone(),
            n_skipped: self.n_skipped,
            n_cycles: self.n_cycles,
            parsed: Mutex::new(self.parsed().clone()),
        }
    }
}

impl Index {
    /// Indexes a stored text. Lines are read on demand.
    ///
    /// # Errors
    /// Fails if the text cannot be read.
    pub(crate) fn of_stored(text: Arc<dyn StoredText>) -> io::Result<Self> {
        let mut parts = parts::of_stored(&*text)?;
        let torn = parts.iter_mut().map(|part| std::mem::take(&mut part.torn)).find(|torn| !torn.is_empty());
        let mut index = Self::default();
        index.add(Segment::Stored { text, torn: torn.unwrap_or_default() }, parts);
        Ok(index)
    }

    /// Adds the lines of a text; returns the slots of its entries.
    pub(crate) fn push(&mut self, text: Bytes) -> Range<usize> {
        let parts = parts::of_text(&text);
        self.add(Segment::Kept(text), parts)
    }

    /// Adds entries that were written as these lines; returns their slots.
    pub(crate) fn push_written(&mut self, lines: &[u8], entries: Vec<Arc<Entry>>) -> Range<usize> {
        let first = self.slots.len();
        for (line, entry) in lines.split_inclusive(|byte| *byte == b'\n').zip(entries) {
            let segment = match entry.body.as_message() {
                Some(_) => Segment::Written(entry),
                None => Segment::Kept(Bytes::copy_from_slice(line)),
            };
            self.add(segment, parts::of_text(line));
        }
        first..self.slots.len()
    }

    fn add(&mut self, text: Segment, parts: Vec<TextPart>) -> Range<usize> {
        let first = self.slots.len();
        let segment = number(self.segments.len());
        // Parents other than the previous entry.
        let mut others = Vec::new();
        self.slots.reserve(parts.iter().map(|part| part.found.len()).sum());
        for part in parts {
            self.n_skipped += part.n_skipped;
            let base = self.slots.len();
            others.extend(part.others.into_iter().map(|(at, parent)| (base + at, parent)));
            self.slots.add(part.found);
        }
        // Of duplicate ids, the last one wins.
        let unique = self.slots.are_unique();
        let mut others = others.into_iter().peekable();
        // A cycle needs an entry that precedes its parent, and all its entries are in the same text.
        let mut out_of_order = false;
        for at in first..self.slots.len() {
            let before = at.wrapping_sub(1);
            let parent = match others.next_if(|(other, _)| *other == at) {
                Some((_, parent)) => parent.and_then(|id| self.slots.find(id.as_str())),
                None if unique => Some(before),
                None => self.slots.find(self.slots[before].id.as_str()),
            };
            out_of_order |= parent.is_some_and(|parent| parent >= at);
            self.slots.set(at, segment, parent.map_or(NONE, number));
        }
        if out_of_order {
            let cuts = circles::cuts(self.slots.len(), |at| self.parent(at));
            self.n_cycles += cuts.len();
            cuts.into_iter().for_each(|at| self.slots.set(at, segment, NONE));
        }
        self.segments.push(text);
        for at in first..self.slots.len() {
            if self.slots[at].kind == EntryType::Label {
                self.note_label(at);
            }
        }
        first..self.slots.len()
    }

    /// Adds text appended after the known end. If the known text ended within a line, that line was being written when it was read and is
    /// complete now.
    pub(crate) fn push_tail(&mut self, tail: Bytes) -> Range<usize> {
        let torn = self.segments.last().map_or(&[][..], Segment::torn);
        let is_whole = torn.trim_ascii().is_empty() || scan::line(torn.trim_ascii()).is_some();
        if is_whole {
            return self.push(tail);
        }
        let joined = Bytes::from([torn, &tail].concat());
        self.n_skipped = self.n_skipped.saturating_sub(1);
        self.push(joined)
    }

    fn note_label(&mut self, at: usize) {
        let Some(entry) = Entry::parse(&self.line(at)) else { return };
        if let EntryBody::Label { target_id, label } = entry.body {
            match label {
                Some(text) => drop(self.labels.insert(target_id, Label { text, timestamp: entry.timestamp })),
                None => drop(self.labels.remove(&target_id)),
            }
        }
    }

    pub(crate) fn slots(&self) -> &[EntrySlot] {
        &self.slots
    }

    /// Returns the last entry with this id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.slots.find(id)
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

    /// Returns the bytes of an entry's line.
    ///
    /// # Errors
    /// Fails if they are not in memory and cannot be read any more.
    pub(crate) fn try_line(&self, at: usize) -> io::Result<Cow<'_, [u8]>> {
        let slot = &self.slots[at];
        self.segments[slot.segment as usize].read(slot.start, slot.len)
    }

    /// Returns the bytes of an entry's line; empty, with a warning, if they cannot be read any more.
    pub(crate) fn line(&self, at: usize) -> Cow<'_, [u8]> {
        self.try_line(at).unwrap_or_else(|error| {
            tracing::warn!(%error, id = %self.slots[at].id, "a session entry can no longer be read");
            Cow::Borrowed(&[])
        })
    }

    /// Returns the entry, from the cache if it was parsed before. An unreadable one becomes an empty entry.
    pub(crate) fn entry(&self, at: usize) -> Arc<Entry> {
        self.known(at).unwrap_or_else(|| self.parse(at, &self.line(at)))
    }

    /// Returns the entry, from the cache if it was parsed before.
    ///
    /// # Errors
    /// Fails if its line cannot be read any more.
    pub(crate) fn try_entry(&self, at: usize) -> io::Result<Arc<Entry>> {
        self.known(at).map_or_else(|| Ok(self.parse(at, &self.try_line(at)?)), Ok)
    }

    /// Returns several entries, from the cache if they were parsed before.
    pub(crate) fn entries(&self, places: &[usize]) -> Vec<Arc<Entry>> {
        let n_bytes = places.iter().map(|at| self.slots[*at].len as usize).sum();
        threads::in_chunks(places, threads::worth(n_bytes), |places| {
            let mut window = LineWindow::default();
            let mut entry = |at: usize| {
                self.known(at).unwrap_or_else(|| {
                    let slot = &self.slots[at];
                    match window.read(&self.segments[slot.segment as usize], slot.start, slot.len) {
                        Ok(line) => self.parse(at, line),
                        Err(_) => self.entry(at),
                    }
                })
            };
            places.iter().map(|at| entry(*at)).collect()
        })
    }

    /// Returns the entry if it is in memory.
    fn known(&self, at: usize) -> Option<Arc<Entry>> {
        match &self.segments[self.slots[at].segment as usize] {
            Segment::Written(entry) => Some(Arc::clone(entry)),
            Segment::Kept(_) | Segment::Stored { .. } => self.parsed().get(&number(at)).cloned(),
        }
    }

    /// Parses an entry's line. If the file was overwritten, the line may be a different entry.
    fn parse(&self, at: usize, line: &[u8]) -> Arc<Entry> {
        let slot = &self.slots[at];
        let entry = Entry::parse(line).filter(|entry| entry.id == slot.id).unwrap_or_else(|| Entry {
            id: slot.id.clone(),
            parent_id: self.parent(at).map(|parent| self.slots[parent].id.clone()),
            timestamp: String::new(),
            body: EntryBody::Other(Map::new()),
        });
        Arc::new(entry)
    }

    /// Caches exactly these parsed entries.
    pub(crate) fn keep_only(&self, entries: impl Iterator<Item = (usize, Arc<Entry>)>) {
        *self.parsed() = entries.map(|(at, entry)| (number(at), entry)).collect();
    }

    fn parsed(&self) -> MutexGuard<'_, HashMap<u32, Arc<Entry>>> {
        self.parsed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of entries whose id occurs again later.
    pub(crate) fn n_duplicates(&self) -> usize {
        self.slots.n_duplicates()
    }

    /// Returns the path from a root to an entry. Terminates because cycles were cut when the entries were added.
    pub(crate) fn path(&self, leaf: Option<usize>) -> Vec<usize> {
        let mut path: Vec<usize> = std::iter::successors(leaf, |at| self.parent(*at)).collect();
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_cut_at_their_first_entry() {
        let mut index = Index::default();
        index.push(Bytes::from_static(
            b"{\"type\":\"x\",\"id\":\"a\",\"parentId\":\"b\"}\n{\"type\":\"x\",\"id\":\"b\",\"parentId\":\"a\"}\n",
        ));
        assert_eq!(index.path(Some(1)), [0, 1]);
        assert_eq!(index.path(Some(0)), [0]);
        assert_eq!(index.n_cycles, 1);
    }
}
