//! The entries of a session in order, with lookup by index or id.

use std::hash::BuildHasher as _;
use std::ops::Deref;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::entry::EntryId;
use crate::entry::scan::{EntryType, MessageRole};

/// Marks the absence of an entry in a slot.
pub(super) const NONE: u32 = u32::MAX;

/// The location and type of one entry.
#[derive(Clone, Debug)]
pub(crate) struct EntrySlot {
    pub(super) segment: u32,
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) parent: u32,
    pub(crate) id: EntryId,
    pub(crate) kind: EntryType,
    pub(crate) role: MessageRole,
}

/// A slot for each entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    slots: Vec<EntrySlot>,
    /// The last index of each id. Uses a fast hash with a per-process secret: a session has tens of thousands of ids, and a file must not
    /// be able to choose their buckets.
    places: HashTable<u32>,
    hasher: RandomState,
}

impl Slots {
    /// Reserves room for more slots.
    pub(super) fn reserve(&mut self, n_more: usize) {
        let Self { slots, places, hasher } = self;
        places.reserve(n_more, |at| hasher.hash_one(slots[*at as usize].id.as_str()));
    }

    /// Appends slots.
    pub(super) fn add(&mut self, more: Vec<EntrySlot>) {
        let first = self.slots.len();
        if first == 0 {
            self.slots = more;
        } else {
            self.slots.extend(more);
        }
        let Self { slots, places, hasher } = self;
        let hash = |at: u32| hasher.hash_one(slots[at as usize].id.as_str());
        for at in (first..slots.len()).map(number) {
            let is_same = |other: &u32| slots[*other as usize].id == slots[at as usize].id;
            *places.entry(hash(at), is_same, |at| hash(*at)).or_insert(at).get_mut() = at;
        }
    }

    /// Returns the last entry with this id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let found = self.places.find(self.hasher.hash_one(id), |at| self.slots[*at as usize].id.as_str() == id);
        found.map(|at| *at as usize)
    }

    /// Returns whether there are no duplicate ids.
    pub(super) fn are_unique(&self) -> bool {
        self.n_duplicates() == 0
    }

    /// Returns the number of entries whose id occurs again later.
    pub(super) fn n_duplicates(&self) -> usize {
        self.slots.len() - self.places.len()
    }

    /// Changes the segment and parent of an entry; its id stays.
    pub(super) fn set(&mut self, at: usize, segment: u32, parent: u32) {
        let slot = &mut self.slots[at];
        (slot.segment, slot.parent) = (segment, parent);
    }
}

impl Deref for Slots {
    type Target = [EntrySlot];

    fn deref(&self) -> &[EntrySlot] {
        &self.slots
    }
}

/// Converts an index to 32 bits: a session of 4 GiB does not fit into memory twice anyway.
pub(super) fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(id: &str) -> EntrySlot {
        EntrySlot {
            segment: 0,
            start: 0,
            len: 0,
            parent: NONE,
            id: id.into(),
            kind: EntryType::Custom,
            role: MessageRole::None,
        }
    }

    #[test]
    fn the_last_of_duplicate_ids_is_found() {
        let mut slots = Slots::default();
        slots.add((0..100).map(|n| slot(&n.to_string())).collect());
        assert!(slots.are_unique());
        slots.add(vec![slot("7"), slot("an id that is longer than those of most programs")]);
        assert!(!slots.are_unique());
        assert_eq!(slots.find("7"), Some(100));
        assert_eq!(slots.find("99"), Some(99));
        assert_eq!(slots.find("an id that is longer than those of most programs"), Some(101));
        assert_eq!(slots.find("100"), None);
    }
}
