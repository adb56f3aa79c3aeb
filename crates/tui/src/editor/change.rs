//! Operations that change the text.

use std::path::Path;

use super::buffer::TextChange;
use super::kill::KillSide;
use super::marker::MarkerContent;
use super::submission::Submission;
use super::undo::UndoStep;
use super::{Editor, LastOperation, TextPosition, paste, step};

/// Maximum number of lines of a pasted text shown without a marker.
const MAX_PASTED_LINES: usize = 10;
/// Maximum number of characters of a pasted text shown without a marker.
const MAX_PASTED_CHARS: usize = 1000;

/// Whether a change is a separate undo step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UndoUnit {
    Own,
    /// It is undone together with the previous change.
    Joined,
}

impl Editor {
    /// Replaces the text between two positions, moves the cursor to the end of the new text, and returns that end. All changes of the text
    /// go through here.
    pub(super) fn replace(
        &mut self,
        start: TextPosition,
        end: TextPosition,
        text: &str,
        unit: UndoUnit,
    ) -> TextPosition {
        self.last = LastOperation::Other;
        self.column.forget();
        if start == end && text.is_empty() {
            return start;
        }
        let cursor = self.cursor;
        let inverse = self.make(&TextChange { start, end, text: text.to_owned() });
        let new_end = inverse.end;
        let weight = self.markers.weight(&inverse.text);
        self.undo.record(inverse, weight, cursor, unit == UndoUnit::Joined);
        self.history.stop_browsing();
        self.set_cursor(new_end);
        new_end
    }

    /// Makes a change without recording it for undo; returns the change that undoes it.
    fn make(&mut self, change: &TextChange) -> TextChange {
        self.revision += 1;
        let inverse = self.buffer.replace(change);
        let (start, old_end, new_end) = (change.start, change.end, inverse.end);
        if old_end.line == start.line && new_end.line == start.line {
            let line = self.buffer.line(start.line);
            let (removed, inserted) = (old_end.byte - start.byte, new_end.byte - start.byte);
            self.wrap.change(start.line, line, &self.markers, start.byte, removed, inserted);
        } else {
            self.wrap.replace(start.line..old_end.line + 1, new_end.line - start.line + 1);
        }
        inverse
    }

    /// Moves the cursor to the character boundary closest to `position`.
    pub(super) fn set_cursor(&mut self, position: TextPosition) {
        let line = position.line.min(self.buffer.last_line());
        let text = self.buffer.line(line);
        let byte = text.ceil_char_boundary(position.byte);
        self.cursor = TextPosition { line, byte: step::snap(text, byte, &self.markers) };
    }

    /// Undoes the last change; false if there is none.
    pub fn undo(&mut self) -> bool {
        let Some(step) = self.undo.pop_undo() else { return false };
        let step = self.take_back(step);
        self.undo.push_redo(step);
        true
    }

    /// Redoes the last undone change; false if there is none.
    pub fn redo(&mut self) -> bool {
        let Some(step) = self.undo.pop_redo() else { return false };
        let step = self.take_back(step);
        self.undo.push_undo(step);
        true
    }

    fn take_back(&mut self, step: UndoStep) -> UndoStep {
        self.last = LastOperation::Other;
        self.column.forget();
        self.history.stop_browsing();
        let mut inverse = UndoStep::new(self.cursor);
        for change in step.changes.iter().rev() {
            let change = self.make(change);
            let weight = self.markers.weight(&change.text);
            inverse.push(change, weight);
        }
        self.set_cursor(step.cursor);
        inverse
    }

    /// Types a character.
    pub(super) fn type_char(&mut self, c: char) {
        let mut text = [0; 4];
        let text = paste::clean(c.encode_utf8(&mut text)).into_owned();
        let is_blank = c.is_whitespace();
        let continues = !is_blank && self.last == LastOperation::TypeWord;
        let unit = if continues { UndoUnit::Joined } else { UndoUnit::Own };
        self.replace(self.cursor, self.cursor, &text, unit);
        self.last = if is_blank { LastOperation::Other } else { LastOperation::TypeWord };
    }

    /// Inserts a text at the cursor without creating a marker. Control characters are removed.
    pub fn insert(&mut self, text: &str) {
        let text = self.cleaned(text);
        self.replace(self.cursor, self.cursor, &text, UndoUnit::Own);
    }

    /// Replaces the whole text as one undo step, and moves the cursor to its end.
    pub fn set_text(&mut self, text: &str) {
        let text = self.cleaned(text);
        if text != self.buffer.text() {
            self.replace(TextPosition::default(), self.buffer.end(), &text, UndoUnit::Own);
        }
        self.move_to(self.buffer.end());
    }

