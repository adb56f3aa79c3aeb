//! Text as rows, and boxes around rows.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use super::ViewCx;
use crate::Row;
use crate::image::{ImageLook, ImageSource};
use crate::text::{SanitizeMode, pad, sanitize, wrap};
use crate::theme::ColorRole;

/// Wraps untrusted text in one style, with blank columns on the left.
pub(super) fn paragraphs(text: &str, style: Style, columns: usize, indent: usize) -> Vec<Row> {
    let inner = columns.saturating_sub(indent).max(1);
    let mut rows = Vec::new();
    for line in sanitize(text, SanitizeMode::Output).split('\n') {
        rows.extend(wrap(&[Span::styled(line.to_owned(), style)], inner));
    }
    if indent > 0 && columns > indent {
        for row in &mut rows {
            row.spans.insert(0, Span::raw(" ".repeat(indent)));
        }
    }
    rows
}

/// Returns images, or lines that replace them.
pub(super) fn image_rows(
    images: &[ImageSource],
    style: Style,
    columns: usize,
    cx: ViewCx<'_>,
    is_expanded: bool,
) -> Vec<Row> {
    let look = ImageLook { is_final: cx.is_final, is_expanded };
    let rows = |image: &ImageSource| {
        let shown = cx.options.images.lock().rows(image, columns, look);
        shown.unwrap_or_else(|| paragraphs(&image.label(), style, columns, 0))
    };
    images.iter().flat_map(rows).collect()
}

/// Returns the number of columns inside a box.
pub(super) fn inner_columns(cx: ViewCx<'_>) -> usize {
    cx.columns.saturating_sub(2).max(1)
}

/// Puts rows into a box with a background and a blank column and row on each side; without colours, behind a bar.
pub(super) fn boxed(rows: Vec<Row>, background: ColorRole, cx: ViewCx<'_>) -> Vec<Row> {
    if rows.is_empty() || cx.options.plain {
        return rows;
    }
    if !cx.theme.has_backgrounds() {
        let bar = |mut row: Row| {
            row.spans.insert(0, Span::raw("│ "));
            crate::text::truncate(&row, cx.columns, "…")
        };
        return rows.into_iter().map(bar).collect();
    }
    let style = cx.theme.bg(background);
    let fill = |row: Row| {
        let mut row = row;
        if cx.columns > 2 {
            row.spans.insert(0, Span::raw(" "));
        }
        let mut row = pad(row, cx.columns, Style::new());
        for span in &mut row.spans {
            span.style = style.patch(span.style);
        }
        row
    };
    let blank = || fill(Row::default());
    std::iter::once(blank()).chain(rows.into_iter().map(fill)).chain([blank()]).collect()
}
