//! Expanding output that is only partly shown.

use super::drawing::SharedDrawings;
use super::entry::ViewCx;
use super::{TranscriptOptions, TranscriptView, place::RowPlace};
use crate::image::SharedImages;
use crate::keymap::Keymap;
use crate::theme::Palette;

/// Maximum number of entries searched for output that is only partly shown.
const MAX_SEARCHED: usize = 200;

impl TranscriptView {
    /// Returns whether any row that is not final changes when output is expanded or collapsed.
    pub(crate) fn is_live_expandable(&mut self, columns: usize, theme: &Palette, keymap: &Keymap) -> bool {
        let first = self.n_committed;
        (first..self.entries.len()).any(|at| self.differs_expanded(at, columns, theme, keymap))
    }

    /// Moves the window to an entry.
    pub(crate) fn show_entry(&mut self, entry: usize) {
        self.viewport.top = Some(RowPlace { entry, row: 0 });
    }

    /// Returns the newest entry of which the scrollback has only a part.
    pub(crate) fn newest_collapsed(&mut self, columns: usize, theme: &Palette, keymap: &Keymap) -> Option<usize> {
        let searched = self.n_committed.saturating_sub(MAX_SEARCHED)..self.n_committed;
        searched.rev().find(|at| self.differs_expanded(*at, columns, theme, keymap))
    }

    /// Returns whether the newest entry that can be expanded is in the scrollback already.
    pub(crate) fn is_last_expandable_committed(&self) -> bool {
        self.entries.iter().rposition(|cached| cached.entry.can_expand()).is_some_and(|at| at < self.n_committed)
    }

    /// Returns whether an entry looks different when output is expanded.
    fn differs_expanded(&mut self, at: usize, columns: usize, theme: &Palette, keymap: &Keymap) -> bool {
        let now_ms = self.last_activity_ms;
        let Some(cached) = self.entries.get_mut(at).filter(|cached| cached.entry.can_expand()) else { return false };
        // What an extension would draw is not known.
        if cached.entry.is_drawn() {
            return true;
        }
        let mut rows = |expanded| {
            // Images are left out, so that the terminal is not sent any.
            let images = SharedImages::default();
            // Nothing is drawn for a comparison either.
            let drawings = SharedDrawings::default();
            let options = TranscriptOptions { expanded, images, drawings, ..self.options.clone() };
            let cx = ViewCx { columns, theme, keymap, options: &options, now_ms, is_final: false };
            cached.entry.rows(cx, true)
        };
        rows(false) != rows(true)
    }
}
