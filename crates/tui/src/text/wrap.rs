//! Wraps styled text into rows, and truncates it to a width.

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;
use unicode_segmentation::UnicodeSegmentation;

use super::row_break::{RowBreak, set_row_break};
use super::width::grapheme_width;
use crate::Row;

/// Returns the width of a row, in columns.
pub fn row_width(row: &Row) -> usize {
    row.spans.iter().map(|span| super::width(&span.content)).sum()
}

/// Wraps styled text without line feeds into rows of at most `width` columns: at spaces if possible, else between graphemes. Spaces at a
/// break are dropped. Empty text is one empty row.
pub fn wrap(spans: &[Span<'_>], width: usize) -> Vec<Row> {
    let mut wrapper = TextWrapper::new(width);
    spans.iter().for_each(|span| wrapper.push(span));
    wrapper.finish()
}

/// Wraps text that arrives in pieces in the same way as [`wrap`]. Finished rows can be taken while the last one is open.
#[derive(Clone, Debug)]
pub struct TextWrapper {
    width: usize,
    rows: Vec<Row>,
    /// Whether a row was finished, taken or not.
    has_rows: bool,
    /// The current row, with trailing spaces.
    row: Vec<(String, Style)>,
    used: usize,
    /// The current word.
    word: Vec<(String, Style)>,
    word_width: usize,
}

fn append(to: &mut Vec<(String, Style)>, text: &str, style: Style) {
    match to.last_mut() {
        Some((last, last_style)) if *last_style == style => last.push_str(text),
        _ => to.push((text.to_owned(), style)),
    }
}

impl TextWrapper {
    /// Creates a wrapper for rows of at most `width` columns, at least one.
    pub fn new(width: usize) -> Self {
        Self {
            width: width.max(1),
            rows: Vec::new(),
            has_rows: false,
            row: Vec::new(),
            used: 0,
            word: Vec::new(),
            word_width: 0,
        }
    }

    /// Changes the width of the current row and those that follow.
    #[must_use]
    pub fn resized(self, width: usize) -> Self {
        let mut resized = Self { rows: self.rows, has_rows: self.has_rows, ..Self::new(width) };
        for (text, style) in self.row.into_iter().chain(self.word) {
            resized.push(&Span::styled(text, style));
        }
        resized
    }

    /// Appends text without line feeds.
    pub fn push(&mut self, span: &Span<'_>) {
        for grapheme in span.content.graphemes(true) {
            self.push_grapheme(grapheme, span.style);
        }
    }

    /// Ends the row.
    pub fn break_line(&mut self) {
        self.end_word();
        self.break_row(None);
    }

    /// Takes the finished rows.
    pub fn take_rows(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    /// Ends the text, and returns the remaining rows.
    pub fn finish(mut self) -> Vec<Row> {
        self.end_word();
        if !self.row.is_empty() || !self.has_rows {
            self.break_row(None);
        }
        self.rows
    }

    fn push_grapheme(&mut self, grapheme: &str, style: Style) {
        if grapheme == " " || grapheme == "\t" {
            self.end_word();
            // Spaces beyond the end are dropped at the break.
            let text = if grapheme == "\t" { "   " } else { " " };
            if self.used + text.len() <= self.width {
                append(&mut self.row, text, style);
            }
            self.used += text.len();
            return;
        }
        let columns = grapheme_width(grapheme);
        // A grapheme wider than a row cannot be shown.
        let (grapheme, columns) = if columns > self.width { ("…", 1) } else { (grapheme, columns) };
        if self.word_width + columns > self.width {
            // The word alone fills a row.
            self.end_word();
            self.break_row(Some(RowBreak::Within));
        }
        append(&mut self.word, grapheme, style);
        self.word_width += columns;
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        if self.used > 0 && self.used + self.word_width > self.width {
            if self.row.iter().all(|(text, _)| text.trim_start_matches(' ').is_empty()) {
                // Only spaces before a word that needs the whole row.
                self.row.clear();
                self.used = 0;
            } else {
                self.break_row(Some(RowBreak::Space));
            }
        }
        for (text, style) in std::mem::take(&mut self.word) {
            append(&mut self.row, &text, style);
        }
        self.used += std::mem::take(&mut self.word_width);
    }

    fn break_row(&mut self, how: Option<RowBreak>) {
        let mut row = std::mem::take(&mut self.row);
        while let Some((text, _)) = row.last_mut() {
            text.truncate(text.trim_end_matches(' ').len());
            if !text.is_empty() {
                break;
            }
            row.pop();
        }
        self.has_rows = true;
        let mut row = Row::from(row.into_iter().map(|(text, style)| Span::styled(text, style)).collect::<Vec<_>>());
        if let Some(how) = how {
            set_row_break(&mut row, how);
        }
        self.rows.push(row);
        self.used = 0;
    }
}

/// Truncates a row to `width` columns; if anything is cut off, `ellipsis` replaces its end.
pub fn truncate(row: &Row, width: usize, ellipsis: &str) -> Row {
    if row_width(row) <= width {
        return row.clone();
    }
    let room = width.saturating_sub(super::width(ellipsis));
    let mut kept = Vec::new();
    let mut used = 0;
    let mut style = Style::default();
    'spans: for span in &row.spans {
        style = span.style;
        let mut text = String::new();
        for grapheme in span.content.graphemes(true) {
            let columns = grapheme_width(grapheme);
            if used + columns > room {
                kept.push(Span::styled(text, span.style));
                break 'spans;
            }
            text.push_str(grapheme);
            used += columns;
        }
        kept.push(Span::styled(text, span.style));
    }
    if super::width(ellipsis) <= width {
        kept.push(Span::styled(ellipsis.to_owned(), style));
    }
    kept.retain(|span| !span.content.is_empty());
    Row::from(kept).style(row.style)
}

/// Returns what a row has from a column on. A wide character that begins before it becomes spaces.
pub(crate) fn skip_columns(row: &Row, from: usize) -> Row {
    let mut kept = Vec::new();
    let mut column = 0;
    for span in &row.spans {
        let mut text = String::new();
        for grapheme in span.content.graphemes(true) {
            let end = column + grapheme_width(grapheme);
            match column >= from {
                true => text.push_str(grapheme),
                false => text.extend(std::iter::repeat_n(' ', end.saturating_sub(from))),
            }
            column = end;
        }
        kept.push(Span::styled(text, span.style));
    }
    kept.retain(|span| !span.content.is_empty());
    Row::from(kept).style(row.style)
}

/// Pads a row with styled spaces to `width` columns.
pub fn pad(mut row: Row, width: usize, style: Style) -> Row {
    let missing = width.saturating_sub(row_width(&row));
    if missing > 0 {
        let style = style.remove_modifier(Modifier::UNDERLINED | Modifier::CROSSED_OUT);
        row.spans.push(Span::styled(" ".repeat(missing), style));
    }
    row
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(rows: &[Row]) -> Vec<String> {
        rows.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn text_wraps_at_spaces_and_long_words_between_graphemes() {
        for (text, width, expected) in [
            ("one two three", 7, &["one two", "three"][..]),
            ("", 5, &[""]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("a abcdefgh", 4, &["a", "abcd", "efgh"]),
            ("日本語", 4, &["日本", "語"]),
            ("日", 1, &["…"]),
            ("ab   cd", 3, &["ab", "cd"]),
            ("   abcd", 4, &["abcd"]),
            ("   abcdef", 4, &["abcd", "ef"]),
            ("   ", 2, &[""]),
        ] {
            assert_eq!(plain(&wrap(&[Span::raw(text)], width)), expected, "{text:?} at {width}");
        }
    }

    #[test]
    fn truncation_leaves_room_for_the_ellipsis() {
        let row = Row::from("hello world");
        assert_eq!(truncate(&row, 8, "...").to_string(), "hello...");
        assert_eq!(truncate(&row, 11, "...").to_string(), "hello world");
        assert_eq!(truncate(&Row::from("日本語"), 4, "…").to_string(), "日…");
    }

    proptest! {
        #[test]
        fn text_in_pieces_wraps_like_the_whole(text in "[a-z日👍 ]{0,60}", cut in 0usize..60, width in 1usize..20) {
            let cut = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
            let mut wrapper = TextWrapper::new(width);
            wrapper.push(&Span::raw(&text[..cut]));
            let mut rows = wrapper.take_rows();
            wrapper.push(&Span::raw(&text[cut..]));
            rows.append(&mut wrapper.finish());
            prop_assert_eq!(rows, wrap(&[Span::raw(&text)], width));
        }

        #[test]
        fn no_row_is_wider_than_the_width_and_no_word_is_lost(text in "[a-z日é👍 ]{0,60}", width in 2usize..20) {
            let rows = wrap(&[Span::raw(text.clone())], width);
            for row in &rows {
                prop_assert!(row_width(row) <= width);
            }
            let shown: String = plain(&rows).concat().split(' ').collect();
            prop_assert_eq!(shown, text.split(' ').collect::<String>());
        }
    }
}
