//! The list of suggestions below an editor.

use pinch_coding_agent::extension::Completion;
use ratatui_core::text::Span;

use super::query::CompletionToken;
use crate::Row;
use crate::text::{one_line, pad, truncate, width};
use crate::theme::{ColorRole as Color, Palette};

/// Maximum width of labels, in columns.
const MAX_LABEL: usize = 32;
/// Minimum width at which descriptions are shown, and minimum width of a description, in columns.
const MIN_WIDTH: usize = 40;
const MIN_DESCRIPTION: usize = 10;

/// Suggestions for a part of a line.
#[derive(Clone, Debug)]
pub(super) struct Menu {
    pub(super) token: CompletionToken,
    pub(super) line: usize,
    /// Not empty.
    items: Vec<Completion>,
    selected: usize,
}

impl Menu {
    /// Creates a list that selects the first item equal to the typed text, or else the first that begins with it. `None` without items.
    pub(super) fn new(token: CompletionToken, line: usize, items: Vec<Completion>) -> Option<Self> {
        let typed = token.query.typed();
        let equal = items.iter().position(|item| item.value == typed);
        let selected = equal.or_else(|| items.iter().position(|item| item.value.starts_with(typed))).unwrap_or(0);
        (!items.is_empty()).then_some(Self { token, line, items, selected })
    }

    pub(super) fn selected(&self) -> Option<&Completion> {
        self.items.get(self.selected)
    }

    pub(super) fn n_items(&self) -> usize {
        self.items.len()
    }

    /// Selects the previous item, or wraps around to the last one.
    pub(super) fn up(&mut self) {
        self.selected = self.selected.checked_sub(1).unwrap_or(self.items.len() - 1);
    }

    /// Selects the next item, or wraps around to the first one.
    pub(super) fn down(&mut self) {
        self.selected = (self.selected + 1) % self.items.len();
    }

    /// Moves the selection by a page, without wrapping around.
    pub(super) fn page(&mut self, n: usize, is_up: bool) {
        let last = self.items.len() - 1;
        self.selected = if is_up { self.selected.saturating_sub(n) } else { (self.selected + n).min(last) };
    }

    /// Draws `visible` items around the selected one, and the position in the list if there are more.
    pub(super) fn rows(&self, columns: usize, visible: usize, theme: &Palette) -> Vec<Row> {
        let n_shown = visible.min(self.items.len());
        let first = self.selected.saturating_sub(visible / 2).min(self.items.len() - n_shown);
        let labels: Vec<String> = self.items.iter().map(label).collect();
        let label_columns = labels.iter().map(|label| width(label)).max().unwrap_or(0).min(MAX_LABEL);
        let mut rows = Vec::with_capacity(n_shown + 1);
        for (at, (item, label)) in self.items.iter().zip(labels).enumerate().skip(first).take(n_shown) {
            let is_selected = at == self.selected;
            let style = if is_selected { theme.bold(Color::Accent) } else { theme.fg(Color::Text) };
            let label = truncate(&Row::from(Span::styled(label, style)), label_columns, "…");
            let mut spans = vec![Span::styled(if is_selected { "→ " } else { "  " }, style)];
            let left = columns.saturating_sub(label_columns + 4);
            let description = item.description.as_deref();
            match description.filter(|_| columns > MIN_WIDTH && left > MIN_DESCRIPTION) {
                Some(description) => {
                    spans.extend(pad(label, label_columns + 2, style).spans);
                    let text = Span::styled(one_line(description), theme.fg(Color::Muted));
                    spans.extend(truncate(&Row::from(text), left, "…").spans);
                }
                None => spans.extend(label.spans),
            }
            rows.push(truncate(&Row::from(spans), columns, "…"));
        }
        if n_shown < self.items.len() {
            let text = format!("  ({}/{})", self.selected + 1, self.items.len());
            rows.push(truncate(&Row::from(Span::styled(text, theme.fg(Color::Muted))), columns, ""));
        }
        rows
    }
}

fn label(item: &Completion) -> String {
    one_line(item.label.as_ref().unwrap_or(&item.value))
}
