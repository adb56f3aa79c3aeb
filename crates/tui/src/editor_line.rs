//! A single line of text in a dialog.

use crate::Row;
use crate::editor::Editor;
use crate::key::KeyPress;
use crate::keymap::Keymap;
use crate::theme::Palette;

/// A single-line editor.
pub(crate) struct LineEditor(Box<Editor>);

impl LineEditor {
    /// Creates an editor with a text, and the cursor at its end.
    pub(crate) fn new(text: &str) -> Self {
        Self::of(Editor::single_line(), text)
    }

    /// Creates an editor for a secret, which is not shown.
    pub(crate) fn masked() -> Self {
        Self::of(Editor::masked(), "")
    }

    fn of(mut editor: Editor, text: &str) -> Self {
        editor.set_text(text);
        Self(Box::new(editor))
    }

    pub(crate) fn text(&self) -> String {
        self.0.text()
    }

    /// Handles an editing key. Enter and escape are for the dialog.
    pub(crate) fn key(&mut self, press: &KeyPress, keymap: &Keymap) {
        // The dialog handles submission before calling this.
        let _event = self.0.handle(press, keymap);
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.0.paste(text);
    }

    /// Returns the row, and the column of the cursor in it.
    pub(crate) fn row(&mut self, columns: usize, theme: &Palette) -> (Row, usize) {
        let (mut rows, cursor) = self.0.rows(columns, 1, theme, ratatui_core::style::Style::new());
        let row = if rows.is_empty() { Row::default() } else { rows.swap_remove(0) };
        (row, cursor.map_or(0, |(_, column)| column))
    }
}
