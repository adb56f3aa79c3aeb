//! Text selected with the mouse. It stays selected while the window moves, and can extend beyond the window.

use std::ops::Range;

use ratatui_core::style::{Modifier, Style};
use unicode_segmentation::UnicodeSegmentation as _;

use super::TranscriptView;
use super::entry::ViewCx;
use super::mark::mark;
use super::place::{RowPlace, Scroll, Spot};
use crate::Row;
use crate::image::is_placeholder;
use crate::keymap::Keymap;
use crate::text::{RowBreak, grapheme_width, row_break};
use crate::theme::Palette;

/// Time per row when scrolling because the mouse is held beyond an edge, in milliseconds.
const SCROLL_MS: i64 = 25;

/// Unit by which a selection grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectionUnit {
    Cells,
    Words,
    /// Lines of the text, however many rows each takes.
    Lines,
}

/// A selection from a first to a last cell.
#[derive(Debug)]
pub(super) struct TranscriptSelection {
    unit: SelectionUnit,
    /// The units at the initial press, and at the current or final position of the mouse.
    anchor: (Spot, Spot),
    head: (Spot, Spot),
    /// Row and column of the mouse in the window, while its button is held.
    held: Option<(usize, usize)>,
    /// When it last moved the window, in Unix milliseconds.
    moved_ms: i64,
}

impl TranscriptSelection {
    pub(super) fn entries_moved(&mut self, at: usize, by: isize) {
        let ends = [&mut self.anchor.0, &mut self.anchor.1, &mut self.head.0, &mut self.head.1];
        for spot in ends.into_iter().filter(|spot| spot.place.entry > at) {
            spot.place.entry = spot.place.entry.saturating_add_signed(by);
        }
    }

    /// Returns the first and the last cell; a click alone selects nothing.
    fn ends(&self) -> Option<(Spot, Spot)> {
        let is_click = self.unit == SelectionUnit::Cells && self.anchor.0 == self.head.0;
        (!is_click).then(|| (self.anchor.0.min(self.head.0), self.anchor.1.max(self.head.1)))
    }

    /// Returns the selected columns of a row.
    fn columns(&self, place: RowPlace) -> Option<Range<usize>> {
        let (first, last) = self.ends()?;
        if !(first.place..=last.place).contains(&place) {
            return None;
        }
        let begin = if place == first.place { first.column } else { 0 };
        let end = if place == last.place { last.column.saturating_add(1) } else { usize::MAX };
        Some(begin..end)
    }
}

/// Returns the text in some columns of a row.
fn text_in(row: &Row, columns: &Range<usize>) -> String {
    let mut column = 0;
    let mut text = String::new();
    for grapheme in row.spans.iter().flat_map(|span| span.content.graphemes(true)) {
        if columns.contains(&column) && !is_placeholder(grapheme) {
            text.push_str(grapheme);
        }
        column += grapheme_width(grapheme);
    }
    text
}

/// Returns whether a grapheme is part of a word; paths and URLs are words.
fn is_word(grapheme: &str) -> bool {
    !grapheme.chars().any(|c| c.is_whitespace() || "()[]{}<>\"'`,;|│".contains(c))
}

/// Returns the first and last column of the word at a column, or of the text between words.
fn word_at(row: &Row, at: usize) -> (usize, usize) {
    let mut column = 0;
    let mut word: Option<(bool, usize, usize)> = None;
    for grapheme in row.spans.iter().flat_map(|span| span.content.graphemes(true)) {
        let kind = is_word(grapheme);
        let width = grapheme_width(grapheme);
        match &mut word {
            Some((of, _, last)) if *of == kind => *last = column + width.saturating_sub(1),
            Some((_, first, last)) if (*first..=*last).contains(&at) => break,
            _ => word = Some((kind, column, column + width.saturating_sub(1))),
        }
        column += width;
    }
    word.map(|(_, first, last)| (first, last))
        .filter(|(first, last)| (*first..=*last).contains(&at))
        .unwrap_or((at, at))
}

