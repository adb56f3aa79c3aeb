//! Where a row was broken because it was full: its text goes on in the next one.

use ratatui_core::layout::Alignment;

use crate::Row;

/// How the text of a row goes on in the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowBreak {
    /// After a space, which is not shown.
    Space,
    /// Without anything between them.
    Within,
}

/// How the text of a row goes on in the next row, if it does.
pub(crate) fn row_break(row: &Row) -> Option<RowBreak> {
    match row.alignment? {
        Alignment::Left => Some(RowBreak::Space),
        Alignment::Right | Alignment::Center => Some(RowBreak::Within),
    }
}

/// Remembers that the text of a row goes on. Rows are never aligned by ratatui, so that the place for it is free; it stays with the row whatever is
/// put before and behind its text.
pub(super) fn set_row_break(row: &mut Row, how: RowBreak) {
    row.alignment = Some(match how {
        RowBreak::Space => Alignment::Left,
        RowBreak::Within => Alignment::Right,
    });
}
