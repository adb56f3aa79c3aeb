//! Cached rows of entries near the window.

use std::ops::Range;

use super::TranscriptView;
use super::entry::ViewCx;
use crate::Row;

/// Maximum number of entries with cached rows.
const MAX_LAID_OUT: usize = 200;

/// The rows at the end of an entry that can still change, as drawn in one frame.
#[derive(Debug)]
pub(super) struct OpenTail {
    pub(super) entry: usize,
    /// Number of rows before them, which never change.
    n_final: usize,
    rows: Vec<Row>,
}

impl TranscriptView {
    /// Returns the number of rows of an entry.
    pub(super) fn n_rows(&mut self, at: usize, cx: ViewCx<'_>) -> usize {
        let Some(cached) = self.entries.get_mut(at) else { return 0 };
        if !cached.entry.is_settled() {
            let tails = &mut self.viewport.tails;
            if let Some(tail) = tails.iter().find(|tail| tail.entry == at) {
                return tail.n_final + tail.rows.len();
            }
            let n_final = cached.entry.n_final(cx, at == 0);
            let rows = cached.entry.rows_in(n_final..usize::MAX, cx, at == 0);
            let n = n_final + rows.len();
            tails.push(OpenTail { entry: at, n_final, rows });
            return n;
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

    /// Returns a range of an entry's rows. Its number of rows must have been requested before.
    pub(super) fn rows_of(&mut self, at: usize, range: Range<usize>, cx: ViewCx<'_>) -> Vec<Row> {
        let Some(cached) = self.entries.get_mut(at) else { return Vec::new() };
        match &cached.rows {
            Some((of, rows)) if *of == cx.columns && cached.entry.is_settled() => {
                rows.get(range.start..range.end.min(rows.len())).unwrap_or_default().to_vec()
            }
            _ => match self.viewport.tails.iter().find(|tail| tail.entry == at && !cached.entry.is_settled()) {
                Some(tail) => {
                    let mut rows = match range.start < tail.n_final {
                        true => cached.entry.rows_in(range.start..range.end.min(tail.n_final), cx, at == 0),
                        false => Vec::new(),
                    };
                    let first = range.start.saturating_sub(tail.n_final);
                    let n = range.end.saturating_sub(range.start.max(tail.n_final));
                    rows.extend(tail.rows.iter().skip(first).take(n).cloned());
                    rows
                }
                None => cached.entry.rows_in(range, cx, at == 0),
            },
        }
    }

    /// Drops rows that are far from the window.
    pub(super) fn forget_far_rows(&mut self) {
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
