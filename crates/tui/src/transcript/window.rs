//! The window on the whole conversation that the fullscreen mode shows. Its place is that of its first row, so that what arrives does not move what
//! is being read. Only entries that are in the window, or near to where it goes, are laid out.

use std::ops::Range;

use super::TranscriptView;
use super::entry::ViewCx;
use super::fold::Unfold;
use super::search::TranscriptSearch;
use super::select::TranscriptSelection;
use crate::Row;
use crate::keymap::Keymap;
use crate::theme::Palette;

/// Entries whose rows are kept.
const MAX_LAID_OUT: usize = 200;

/// A row of the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) entry: usize,
    /// The row within the entry.
    pub(super) row: usize,
}

/// Where the window is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// Down by so many rows; up if there are fewer than none.
    Rows(isize),
    Top,
    End,
}

/// What is below the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    Nothing,
    /// Rows of the last message.
    Lines(usize),
    Messages(usize),
}

/// What is in the window.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptWindow {
    pub(crate) rows: Vec<Row>,
    pub(crate) below: Remaining,
    /// The thumb of a scrollbar as high as the window; `None`: everything is in the window.
    pub(crate) thumb: Option<Range<usize>>,
}

/// The place of the window.
#[derive(Debug, Default)]
pub(super) struct Viewport {
    /// The first row; `None`: the end of the conversation is followed.
    pub(super) top: Option<Place>,
    /// Rows that it moves down with the next frame, or up.
    pending: isize,
    pub(super) columns: usize,
    pub(super) height: usize,
    /// The entry of each row that was shown last.
    pub(super) shown: Vec<Place>,
    n_laid_out: usize,
    /// A row that is to be in the window.
    pub(super) reveal: Option<Place>,
    pub(super) search: Option<TranscriptSearch>,
    pub(super) selection: Option<TranscriptSelection>,
}

impl Viewport {
    /// Entries behind one have moved.
    pub(super) fn entries_moved(&mut self, at: usize, by: isize) {
        if let Some(search) = &mut self.search {
            search.entries_moved(at, by);
        }
        if let Some(selection) = &mut self.selection {
            selection.entries_moved(at, by);
        }
        let places = self.top.iter_mut().chain(&mut self.shown).chain(&mut self.reveal);
        for place in places.filter(|place| place.entry > at) {
            place.entry = place.entry.saturating_add_signed(by);
        }
    }
}

impl TranscriptView {
    /// Moves the window with the next frame.
    pub(crate) fn scroll(&mut self, to: Scroll) {
        let viewport = &mut self.viewport;
        match to {
            Scroll::Rows(n) => viewport.pending = viewport.pending.saturating_add(n),
            Scroll::Top => (viewport.top, viewport.pending) = (Some(Place::default()), 0),
            Scroll::End => (viewport.top, viewport.pending) = (None, 0),
        }
    }

    /// Whether the window is not at the end of the conversation.
    pub(crate) fn is_scrolled(&self) -> bool {
        self.viewport.top.is_some()
    }

