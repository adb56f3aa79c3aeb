//! Dialogs: they replace the editor, and return effects.

mod ask;
mod choice;
mod component;
mod doctor;
mod first_login;
mod fork;
mod login;
mod models;
mod queue;
mod scoped_models;
mod sessions;
mod settings;
mod tree;

pub(crate) use ask::Ask;
pub(crate) use choice::ChoiceDialog;
pub(crate) use component::{CLOSE, ComponentDialog, DOUBLE_PRESS_MS};
pub(crate) use doctor::{DoctorDialog, TerminalReport};
pub(crate) use first_login::FirstLoginDialog;
pub(crate) use fork::ForkDialog;
pub(crate) use login::LoginView;
pub(crate) use models::ModelDialog;
pub(crate) use queue::QueueDialog;
pub(crate) use scoped_models::ScopedModelDialog;
pub(crate) use sessions::SessionDialog;
pub(crate) use settings::{SettingsDialog, SettingsFacts, keys as setting_keys};
pub(crate) use tree::{TreeDialog, TreeFilter};

use pinch_coding_agent::extension::overlay::OverlayBounds;
use ratatui_core::style::Modifier;
use ratatui_core::text::Span;

use crate::Row;
use crate::effect::Effect;
use crate::key::{Key, KeyPress};
use crate::keymap::Keymap;
use crate::text::{SanitizeMode, sanitize, truncate, width, wrap};
use crate::theme::{ColorRole, Palette};

/// A dialog has one row of key hints for this many rows.
const ROWS_PER_HINT_ROW: usize = 5;

/// Context for drawing and handling dialogs.
#[derive(Clone, Copy)]
pub(crate) struct DialogCx<'a> {
    pub(crate) theme: &'a Palette,
    pub(crate) keymap: &'a Keymap,
    /// Maximum number of rows for the dialog.
    pub(crate) max_rows: usize,
    pub(crate) columns: usize,
    /// Current time, in Unix milliseconds.
    pub(crate) now_ms: i64,
}

/// Effect of a key on a dialog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DialogEvent<E = Effect> {
    /// Nothing.
    Ignored,
    /// The display has changed.
    Changed,
    /// The dialog closes with these effects.
    Close(Vec<E>),
    /// The dialog stays open, with these effects.
    Do(Vec<E>),
}

impl DialogEvent {
    /// Closes the dialog with one effect.
    pub(crate) fn close_with(effect: Effect) -> Self {
        Self::Close(vec![effect])
    }
}

/// Key that makes the selected item the default for new sessions.
pub(crate) const SAVE: Key = Key::ctrl('s');

/// A view that replaces the editor.
pub(crate) trait DialogView<E = Effect> {
    /// Returns the rows, and the position of a text field's cursor in them.
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>);

    /// Handles a key.
    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent<E>;

    /// Handles a line typed on a terminal that edits lines itself; `None`: its characters are handled as keys, followed by enter. A line
    /// that must not be handled as keys is [`DialogEvent::Ignored`], which the user is told.
    fn line(&mut self, _line: &str, _cx: DialogCx<'_>) -> Option<DialogEvent<E>> {
        None
    }

    /// Handles pasted text.
    fn paste(&mut self, _text: &str) {}

    /// Returns whether the input is secret.
    fn is_secret(&self) -> bool {
        false
    }

    /// Returns whether part of it changes with time.
    fn counts_down(&self) -> bool {
        false
    }

    /// Returns the dialog of a component.
    fn component(&mut self) -> Option<&mut ComponentDialog> {
        None
    }

    /// Returns whether keys are for it.
    fn takes_keys(&self) -> bool {
        true
    }

    /// Returns whether it is drawn above everything instead of in place of the editor.
    fn is_overlay(&self) -> bool {
        false
    }

    /// Returns an overlay on a screen of these columns and rows, and its place in a live area of at least `live_rows`; `None`: it is hidden,
    /// or no overlay.
    fn overlay_rows(
        &mut self,
        _screen: (usize, usize),
        _live_rows: usize,
        _theme: &Palette,
    ) -> Option<(OverlayBounds, Vec<Row>)> {
        None
    }

    /// Handles the result of a lookup.
    fn learn(&mut self, _news: DialogNews) {}
}

/// The result of a lookup for a dialog.
pub(crate) enum DialogNews {
    /// Sessions of all directories.
    Sessions(Vec<pinch_coding_agent::store::SessionSummary>),
    /// The model servers that run on this machine.
    LocalServers(Vec<pinch_coding_agent::models::local_servers::LocalServer>),
    /// The labels of the tree's entries have changed.
    Label { target: pinch_coding_agent::entry::EntryId, label: Option<String> },
    /// A problem to show.
    Problem(String),
}

/// Frames a dialog's content with rules and a title.
pub(crate) fn framed(title: &str, content: Vec<Row>, hints: &[String], cx: DialogCx<'_>) -> Vec<Row> {
    let rule = || Row::styled("─".repeat(cx.columns), cx.theme.fg(ColorRole::Border));
    let mut rows = vec![rule()];
    let style = cx.theme.bold(ColorRole::Accent);
    for line in sanitize(title, SanitizeMode::Output).lines() {
        rows.extend(wrap(&[Span::styled(line.to_owned(), style)], cx.columns));
    }
    rows.extend(content);
    rows.extend(hint_rows(hints, cx));
    rows.push(rule());
    rows
}

/// Returns the number of rows left for the content of a dialog with this title and these hints.
pub(crate) fn room(title: &str, hints: &[String], cx: DialogCx<'_>) -> usize {
    cx.max_rows.saturating_sub(framed(title, Vec::new(), hints, cx).len())
}

/// Formats key hints, as many on a row as fit. A dialog with little room gets fewer rows, the last of which is truncated.
pub(crate) fn hint_rows(hints: &[String], cx: DialogCx<'_>) -> Vec<Row> {
    let max = (cx.max_rows / ROWS_PER_HINT_ROW).max(1);
    let mut lines: Vec<String> = Vec::new();
    for hint in hints {
        let is_last = lines.len() == max;
        match lines.last_mut() {
            Some(line) if is_last || width(line) + width(hint) + 2 <= cx.columns => {
                line.push_str("  ");
                line.push_str(hint);
            }
            _ => lines.push(hint.clone()),
        }
    }
    let style = cx.theme.fg(ColorRole::Dim);
    lines.into_iter().map(|line| truncate(&Row::styled(line, style), cx.columns, "…")).collect()
}

/// Formats a key hint.
pub(crate) fn hint(keys: &str, what: &str) -> String {
    format!("{keys} {what}")
}

/// Formats a tab, and marks the chosen one.
pub(crate) fn tab(label: &str, is_chosen: bool, theme: &Palette) -> Vec<Span<'static>> {
    let (sign, style) = match is_chosen {
        true => ("◉", theme.fg(ColorRole::Accent).add_modifier(Modifier::BOLD)),
        false => ("○", theme.fg(ColorRole::Muted)),
    };
    vec![Span::styled(format!("{sign} {label}"), style)]
}
