//! A line of text in a dialog.

use crate::Row;
use crate::editor::Editor;
use crate::key::KeyPress;
use crate::keymap::Keymap;
use crate::theme::Palette;

/// An editor for one line.
pub(crate) struct LineEditor(Box<Editor>);

impl LineEditor {
    /// An editor with a text, and the cursor at its end.
    pub(crate) fn new(text: &str) -> Self {
        Self::of(Editor::single_line(), text)
    }

    /// The same for a secret, which is not shown.
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

    /// Handles a key of editing. Enter and escape are for the dialog.
    pub(crate) fn key(&mut self, press: &KeyPress, keymap: &Keymap) {
        // Submitting is the dialog's business, and it asked before.
        let _event = self.0.handle(press, keymap);
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.0.paste(text);
    }

    /// The row, and the column of the cursor in it.
    pub(crate) fn row(&mut self, columns: usize, theme: &Palette) -> (Row, usize) {
        let (mut rows, cursor) = self.0.rows(columns, 1, theme, ratatui_core::style::Style::new());
        let row = if rows.is_empty() { Row::default() } else { rows.swap_remove(0) };
        (row, cursor.map_or(0, |(_, column)| column))
    }
}
