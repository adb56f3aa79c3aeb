//! A component of an extension in place of the editor.

use std::collections::BTreeMap;

use pinch_coding_agent::extension::component::{ComponentEvent, ComponentLayout, ComponentView};

use ratatui_core::style::Color;

use super::{DialogCx, DialogEvent, DialogView};
use crate::Row;
use crate::key::{Key, KeyPress};
use crate::key_sequence::key_sequence;
use crate::keymap::{KeyAction, KeyChord};
use crate::sgr;
use crate::text::{row_width, truncate};
use crate::theme::Palette;

/// Key that closes a component if it is pressed twice, for components that do not react.
const CLOSE: Key = Key::ctrl('c');
/// Maximum time between the presses, in milliseconds.
const DOUBLE_PRESS_MS: i64 = 500;

/// The dialog. It gets all keys, and is as high as its lines.
pub(crate) struct ComponentDialog {
    id: u64,
    view: ComponentView,
    /// The layout that the component knows.
    layout: Option<ComponentLayout>,
    /// When the key that closes was last pressed.
    close_at: Option<i64>,
}

impl ComponentDialog {
    pub(crate) fn new(id: u64, view: ComponentView) -> Self {
        Self { id, view, layout: None, close_at: None }
    }
}

/// Returns the layout for a component.
fn layout(cx: DialogCx<'_>) -> ComponentLayout {
    let mut layout = ComponentLayout::default();
    (layout.columns, layout.rows) = (cx.columns, cx.max_rows);
    layout.foreground = colors(cx.theme, true);
    layout.background = colors(cx.theme, false);
    layout
}

fn colors(theme: &Palette, is_foreground: bool) -> BTreeMap<String, String> {
    let parameters = |(name, color): (&str, Color)| Some((name.to_owned(), sgr::parameters(color, is_foreground)?));
    theme.named_colors().filter_map(parameters).collect()
}

impl DialogView for ComponentDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let layout = layout(cx);
        if self.layout.as_ref() != Some(&layout) && self.view.send(ComponentEvent::Layout(layout.clone())) {
            self.layout = Some(layout);
        }
        let lines = self.view.lines();
        let row = |line: &String| {
            let row = sgr::row(line, cx.theme);
            if row_width(&row) > cx.columns { truncate(&row, cx.columns, "") } else { row }
        };
        (lines.iter().take(cx.max_rows).map(row).collect(), None)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        if press.key == CLOSE && self.close_at.replace(cx.now_ms).is_some_and(|at| cx.now_ms - at < DOUBLE_PRESS_MS) {
            return DialogEvent::Close(Vec::new());
        }
        let chord = [KeyChord::from(press.key)];
        let bound = KeyAction::ALL.iter().filter(|action| cx.keymap.keys(**action).contains(&chord[0]));
        let actions = bound.map(|action| action.id().to_owned()).collect();
        match self.view.send(ComponentEvent::Input { data: key_sequence(press), actions }) {
            true => DialogEvent::Changed,
            false => DialogEvent::Ignored,
        }
    }

    fn paste(&mut self, text: &str) {
        // As a terminal with bracketed paste sends it.
        let data = format!("\x1b[200~{text}\x1b[201~");
        self.view.send(ComponentEvent::Input { data, actions: Vec::new() });
    }

    fn component(&self) -> Option<u64> {
        Some(self.id)
    }
}
