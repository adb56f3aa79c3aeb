//! Search patterns, and their matches in texts and rows.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::Row;
use crate::text::{RowBreak, grapheme_width, row_break};

/// A search pattern. Case is only significant if the pattern contains upper-case letters; any amount of white space matches any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchPattern {
    text: String,
    /// The pattern without characters that Markdown does not show.
    loose: String,
    has_capitals: bool,
}

/// A match: its start, and its columns in each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowMatch {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) parts: Vec<(usize, Range<usize>)>,
}

/// Returns whether Markdown may hide a character.
fn is_markup(c: char) -> bool {
    matches!(c, '*' | '_' | '`' | '~' | '\\')
}

/// Normalises a text for comparison.
fn folded(text: &str, has_capitals: bool, has_markup: bool) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            if !folded.ends_with(' ') {
                folded.push(' ');
            }
        } else if !has_markup && is_markup(c) {
            // Omitted.
        } else if has_capitals {
            folded.push(c);
        } else {
            folded.extend(c.to_lowercase());
        }
    }
    folded
}

impl SearchPattern {
    /// Creates a pattern; `None` if there is nothing to search for.
    pub(super) fn new(typed: &str) -> Option<Self> {
        let has_capitals = typed.chars().any(char::is_uppercase);
        let text = folded(typed, has_capitals, true);
        let loose = folded(typed, has_capitals, false);
        (!text.trim().is_empty()).then_some(Self { text, loose, has_capitals })
    }

    /// Returns whether a Markdown text may contain the pattern when displayed.
    pub(super) fn may_be_in(&self, text: &str) -> bool {
        match self.loose.trim() {
            "" => self.is_in(text),
            _ => folded(text, self.has_capitals, false).contains(&self.loose),
        }
    }

    /// Returns whether a plain text contains the pattern.
    pub(super) fn is_in(&self, text: &str) -> bool {
        folded(text, self.has_capitals, true).contains(&self.text)
    }

    /// Returns the matches in rows. A match continues in the next row if the text does.
    pub(super) fn matches(&self, rows: &[Row]) -> Vec<RowMatch> {
        let mut text = String::new();
        // For each character: its start in the text, its row, its column and its width.
        let mut places: Vec<(usize, usize, usize, usize)> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let mut column = 0;
            // The start of a row is a break even without a space, unless a word continues there.
            let continues = at.checked_sub(1).and_then(|before| row_break(&rows[before])) == Some(RowBreak::Within);
            let mut space = (!text.is_empty() && !continues).then_some((at, 0, 0));
            let mut is_indent = true;
            for grapheme in row.spans.iter().flat_map(|span| span.content.graphemes(true)) {
                let width = grapheme_width(grapheme);
                is_indent &= grapheme == " " || grapheme == "│";
                if grapheme.chars().all(char::is_whitespace) || is_indent {
                    space = space.or((!is_indent).then_some((at, column, width)));
                } else {
                    if let Some((row, column, width)) = space.take() {
                        places.push((text.len(), row, column, width));
                        text.push(' ');
                    }
                    places.push((text.len(), at, column, width));
                    text.push_str(&folded(grapheme, self.has_capitals, true));
                }
                column += width;
            }
        }
        let found = text.match_indices(&self.text).map(|(start, found)| start..start + found.len());
        found.filter_map(|bytes| row_match(&places, &bytes)).collect()
    }
}

/// Returns the position of a match in rows.
fn row_match(places: &[(usize, usize, usize, usize)], bytes: &Range<usize>) -> Option<RowMatch> {
    let first = places.partition_point(|place| place.0 <= bytes.start).saturating_sub(1);
    let end = places.partition_point(|place| place.0 < bytes.end);
    let mut parts: Vec<(usize, Range<usize>)> = Vec::new();
    for (_, row, column, width) in places.get(first..end)?.iter().filter(|place| place.3 > 0) {
        match parts.last_mut() {
            Some((last, columns)) if last == row => columns.end = column + width,
            _ => parts.push((*row, *column..column + width)),
        }
    }
    let (row, columns) = parts.first()?;
    Some(RowMatch { row: *row, column: columns.start, parts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(typed: &str, rows: &[&str]) -> Vec<Vec<(usize, Range<usize>)>> {
        let rows: Vec<Row> = rows.iter().map(|row| Row::from((*row).to_owned())).collect();
        SearchPattern::new(typed).unwrap().matches(&rows).into_iter().map(|found| found.parts).collect()
    }

    #[test]
    fn case_matters_only_if_the_pattern_has_upper_case() {
        assert_eq!(matches("ab", &["ab AB Ab"]), [vec![(0, 0..2)], vec![(0, 3..5)], vec![(0, 6..8)]]);
        assert_eq!(matches("Ab", &["ab AB Ab"]), [vec![(0, 6..8)]]);
        assert_eq!(matches("straße", &["STRASSE Straße"]), [vec![(0, 8..14)]]);
        assert!(SearchPattern::new(" \t").is_none());
    }

    #[test]
    fn matches_continue_in_the_next_row_and_handle_wide_characters() {
        assert_eq!(matches("two  three", &[" one two   ", " three", " two three"]).len(), 2);
        assert_eq!(matches("two three", &["│ one two", "│ three"]), [vec![(0, 6..9), (1, 2..7)]]);
        assert_eq!(matches("本x", &[" 日本x"]), [vec![(0, 3..6)]]);
        assert_eq!(matches("ab", &["a", "b"]), Vec::<Vec<_>>::new());
    }

    #[test]
    fn wrapped_words_are_found() {
        let rows = crate::text::wrap(&[ratatui_core::text::Span::raw("one abcdefghijklmnop two")], 6);
        let found = SearchPattern::new("fgh").unwrap().matches(&rows);
        assert_eq!(found[0].parts, [(1, 5..6), (2, 0..2)]);
        assert_eq!(SearchPattern::new("one abcdefghijklmnop two").unwrap().matches(&rows).len(), 1);
    }

    #[test]
    fn markup_does_not_hide_a_text() {
        let pattern = SearchPattern::new("a bold_word").unwrap();
        assert!(pattern.may_be_in("a **bold_word** here") && !pattern.is_in("a **bold_word** here"));
        assert!(!pattern.may_be_in("a brave word"));
        assert!(!SearchPattern::new("**").unwrap().may_be_in("nothing"));
    }
}
