//! Scrolling with keys in fullscreen mode.

use super::App;
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext};
use crate::terminal::Size;
use crate::transcript::Scroll;

/// Returns the number of rows in a page; pages overlap slightly.
pub(super) fn page(size: Size) -> isize {
    size.height().saturating_sub(8).max(1).cast_signed()
}

impl App {
    /// Scrolls the transcript in fullscreen mode; otherwise the key has its other meaning.
    pub(super) fn scroll(&mut self, to: Scroll) -> Option<Vec<Effect>> {
        self.transcript.is_fullscreen().then(|| {
            self.transcript.scroll(to);
            Vec::new()
        })
    }

    /// Scrolls the transcript in fullscreen mode, with keys that a short text in the editor does not need.
    pub(super) fn scroll_key(&mut self, press: &KeyPress, size: Size) -> bool {
        if self.editor.lines().len() > 1 || self.completion.is_open() {
            return false;
        }
        let to = match self.keymap.action(KeyContext::Editor, &press.key) {
            Some(KeyAction::PageUp) => Scroll::Rows(-page(size)),
            Some(KeyAction::PageDown) => Scroll::Rows(page(size)),
            _ => match press.key.to_string().as_str() {
                "home" if self.editor.is_empty() => Scroll::Top,
                "end" if self.editor.is_empty() => Scroll::End,
                _ => return false,
            },
        };
        self.scroll(to).is_some()
    }
}
