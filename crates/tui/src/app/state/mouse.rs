//! Mouse support, which is only active in fullscreen mode: the wheel scrolls, and selected text is copied.

use super::App;
use crate::effect::Effect;
use crate::terminal::{Mouse, MouseKind};
use crate::transcript::{Scroll, SelectionUnit};

/// Number of rows scrolled per wheel step.
const WHEEL: isize = 3;
/// Maximum time between consecutive clicks, in milliseconds.
const CLICK_MS: i64 = 400;
/// Duration of a note, in milliseconds.
const NOTE_MS: i64 = 1_500;

impl App {
    /// Handles a mouse event.
    pub(super) fn mouse(&mut self, mouse: Mouse, now_ms: i64) -> Vec<Effect> {
        let at = (usize::from(mouse.row), usize::from(mouse.column));
        let look = (&self.theme, &self.keymap);
        match mouse.kind {
            MouseKind::WheelUp => self.transcript.scroll(Scroll::Rows(-WHEEL)),
            MouseKind::WheelDown => self.transcript.scroll(Scroll::Rows(WHEEL)),
            MouseKind::Down => {
                let (place, pressed_ms, n) = self.clicks;
                let is_next = place == Some((mouse.row, mouse.column)) && now_ms - pressed_ms < CLICK_MS;
                let n = if is_next { n % 3 + 1 } else { 1 };
                self.clicks = (Some((mouse.row, mouse.column)), now_ms, n);
                let unit = match n {
                    1 => SelectionUnit::Cells,
                    2 => SelectionUnit::Words,
                    _ => SelectionUnit::Lines,
                };
                self.transcript.unselect();
                match self.transcript.is_note(at.0) {
                    true => self.transcript.scroll(Scroll::End),
                    false => self.transcript.select(at, unit, look, now_ms),
                }
            }
            MouseKind::Drag => self.transcript.select_to(at, look),
            MouseKind::Up => {
                return self.transcript.selected(look).map(Effect::CopyText).into_iter().collect();
            }
        }
        Vec::new()
    }

    /// Shows a note for a short time.
    pub(crate) fn note(&mut self, text: String, now_ms: i64) {
        self.note = Some((text, now_ms + NOTE_MS));
    }
}
