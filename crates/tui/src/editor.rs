//! A text editor as a value: keys go in, events and rows come out.
//!
//! [`Editor`] holds the text, what can be undone, deleted text, the history of submissions, and how lines are broken into rows. It does no input or
//! output. [`complete`] adds completion of commands and paths.

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

/// A text that is edited with keys.
///
/// Positions are always between graphemes. Long pasted texts are shown as markers such as `[paste #1 +20 lines]`, which count as one
/// character and are replaced by what they stand for in [`Editor::text`] and in submissions.
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
    /// Counts changes of the text.
    revision: u64,
    markers: marker::Markers,
    undo: undo::UndoStack,
    kills: kill::KillRing,
    history: history::History,
    /// What the last operation was, where the next one can continue it.
    last: LastOperation,
    column: motion::StickyColumn,
    /// A jump that waits for its character.
    jump: Option<motion::JumpDirection>,
    /// Keys of a binding that is not complete.
    pending: Vec<Key>,
    vi: Option<vi::Vi>,
    wrap: wrap::WrapCache,
    view: view::EditorView,
    is_single_line: bool,
    is_masked: bool,
}

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorEvent {
    /// Nothing: the key is for somebody else.
    Ignored,
    /// The cursor moved, or the editor waits for another key. The text is the same.
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
    /// Text was deleted into the ring.
    Kill,
    /// Text of the ring was put in between these places.
    Yank { start: TextPosition, end: TextPosition },
    /// An entry of the history was put in.
    Recall,
}

impl Default for Editor {
    fn default() -> Self {
        Self::new()
    }
}

impl Editor {
    /// An empty editor for several lines.
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

    /// An empty editor for one line: line breaks are dropped, and long lines scroll sideways.
    pub fn single_line() -> Self {
        Self { is_single_line: true, ..Self::new() }
    }

    /// An editor for one line whose text is shown as dots, for passwords and keys. It keeps no deleted text and no history.
    pub fn masked() -> Self {
        Self { is_masked: true, ..Self::single_line() }
    }

    /// Shows a text while the editor is empty.
    #[must_use]
    pub fn with_placeholder(mut self, text: &str) -> Self {
        self.view.placeholder = paste::clean(text).replace('\n', " ");
        self
    }

    /// Leaves columns free on both sides, at most three.
    #[must_use]
    pub fn with_padding(mut self, columns: usize) -> Self {
        self.set_padding(columns);
        self
    }

    /// Sets the columns that are free on both sides, at most three.
    pub fn set_padding(&mut self, columns: usize) {
        self.view.padding = columns.min(3);
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether the text is a command for a shell: its first character that is not blank is `!`.
    pub fn is_shell_command(&self) -> bool {
        let first = self.buffer.lines().iter().map(|line| line.trim_start()).find(|line| !line.is_empty());
        first.is_some_and(|line| line.starts_with('!'))
    }

    /// The text, with pasted texts and the paths of images in place of their markers.
    pub fn text(&self) -> String {
        self.markers.marked(self.buffer.text()).expanded_to_paths()
    }

    /// The lines as they are shown, with markers. There is at least one.
    pub fn lines(&self) -> &[String] {
        self.buffer.lines()
    }

    /// Where the cursor is.
    pub fn cursor(&self) -> TextPosition {
        self.cursor
    }

    /// A number that is another one after each change of the text.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

/// Without the text, which may be secret.
impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Editor")
            .field("n_lines", &self.buffer.lines().len())
            .field("cursor", &self.cursor)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