    /// Returns a text in the form that this editor accepts.
    pub(super) fn cleaned(&self, text: &str) -> String {
        let mut text = paste::clean(text).into_owned();
        if self.is_single_line {
            text.retain(|c| c != '\n');
        }
        text
    }

    /// Inserts a pasted text at the cursor. More than 10 lines or 1000 characters are shown as a marker.
    pub fn paste(&mut self, text: &str) {
        let mut text = self.cleaned(text);
        let before = self.buffer.line(self.cursor.line)[..self.cursor.byte].chars().next_back();
        // A path dropped after a word.
        if text.starts_with(['/', '~', '.']) && before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            text.insert(0, ' ');
        }
        self.forget_markers();
        if let Some(label) = self.marker_for(&text) {
            text = label;
        }
        self.replace(self.cursor, self.cursor, &text, UndoUnit::Own);
    }

    /// Creates a marker for a text that is too long to be shown.
    pub(super) fn marker_for(&mut self, text: &str) -> Option<String> {
        let n_lines = text.matches('\n').count() + 1;
        let has_many_lines = n_lines > MAX_PASTED_LINES;
        if self.is_single_line || !has_many_lines && text.chars().nth(MAX_PASTED_CHARS).is_none() {
            return None;
        }
        let label = self.markers.add_paste(text, if has_many_lines { n_lines } else { 1 });
        self.wrap.clear();
        Some(label)
    }

    /// Inserts a marker for an image at the cursor: `[image 1: name.png]`. The receiver of the submission reads the file.
    pub fn insert_image(&mut self, path: &Path) {
        self.forget_markers();
        let label = self.markers.add_image(path);
        self.wrap.clear();
        self.replace(self.cursor, self.cursor, &label, UndoUnit::Own);
    }

    /// Forgets markers that cannot be restored.
    pub(super) fn forget_markers(&mut self) {
        let lines = self.buffer.lines().iter().map(String::as_str);
        self.markers.retain_in(lines.chain(self.undo.texts()));
    }

    /// Replaces the marker of a pasted text at or before the cursor with the text; false if there is none.
    pub fn expand_marker(&mut self) -> bool {
        let TextPosition { line, byte } = self.cursor;
        let text = self.buffer.line(line);
        let at = self.markers.start_before(text, byte).filter(|_| self.markers.len_at(text, byte).is_none());
        let start = at.unwrap_or(byte);
        let Some(len) = self.markers.len_at(text, start) else { return false };
        let Some(MarkerContent::Text(content)) = self.markers.content_at(text, start) else { return false };
        let content = content.to_string();
        let position = |byte| TextPosition { line, byte };
        self.replace(position(start), position(start + len), &content, UndoUnit::Own);
        true
    }

    /// Takes the text out as a submission. This cannot be undone.
    pub fn submit(&mut self) -> Submission {
        let submission = Submission::new(self.markers.marked(self.buffer.text()));
        self.replace(TextPosition::default(), self.buffer.end(), "", UndoUnit::Own);
        self.undo.clear();
        self.markers.clear();
        self.wrap.clear();
        self.view.reset();
        submission
    }

    /// Deletes the text between two positions.
    pub(super) fn delete(&mut self, start: TextPosition, end: TextPosition) {
        self.replace(start, end, "", UndoUnit::Own);
    }

    /// Deletes the text between two positions, and stores it for yanking.
    pub(super) fn kill(&mut self, start: TextPosition, end: TextPosition, side: KillSide) {
        let joins = self.last == LastOperation::Kill;
        if start < end && !self.is_masked {
            let text = self.markers.marked(self.buffer.slice(start, end));
            self.kills.push(text, side, joins);
        }
        self.replace(start, end, "", UndoUnit::Own);
        self.last = LastOperation::Kill;
    }

    /// Inserts the text that was killed last.
    pub(super) fn yank(&mut self) {
        self.yank_at(self.cursor, self.cursor, UndoUnit::Own);
    }

    fn yank_at(&mut self, start: TextPosition, end: TextPosition, unit: UndoUnit) {
        let Some(killed) = self.kills.newest() else { return };
        let text = self.markers.adopt(killed);
        self.wrap_if_marked(&text);
        let end = self.replace(start, end, &text, unit);
        self.last = LastOperation::Yank { start, end };
    }

    /// Replaces text that was just yanked with what was killed before it.
    pub(super) fn yank_pop(&mut self) {
        match self.last {
            LastOperation::Yank { start, end } if self.kills.rotate() => self.yank_at(start, end, UndoUnit::Own),
            LastOperation::Yank { .. } => {}
            _ => self.last = LastOperation::Other,
        }
    }

    /// Rewraps lines that contain markers which become known.
    pub(super) fn wrap_if_marked(&mut self, text: &str) {
        if text.contains('[') {
            self.wrap.clear();
        }
    }
}
