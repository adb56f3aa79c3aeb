//! Marks rows that were wrapped because they were full: their text continues in the next one.

use ratatui_core::layout::Alignment;

use crate::Row;

/// How the text of a row continues in the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowBreak {
    /// After a space that is not shown.
    Space,
    /// Without anything in between.
    Within,
}

/// Returns how the text of a row continues in the next row, if it does.
pub(crate) fn row_break(row: &Row) -> Option<RowBreak> {
    match row.alignment? {
        Alignment::Left => Some(RowBreak::Space),
        Alignment::Right | Alignment::Center => Some(RowBreak::Within),
    }
}

/// Records that the text of a row continues. Stored in the alignment, which is otherwise unused, so that it stays with the row whatever is
/// added before and after its text.
pub(super) fn set_row_break(row: &mut Row, how: RowBreak) {
    row.alignment = Some(match how {
        RowBreak::Space => Alignment::Left,
        RowBreak::Within => Alignment::Right,
    });
}
