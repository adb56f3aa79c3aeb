//! A queue between a run that must not wait and a reader that may be slow.
//!
//! Writers never wait, and never wake the reader: the reader polls again after the writer has run. Related items are merged in the queue;
//! when it is full, adjacent items are merged that otherwise would not be. Items that cannot be merged are kept even if the queue is full:
//! nothing is lost, so a reader that is too slow must be disconnected by other means.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The free capacity of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// Some room: merge only related items.
    Available,
    /// No room: merge all items that can be merged.
    Full,
}

/// An item that other items can be merged into.
pub trait Merge: Sized {
    /// Returns the approximate size in bytes.
    fn weight(&self) -> usize;

    /// Merges the following item into this one, or returns it.
    ///
    /// # Errors
    /// Returns the item if it cannot be merged.
    fn merge(&mut self, next: Self, capacity: Capacity) -> Result<(), Self>;
}

/// Limits of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of items.
    pub items: usize,
    /// Maximum bytes.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { items: 256, bytes: 1 << 20 }
    }
}

/// The queue: one reader, any number of writers.
#[derive(Debug)]
pub struct MergeQueue<T> {
    bounds: Bounds,
    state: Mutex<QueueState<T>>,
}

#[derive(Debug)]
struct QueueState<T> {
    items: VecDeque<T>,
    bytes: usize,
    closed: bool,
}

impl<T: Merge> MergeQueue<T> {
    /// Creates an empty queue.
    pub fn new(bounds: Bounds) -> Self {
        let state = QueueState { items: VecDeque::new(), bytes: 0, closed: false };
        Self { bounds, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an item, or merges it into the last one. After [`MergeQueue::close`], the item is returned.
    ///
    /// # Errors
    /// Returns the item if the queue is closed.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.state();
        if state.closed {
            return Err(item);
        }
        if state.exceeds(self.bounds) {
            // Waiting items have been merged already: only the end can change.
            state.add(item, Capacity::Full);
            return Ok(());
        }
        state.add(item, Capacity::Available);
        if state.exceeds(self.bounds) {
            state.squeeze();
        }
        Ok(())
    }

    /// Closes the queue for writers; items in it can still be read.
    pub fn close(&self) {
        self.state().closed = true;
    }

    /// Returns whether the queue is closed for writers.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Takes the next item, if any.
    pub fn try_next(&self) -> Option<T> {
        let mut state = self.state();
        let item = state.items.pop_front()?;
        state.bytes = state.bytes.saturating_sub(item.weight());
        Some(item)
    }
}

impl<T: Merge> QueueState<T> {
    fn exceeds(&self, bounds: Bounds) -> bool {
        self.items.len() > bounds.items || self.bytes > bounds.bytes
    }

    fn add(&mut self, item: T, capacity: Capacity) {
        let item = match self.items.back_mut() {
            Some(last) => {
                let before = last.weight();
                match last.merge(item, capacity) {
                    Ok(()) => {
                        self.bytes = (self.bytes + last.weight()).saturating_sub(before);
                        return;
                    }
                    Err(item) => item,
                }
            }
            None => item,
        };
        self.bytes += item.weight();
        self.items.push_back(item);
    }

    fn squeeze(&mut self) {
        let items = std::mem::take(&mut self.items);
        self.bytes = 0;
        for item in items {
            self.add(item, Capacity::Full);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters of the same case are merged; those of both cases if there is no room.
    impl Merge for String {
        fn weight(&self) -> usize {
            self.len()
        }

        fn merge(&mut self, next: Self, capacity: Capacity) -> Result<(), Self> {
            let is_upper = |text: &str| text.chars().all(char::is_uppercase);
            if self == "!" || next == "!" || (capacity == Capacity::Available && is_upper(self) != is_upper(&next)) {
                return Err(next);
            }
            self.push_str(&next);
            Ok(())
        }
    }

    fn filled(items: usize, given: &[&str]) -> Vec<String> {
        let queue = MergeQueue::new(Bounds { items, bytes: 1000 });
        given.iter().for_each(|item| queue.push((*item).to_owned()).unwrap());
        std::iter::from_fn(|| queue.try_next()).collect()
    }

    #[test]
    fn neighbours_merge_and_nothing_is_lost() {
        assert_eq!(filled(9, &["a", "b", "C", "D", "e", "!", "f"]), ["ab", "CD", "e", "!", "f"].map(str::to_owned));
        assert_eq!(filled(2, &["a", "C", "e", "!", "f"]), ["aCe", "!", "f"].map(str::to_owned));
        assert_eq!(filled(1, &["!", "!", "!"]), ["!", "!", "!"].map(str::to_owned));
    }

    #[test]
    fn a_full_queue_merges_new_items() {
        assert_eq!(filled(1, &["!", "!", "a", "C", "e", "!"]), ["!", "!", "aCe", "!"].map(str::to_owned));
    }

    #[test]
    fn the_reader_gets_the_rest_after_the_end() {
        let queue = MergeQueue::new(Bounds::default());
        queue.push("a".to_owned()).unwrap();
        queue.close();
        assert_eq!(queue.push("b".to_owned()), Err("b".to_owned()));
        assert_eq!((queue.try_next(), queue.try_next()), (Some("a".to_owned()), None));
        assert!(queue.is_closed());
    }
}
