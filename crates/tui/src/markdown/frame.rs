//! Prefixes of rows in quotes and lists.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::Row;
use crate::text::{chop, row_width, width};

/// An open container, or the text as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct LayoutFrame {
    /// Width of its content, in columns.
    pub(super) columns: usize,
    /// The style of its text.
    pub(super) style: Style,
    /// Prefix of its first row.
    bullet: Option<Span<'static>>,
    /// Prefix of every other row.
    prefix: Span<'static>,
    /// Whether it has rows.
    has_rows: bool,
    /// Whether a blank row is due before the next row.
    wants_gap: bool,
    /// Whether its last block is a list.
    pub(super) ends_with_list: bool,
}

impl LayoutFrame {
    /// Creates a frame without prefixes.
    pub(super) fn new(columns: usize, style: Style) -> Self {
        Self { columns, style, ..Self::default() }
    }

    /// Adds a prefix for every row, and optionally a different one for the first row.
    pub(super) fn prefixed(self, prefix: Span<'static>, bullet: Option<Span<'static>>) -> Self {
        Self { prefix, bullet, ..self }
    }

    /// Requests a blank row before what follows, unless it is the first thing here.
    pub(super) fn gap(&mut self) {
        self.wants_gap = self.has_rows;
    }

    /// Returns whether it has no row for its bullet yet.
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

/// Changes the width of open frames for rows that follow, and the style of the outermost one. A prefix that leaves less than `least` columns
/// is dropped; a bullet without a row gets one of its own.
pub(super) fn resize(frames: &mut [LayoutFrame], columns: usize, style: Style, least: usize, bullets: &mut Vec<Row>) {
    let mut outer = columns;
    for at in 0..frames.len() {
        let frame = &mut frames[at];
        if at == 0 {
            frame.style = style;
        }
        let indent = width(&frame.prefix.content);
        frame.columns = outer.saturating_sub(indent);
        if indent > 0 && frame.columns < least {
            frame.columns = outer;
            frame.prefix = Span::default();
            if let Some(bullet) = frame.bullet.take() {
                put(&mut frames[..at], chop(&[bullet], outer), bullets);
            }
        }
        outer = frames[at].columns;
    }
}

/// Adds rows to the innermost of these frames.
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
