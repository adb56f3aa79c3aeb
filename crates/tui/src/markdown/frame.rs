//! What stands before the rows of quotes and lists.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::Row;
use crate::text::row_width;

/// A container that is open, or the text as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct LayoutFrame {
    /// The columns of what is in it.
    pub(super) columns: usize,
    /// The style of its text.
    pub(super) style: Style,
    /// Stands before its first row.
    bullet: Option<Span<'static>>,
    /// Stands before every other row.
    prefix: Span<'static>,
    /// There are rows in it.
    has_rows: bool,
    /// A blank row is wanted before the next row.
    wants_gap: bool,
    /// The last block in it is a list.
    pub(super) ends_with_list: bool,
}

impl LayoutFrame {
    /// A frame without anything before its rows.
    pub(super) fn new(columns: usize, style: Style) -> Self {
        Self { columns, style, ..Self::default() }
    }

    /// A frame with something before every row, and something else before the first one.
    pub(super) fn prefixed(self, prefix: Span<'static>, bullet: Option<Span<'static>>) -> Self {
        Self { prefix, bullet, ..self }
    }

    /// Puts a blank row before what follows, unless it is the first thing here.
    pub(super) fn gap(&mut self) {
        self.wants_gap = self.has_rows;
    }

    /// Whether it waits for the row that its bullet is for.
    pub(super) fn is_bare(&self) -> bool {
        self.bullet.is_some()
    }

    fn add_prefix(&mut self, row: &mut Row) {
        let bullet = self.bullet.take();
        let has_bullet = bullet.is_some();
        let prefix = bullet.unwrap_or_else(|| self.prefix.clone());
        // Blank rows stay blank.
        let is_blank = row_width(row) == 0;
        if !prefix.content.is_empty() && (has_bullet || !is_blank || !prefix.content.trim().is_empty()) {
            row.spans.insert(0, prefix);
        }
    }
}

/// Puts rows into the innermost of some frames.
pub(super) fn put(frames: &mut [LayoutFrame], rows: Vec<Row>, out: &mut Vec<Row>) {
    for row in rows {
        for at in 0..frames.len() {
            if std::mem::take(&mut frames[at].wants_gap) {
                put_row(&mut frames[..=at], Row::default(), out);
            }
        }
        put_row(frames, row, out);
    }
}

fn put_row(frames: &mut [LayoutFrame], mut row: Row, out: &mut Vec<Row>) {
    for frame in frames.iter_mut().rev() {
        frame.add_prefix(&mut row);
        frame.has_rows = true;
    }
    out.push(row);
}
