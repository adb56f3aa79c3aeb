//! A choice of a session to continue.

mod threads;

use std::path::PathBuf;

use pinch_coding_agent::store::SessionSummary;
use pinch_coding_agent::store::search::{NameFilter, SortMode, search};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;

use self::threads::threaded;
use super::{DialogCx, DialogEvent, DialogNews, DialogView, framed, hint, hint_rows, tab};
use crate::Row;
use crate::editor_line::LineEditor;
use crate::effect::Effect;
use crate::key::{Key, KeyCode, KeyPress};
use crate::keymap::{KeyAction, KeyContext};
use crate::text::{SanitizeMode, one_line, row_width, sanitize, truncate};
use crate::theme::ColorRole;

/// Number of sessions shown at a time.
const HEIGHT: usize = 10;

/// The order of the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionOrder {
    /// Forks below their original sessions.
    Threaded,
    Recent,
    Relevance,
}

/// The dialog.
pub(crate) struct SessionDialog {
    here: Vec<SessionSummary>,
    /// Sessions of all directories, once looked up.
    everywhere: Option<Vec<SessionSummary>>,
    shows_all: bool,
    /// File of the open session, which cannot be deleted.
    current: Option<PathBuf>,
    order: SessionOrder,
    names: NameFilter,
    shows_paths: bool,
    line: LineEditor,
    /// Displayed sessions, each with the lines that connect it to its original.
    rows: Vec<(String, SessionSummary)>,
    selected: usize,
    state: SessionListState,
    message: Option<String>,
    /// Whether closing the list exits.
    exits: bool,
}

enum SessionListState {
    Browsing,
    Renaming(LineEditor),
    Deleting,
}

impl SessionDialog {
    /// Creates a list of the sessions in this directory, latest first.
    pub(crate) fn new(here: Vec<SessionSummary>, current: Option<PathBuf>) -> Self {
        let mut dialog = Self {
            here,
            everywhere: None,
            shows_all: false,
            current,
            order: SessionOrder::Threaded,
            names: NameFilter::All,
            shows_paths: false,
            line: LineEditor::new(""),
            rows: Vec::new(),
            selected: 0,
            state: SessionListState::Browsing,
            message: None,
            exits: false,
        };
        dialog.arrange();
        dialog
    }

    /// Makes closing the list exit the program.
    pub(crate) fn or_exit(self) -> Self {
        Self { exits: true, ..self }
    }

    fn arrange(&mut self) {
        let sessions = match (self.shows_all, &self.everywhere) {
            (true, Some(all)) => all.clone(),
            (true, None) => Vec::new(),
            (false, _) => self.here.clone(),
        };
        let query = self.line.text();
        let sort = if self.order == SessionOrder::Recent { SortMode::Recent } else { SortMode::Relevance };
        let found = search(sessions, &query, sort, self.names);
        self.rows = match self.order {
            SessionOrder::Threaded if query.trim().is_empty() => threaded(found),
            _ => found.into_iter().map(|session| (String::new(), session)).collect(),
        };
        self.selected = self.selected.min(self.rows.len().saturating_sub(1));
    }

    fn selected(&self) -> Option<&SessionSummary> {
        self.rows.get(self.selected).map(|(_, session)| session)
    }

    fn forget(&mut self, path: &PathBuf) {
        for list in [Some(&mut self.here), self.everywhere.as_mut()].into_iter().flatten() {
            list.retain(|session| session.path != *path);
        }
        self.arrange();
    }

    fn rename(&mut self, path: &PathBuf, name: &str) {
        for list in [Some(&mut self.here), self.everywhere.as_mut()].into_iter().flatten() {
            for session in list.iter_mut().filter(|session| session.path == *path) {
                session.name = Some(name.to_owned());
            }
        }
        self.arrange();
    }

    fn begin_deleting(&mut self) {
        let Some(session) = self.selected() else { return };
        if Some(&session.path) == self.current.as_ref() {
            self.message = Some("The open session cannot be deleted".to_owned());
        } else {
            self.state = SessionListState::Deleting;
        }
    }

