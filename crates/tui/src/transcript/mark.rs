//! Restyles columns of rows.

use std::ops::Range;

use ratatui_core::style::Style;
use ratatui_core::text::Span;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::Row;
use crate::text::grapheme_width;

/// Applies a style to some columns of a row, on top of their own.
pub(super) fn mark(row: &mut Row, columns: &Range<usize>, style: Style) {
    let mut spans: Vec<Span<'static>> = Vec::with_capacity(row.spans.len() + 2);
    let mut column = 0;
    for span in std::mem::take(&mut row.spans) {
        let mut part = String::new();
        let mut is_marked = false;
        let mut put = |text: String, is_marked: bool| {
            if !text.is_empty() {
                let style = if is_marked { span.style.patch(style) } else { span.style };
                spans.push(Span::styled(text, style));
            }
        };
        for grapheme in span.content.graphemes(true) {
            if columns.contains(&column) != is_marked {
                put(std::mem::take(&mut part), is_marked);
                is_marked = !is_marked;
            }
            part.push_str(grapheme);
            column += grapheme_width(grapheme);
        }
        put(part, is_marked);
    }
    row.spans = spans;
}

#[cfg(test)]
mod tests {
    use ratatui_core::style::Modifier;

    use super::*;

    #[test]
    fn marks_begin_and_end_between_and_inside_spans() {
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let of = |columns: Range<usize>| {
            let mut row = Row::from(vec![Span::raw("ab日"), Span::styled("cd", bold)]);
            mark(&mut row, &columns, reversed);
            let sign = |span: &Span<'_>| if span.style.add_modifier.contains(Modifier::REVERSED) { "#" } else { "" };
            row.spans.iter().map(|span| format!("{}{} ", span.content, sign(span))).collect::<String>()
        };
        assert_eq!(of(1..5), "a b日# c# d ");
        assert_eq!(of(0..0), "ab日 cd ");
        assert_eq!(of(0..100), "ab日# cd# ");
        assert_eq!(of(3..4), "ab日 cd ", "the second column of a wide character");
    }
}
