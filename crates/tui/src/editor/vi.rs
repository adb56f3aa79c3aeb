//! Key bindings of vi: normal and insert mode, and commands for moving and deleting.

use super::change::UndoUnit;
use super::kill::KillSide;
use super::motion::{StepClass, class};
use super::{Editor, TextPosition};
use crate::key::{Key, KeyCode, KeyPress};

/// Meaning of typed characters in an editor with vi keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViMode {
    /// They are inserted.
    #[default]
    Insert,
    /// They are commands.
    Normal,
}

/// State of the vi keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Vi {
    mode: ViMode,
    /// The operator that waits for a motion.
    operator: Option<ViOperator>,
}

/// What happens to the text that a motion passes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ViOperator {
    Delete,
    /// It is deleted, and insert mode begins.
    Change,
}

impl Vi {
    pub(super) fn wants_escape(&self) -> bool {
        self.mode == ViMode::Insert || self.operator.is_some()
    }
}

impl Editor {
    /// Enables or disables vi keys, starting in insert mode.
    pub fn set_vi(&mut self, is_on: bool) {
        self.vi = is_on.then(|| self.vi.take().unwrap_or_default());
    }

    /// Returns the mode, if vi keys are enabled.
    pub fn vi_mode(&self) -> Option<ViMode> {
        self.vi.as_ref().map(|vi| vi.mode)
    }

    fn set_vi_mode(&mut self, mode: ViMode) {
        self.vi = Some(Vi { mode, operator: None });
    }

    /// Handles a vi key; false if the key is not one.
    pub(super) fn vi_key(&mut self, press: &KeyPress) -> bool {
        let Some(vi) = self.vi.clone() else { return false };
        if press.key == Key::plain(KeyCode::Escape) {
            if vi.wants_escape() {
                self.set_vi_mode(ViMode::Normal);
            }
            if vi.mode == ViMode::Insert && self.cursor.byte > 0 {
                self.move_to(self.left_of(self.cursor));
            }
            return vi.wants_escape();
        }
        let Some(command) = press.text.filter(|_| vi.mode == ViMode::Normal) else {
            self.set_vi_mode(vi.mode);
            return false;
        };
        self.set_vi_mode(ViMode::Normal);
        match vi.operator {
            Some(operator) => self.vi_operate(operator, command),
            None => self.vi_command(command),
        }
        self.keep_vi_cursor();
        true
    }

    /// In normal mode, keeps the cursor on a character rather than after the last one.
    pub(super) fn keep_vi_cursor(&mut self) {
        let is_normal = self.vi_mode() == Some(ViMode::Normal);
        if is_normal && self.cursor.byte > 0 && self.cursor == self.buffer.line_end(self.cursor.line) {
            let column = self.column;
            self.set_cursor(self.left_of(self.cursor));
            self.column = column;
        }
    }

    fn vi_command(&mut self, command: char) {
        let cursor = self.cursor;
        let line_end = self.buffer.line_end(cursor.line);
        match command {
            'h' if cursor.byte > 0 => self.move_to(self.left_of(cursor)),
            'l' if cursor < line_end => self.move_to(self.right_of(cursor)),
            'j' => self.down(),
            'k' => self.up(),
            'w' => self.move_to(self.vi_word(cursor)),
            'b' => self.move_to(self.vi_word_back(cursor)),
            'e' => self.move_to(self.vi_word_end(cursor)),
            '0' => self.move_to(TextPosition { byte: 0, ..cursor }),
            '^' => self.move_to(self.vi_indent(cursor)),
            '$' => self.move_to(line_end),
            'x' if cursor < line_end => self.kill(cursor, self.right_of(cursor), KillSide::Behind),
            'd' => self.vi = Some(Vi { mode: ViMode::Normal, operator: Some(ViOperator::Delete) }),
            'c' => self.vi = Some(Vi { mode: ViMode::Normal, operator: Some(ViOperator::Change) }),
            'D' => self.vi_operate(ViOperator::Delete, '$'),
            'C' => self.vi_operate(ViOperator::Change, '$'),
            'i' => self.set_vi_mode(ViMode::Insert),
            'a' => {
                self.set_vi_mode(ViMode::Insert);
                self.move_to(if cursor < line_end { self.right_of(cursor) } else { cursor });
            }
            'A' => {
                self.set_vi_mode(ViMode::Insert);
                self.move_to(line_end);
            }
            'I' => {
                self.set_vi_mode(ViMode::Insert);
                self.move_to(self.vi_indent(cursor));
            }
            'o' if !self.is_single_line => {
                self.set_vi_mode(ViMode::Insert);
                self.replace(line_end, line_end, "\n", UndoUnit::Own);
            }
            'O' if !self.is_single_line => {
                self.set_vi_mode(ViMode::Insert);
                let start = TextPosition { byte: 0, ..cursor };
                self.replace(start, start, "\n", UndoUnit::Own);
                self.set_cursor(start);
            }
            'u' => drop(self.undo()),
            'p' => self.vi_put(),
            // Other keys would be typed by mistake.
            _ => {}
        }
    }