    fn browse(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        self.message = None;
        let last = self.rows.len().saturating_sub(1);
        if press.key == Key::plain(KeyCode::Tab) {
            self.shows_all = !self.shows_all;
            self.selected = 0;
            self.arrange();
            let is_missing = self.shows_all && self.everywhere.is_none();
            return if is_missing { DialogEvent::Do(vec![Effect::ListAllSessions]) } else { DialogEvent::Changed };
        }
        match cx.keymap.action(KeyContext::SessionPicker, &press.key) {
            Some(KeyAction::SelectUp) => self.selected = if self.selected == 0 { last } else { self.selected - 1 },
            Some(KeyAction::SelectDown) => self.selected = if self.selected >= last { 0 } else { self.selected + 1 },
            Some(KeyAction::SelectPageUp) => self.selected = self.selected.saturating_sub(HEIGHT),
            Some(KeyAction::SelectPageDown) => self.selected = (self.selected + HEIGHT).min(last),
            Some(KeyAction::SelectConfirm) => {
                return match self.selected() {
                    Some(session) => DialogEvent::close_with(Effect::SwitchSession(session.path.clone())),
                    None => DialogEvent::Ignored,
                };
            }
            Some(KeyAction::SelectCancel) if !self.line.text().is_empty() => {
                self.line = LineEditor::new("");
                self.arrange();
            }
            Some(KeyAction::SelectCancel) if self.exits => return DialogEvent::close_with(Effect::Exit),
            Some(KeyAction::SelectCancel) => return DialogEvent::Close(Vec::new()),
            Some(KeyAction::SessionTogglePath) => self.shows_paths = !self.shows_paths,
            Some(KeyAction::SessionToggleSort) => {
                self.order = match self.order {
                    SessionOrder::Threaded => SessionOrder::Recent,
                    SessionOrder::Recent => SessionOrder::Relevance,
                    SessionOrder::Relevance => SessionOrder::Threaded,
                };
                self.arrange();
            }
            Some(KeyAction::SessionToggleNamedFilter) => {
                self.names = match self.names {
                    NameFilter::Named => NameFilter::All,
                    _ => NameFilter::Named,
                };
                self.arrange();
            }
            Some(KeyAction::SessionRename) => {
                let Some(session) = self.selected() else { return DialogEvent::Ignored };
                self.state = SessionListState::Renaming(LineEditor::new(session.name.as_deref().unwrap_or_default()));
            }
            Some(KeyAction::SessionDelete) => self.begin_deleting(),
            Some(KeyAction::SessionDeleteNoninvasive) if self.line.text().is_empty() => self.begin_deleting(),
            _ => {
                self.line.key(press, cx.keymap);
                self.selected = 0;
                self.arrange();
            }
        }
        DialogEvent::Changed
    }

    fn row(&self, at: usize, cx: DialogCx<'_>) -> Row {
        let (prefix, session) = &self.rows[at];
        let theme = cx.theme;
        let is_selected = at == self.selected;
        let style = match () {
            () if is_selected && matches!(self.state, SessionListState::Deleting) => theme.fg(ColorRole::Error),
            () if Some(&session.path) == self.current.as_ref() => theme.fg(ColorRole::Accent),
            () if session.name.is_some() => theme.fg(ColorRole::Warning),
            () => Style::new(),
        };
        let mut facts = String::new();
        if self.shows_paths {
            facts.push_str(&format!("{} ", session.path.display()));
        }
        if self.shows_all {
            facts.push_str(&format!("{} ", session.cwd));
        }
        facts.push_str(&format!("{} {:>3}", session.message_count, age(cx.now_ms - session.modified)));
        let facts = one_line(&facts);
        let facts = truncate(&Row::styled(facts, theme.fg(ColorRole::Dim)), cx.columns / 2, "…");
        let text = session.name.as_deref().unwrap_or(&session.first_message);
        let text = sanitize(text, SanitizeMode::Output).split_whitespace().collect::<Vec<_>>().join(" ");
        let spans = vec![
            Span::styled(if is_selected { "→ " } else { "  " }, theme.fg(ColorRole::Accent)),
            Span::styled(prefix.clone(), theme.fg(ColorRole::Dim)),
            Span::styled(text, style),
        ];
        let room = cx.columns.saturating_sub(row_width(&facts) + 1);
        let mut row = truncate(&Row::from(spans), room, "…");
        let gap = cx.columns.saturating_sub(row_width(&row) + row_width(&facts));
        row.push_span(Span::raw(" ".repeat(gap)));
        row.spans.extend(facts.spans.into_iter().map(|span| span.patch_style(facts.style)));
        if is_selected { row.style(theme.bg(ColorRole::SelectedBg).add_modifier(Modifier::BOLD)) } else { row }
    }

    fn state_row(&self, cx: DialogCx<'_>) -> Row {
        let theme = cx.theme;
        let mut spans = tab("current directory", !self.shows_all, theme);
        spans.push(Span::raw(" "));
        spans.extend(tab("all", self.shows_all, theme));
        let names = if self.names == NameFilter::Named { "named" } else { "all" };
        let order = match self.order {
            SessionOrder::Threaded => "threaded",
            SessionOrder::Recent => "recent",
            SessionOrder::Relevance => "relevance",
        };
        spans.push(Span::styled(format!("   names: {names}   order: {order}"), theme.fg(ColorRole::Muted)));
        truncate(&Row::from(spans), cx.columns, "…")
    }
}

