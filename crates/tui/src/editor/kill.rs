//! The kill ring: deleted text that can be yanked.

use std::collections::VecDeque;

use super::marker::MarkedText;

/// Maximum number of entries.
const MAX_ENTRIES: usize = 60;
/// Maximum size of an entry in bytes, with its markers expanded. Larger texts are not stored here; undo restores them.
const MAX_BYTES: usize = 1024 * 1024;

/// On which side of the cursor text was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KillSide {
    Before,
    Behind,
}

/// Deleted texts, newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct KillRing {
    entries: VecDeque<MarkedText>,
}

impl KillRing {
    /// Adds a text; if `joins`, it extends the newest entry on the given side.
    pub(super) fn push(&mut self, text: MarkedText, side: KillSide, joins: bool) {
        if text.text.is_empty() || text.weight() > MAX_BYTES {
            return;
        }
        match self.entries.back_mut().filter(|newest| joins && newest.weight() + text.weight() <= MAX_BYTES) {
            Some(newest) => newest.join(text, side == KillSide::Before),
            None => {
                self.entries.push_back(text);
                if self.entries.len() > MAX_ENTRIES {
                    self.entries.pop_front();
                }
            }
        }
    }

    /// Returns the newest entry.
    pub(super) fn newest(&self) -> Option<&MarkedText> {
        self.entries.back()
    }

    /// Makes the entry before the newest one the newest; false if there is only one.
    pub(super) fn rotate(&mut self) -> bool {
        if self.entries.len() > 1 {
            self.entries.rotate_right(1);
        }
        self.entries.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::marker::Markers;
    use super::*;

    #[test]
    fn the_ring_is_bounded_in_entries_and_bytes() {
        let mut ring = KillRing::default();
        let text = |text: String| Markers::default().marked(text);
        for n in 0..100 {
            ring.push(text(n.to_string()), KillSide::Before, false);
        }
        assert_eq!(ring.entries.len(), MAX_ENTRIES);
        ring.push(text("x".repeat(MAX_BYTES + 1)), KillSide::Before, false);
        assert_eq!(ring.newest().unwrap().text, "99");
        ring.push(text("y".repeat(MAX_BYTES)), KillSide::Before, true);
        assert_eq!(
            ring.newest().unwrap().text.len(),
            MAX_BYTES,
            "a kill that would be too long with the others begins anew"
        );
    }
}
