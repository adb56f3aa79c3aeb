//! Expands and collapses output. Output in the scrollback cannot change: fullscreen mode shows it expanded.

use super::App;
use crate::effect::Effect;
use crate::keymap::KeyAction;
use crate::terminal::Size;

/// How long the key that returns to regular mode is shown, in milliseconds.
const NOTE_MS: i64 = 5_000;

/// Whether fullscreen mode was opened only to show collapsed output of the scrollback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OutputView {
    #[default]
    Closed,
    /// It opens with the next change of the mode, at this entry of the transcript.
    Requested(usize),
    Open,
}

impl App {
    /// Expands or collapses all output.
    pub(super) fn toggle_output(&mut self, size: Size, now_ms: i64) -> Vec<Effect> {
        if self.output_view == OutputView::Open {
            return vec![Effect::ToggleFullscreen];
        }
        let is_regular = !self.transcript.is_fullscreen() && !self.is_plain();
        if is_regular && !self.transcript.is_live_expandable(size.width(), &self.theme, &self.keymap) {
            if !self.transcript.options.expanded
                && let Some(effects) = self.open_output_view(size, now_ms)
            {
                return effects;
            }
            self.status(if self.transcript.options.expanded { "Output is collapsed" } else { "Output is expanded" });
        }
        self.transcript.options.expanded = !self.transcript.options.expanded;
        self.transcript.invalidate();
        Vec::new()
    }

    /// Expands or collapses all output that can still change.
    pub(super) fn set_expanded(&mut self, is_expanded: bool) {
        if self.transcript.options.expanded != is_expanded {
            self.transcript.options.expanded = is_expanded;
            self.transcript.invalidate();
        }
    }

    /// Expands or collapses the output of the last tool.
    pub(super) fn toggle_last_output(&mut self, size: Size, now_ms: i64) -> Vec<Effect> {
        let is_regular = !self.transcript.is_fullscreen() && !self.is_plain();
        if is_regular && self.transcript.is_last_expandable_committed() {
            return self.open_output_view(size, now_ms).unwrap_or_default();
        }
        self.transcript.toggle_last();
        Vec::new()
    }

    /// Opens fullscreen mode at the newest output of which the scrollback has only a part; `None`: there is none.
    fn open_output_view(&mut self, size: Size, now_ms: i64) -> Option<Vec<Effect>> {
        let entry = self.transcript.newest_collapsed(size.width(), &self.theme, &self.keymap)?;
        self.output_view = OutputView::Requested(entry);
        self.note = Some((format!("{} returns", self.keymap.hint(KeyAction::ToolsExpand)), now_ms + NOTE_MS));
        Some(vec![Effect::ToggleFullscreen])
    }

    /// Called after the screen mode has changed.
    pub(super) fn output_view_changed(&mut self, is_fullscreen: bool) {
        match (self.output_view, is_fullscreen) {
            (OutputView::Requested(entry), true) => {
                self.transcript.options.expanded = true;
                self.transcript.invalidate();
                self.transcript.show_entry(entry);
                self.output_view = OutputView::Open;
            }
            (OutputView::Open, false) => {
                // What arrived meanwhile goes into the scrollback as usual.
                self.transcript.options.expanded = false;
                self.transcript.invalidate();
                self.output_view = OutputView::Closed;
            }
            _ => self.output_view = OutputView::Closed,
        }
    }
}