    /// The rows of the window.
    pub(crate) fn window(
        &mut self,
        columns: usize,
        height: usize,
        theme: &Palette,
        keymap: &Keymap,
    ) -> TranscriptWindow {
        let options = self.options.clone();
        let cx = ViewCx { columns, theme, keymap, options: &options, now_ms: self.heard_ms };
        self.viewport.height = height;
        self.keep_place(cx);
        if let Some(top) = self.viewport.top {
            // The entry may have been collapsed.
            let row = if top.row == 0 { 0 } else { top.row.min(self.n_rows(top.entry, cx)) };
            self.viewport.top = (top.entry < self.entries.len()).then_some(Place { row, ..top });
        }
        if let Some(place) = self.viewport.reveal.take()
            // The last row may be covered by a note.
            && !self.viewport.shown.iter().rev().skip(1).any(|shown| *shown == place)
        {
            self.viewport.top = Some(self.above(place, height / 3, cx));
        }
        let pending = std::mem::take(&mut self.viewport.pending);
        if pending != 0 {
            let top = self.viewport.top.unwrap_or_else(|| self.top_of_end(height, cx));
            self.viewport.top = Some(match pending < 0 {
                true => self.above(top, pending.unsigned_abs(), cx),
                false => self.below(top, pending.unsigned_abs(), cx),
            });
        }
        let mut filled = None;
        if let Some(top) = self.viewport.top {
            let (rows, end) = self.fill(top, height, cx);
            let is_at_end = end.entry >= self.entries.len();
            filled = (!is_at_end).then_some((rows, end));
        }
        if filled.is_none() {
            self.viewport.top = None;
        }
        let (rows, end) = match filled {
            Some(filled) => filled,
            None => {
                let top = self.top_of_end(height, cx);
                self.fill(top, height, cx)
            }
        };
        let mut rows = rows;
        self.follow_mouse(cx);
        self.mark_matches(&mut rows, cx);
        self.mark_selection(&mut rows);
        let (below, thumb) = (self.remaining(end, cx), self.thumb(end, height, cx));
        self.forget_far_rows();
        TranscriptWindow { rows, below, thumb }
    }

    /// With another width the same part of the entry is at the top.
    fn keep_place(&mut self, cx: ViewCx<'_>) {
        let columns = std::mem::replace(&mut self.viewport.columns, cx.columns);
        if columns == cx.columns {
            return;
        }
        self.viewport.selection = None;
        let Some(top) = self.viewport.top else { return };
        let before = self.entries.get(top.entry).and_then(|cached| cached.rows.as_ref()).map(|(_, rows)| rows.len());
        if let Some(before) = before.filter(|n| *n > 0) {
            let row = top.row * self.n_rows(top.entry, cx) / before;
            self.viewport.top = Some(Place { row, ..top });
        }
    }

    /// How many rows an entry has.
    pub(super) fn n_rows(&mut self, at: usize, cx: ViewCx<'_>) -> usize {
        let Some(cached) = self.entries.get_mut(at) else { return 0 };
        if !cached.entry.is_settled() {
            let n_final = cached.entry.n_final(cx, at == 0);
            return n_final + cached.entry.rows_in(n_final..usize::MAX, cx, at == 0).len();
        }
        match &cached.rows {
            Some((of, rows)) if *of == cx.columns => rows.len(),
            before => {
                self.viewport.n_laid_out += usize::from(before.is_none());
                let rows = cached.entry.rows(cx, at == 0);
                let n = rows.len();
                cached.rows = Some((cx.columns, rows));
                n
            }
        }
    }

    /// Some rows of an entry whose number of rows was asked for before.
    pub(super) fn rows_of(&mut self, at: usize, range: Range<usize>, cx: ViewCx<'_>) -> Vec<Row> {
        let Some(cached) = self.entries.get_mut(at) else { return Vec::new() };
        match &cached.rows {
            Some((of, rows)) if *of == cx.columns && cached.entry.is_settled() => {
                rows.get(range.start..range.end.min(rows.len())).unwrap_or_default().to_vec()
            }
            _ => cached.entry.rows_in(range, cx, at == 0),
        }
    }

    /// The place that is `n` rows above another one, or the beginning.
    fn above(&mut self, from: Place, mut n: usize, cx: ViewCx<'_>) -> Place {
        let mut place = from;
        while n > place.row {
            n -= std::mem::take(&mut place.row);
            let Some(before) = place.entry.checked_sub(1) else { return place };
            match self.unfold(before, Unfold::Last) {
                Some(moved) => place.entry = place.entry.saturating_add_signed(moved),
                None => place = Place { entry: before, row: self.n_rows(before, cx) },
            }
        }
        Place { row: place.row - n, ..place }
    }

    /// The place that is `n` rows below another one, or the end.
    fn below(&mut self, from: Place, mut n: usize, cx: ViewCx<'_>) -> Place {
        let mut place = from;
        while place.entry < self.entries.len() {
            if self.unfold(place.entry, Unfold::First).is_some() {
                continue;
            }
            let left = self.n_rows(place.entry, cx).saturating_sub(place.row);
            if n < left {
                return Place { row: place.row + n, ..place };
            }
            n -= left;
            place = Place { entry: place.entry + 1, row: 0 };
        }
        place
    }

