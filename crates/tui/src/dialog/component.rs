//! A component of an extension that is dealt with before anything else: in place of the editor, or above everything.

use pinch_coding_agent::extension::component::{ComponentAction, ComponentPlace, ComponentView};
use pinch_coding_agent::extension::overlay::{OverlayBounds, OverlayOptions};

use super::{DialogCx, DialogEvent, DialogView};
use crate::Row;
use crate::component_pane::ComponentPane;
use crate::key::{Key, KeyPress};
use crate::theme::Palette;

/// Key that closes a component if it is pressed twice, for components that do not react.
pub(crate) const CLOSE: Key = Key::ctrl('c');
/// Maximum time between the presses, in milliseconds.
pub(crate) const DOUBLE_PRESS_MS: i64 = 500;

/// The dialog. It gets all keys, and is as high as its lines.
pub(crate) struct ComponentDialog {
    pane: ComponentPane,
    overlay: Option<Overlay>,
    /// When the key that closes was last pressed.
    close_at: Option<i64>,
}

/// Where an overlay is, and whether it gets the keys.
struct Overlay {
    options: OverlayOptions,
    is_hidden: bool,
    has_focus: bool,
}

impl ComponentDialog {
    pub(crate) fn new(id: u64, view: ComponentView) -> Self {
        let overlay = match view.place() {
            ComponentPlace::Overlay(options) => {
                let has_focus = !options.non_capturing;
                Some(Overlay { options: options.clone(), is_hidden: false, has_focus })
            }
            _ => None,
        };
        Self { pane: ComponentPane::new(id, view), overlay, close_at: None }
    }

    /// Returns the number of the component.
    pub(crate) fn id(&self) -> u64 {
        self.pane.id
    }

    /// Does what the component of an overlay asks for.
    pub(crate) fn act(&mut self, action: ComponentAction) {
        let Some(overlay) = &mut self.overlay else { return };
        match action {
            ComponentAction::Move(options) => overlay.options = options,
            ComponentAction::Hide(hidden) => overlay.is_hidden = hidden,
            ComponentAction::Focus(focus) => overlay.has_focus = focus,
            _ => {}
        }
    }
}

impl DialogView for ComponentDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        (self.pane.rows((cx.columns, cx.max_rows), cx.theme), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        if press.key == CLOSE && self.close_at.replace(cx.now_ms).is_some_and(|at| cx.now_ms - at < DOUBLE_PRESS_MS) {
            return DialogEvent::Close(Vec::new());
        }
        match self.pane.key(press, cx.keymap) {
            true => DialogEvent::Changed,
            false => DialogEvent::Ignored,
        }
    }

    fn paste(&mut self, text: &str) {
        self.pane.paste(text);
    }

    fn component(&mut self) -> Option<&mut ComponentDialog> {
        Some(self)
    }

    fn takes_keys(&self) -> bool {
        self.overlay.as_ref().is_none_or(|overlay| overlay.has_focus && !overlay.is_hidden)
    }

    fn is_overlay(&self) -> bool {
        self.overlay.is_some()
    }

    fn overlay_rows(
        &mut self,
        screen: (usize, usize),
        live_rows: usize,
        theme: &Palette,
    ) -> Option<(OverlayBounds, Vec<Row>)> {
        let overlay = self.overlay.as_ref()?;
        let mut bounds = overlay.options.bounds(screen, self.pane.n_lines());
        let margin = overlay.options.margin;
        let height = self.pane.n_lines().min(bounds.rows);
        // What is above the live area belongs to the terminal.
        let area = live_rows.max(height + margin.top + margin.bottom).min(screen.1);
        bounds.row = overlay.options.bounds((screen.0, area), height).row;
        // Hidden ones learn of their room, too: whether they are shown may depend on it.
        let rows = self.pane.rows_on(Some(screen), (bounds.columns, bounds.rows), theme);
        (!overlay.is_hidden).then_some((bounds, rows))
    }
}
