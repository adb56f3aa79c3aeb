//! A text editor as a value: keys go in, events and rows come out.
//!
//! [`Editor`] contains the text, the undo history, killed text, the history of submissions, and the layout of lines in rows. It does no
//! I/O. [`complete`] adds completion of commands and paths.

mod buffer;

mod marker;

mod step;

mod wrap;

mod undo;

mod kill;

mod paste;

mod submission;

mod change;

mod motion;

mod history;

mod vi;

mod keys;

mod view;

pub mod complete;

#[cfg(test)]
mod tests;

use std::fmt;

pub use buffer::TextPosition;
pub use paste::{image_path, pasted_text};
pub use submission::{PastedImage, Submission};
pub use vi::ViMode;

use crate::key::Key;

/// A text editor driven by keys.
///
/// Positions are always between graphemes. Long pasted texts are shown as markers such as `[paste #1 +20 lines]`. A marker counts as one
/// character, and is replaced by its text in [`Editor::text`] and in submissions.
///
/// ```
/// use pinch_tui::editor::{Editor, EditorEvent};
/// use pinch_tui::key::{Key, KeyCode, KeyPress};
/// use pinch_tui::keymap::Keymap;
/// use pinch_tui::theme::{ColorDepth, Palette, ColorRole};
///
/// let keymap = Keymap::default();
/// let theme = Palette::builtin("dark", ColorDepth::True);
/// let mut editor = Editor::new().with_placeholder("Type a message");
/// for c in "hello".chars() {
///     assert_eq!(editor.handle(&KeyPress::typed(c), &keymap), EditorEvent::Changed);
/// }
/// editor.handle(&KeyPress::of(Key::ctrl('w')), &keymap); // deletes the word
/// editor.paste("good morning");
///
/// // Draw it: rules above and below, at most five rows of text in between.
/// let (rows, cursor) = editor.rows(20, 5, &theme, theme.fg(ColorRole::Border));
/// assert_eq!(rows[1].to_string(), "good morning");
/// assert_eq!(cursor, Some((1, 12)));
///
/// let EditorEvent::Submit(submission) = editor.handle(&KeyPress::of(KeyCode::Enter.into()), &keymap) else { panic!() };
/// assert_eq!(submission.text, "good morning");
/// assert!(editor.is_empty());
/// editor.remember(&submission); // for the up key
/// ```
#[derive(Clone)]
pub struct Editor {
    buffer: buffer::TextBuffer,
    cursor: TextPosition,
    /// Number of changes of the text.
    revision: u64,
    markers: marker::Markers,
    undo: undo::UndoStack,
    kills: kill::KillRing,
    history: history::History,
    /// The last operation, if the next one can continue it.
    last: LastOperation,
    column: motion::StickyColumn,
    /// A jump waiting for its character.
    jump: Option<motion::JumpDirection>,
    /// Keys of an incomplete binding.
    pending: Vec<Key>,
    vi: Option<vi::Vi>,
    wrap: wrap::WrapCache,
    view: view::EditorView,
    is_single_line: bool,
    is_masked: bool,
}

/// Effect of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorEvent {
    /// None: the editor does not handle the key.
    Ignored,
    /// The cursor moved, or the editor waits for another key. The text is unchanged.
    Moved,
    /// The text changed.
    Changed,
    /// The text was submitted, and the editor is empty.
    Submit(Submission),
}

/// Operations that the next one can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastOperation {
    /// None of these.
    Other,
    /// A character of a word was typed.
    TypeWord,
    /// Text was deleted into the kill ring.
    Kill,
    /// Text from the kill ring was inserted between these positions.
    Yank { start: TextPosition, end: TextPosition },
    /// A history entry was inserted.
    Recall,
}

impl Default for Editor {
    fn default() -> Self {
        Self::new()
    }
}

impl Editor {
    /// Creates an empty editor for several lines.
    pub fn new() -> Self {
        Self {
            buffer: buffer::TextBuffer::default(),
            cursor: TextPosition::default(),
            revision: 0,
            markers: marker::Markers::default(),
            undo: undo::UndoStack::default(),
            kills: kill::KillRing::default(),
            history: history::History::default(),
            last: LastOperation::Other,
            column: motion::StickyColumn::default(),
            jump: None,
            pending: Vec::new(),
            vi: None,
            wrap: wrap::WrapCache::default(),
            view: view::EditorView::default(),
            is_single_line: false,
            is_masked: false,
        }
    }

    /// Creates an empty editor for one line: line breaks are dropped, and long lines scroll sideways.
    pub fn single_line() -> Self {
        Self { is_single_line: true, ..Self::new() }
    }

    /// Creates a single-line editor that shows its text as dots, for passwords and keys. It stores no killed text and no history.
    pub fn masked() -> Self {
        Self { is_masked: true, ..Self::single_line() }
    }

    /// Shows a text while the editor is empty.
    #[must_use]
    pub fn with_placeholder(mut self, text: &str) -> Self {
        self.view.placeholder = paste::clean(text).replace('\n', " ");
        self
    }

    /// Sets the number of free columns on both sides, at most three.
    #[must_use]
    pub fn with_padding(mut self, columns: usize) -> Self {
        self.set_padding(columns);
        self
    }

    /// Sets the number of free columns on both sides, at most three.
    pub fn set_padding(&mut self, columns: usize) {
        self.view.padding = columns.min(3);
    }

    /// Returns whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns whether the text is a shell command: its first non-blank character is `!`.
    pub fn is_shell_command(&self) -> bool {
        let first = self.buffer.lines().iter().map(|line| line.trim_start()).find(|line| !line.is_empty());
        first.is_some_and(|line| line.starts_with('!'))
    }

    /// Returns the text, with pasted texts and image paths in place of their markers.
    pub fn text(&self) -> String {
        self.markers.marked(self.buffer.text()).expanded_to_paths()
    }

    /// Returns the lines as shown, with markers. There is at least one.
    pub fn lines(&self) -> &[String] {
        self.buffer.lines()
    }

    /// Returns the cursor position.
    pub fn cursor(&self) -> TextPosition {
        self.cursor
    }

    /// Returns a number that changes with every change of the text.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

/// Omits the text, which may be secret.
impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Editor")
            .field("n_lines", &self.buffer.lines().len())
            .field("cursor", &self.cursor)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
