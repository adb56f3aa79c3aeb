//! Undo and redo: stores the inverse of each change, so that a step costs as much as its changes and not the whole text.

use std::collections::VecDeque;

use super::buffer::{TextChange, TextPosition};

/// Maximum number of bytes of text stored in all steps. The newest step is kept regardless of its size.
pub(super) const MAX_BYTES: usize = 10 * 1024 * 1024;

/// Changes that are undone together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UndoStep {
    /// Changes to make, from last to first.
    pub(super) changes: Vec<TextChange>,
    /// The cursor before the changes, and after they are undone.
    pub(super) cursor: TextPosition,
    /// Number of bytes stored for this step.
    pub(super) weight: usize,
}

impl UndoStep {
    pub(super) fn new(cursor: TextPosition) -> Self {
        Self { changes: Vec::new(), cursor, weight: 0 }
    }

    /// Adds a change that is made before the others of the step. Characters typed in succession are one change.
    pub(super) fn push(&mut self, change: TextChange, weight: usize) {
        self.weight += weight;
        match self.changes.last_mut() {
            Some(last) if last.text.is_empty() && change.text.is_empty() && last.end == change.start => {
                last.end = change.end;
            }
            _ => self.changes.push(change),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Steps {
    steps: VecDeque<UndoStep>,
    weight: usize,
}

impl Steps {
    fn push(&mut self, step: UndoStep) {
        self.weight += step.weight;
        self.steps.push_back(step);
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.weight > MAX_BYTES && self.steps.len() > 1 {
            self.weight -= self.steps.pop_front().map_or(0, |step| step.weight);
        }
    }

    fn pop(&mut self) -> Option<UndoStep> {
        let step = self.steps.pop_back()?;
        self.weight -= step.weight;
        Some(step)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The undo and redo steps.
#[derive(Clone, Debug, Default)]
pub(super) struct UndoStack {
    undo: Steps,
    redo: Steps,
}

impl UndoStack {
    /// Records the inverse of a change: as a separate step, or as part of the newest one.
    pub(super) fn record(&mut self, inverse: TextChange, weight: usize, cursor: TextPosition, joins: bool) {
        self.redo.clear();
        match self.undo.steps.back_mut().filter(|_| joins) {
            Some(step) => {
                step.push(inverse, weight);
                self.undo.weight += weight;
                self.undo.shrink();
            }
            None => {
                let mut step = UndoStep::new(cursor);
                step.push(inverse, weight);
                self.undo.push(step);
            }
        }
    }

    /// Removes the next step to undo.
    pub(super) fn pop_undo(&mut self) -> Option<UndoStep> {
        self.undo.pop()
    }

    /// Removes the next step to redo.
    pub(super) fn pop_redo(&mut self) -> Option<UndoStep> {
        self.redo.pop()
    }

    /// Records how to redo an undone step.
    pub(super) fn push_redo(&mut self, step: UndoStep) {
        self.redo.push(step);
    }

    /// Records how to undo a redone step.
    pub(super) fn push_undo(&mut self, step: UndoStep) {
        self.undo.push(step);
    }

    /// Returns the texts that can be restored.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let steps = self.undo.steps.iter().chain(&self.redo.steps);
        steps.flat_map(|step| step.changes.iter().map(|change| &*change.text))
    }

    /// Forgets all steps.
    pub(super) fn clear(&mut self) {
        self.undo.clear();
        self.redo.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str) -> TextChange {
        TextChange { start: TextPosition::default(), end: TextPosition::default(), text: text.to_owned() }
    }

    #[test]
    fn the_oldest_steps_are_dropped_beyond_the_size_limit() {
        let mut stack = UndoStack::default();
        for name in ["a", "b", "c"] {
            stack.record(change(name), MAX_BYTES / 2, TextPosition::default(), false);
        }
        stack.record(change("d"), 1, TextPosition::default(), true);
        assert_eq!(
            stack.texts().collect::<Vec<_>>(),
            ["c", "d"],
            "the step joined last is above the limit with the one before"
        );
        stack.record(change("big"), 3 * MAX_BYTES, TextPosition::default(), false);
        assert_eq!(stack.texts().collect::<Vec<_>>(), ["big"], "the newest one stays");
    }
}
