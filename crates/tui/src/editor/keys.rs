//! Handling of keys in the editor.

use super::change::UndoUnit;
use super::kill::KillSide;
use super::motion::JumpDirection;
use super::{Editor, EditorEvent, TextPosition};
use crate::key::{Key, KeyCode, KeyPress};
use crate::keymap::{KeyAction, KeyContext, KeyMatch, Keymap};

impl Editor {
    /// Performs the action bound to a key in [`KeyContext::Editor`], or types its character. Other keys are ignored.
    pub fn handle(&mut self, press: &KeyPress, keymap: &Keymap) -> EditorEvent {
        let revision = self.revision;
        if self.jump_key(press, keymap) || self.search_key(press, keymap) || self.vi_key(press) {
            return self.event_since(revision);
        }
        self.pending.push(press.key);
        let found = keymap.resolve(KeyContext::Editor, &self.pending);
        let n_keys = self.pending.len();
        if found != KeyMatch::Prefix {
            self.pending.clear();
        }
        let event = match (found, press.text) {
            (KeyMatch::Action(KeyAction::NewLine), _) if self.is_swapped_submit(press, keymap) => {
                self.delete(self.left_of(self.cursor), self.cursor);
                EditorEvent::Submit(self.submit())
            }
            (KeyMatch::Action(action), _) => self.perform(action),
            (KeyMatch::Prefix, _) => EditorEvent::Moved,
            // The binding does not exist; its keys have no meaning individually.
            (KeyMatch::None, _) if n_keys > 1 => EditorEvent::Moved,
            (KeyMatch::None, Some(c)) => {
                self.type_char(c);
                self.event_since(revision)
            }
            (KeyMatch::None, None) => EditorEvent::Ignored,
        };
        self.keep_vi_cursor();
        event
    }

    /// Returns whether the editor needs the escape key: to end a search, or to leave vi's insert mode.
    pub fn wants_escape(&self) -> bool {
        self.history.search().is_some() || self.vi.as_ref().is_some_and(super::vi::Vi::wants_escape)
    }

    fn event_since(&self, revision: u64) -> EditorEvent {
        if self.revision == revision { EditorEvent::Moved } else { EditorEvent::Changed }
    }

    fn is_behind_backslash(&self) -> bool {
        !self.is_single_line && self.buffer.line(self.cursor.line)[..self.cursor.byte].ends_with('\\')
    }

    /// If enter inserts a line break and shift+enter submits, enter after a backslash also submits, because not all terminals report
    /// shift+enter.
    fn is_swapped_submit(&self, press: &KeyPress, keymap: &Keymap) -> bool {
        let shift_enter = Key { shift: true, ..Key::plain(KeyCode::Enter) };
        press.key == Key::plain(KeyCode::Enter)
            && self.is_behind_backslash()
            && keymap.keys(KeyAction::Submit).contains(&shift_enter.into())
    }