    /// Where a window of this height begins that shows the end.
    fn top_of_end(&mut self, height: usize, cx: ViewCx<'_>) -> Place {
        self.above(Place { entry: self.entries.len(), row: 0 }, height, cx)
    }

    /// The rows from a place on, and the place behind them. What is shown is remembered.
    fn fill(&mut self, top: Place, height: usize, cx: ViewCx<'_>) -> (Vec<Row>, Place) {
        let (mut rows, mut place) = (Vec::new(), top);
        self.viewport.shown.clear();
        while place.entry < self.entries.len() {
            if self.unfold(place.entry, Unfold::First).is_some() {
                continue;
            }
            let missing = height - rows.len();
            let n = self.n_rows(place.entry, cx);
            let first = place.row.min(n);
            let end = n.min(first + missing);
            if end > first {
                rows.extend(self.rows_of(place.entry, first..end, cx));
                self.viewport.shown.extend((first..end).map(|row| Place { entry: place.entry, row }));
            }
            if end < n {
                return (rows, Place { entry: place.entry, row: end });
            }
            place = Place { entry: place.entry + 1, row: 0 };
            if rows.len() == height {
                break;
            }
        }
        // Entries that have no rows are not below the window.
        while place.entry < self.entries.len()
            && self.messages_behind(place.entry).is_none()
            && self.n_rows(place.entry, cx) == 0
        {
            place.entry += 1;
        }
        (rows, place)
    }

    fn remaining(&mut self, end: Place, cx: ViewCx<'_>) -> Remaining {
        let n_entries = self.entries.len();
        match n_entries.saturating_sub(end.entry) {
            0 => Remaining::Nothing,
            1 if self.messages_behind(end.entry).is_none() => {
                Remaining::Lines(self.n_rows(end.entry, cx).saturating_sub(end.row))
            }
            _ => Remaining::Messages(self.n_messages_before(n_entries) - self.n_messages_before(end.entry)),
        }
    }

    /// The thumb of the scrollbar. It is measured in messages, because what was never shown has no number of rows.
    fn thumb(&mut self, end: Place, height: usize, cx: ViewCx<'_>) -> Option<Range<usize>> {
        let top = self.viewport.shown.first().copied()?;
        if top <= Place::default() && end.entry >= self.entries.len() {
            return None;
        }
        let mut position = |place: Place| {
            let within = match place.row {
                0 => 0.0,
                row => row as f64 / self.n_rows(place.entry, cx).max(row) as f64,
            };
            self.n_messages_before(place.entry) as f64 + within
        };
        let (first, last) = (position(top), position(end));
        let scale = height as f64 / (self.n_messages_before(self.entries.len()) as f64).max(1.0);
        // Never less than a row, and at the ends only when the window is.
        let length = (((last - first) * scale).round() as usize).clamp(1, height);
        let free = height - length;
        let begin = match (top <= Place::default(), end.entry >= self.entries.len()) {
            (true, _) => 0,
            (_, true) => free,
            _ if free < 2 => free / 2,
            _ => ((first * scale) as usize).clamp(1, free - 1),
        };
        Some(begin..begin + length)
    }

    /// Keeps rows near to the window only.
    fn forget_far_rows(&mut self) {
        if self.viewport.n_laid_out <= MAX_LAID_OUT {
            return;
        }
        let shown = self.viewport.shown.first().map_or(0, |place| place.entry)
            ..=self.viewport.shown.last().map_or(0, |place| place.entry);
        let mut n = 0;
        for (at, cached) in self.entries.iter_mut().enumerate().filter(|(_, cached)| cached.rows.is_some()) {
            if shown.contains(&at) {
                n += 1;
            } else {
                cached.rows = None;
                cached.entry.release();
            }
        }
        self.viewport.n_laid_out = n;
    }
}
