//! The entries of a session in their order, found by place or by id.

use std::hash::BuildHasher as _;
use std::ops::Deref;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::entry::EntryId;
use crate::entry::scan::{EntryType, MessageRole};

/// Stands for "no entry" in a slot.
pub(super) const NONE: u32 = u32::MAX;

/// Where one entry is and what it is.
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
    /// The last place of each id. Hashed fast, with a secret of this process: a session has tens of thousands, and a file must not choose where
    /// they fall.
    places: HashTable<u32>,
    hasher: RandomState,
}

impl Slots {
    /// Makes room for more.
    pub(super) fn reserve(&mut self, n_more: usize) {
        let Self { slots, places, hasher } = self;
        places.reserve(n_more, |at| hasher.hash_one(slots[*at as usize].id.as_str()));
    }

    /// Takes slots behind those that are there.
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

    /// The last entry with this id.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let found = self.places.find(self.hasher.hash_one(id), |at| self.slots[*at as usize].id.as_str() == id);
        found.map(|at| *at as usize)
    }

    /// Whether there are no duplicate ids.
    pub(super) fn are_unique(&self) -> bool {
        self.n_duplicates() == 0
    }

    /// Entries whose id a later one has as well.
    pub(super) fn n_duplicates(&self) -> usize {
        self.slots.len() - self.places.len()
    }

    /// Changes what is known of an entry; its id stays.
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

/// Places are kept in 32 bits: a session of 4 GiB cannot be in memory twice over anyway.
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
    fn of_an_id_that_stands_twice_the_last_one_is_found() {
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