/// Formats an age in a few characters.
pub(crate) fn age(ms: i64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        ..1 => "now".to_owned(),
        1..60 => format!("{minutes}m"),
        60..1_440 => format!("{}h", minutes / 60),
        1_440..10_080 => format!("{}d", minutes / 1_440),
        10_080..43_200 => format!("{}w", minutes / 10_080),
        43_200..525_600 => format!("{}mo", minutes / 43_200),
        _ => format!("{}y", minutes / 525_600),
    }
}

impl DialogView for SessionDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let mut content = vec![self.state_row(cx)];
        let (line, column) = self.line.row(cx.columns, cx.theme);
        let mut cursor = Some((2 + content.len(), column));
        content.push(line);
        let key = |action| cx.keymap.hint(action);
        let browsing = [
            hint(&key(KeyAction::SelectConfirm), "continue"),
            hint("tab", "scope"),
            hint(&key(KeyAction::SessionRename), "rename"),
            hint(&key(KeyAction::SessionDelete), "delete"),
            hint(&key(KeyAction::SessionToggleSort), "order"),
            hint(&key(KeyAction::SessionToggleNamedFilter), "named"),
            hint(&key(KeyAction::SessionTogglePath), "paths"),
        ];
        // The rules, the title, the line about the list, the search, the number of sessions and a message take seven rows.
        let height = HEIGHT.min(cx.max_rows.saturating_sub(7 + hint_rows(&browsing, cx).len())).max(1);
        let first = self.selected.saturating_sub(height / 2).min(self.rows.len().saturating_sub(height));
        content.extend((first..self.rows.len().min(first + height)).map(|at| self.row(at, cx)));
        let muted =
            |text: &str| truncate(&Row::styled(text.to_owned(), cx.theme.fg(ColorRole::Muted)), cx.columns, "…");
        if self.rows.is_empty() {
            let text = if self.shows_all && self.everywhere.is_none() { "  Loading…" } else { "  No sessions" };
            content.push(muted(text));
        } else if self.rows.len() > height {
            content.push(muted(&format!("  ({}/{})", self.selected + 1, self.rows.len())));
        }
        if let Some(message) = &self.message {
            content.push(truncate(&Row::styled(message.clone(), cx.theme.fg(ColorRole::Error)), cx.columns, "…"));
        }
        let hints = match &mut self.state {
            SessionListState::Browsing => browsing.to_vec(),
            SessionListState::Renaming(line) => {
                let (row, column) = line.row(cx.columns, cx.theme);
                cursor = Some((2 + content.len(), column));
                content.push(row);
                vec![hint(&key(KeyAction::SelectConfirm), "rename"), hint(&key(KeyAction::SelectCancel), "cancel")]
            }
            SessionListState::Deleting => vec!["Delete this session? y/n".to_owned()],
        };
        (framed("Continue a session", content, &hints, cx), cursor)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        let select = cx.keymap.action(KeyContext::Select, &press.key);
        match &mut self.state {
            SessionListState::Browsing => self.browse(press, cx),
            SessionListState::Renaming(line) => {
                match select {
                    Some(KeyAction::SelectConfirm) => {
                        let name = line.text().trim().to_owned();
                        self.state = SessionListState::Browsing;
                        let path = self.selected().map(|session| session.path.clone());
                        if let Some(path) = path.filter(|_| !name.is_empty()) {
                            self.rename(&path, &name);
                            return DialogEvent::Do(vec![Effect::RenameSession { path, name }]);
                        }
                    }
                    Some(KeyAction::SelectCancel) => self.state = SessionListState::Browsing,
                    _ => line.key(press, cx.keymap),
                }
                DialogEvent::Changed
            }
            SessionListState::Deleting => {
                let confirmed = matches!(press.text, Some('y' | 'Y')) || select == Some(KeyAction::SelectConfirm);
                self.state = SessionListState::Browsing;
                let path = self.selected().map(|session| session.path.clone());
                match path.filter(|_| confirmed) {
                    Some(path) => {
                        self.forget(&path);
                        DialogEvent::Do(vec![Effect::DeleteSession(path)])
                    }
                    None => DialogEvent::Changed,
                }
            }
        }
    }

    fn paste(&mut self, text: &str) {
        match &mut self.state {
            SessionListState::Browsing => {
                self.line.paste(text);
                self.arrange();
            }
            SessionListState::Renaming(line) => line.paste(text),
            SessionListState::Deleting => {}
        }
    }

    fn learn(&mut self, news: DialogNews) {
        match news {
            DialogNews::Sessions(all) => self.everywhere = Some(all),
            DialogNews::Problem(text) => self.message = Some(text),
            DialogNews::Label { .. } | DialogNews::LocalServers(_) => return,
        }
        self.arrange();
    }
}
