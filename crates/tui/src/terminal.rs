//! The terminal itself: its capabilities, its input, and drawing rows on it.

mod input;
mod decoder;
mod notification;
mod status;
mod capabilities;
mod encode;
mod screen;
mod fullscreen;
mod reader;
mod device;
mod lines;
mod plain;

pub use capabilities::{QUERIES, SIZE_QUERY, TerminalCapabilities};
pub(crate) use decoder::parse_input;
pub use device::{DeviceError, Modes, TerminalDevice, is_terminal};
pub use fullscreen::Fullscreen;
pub use input::{Mouse, MouseKind, Report, TerminalInput, from_event};
pub use lines::LineDevice;
pub use notification::NotificationKind;
pub(crate) use plain::{PlainNotes, PlainScreen};
pub(crate) use reader::reads_older_format;
pub use screen::{Cursor, InlineScreen};
pub use status::ProgramStatus;

/// The size of a terminal, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

impl Size {
    /// Creates a size of at least one cell.
    pub fn new(columns: u16, rows: u16) -> Self {
        Self { columns: columns.max(1), rows: rows.max(1) }
    }

    /// Returns the number of columns, for arithmetic with text widths.
    pub fn width(self) -> usize {
        usize::from(self.columns)
    }

    /// Returns the number of rows, for arithmetic with lists.
    pub fn height(self) -> usize {
        usize::from(self.rows)
    }
}
