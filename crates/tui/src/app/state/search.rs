//! The search line of the transcript.

use ratatui_core::text::Span;

use super::App;
use super::scroll::page;
use crate::Row;
use crate::compose::{LOW, RowsWithCursor};
use crate::editor_line::LineEditor;
use crate::effect::Effect;
use crate::key::KeyPress;
use crate::keymap::{KeyAction, KeyContext};
use crate::terminal::Size;
use crate::text::{row_width, truncate};
use crate::theme::ColorRole;
use crate::transcript::{Scroll, SearchDirection, SearchStatus};

const LABEL: &str = "Search ";

impl App {
    /// Opens the search, which is only available in fullscreen mode.
    pub(super) fn open_search(&mut self) -> Vec<Effect> {
        if self.search.is_some() {
            self.transcript.search_next(SearchDirection::Up);
            return Vec::new();
        }
        self.search = Some(LineEditor::new(""));
        self.transcript.search_begin();
        if self.transcript.is_fullscreen() { Vec::new() } else { vec![Effect::ToggleFullscreen] }
    }

    pub(super) fn close_search(&mut self) {
        self.search = None;
        self.transcript.search_end();
    }

    /// Handles a key while the search is open.
    pub(super) fn search_key(&mut self, press: &KeyPress, size: Size) {
        if self.keymap.action(KeyContext::App, &press.key) == Some(KeyAction::TranscriptSearch) {
            return self.transcript.search_next(SearchDirection::Up);
        }
        match self.keymap.action(KeyContext::Select, &press.key) {
            Some(KeyAction::SelectUp | KeyAction::SelectConfirm) => self.transcript.search_next(SearchDirection::Up),
            Some(KeyAction::SelectDown) => self.transcript.search_next(SearchDirection::Down),
            Some(KeyAction::SelectPageUp) => self.transcript.scroll(Scroll::Rows(-page(size))),
            Some(KeyAction::SelectPageDown) => self.transcript.scroll(Scroll::Rows(page(size))),
            Some(KeyAction::SelectCancel) => self.close_search(),
            _ => {
                if let Some(line) = &mut self.search {
                    let before = line.text();
                    line.key(press, &self.keymap);
                    self.search_changed(&before);
                }
            }
        }
    }

    pub(super) fn search_paste(&mut self, text: &str) {
        if let Some(line) = &mut self.search {
            let before = line.text();
            line.paste(text);
            self.search_changed(&before);
        }
    }

    fn search_changed(&mut self, before: &str) {
        if let Some(text) = self.search.as_ref().map(LineEditor::text).filter(|text| text != before) {
            self.transcript.search_for(&text);
        }
    }

    /// Returns the line, and a message about the matches.
    pub(super) fn search_rows(&mut self, size: Size) -> Option<RowsWithCursor> {
        let line = self.search.as_mut()?;
        let (columns, theme) = (size.width(), &self.theme);
        let label = Row::styled(LABEL, theme.fg(ColorRole::Accent));
        let before = row_width(&label).min(columns.saturating_sub(2));
        let (typed, column) = line.row(columns.saturating_sub(before).max(1), theme);
        let mut row = truncate(&label, before, "");
        for span in &mut row.spans {
            span.style = row.style.patch(span.style);
        }
        row.style = typed.style;
        row.spans.extend(typed.spans);
        let cursor = Some((0, (before + column).min(columns.saturating_sub(1))));
        if size.height() < LOW {
            return Some((vec![row], cursor));
        }
        let hint = |action| self.keymap.hint(action);
        let (text, role) = match self.transcript.search_status().unwrap_or(SearchStatus::Empty) {
            SearchStatus::Empty => (String::new(), ColorRole::Dim),
            SearchStatus::Searching => ("Searching… · ".to_owned(), ColorRole::Dim),
            SearchStatus::NotFound => ("No match · ".to_owned(), ColorRole::Warning),
            SearchStatus::Found { hidden: true, .. } => {
                (format!("In hidden text ({} expands) · ", hint(KeyAction::ToolsExpand)), ColorRole::Warning)
            }
            SearchStatus::Found { wrapped: Some(SearchDirection::Up), .. } => {
                ("Continued from the end · ".to_owned(), ColorRole::Warning)
            }
            SearchStatus::Found { wrapped: Some(SearchDirection::Down), .. } => {
                ("Continued from the beginning · ".to_owned(), ColorRole::Warning)
            }
            SearchStatus::Found { .. } => (String::new(), ColorRole::Dim),
        };
        let keys = format!(
            "{} previous, {} next, {} close",
            hint(KeyAction::SelectUp),
            hint(KeyAction::SelectDown),
            hint(KeyAction::SelectCancel)
        );
        let note = Row::from(vec![Span::styled(text, theme.fg(role)), Span::styled(keys, theme.fg(ColorRole::Dim))]);
        Some((vec![row, truncate(&note, columns, "…")], cursor))
    }
}
