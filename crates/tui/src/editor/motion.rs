//! Cursor movement.

use super::step::{Step, next, previous};
use super::wrap::{column_of, position_at};
use super::{Editor, LastOperation, TextPosition};

/// Characters that are not part of words.
pub(super) const PUNCTUATION: &str = "(){}[]<>.,;:'\"!?+-=*/\\|&%^$#@~`";

/// Direction of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JumpDirection {
    Forward,
    Backward,
}

/// The column that the cursor returns to after it moves through rows that are too short.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StickyColumn {
    remembered: Option<usize>,
    /// Target column of the last vertical move, if the cursor had to stop before it because a wide character covers it.
    unsnapped: Option<usize>,
}

impl StickyColumn {
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns the column to move to from `current`, given the last columns of the source row and the target row.
    fn target(&mut self, current: usize, source_end: usize, target_end: usize) -> usize {
        let is_shorter = target_end < current;
        match self.remembered {
            Some(remembered) if current >= source_end => {
                if is_shorter || target_end < remembered {
                    return target_end;
                }
                self.remembered = None;
                remembered
            }
            _ => {
                self.remembered = is_shorter.then_some(current);
                current.min(target_end)
            }
        }
    }
}

/// The class of a character; words end where it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepClass {
    Blank,
    Punctuation,
    Word,
    /// Each marker is a separate word.
    Marker,
}

pub(super) fn class(step: &Step<'_>) -> StepClass {
    if step.is_marker {
        StepClass::Marker
    } else if step.is_blank() {
        StepClass::Blank
    } else if PUNCTUATION.contains(step.text) {
        StepClass::Punctuation
    } else {
        StepClass::Word
    }
}

impl Editor {
    /// Moves the cursor, and ends any operation that could have been continued.
    pub(super) fn move_to(&mut self, position: TextPosition) {
        self.last = LastOperation::Other;
        self.column.forget();
        self.set_cursor(position);
    }