    /// Returns the first character of the line that is not blank.
    fn vi_indent(&self, position: TextPosition) -> TextPosition {
        let line = self.buffer.line(position.line);
        TextPosition { byte: line.len() - line.trim_start().len(), ..position }
    }

    /// Applies an operator to the line if it is doubled, or to what a motion passes over on the line.
    fn vi_operate(&mut self, operator: ViOperator, motion: char) {
        let cursor = self.cursor;
        let start = TextPosition { byte: 0, ..cursor };
        let end = self.buffer.line_end(cursor.line);
        let (from, to) = match (motion, operator) {
            ('d', ViOperator::Delete) => return self.vi_delete_line(),
            ('c', ViOperator::Change) => (start, end),
            // Space after a word stays when the word is changed.
            ('w', ViOperator::Change) => {
                (cursor, self.class_behind(cursor).map_or(end, |class| self.skip(cursor, class)).min(end))
            }
            ('w', ViOperator::Delete) => (cursor, self.vi_word(cursor).min(end)),
            ('e', _) => (cursor, self.right_of(self.vi_word_end(cursor)).min(end)),
            ('b', _) => (self.vi_word_back(cursor).max(start), cursor),
            ('0', _) => (start, cursor),
            ('^', _) => (self.vi_indent(cursor).min(cursor), self.vi_indent(cursor).max(cursor)),
            ('$', _) => (cursor, end),
            _ => return,
        };
        if from < to {
            self.kill(from, to, KillSide::Behind);
        }
        if operator == ViOperator::Change {
            self.set_vi_mode(ViMode::Insert);
        }
    }

    fn vi_delete_line(&mut self) {
        let cursor = self.cursor;
        let line = self.buffer.line(cursor.line);
        let killed = self.markers.marked(format!("{line}\n"));
        if !self.is_masked {
            self.kills.push(killed, KillSide::Behind, false);
        }
        let start = TextPosition { byte: 0, ..cursor };
        let end = self.buffer.line_end(cursor.line);
        let next = self.right_of(end);
        let (start, end) = if next > end { (start, next) } else { (self.left_of(start), end) };
        self.delete(start, end);
        self.set_cursor(TextPosition { byte: 0, ..self.cursor });
    }

    /// Inserts the text that was killed last: lines below the current line, other text after the character under the cursor.
    fn vi_put(&mut self) {
        let Some(killed) = self.kills.newest() else { return };
        let killed = killed.clone();
        let text = self.markers.adopt(&killed);
        self.wrap_if_marked(&text);
        let line_end = self.buffer.line_end(self.cursor.line);
        if let Some(lines) = text.strip_suffix('\n').filter(|_| !self.is_single_line) {
            let line = self.cursor.line + 1;
            self.replace(line_end, line_end, &format!("\n{lines}"), UndoUnit::Own);
            self.set_cursor(TextPosition { line, byte: 0 });
        } else {
            let position = if self.cursor < line_end { self.right_of(self.cursor) } else { self.cursor };
            let end = self.replace(position, position, &text, UndoUnit::Own);
            self.set_cursor(self.left_of(end));
        }
    }

    fn class_behind(&self, position: TextPosition) -> Option<StepClass> {
        self.step_behind(position).map(|step| class(&step))
    }

    fn skip(&self, mut position: TextPosition, of: StepClass) -> TextPosition {
        while let Some(step) = self.step_behind(position).filter(|step| class(step) == of) {
            position.byte = step.end();
            if of == StepClass::Marker {
                break;
            }
        }
        position
    }

    /// Returns the start of the next word; an empty line counts as one.
    fn vi_word(&self, position: TextPosition) -> TextPosition {
        let mut position = match self.class_behind(position) {
            Some(class) => self.skip(position, class),
            None => self.right_of(position),
        };
        loop {
            position = self.skip(position, StepClass::Blank);
            let is_line_end = position == self.buffer.line_end(position.line);
            if !is_line_end || position.byte == 0 || position.line == self.buffer.last_line() {
                return position;
            }
            position = self.right_of(position);
        }
    }

    /// Returns the start of the previous word; an empty line counts as one.
    fn vi_word_back(&self, mut position: TextPosition) -> TextPosition {
        while position.byte == 0 && position.line > 0 {
            position = self.left_of(position);
            if position.byte == 0 {
                return position;
            }
        }
        let word = self.word_left_of(position);
        let is_blank = self.class_behind(word) == Some(StepClass::Blank);
        if is_blank && word.line > 0 { self.vi_word_back(TextPosition { byte: 0, ..word }) } else { word }
    }

    /// Returns the last character of the word, or of the next one if the cursor is already on it.
    fn vi_word_end(&self, position: TextPosition) -> TextPosition {
        let mut position = self.right_of(position);
        loop {
            match self.class_behind(position) {
                Some(StepClass::Blank) => position = self.skip(position, StepClass::Blank),
                Some(class) => return self.left_of(self.skip(position, class)),
                None if position == self.buffer.end() => return position,
                None => position = self.right_of(position),
            }
        }
    }
}
