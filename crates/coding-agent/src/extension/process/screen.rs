//! Tells a process what is on the screen.

use serde_json::{Value, json};

use super::points::object;
use crate::extension::snapshot::{ThemeColors, UiSnapshot};

/// Describes what is on the screen, as far as it differs from what is known.
pub(super) fn news(now: &UiSnapshot, known: Option<&UiSnapshot>) -> Value {
    let is_new = |same: &dyn Fn(&UiSnapshot) -> bool| !known.is_some_and(same);
    let theme = |theme: &ThemeColors| {
        json!({
            "name": theme.name, "path": theme.path, "foreground": theme.foreground, "background": theme.background,
        })
    };
    object([
        ("editorText", is_new(&|known| known.editor_text == now.editor_text).then(|| now.editor_text.as_str().into())),
        (
            "toolsExpanded",
            is_new(&|known| known.tools_expanded == now.tools_expanded).then(|| now.tools_expanded.into()),
        ),
        ("theme", is_new(&|known| known.theme == now.theme).then(|| now.theme.as_str().into())),
        ("keys", is_new(&|known| known.keys == now.keys).then(|| json!(*now.keys))),
        ("themes", is_new(&|known| known.themes == now.themes).then(|| now.themes.iter().map(theme).collect())),
    ])
}