    /// Returns the character after a position on the same line.
    pub(super) fn step_behind(&self, position: TextPosition) -> Option<Step<'_>> {
        next(self.buffer.line(position.line), position.byte, &self.markers)
    }

    /// Returns the character before a position on the same line.
    pub(super) fn step_before(&self, position: TextPosition) -> Option<Step<'_>> {
        previous(self.buffer.line(position.line), position.byte, &self.markers)
    }

    /// Returns the position one character to the left, across line ends.
    pub(super) fn left_of(&self, position: TextPosition) -> TextPosition {
        match self.step_before(position) {
            Some(step) => TextPosition { line: position.line, byte: step.at },
            None => position.line.checked_sub(1).map_or(position, |line| self.buffer.line_end(line)),
        }
    }

    /// Returns the position one character to the right, across line ends.
    pub(super) fn right_of(&self, position: TextPosition) -> TextPosition {
        match self.step_behind(position) {
            Some(step) => TextPosition { line: position.line, byte: step.end() },
            None if position.line < self.buffer.last_line() => TextPosition { line: position.line + 1, byte: 0 },
            None => position,
        }
    }

    /// Returns the start of the word before a position; at the beginning of a line, the end of the previous one.
    pub(super) fn word_left_of(&self, mut position: TextPosition) -> TextPosition {
        if position.byte == 0 {
            return self.left_of(position);
        }
        let mut of: Option<StepClass> = None;
        while let Some(step) = self.step_before(position) {
            let class = class(&step);
            match of {
                None if class == StepClass::Blank => {}
                None => of = Some(class),
                Some(StepClass::Marker) => break,
                Some(of) if of != class => break,
                Some(_) => {}
            }
            position.byte = step.at;
        }
        position
    }

    /// Returns the end of the word after a position; at the end of a line, the beginning of the next one.
    pub(super) fn word_right_of(&self, mut position: TextPosition) -> TextPosition {
        if position == self.buffer.line_end(position.line) {
            return self.right_of(position);
        }
        let mut of: Option<StepClass> = None;
        while let Some(step) = self.step_behind(position) {
            let class = class(&step);
            match of {
                None if class == StepClass::Blank => {}
                None => of = Some(class),
                Some(StepClass::Marker) => break,
                Some(of) if of != class => break,
                Some(_) => {}
            }
            position.byte = step.end();
        }
        position
    }

    /// Moves one character to the right; at the end of the text the column is remembered for the next vertical move.
    pub(super) fn move_right(&mut self) {
        let position = self.right_of(self.cursor);
        let was_at_end = position == self.cursor;
        self.move_to(position);
        if was_at_end {
            self.column.remembered = Some(self.row_and_column(self.cursor).1);
        }
    }

    /// Jumps to the next occurrence of a character, across lines; does not move if there is none.
    pub(super) fn jump_to(&mut self, c: char, direction: JumpDirection) {
        let found = match direction {
            JumpDirection::Forward => self.find_forward(c),
            JumpDirection::Backward => self.find_backward(c),
        };
        self.move_to(found.unwrap_or(self.cursor));
    }

    /// Returns whether a byte of a line is the start of a character outside any marker.
    fn is_step(&self, line: usize, byte: usize) -> bool {
        let text = self.buffer.line(line);
        super::step::snap(text, byte, &self.markers) == byte && self.markers.len_at(text, byte).is_none()
    }

    fn find_forward(&self, c: char) -> Option<TextPosition> {
        let from = self.step_behind(self.cursor).map_or(self.cursor.byte, |step| step.end());
        (self.cursor.line..=self.buffer.last_line()).find_map(|line| {
            let start = if line == self.cursor.line { from } else { 0 };
            let mut places = self.buffer.line(line)[start..].match_indices(c).map(|(at, _)| start + at);
            let byte = places.find(|byte| self.is_step(line, *byte))?;
            Some(TextPosition { line, byte })
        })
    }

    fn find_backward(&self, c: char) -> Option<TextPosition> {
        (0..=self.cursor.line).rev().find_map(|line| {
            let text = self.buffer.line(line);
            let end = if line == self.cursor.line { self.cursor.byte } else { text.len() };
            let mut places = text[..end].rmatch_indices(c).map(|(at, _)| at);
            let byte = places.find(|byte| self.is_step(line, *byte))?;
            Some(TextPosition { line, byte })
        })
    }

    /// Returns the row of a position within its line, and its column.
    pub(super) fn row_and_column(&mut self, position: TextPosition) -> (usize, usize) {
        let text = self.buffer.line(position.line);
        let width = self.wrap.width();
        let wrapped = self.wrap.line(position.line, text, &self.markers);
        let row = wrapped.row_of(position.byte);
        let start = wrapped.row(row, text).start;
        (row, column_of(text, start, position.byte, width, &self.markers))
    }

    fn n_rows(&mut self, line: usize) -> usize {
        self.wrap.line(line, self.buffer.line(line), &self.markers).n_rows()
    }

    /// Returns the last column of a row that the cursor can reach.
    fn last_column(&mut self, line: usize, row: usize) -> usize {
        let text = self.buffer.line(line);
        let width = self.wrap.width();
        let wrapped = self.wrap.line(line, text, &self.markers);
        let (start, last) = (wrapped.row(row, text).start, wrapped.last_position(row, text, &self.markers));
        column_of(text, start, last, width, &self.markers)
    }

    /// Returns the row `n` rows above or below another one, limited to the first or last, and the distance in rows.
    fn row_near(&mut self, mut line: usize, mut row: usize, n: usize, is_up: bool) -> (usize, usize, usize) {
        let mut left = n;
        while left > 0 {
            let (above, below) = (row, self.n_rows(line) - 1 - row);
            let here = if is_up { above } else { below };
            if left <= here {
                return (line, if is_up { row - left } else { row + left }, n);
            }
            if is_up && line == 0 || !is_up && line == self.buffer.last_line() {
                return (line, if is_up { 0 } else { row + below }, n - left + here);
            }
            left -= here + 1;
            line = if is_up { line - 1 } else { line + 1 };
            row = if is_up { self.n_rows(line) - 1 } else { 0 };
        }
        (line, row, n)
    }

    /// Moves by rows. Returns false without moving if the cursor is already in the first or last row.
    pub(super) fn move_rows(&mut self, n: usize, is_up: bool) -> bool {
        let (row, column) = self.row_and_column(self.cursor);
        let (line, new_row, moved) = self.row_near(self.cursor.line, row, n, is_up);
        if moved == 0 {
            return false;
        }
        let current = self.column.unsnapped.take().unwrap_or(column);
        let source_end = self.last_column(self.cursor.line, row);
        let target_end = self.last_column(line, new_row);
        let target = self.column.target(current, source_end, target_end);
        let text = self.buffer.line(line);
        let width = self.wrap.width();
        let wrapped = self.wrap.line(line, text, &self.markers);
        let range = wrapped.row(new_row, text).start..wrapped.last_position(new_row, text, &self.markers);
        let (byte, reached) = position_at(text, range, target, width, &self.markers);
        self.column.unsnapped = (reached < target).then_some(target);
        self.cursor = TextPosition { line, byte };
        self.last = LastOperation::Other;
        true
    }
}
