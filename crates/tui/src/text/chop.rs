//! Wraps text in which every space counts: code, and the output of programs.

use ratatui_core::style::Style;
use ratatui_core::text::Span;
use unicode_segmentation::UnicodeSegmentation;

use super::row_break::{RowBreak, set_row_break};
use super::width::grapheme_width;
use crate::Row;

/// Wraps styled text without line feeds into rows of at most `width` columns, between graphemes wherever a row is full. Nothing is dropped;
/// a tab becomes three spaces. Empty text is one empty row.
pub fn chop(spans: &[Span<'_>], width: usize) -> Vec<Row> {
    let mut chopper = Chopper::new(width);
    spans.iter().for_each(|span| chopper.push(&span.content, span.style));
    chopper.finish()
}

/// Wraps text that arrives in pieces in the same way as [`chop`]. Finished rows can be taken while the last one is open.
#[derive(Clone, Debug)]
pub struct Chopper {
    width: usize,
    rows: Vec<Row>,
    row: Vec<Span<'static>>,
    used: usize,
}

impl Chopper {
    /// Creates a chopper for rows of at most `width` columns, at least one.
    pub fn new(width: usize) -> Self {
        Self { width: width.max(1), rows: Vec::new(), row: Vec::new(), used: 0 }
    }

    /// Changes the width of the current row and those that follow.
    #[must_use]
    pub fn resized(self, width: usize) -> Self {
        let mut resized = Self { rows: self.rows, ..Self::new(width) };
        self.row.iter().for_each(|span| resized.push(&span.content, span.style));
        resized
    }

    /// Appends text without line feeds.
    pub fn push(&mut self, text: &str, style: Style) {
        if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            let mut rest = text;
            while !rest.is_empty() {
                if self.used == self.width {
                    self.break_full_row();
                }
                let (fits, more) = rest.split_at(rest.len().min(self.width - self.used));
                self.append(fits, fits.len(), style);
                rest = more;
            }
            return;
        }
        for grapheme in text.graphemes(true) {
            match (grapheme, grapheme_width(grapheme)) {
                ("\t", _) => (0..3).for_each(|_| self.append_grapheme(" ", 1, style)),
                // A grapheme wider than a row cannot be shown.
                (_, columns) if columns > self.width => self.append_grapheme("…", 1, style),
                (_, columns) => self.append_grapheme(grapheme, columns, style),
            }
        }
    }

    /// Takes the finished rows.
    pub fn take_rows(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    /// Ends the text, and returns the remaining rows.
    pub fn finish(mut self) -> Vec<Row> {
        self.break_row();
        self.rows
    }

    fn append_grapheme(&mut self, grapheme: &str, columns: usize, style: Style) {
        if self.used + columns > self.width {
            self.break_full_row();
        }
        self.append(grapheme, columns, style);
    }

    fn append(&mut self, text: &str, columns: usize, style: Style) {
        match self.row.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.row.push(Span::styled(text.to_owned(), style)),
        }
        self.used += columns;
    }

    fn break_full_row(&mut self) {
        self.break_row();
        if let Some(row) = self.rows.last_mut() {
            set_row_break(row, RowBreak::Within);
        }
    }

    fn break_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row).into());
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::row_width;

    #[track_caller]
    fn check(text: &str, width: usize, expected: &[&str]) {
        let rows: Vec<String> = chop(&[Span::raw(text)], width).iter().map(ToString::to_string).collect();
        assert_eq!(rows, expected, "{text:?} at {width}");
    }

    #[test]
    fn rows_are_filled_and_every_space_is_kept() {
        check("", 3, &[""]);
        check("abc", 3, &["abc"]);
        check("a  b  c", 3, &["a  ", "b  ", "c"]);
        check("\tab", 4, &["   a", "b"]);
        check("a日本", 3, &["a日", "本"]);
        check("日", 1, &["…"]);
        check("ab", 0, &["a", "b"]);
    }

    proptest! {
        #[test]
        fn text_in_pieces_is_wrapped_like_the_whole(text in "[a-z日👍 \t]{0,60}", cut in 0usize..60, width in 1usize..20) {
            let cut = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
            let mut chopper = Chopper::new(width);
            chopper.push(&text[..cut], Style::new());
            let mut rows = chopper.take_rows();
            chopper.push(&text[cut..], Style::new());
            rows.append(&mut chopper.finish());
            prop_assert!(rows.iter().all(|row| row_width(row) <= width));
            prop_assert_eq!(rows, chop(&[Span::raw(&text)], width));
        }
    }
}