impl TranscriptView {
    /// Returns the cell of the conversation at a position in the window.
    fn spot_at(&self, row: usize, column: usize) -> Option<Spot> {
        let shown = &self.viewport.shown;
        // Content shorter than the window is at its bottom.
        let Some(at) = row.checked_sub(self.viewport.height.saturating_sub(shown.len())) else {
            return Some(Spot { place: *shown.first()?, column: 0 });
        };
        match shown.get(at) {
            Some(place) => Some(Spot { place: *place, column }),
            None => Some(Spot { place: *shown.last()?, column: usize::MAX }),
        }
    }

    /// Returns the row at a position, if there is one.
    fn row_at(&mut self, place: RowPlace, cx: ViewCx<'_>) -> Option<Row> {
        self.n_rows(place.entry, cx);
        self.rows_of(place.entry, place.row..place.row + 1, cx).pop()
    }

    /// Returns the unit around a cell.
    fn unit_at(&mut self, spot: Spot, unit: SelectionUnit, cx: ViewCx<'_>) -> (Spot, Spot) {
        let place = spot.place;
        match unit {
            SelectionUnit::Cells => (spot, spot),
            SelectionUnit::Words => {
                let (first, last) =
                    self.row_at(place, cx).map_or((spot.column, spot.column), |row| word_at(&row, spot.column));
                (Spot { place, column: first }, Spot { place, column: last })
            }
            SelectionUnit::Lines => {
                let (mut first, mut last) = (place, place);
                while let Some(row) = first.row.checked_sub(1) {
                    let before = RowPlace { row, ..first };
                    if self.row_at(before, cx).as_ref().and_then(row_break).is_none() {
                        break;
                    }
                    first = before;
                }
                while self.row_at(last, cx).as_ref().and_then(row_break).is_some() {
                    last.row += 1;
                }
                (Spot { place: first, column: 0 }, Spot { place: last, column: usize::MAX })
            }
        }
    }

    /// Returns whether a row of the window is the note about rows below it.
    pub(crate) fn is_note(&self, row: usize) -> bool {
        self.is_scrolled() && row + 1 == self.viewport.height
    }

    /// Handles a mouse press; outside the window it selects nothing.
    pub(crate) fn select(&mut self, at: (usize, usize), unit: SelectionUnit, look: (&Palette, &Keymap), now_ms: i64) {
        let options = self.options.clone();
        let cx = self.selection_cx(look, &options);
        if at.0 >= self.viewport.height {
            return;
        }
        let Some(spot) = self.spot_at(at.0, at.1) else { return };
        let anchor = self.unit_at(spot, unit, cx);
        let held = Some(at);
        self.viewport.selection = Some(TranscriptSelection { unit, anchor, head: anchor, held, moved_ms: now_ms });
    }

