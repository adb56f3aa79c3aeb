//! Dialogs: they take the place of the editor, and say what is to be done.

mod ask;
mod choice;
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
pub(crate) use fork::ForkDialog;
pub(crate) use login::LoginView;
pub(crate) use models::ModelDialog;
pub(crate) use queue::QueueDialog;
pub(crate) use scoped_models::ScopedModelDialog;
pub(crate) use sessions::SessionDialog;
pub(crate) use settings::{SettingsDialog, SettingsFacts, keys as setting_keys};
pub(crate) use tree::{TreeDialog, TreeFilter};

use ratatui_core::style::Modifier;
use ratatui_core::text::Span;

use crate::Row;
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::keymap::Keymap;
use crate::text::{SanitizeMode, sanitize, truncate, wrap};
use crate::theme::{ColorRole, Palette};

/// What dialogs are drawn and handled with.
#[derive(Clone, Copy)]
pub(crate) struct DialogCx<'a> {
    pub(crate) theme: &'a Palette,
    pub(crate) keymap: &'a Keymap,
    /// The rows that the dialog may take.
    pub(crate) max_rows: usize,
    pub(crate) columns: usize,
    /// Unix milliseconds.
    pub(crate) now_ms: i64,
}

/// What a key did to a dialog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DialogEvent<E = Effect> {
    /// Nothing.
    Ignored,
    /// It looks different now.
    Changed,
    /// It is over, and these things are to be done.
    Close(Vec<E>),
    /// These things are to be done while it stays.
    Do(Vec<E>),
}

impl DialogEvent {
    /// It is over, and one thing is to be done.
    pub(crate) fn close_with(effect: Effect) -> Self {
        Self::Close(vec![effect])
    }
}

/// What takes the place of the editor.
pub(crate) trait DialogView<E = Effect> {
    /// The rows, and where the cursor of a text field in them is.
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>);

    /// Handles a key.
    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent<E>;

    /// Handles a line that was typed where the terminal edits lines itself; `None`: its characters are keys, with enter behind them.
    fn line(&mut self, _line: &str, _cx: DialogCx<'_>) -> Option<DialogEvent<E>> {
        None
    }

    /// Handles pasted text.
    fn paste(&mut self, _text: &str) {}

    /// Whether what is typed is a secret.
    fn is_secret(&self) -> bool {
        false
    }

    /// Whether something in it changes with time.
    fn counts_down(&self) -> bool {
        false
    }

    /// Takes in what was looked up for it.
    fn learn(&mut self, _news: DialogNews) {}
}

/// Something that was looked up for a dialog.
pub(crate) enum DialogNews {
    /// Sessions of all directories.
    Sessions(Vec<pinch_coding_agent::store::SessionSummary>),
    /// The labels of the tree's entries have changed.
    Label { target: pinch_coding_agent::entry::EntryId, label: Option<String> },
    /// Something went wrong; the dialog shows it.
    Problem(String),
}

/// Puts a dialog's content between rules, below a title.
pub(crate) fn framed(title: &str, content: Vec<Row>, hints: &[String], cx: DialogCx<'_>) -> Vec<Row> {
    let rule = || Row::styled("─".repeat(cx.columns), cx.theme.fg(ColorRole::Border));
    let mut rows = vec![rule()];
    let style = cx.theme.bold(ColorRole::Accent);
    for line in sanitize(title, SanitizeMode::Output).lines() {
        rows.extend(wrap(&[Span::styled(line.to_owned(), style)], cx.columns));
    }
    rows.extend(content);
    if !hints.is_empty() {
        let hint = Row::styled(hints.join("  "), cx.theme.fg(ColorRole::Dim));
        rows.push(truncate(&hint, cx.columns, "…"));
    }
    rows.push(rule());
    rows
}

/// A hint: what a key does.
pub(crate) fn hint(keys: &str, what: &str) -> String {
    format!("{keys} {what}")
}

/// A tab of several, the chosen one marked.
pub(crate) fn tab(label: &str, is_chosen: bool, theme: &Palette) -> Vec<Span<'static>> {
    let (sign, style) = match is_chosen {
        true => ("◉", theme.fg(ColorRole::Accent).add_modifier(Modifier::BOLD)),
        false => ("○", theme.fg(ColorRole::Muted)),
    };
    vec![Span::styled(format!("{sign} {label}"), style)]
}