    /// Performs an action. Actions of other contexts are ignored.
    pub fn perform(&mut self, action: KeyAction) -> EditorEvent {
        let revision = self.revision;
        let cursor = self.cursor;
        match action {
            KeyAction::CursorUp | KeyAction::CursorDown | KeyAction::PageUp | KeyAction::PageDown
                if self.is_single_line =>
            {
                return EditorEvent::Ignored;
            }
            KeyAction::CursorUp => self.up(),
            KeyAction::CursorDown => self.down(),
            KeyAction::PageUp => drop(self.move_rows(self.view.page(), true)),
            KeyAction::PageDown => drop(self.move_rows(self.view.page(), false)),
            KeyAction::CursorLeft => self.move_to(self.left_of(cursor)),
            KeyAction::CursorRight => self.move_right(),
            KeyAction::CursorWordLeft => self.move_to(self.word_left_of(cursor)),
            KeyAction::CursorWordRight => self.move_to(self.word_right_of(cursor)),
            KeyAction::CursorLineStart => self.move_to(TextPosition { byte: 0, ..cursor }),
            KeyAction::CursorLineEnd => self.move_to(self.buffer.line_end(cursor.line)),
            KeyAction::JumpForward => self.jump = Some(JumpDirection::Forward),
            KeyAction::JumpBackward => self.jump = Some(JumpDirection::Backward),
            KeyAction::DeleteCharBackward => self.delete(self.left_of(cursor), cursor),
            KeyAction::DeleteCharForward => self.delete(cursor, self.right_of(cursor)),
            KeyAction::DeleteWordBackward => self.kill(self.word_left_of(cursor), cursor, KillSide::Before),
            KeyAction::DeleteWordForward => self.kill(cursor, self.word_right_of(cursor), KillSide::Behind),
            KeyAction::DeleteToLineStart => {
                let start = TextPosition { byte: 0, ..cursor };
                self.kill(if start == cursor { self.left_of(cursor) } else { start }, cursor, KillSide::Before);
            }
            KeyAction::DeleteToLineEnd => {
                let end = self.buffer.line_end(cursor.line);
                self.kill(cursor, if end == cursor { self.right_of(cursor) } else { end }, KillSide::Behind);
            }
            KeyAction::Yank => self.yank(),
            KeyAction::YankPop => self.yank_pop(),
            KeyAction::Undo => drop(self.undo()),
            KeyAction::Redo => drop(self.redo()),
            KeyAction::HistorySearch if !self.is_single_line => self.search_history(),
            KeyAction::NewLine if !self.is_single_line => {
                self.replace(cursor, cursor, "\n", UndoUnit::Own);
            }
            KeyAction::Submit if self.is_behind_backslash() => {
                self.replace(self.left_of(cursor), cursor, "\n", UndoUnit::Own);
            }
            KeyAction::Submit => return EditorEvent::Submit(self.submit()),
            _ => return EditorEvent::Ignored,
        }
        self.event_since(revision)
    }

    /// Moves up a row. From the first row, moves into the history if the text is empty or a history entry, or the cursor is at its
    /// beginning; otherwise moves to the beginning of the line.
    pub(super) fn up(&mut self) {
        if self.move_rows(1, true) {
            return;
        }
        if self.history.is_browsing() || self.cursor == TextPosition::default() {
            self.recall_older();
        } else {
            self.move_to(TextPosition { byte: 0, ..self.cursor });
        }
    }

    /// Moves down a row. From the last row of a history entry, moves to the next entry; otherwise moves to the end of the line.
    pub(super) fn down(&mut self) {
        if !self.move_rows(1, false) && !self.recall_newer() {
            self.move_to(self.buffer.line_end(self.cursor.line));
        }
    }

    /// Handles the character that a jump waits for. Pressing the jump's own key again, or a key that types nothing, ends the jump.
    fn jump_key(&mut self, press: &KeyPress, keymap: &Keymap) -> bool {
        let Some(direction) = self.jump.take() else { return false };
        let own = match direction {
            JumpDirection::Forward => KeyAction::JumpForward,
            JumpDirection::Backward => KeyAction::JumpBackward,
        };
        if keymap.action(KeyContext::Editor, &press.key) == Some(own) {
            return true;
        }
        if let Some(c) = press.text {
            self.jump_to(c, direction);
        }
        press.text.is_some()
    }

    /// Handles a key during a history search. Other keys end the search and are then handled normally.
    fn search_key(&mut self, press: &KeyPress, keymap: &Keymap) -> bool {
        if self.history.search().is_none() {
            return false;
        }
        if let Some(c) = press.text {
            self.search_for(|query| query.push(c));
            return true;
        }
        match keymap.action(KeyContext::Editor, &press.key) {
            Some(KeyAction::HistorySearch) => self.search_history(),
            Some(KeyAction::DeleteCharBackward) => self.search_for(|query| {
                query.pop();
            }),
            Some(KeyAction::Submit) => self.end_search(),
            _ if press.key == Key::plain(KeyCode::Escape)
                || keymap.action(KeyContext::Select, &press.key) == Some(KeyAction::SelectCancel) =>
            {
                self.cancel_search();
            }
            _ => {
                self.end_search();
                return false;
            }
        }
        true
    }
}