    fn selection_cx<'a>(
        &self,
        (theme, keymap): (&'a Palette, &'a Keymap),
        options: &'a super::TranscriptOptions,
    ) -> ViewCx<'a> {
        let columns = self.viewport.columns.max(1);
        ViewCx { columns, theme, keymap, options, now_ms: self.last_activity_ms, is_final: false }
    }

    /// Handles a drag.
    pub(crate) fn select_to(&mut self, at: (usize, usize), look: (&Palette, &Keymap)) {
        if let Some(selection) = self.viewport.selection.as_mut().filter(|selection| selection.held.is_some()) {
            selection.held = Some(at);
            let options = self.options.clone();
            self.follow_mouse(self.selection_cx(look, &options));
        }
    }

    /// Extends the selection to the mouse, whatever is shown there now.
    pub(super) fn follow_mouse(&mut self, cx: ViewCx<'_>) {
        let Some((row, column)) = self.viewport.selection.as_ref().and_then(|selection| selection.held) else { return };
        let Some(spot) = self.spot_at(row, column) else { return };
        let Some(unit) = self.viewport.selection.as_ref().map(|selection| selection.unit) else { return };
        let head = self.unit_at(spot, unit, cx);
        if let Some(selection) = &mut self.viewport.selection {
            selection.head = head;
        }
    }

    /// Returns the direction in which the window scrolls because the mouse is held beyond an edge.
    fn pull(&self) -> isize {
        let Some((row, _)) = self.viewport.selection.as_ref().and_then(|selection| selection.held) else { return 0 };
        // A note covers the last row while there is more below it.
        let bottom = self.viewport.height.saturating_sub(usize::from(self.is_scrolled()));
        match row {
            0 if self.viewport.shown.first().is_some_and(|top| *top > RowPlace::default()) => -1,
            row if row >= bottom && self.is_scrolled() => 1,
            _ => 0,
        }
    }

    /// Returns whether the window scrolls because the mouse is held beyond an edge.
    pub(crate) fn is_pulled(&self) -> bool {
        self.pull() != 0
    }

    /// Scrolls the window while the mouse is held beyond an edge.
    pub(crate) fn follow_pull(&mut self, now_ms: i64) {
        let pull = self.pull();
        let Some(selection) = &mut self.viewport.selection else { return };
        let n = (now_ms - selection.moved_ms) / SCROLL_MS;
        if pull == 0 {
            selection.moved_ms = now_ms;
        } else if n > 0 {
            selection.moved_ms = now_ms;
            let n = isize::try_from(n.min(10)).unwrap_or(1);
            self.scroll(Scroll::Rows(pull * n));
        }
    }

    /// Handles the release of the mouse. Returns the selected text.
    pub(crate) fn selected(&mut self, look: (&Palette, &Keymap)) -> Option<String> {
        let options = self.options.clone();
        let cx = self.selection_cx(look, &options);
        let selection = self.viewport.selection.as_mut()?;
        selection.held.take()?;
        let Some((first, last)) = selection.ends() else {
            self.viewport.selection = None;
            return None;
        };
        let mut text = String::new();
        let mut continues = None;
        for entry in first.place.entry..=last.place.entry {
            let n = self.n_rows(entry, cx);
            let begin = if entry == first.place.entry { first.place.row.min(n) } else { 0 };
            let end = if entry == last.place.entry { n.min(last.place.row + 1) } else { n };
            let rows = self.rows_of(entry, begin..end.max(begin), cx);
            for (row, at) in rows.iter().zip(begin..) {
                let place = RowPlace { entry, row: at };
                let Some(columns) = self.viewport.selection.as_ref().and_then(|selection| selection.columns(place))
                else {
                    continue;
                };
                let part = text_in(row, &columns);
                let part = if columns.start == 0 { without_margin(&part, cx) } else { &part };
                let part = if columns.end == usize::MAX { part.trim_end() } else { part };
                match continues {
                    Some(RowBreak::Within) => text.push_str(part.trim_start_matches([' ', '│'])),
                    Some(RowBreak::Space) => {
                        text.push(' ');
                        text.push_str(part.trim_start_matches([' ', '│']));
                    }
                    None => {
                        if place != first.place {
                            text.push('\n');
                        }
                        text.push_str(part);
                    }
                }
                continues = row_break(row);
            }
        }
        (!text.trim().is_empty()).then_some(text)
    }

    /// Clears the selection. Returns whether there was one.
    pub(crate) fn unselect(&mut self) -> bool {
        self.viewport.selection.take().is_some()
    }

    /// Highlights the selection in the rows of the window.
    pub(super) fn mark_selection(&self, rows: &mut [Row]) {
        let Some(selection) = &self.viewport.selection else { return };
        for (row, place) in rows.iter_mut().zip(&self.viewport.shown) {
            if let Some(columns) = selection.columns(*place) {
                mark(row, &columns, Style::new().add_modifier(Modifier::REVERSED));
            }
        }
    }
}

/// Strips the transcript's margin from a row.
fn without_margin<'a>(text: &'a str, cx: ViewCx<'_>) -> &'a str {
    let bar = text.strip_prefix("│ ").filter(|_| !cx.theme.has_backgrounds());
    bar.or_else(|| text.strip_prefix(' ')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_urls_are_words() {
        let row = Row::from("see (src/main.rs:12) or https://a.b/c?d=e, 日本 x");
        for (at, expected) in
            [(0, "see"), (3, " ("), (6, "src/main.rs:12"), (30, "https://a.b/c?d=e"), (44, "日本"), (48, "x"), (99, "")]
        {
            let (first, last) = word_at(&row, at);
            assert_eq!(text_in(&row, &(first..last + 1)), expected, "{at}");
        }
    }
}
