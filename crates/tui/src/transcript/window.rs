//! The window on the whole conversation in fullscreen mode. Its position is that of its first row, so that arriving text does not move what
//! is being read. Only entries in the window, or near its target, are laid out.

use std::ops::Range;

use super::TranscriptView;
use super::entry::ViewCx;
use super::fold::Unfold;
use super::layout::OpenTail;
use super::place::{RowPlace, Scroll};
use super::search::TranscriptSearch;
use super::select::TranscriptSelection;
use crate::Row;
use crate::keymap::Keymap;
use crate::theme::Palette;

/// Content below the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    Nothing,
    /// Rows of the last message.
    Lines(usize),
    Messages(usize),
}

/// Content of the window.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptWindow {
    pub(crate) rows: Vec<Row>,
    pub(crate) below: Remaining,
    /// Thumb of a scrollbar as high as the window; `None`: everything fits into the window.
    pub(crate) thumb: Option<Range<usize>>,
}

/// Position of the window.
#[derive(Debug, Default)]
pub(super) struct Viewport {
    /// The first row; `None`: it follows the end of the conversation.
    pub(super) top: Option<RowPlace>,
    /// Number of rows to move down with the next frame; negative: up.
    pending: isize,
    pub(super) columns: usize,
    pub(super) height: usize,
    /// Position of each row in the last frame.
    pub(super) shown: Vec<RowPlace>,
    /// The ends of open entries in the last frame.
    pub(super) tails: Vec<OpenTail>,
    /// Number of entries laid out since far ones were last dropped.
    pub(super) n_laid_out: usize,
    /// A row that must be in the window.
    pub(super) reveal: Option<RowPlace>,
    pub(super) search: Option<TranscriptSearch>,
    pub(super) selection: Option<TranscriptSelection>,
}

impl Viewport {
    /// Adjusts positions after entries have moved.
    pub(super) fn entries_moved(&mut self, at: usize, by: isize) {
        if let Some(search) = &mut self.search {
            search.entries_moved(at, by);
        }
        if let Some(selection) = &mut self.selection {
            selection.entries_moved(at, by);
        }
        for tail in self.tails.iter_mut().filter(|tail| tail.entry > at) {
            tail.entry = tail.entry.saturating_add_signed(by);
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
            Scroll::Top => (viewport.top, viewport.pending) = (Some(RowPlace::default()), 0),
            Scroll::End => (viewport.top, viewport.pending) = (None, 0),
        }
    }

    /// Returns whether the window is not at the end of the conversation.
    pub(crate) fn is_scrolled(&self) -> bool {
        self.viewport.top.is_some()
    }

    /// Returns the rows of the window.
    pub(crate) fn window(
        &mut self,
        columns: usize,
        height: usize,
        theme: &Palette,
        keymap: &Keymap,
    ) -> TranscriptWindow {
        let options = self.options.clone();
        let cx = ViewCx { columns, theme, keymap, options: &options, now_ms: self.last_activity_ms, is_final: false };
        self.viewport.height = height;
        self.viewport.tails.clear();
        self.keep_place(cx);
        if let Some(top) = self.viewport.top {
            // The entry may have been collapsed.
            let row = if top.row == 0 { 0 } else { top.row.min(self.n_rows(top.entry, cx)) };
            self.viewport.top = (top.entry < self.entries.len()).then_some(RowPlace { row, ..top });
        }
        if let Some(place) = self.viewport.reveal.take()
            // A note may cover the last row.
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

    /// Keeps the same part of the entry at the top when the width changes.
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
            self.viewport.top = Some(RowPlace { row, ..top });
        }
    }

    /// Returns the position `n` rows above another one, or the beginning.
    fn above(&mut self, from: RowPlace, mut n: usize, cx: ViewCx<'_>) -> RowPlace {
        let mut place = from;
        while n > place.row {
            n -= std::mem::take(&mut place.row);
            let Some(before) = place.entry.checked_sub(1) else { return place };
            match self.unfold(before, Unfold::Last) {
                Some(moved) => place.entry = place.entry.saturating_add_signed(moved),
                None => place = RowPlace { entry: before, row: self.n_rows(before, cx) },
            }
        }
        RowPlace { row: place.row - n, ..place }
    }

    /// Returns the position `n` rows below another one, or the end.
    fn below(&mut self, from: RowPlace, mut n: usize, cx: ViewCx<'_>) -> RowPlace {
        let mut place = from;
        while place.entry < self.entries.len() {
            if self.unfold(place.entry, Unfold::First).is_some() {
                continue;
            }
            let left = self.n_rows(place.entry, cx).saturating_sub(place.row);
            if n < left {
                return RowPlace { row: place.row + n, ..place };
            }
            n -= left;
            place = RowPlace { entry: place.entry + 1, row: 0 };
        }
        place
    }

    /// Returns where a window of this height begins if it shows the end.
    fn top_of_end(&mut self, height: usize, cx: ViewCx<'_>) -> RowPlace {
        self.above(RowPlace { entry: self.entries.len(), row: 0 }, height, cx)
    }

    /// Returns the rows from a position on, and the position after them. Records what is shown.
    fn fill(&mut self, top: RowPlace, height: usize, cx: ViewCx<'_>) -> (Vec<Row>, RowPlace) {
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
                self.viewport.shown.extend((first..end).map(|row| RowPlace { entry: place.entry, row }));
            }
            if end < n {
                return (rows, RowPlace { entry: place.entry, row: end });
            }
            place = RowPlace { entry: place.entry + 1, row: 0 };
            if rows.len() == height {
                break;
            }
        }
        // Entries without rows are not below the window.
        while place.entry < self.entries.len()
            && self.messages_behind(place.entry).is_none()
            && self.n_rows(place.entry, cx) == 0
        {
            place.entry += 1;
        }
        (rows, place)
    }

    fn remaining(&mut self, end: RowPlace, cx: ViewCx<'_>) -> Remaining {
        let n_entries = self.entries.len();
        match n_entries.saturating_sub(end.entry) {
            0 => Remaining::Nothing,
            1 if self.messages_behind(end.entry).is_none() => {
                Remaining::Lines(self.n_rows(end.entry, cx).saturating_sub(end.row))
            }
            _ => Remaining::Messages(self.n_messages_before(n_entries) - self.n_messages_before(end.entry)),
        }
    }

    /// Returns the thumb of the scrollbar. It is measured in messages, because the number of rows of what was never shown is unknown.
    fn thumb(&mut self, end: RowPlace, height: usize, cx: ViewCx<'_>) -> Option<Range<usize>> {
        let top = self.viewport.shown.first().copied()?;
        if top <= RowPlace::default() && end.entry >= self.entries.len() {
            return None;
        }
        let mut position = |place: RowPlace| {
            let within = match place.row {
                0 => 0.0,
                row => row as f64 / self.n_rows(place.entry, cx).max(row) as f64,
            };
            self.n_messages_before(place.entry) as f64 + within
        };
        let (first, last) = (position(top), position(end));
        let scale = height as f64 / (self.n_messages_before(self.entries.len()) as f64).max(1.0);
        // Never less than a row, and only at the ends if the window is.
        let length = (((last - first) * scale).round() as usize).clamp(1, height);
        let free = height - length;
        let begin = match (top <= RowPlace::default(), end.entry >= self.entries.len()) {
            (true, _) => 0,
            (_, true) => free,
            _ if free < 2 => free / 2,
            _ => ((first * scale) as usize).clamp(1, free - 1),
        };
        Some(begin..begin + length)
    }
}
