//! The resource list: drawing, and handling of keys.

use pinch_coding_agent::resources::ProjectOverride;
use ratatui_core::style::Modifier;
use ratatui_core::text::Span;

use super::entries::{ResourceEntry, heading};
use crate::Row;
use crate::dialog::{DialogCx, framed, hint};
use crate::editor_line::LineEditor;
use crate::key::{KeyCode, KeyPress};
use crate::keymap::{KeyAction, KeyContext};
use crate::text::{one_line, truncate, wrap};
use crate::theme::{ColorRole, Palette};

/// Rows of the screen that do not belong to the list.
const AROUND: usize = 8;
/// Below this number of rows, there are no blank rows.
const LOW: usize = 16;
/// Minimum number of rows of the list beside a notice.
const LEAST_LIST: usize = 2;

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewEvent {
    /// At most the display has changed.
    Stay,
    /// Enable or disable the resource at this index.
    Switch(usize),
    /// Switch to the other settings.
    ChangeScope,
    /// Close the list.
    Close,
}

/// One row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Package or location of an entry.
    Group(usize),
    /// Type of an entry.
    Kind(usize),
    Entry(usize),
}

/// The list.
pub(super) struct ConfigureView {
    entries: Vec<ResourceEntry>,
    lines: Vec<Line>,
    /// The selected line, which is an entry if there is one.
    selected: usize,
    query: LineEditor,
    is_project: bool,
    /// Whether the other settings can be shown.
    has_other: bool,
    file: String,
    problem: Option<String>,
    /// Shown until the list is closed.
    notice: Option<String>,
}

impl ConfigureView {
    /// Creates an empty list; `has_project`: whether there are project settings.
    pub(super) fn new(has_project: bool) -> Self {
        Self {
            entries: Vec::new(),
            lines: Vec::new(),
            selected: 0,
            query: LineEditor::new(""),
            is_project: false,
            has_other: has_project,
            file: String::new(),
            problem: None,
            notice: None,
        }
    }

    /// Shows these resources. The selection is kept if they belong to the same settings.
    pub(super) fn set_entries(&mut self, entries: Vec<ResourceEntry>, is_project: bool, file: String) {
        let selected = self.entry().map(|entry| entry.at).filter(|_| is_project == self.is_project);
        (self.entries, self.is_project, self.file) = (entries, is_project, file);
        self.filter();
        let line = selected.and_then(|at| self.lines.iter().position(|line| self.at(*line) == Some(at)));
        self.selected = line.unwrap_or(self.selected);
    }

    pub(super) fn set_problem(&mut self, problem: Option<String>) {
        self.problem = problem;
    }

    /// Shows a notice until the list is closed.
    pub(super) fn set_notice(&mut self, notice: Option<String>) {
        self.notice = notice;
    }

    /// Returns the rows of the notice, and how many rows are left for the list.
    fn notice(&self, cx: DialogCx<'_>) -> (Vec<Row>, usize) {
        let room = height(cx);
        let Some(notice) = &self.notice else { return (Vec::new(), room) };
        let mut rows = wrap(&[Span::styled(one_line(notice), cx.theme.fg(ColorRole::Warning))], cx.columns);
        // The list matters more on a screen that has become low.
        rows.truncate(room.saturating_sub(LEAST_LIST));
        let left = room - rows.len();
        (rows, left)
    }

    fn at(&self, line: Line) -> Option<usize> {
        match line {
            Line::Entry(at) => self.entries.get(at).map(|entry| entry.at),
            Line::Group(_) | Line::Kind(_) => None,
        }
    }

    /// Returns the selected resource.
    fn entry(&self) -> Option<&ResourceEntry> {
        match self.lines.get(self.selected)? {
            Line::Entry(at) => self.entries.get(*at),
            Line::Group(_) | Line::Kind(_) => None,
        }
    }

    /// Shows entries that match the search, with their headings, and selects the first.
    fn filter(&mut self) {
        let query = self.query.text().trim().to_lowercase();
        self.lines.clear();
        let mut above: Option<&ResourceEntry> = None;
        for (at, entry) in self.entries.iter().enumerate().filter(|(_, entry)| entry.search.contains(&query)) {
            let is_new_group = above.is_none_or(|above| above.group != entry.group);
            if is_new_group {
                self.lines.push(Line::Group(at));
            }
            if is_new_group || above.is_some_and(|above| above.kind != entry.kind) {
                self.lines.push(Line::Kind(at));
            }
            self.lines.push(Line::Entry(at));
            above = Some(entry);
        }
        self.selected = self.next(0, true).unwrap_or(0);
    }

    /// Returns the first entry at or after a line, or before it.
    fn next(&self, from: usize, is_forward: bool) -> Option<usize> {
        let is_entry = |at: &usize| matches!(self.lines.get(*at), Some(Line::Entry(_)));
        if is_forward {
            (from..self.lines.len()).find(is_entry)
        } else {
            (0..=from.min(self.lines.len().saturating_sub(1))).rev().find(is_entry)
        }
    }

    fn move_to(&mut self, line: Option<usize>) -> ViewEvent {
        self.selected = line.unwrap_or(self.selected);
        ViewEvent::Stay
    }

    /// Handles a key.
    pub(super) fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> ViewEvent {
        self.problem = None;
        let (at, height) = (self.selected, self.notice(cx).1);
        match cx.keymap.action(KeyContext::Select, &press.key) {
            Some(KeyAction::SelectUp) => return self.move_to(at.checked_sub(1).and_then(|at| self.next(at, false))),
            Some(KeyAction::SelectDown) => return self.move_to(self.next(at + 1, true)),
            // A heading cannot be selected.
            Some(KeyAction::SelectPageUp) => {
                let to = at.saturating_sub(height);
                return self.move_to(self.next(to, false).or_else(|| self.next(to, true)));
            }
            Some(KeyAction::SelectPageDown) => {
                let to = (at + height).min(self.lines.len().saturating_sub(1));
                return self.move_to(self.next(to, true).or_else(|| self.next(to, false)));
            }
            Some(KeyAction::SelectConfirm) => return self.switch(),
            Some(KeyAction::SelectCancel) => return ViewEvent::Close,
            _ => {}
        }
        match (press.key.code, cx.keymap.action(KeyContext::Input, &press.key)) {
            (_, Some(KeyAction::Tab)) => return ViewEvent::ChangeScope,
            (KeyCode::Space, _) => return self.switch(),
            (KeyCode::Home, _) if self.query.text().is_empty() => return self.move_to(self.next(0, true)),
            (KeyCode::End, _) if self.query.text().is_empty() => return self.move_to(self.next(usize::MAX, false)),
            _ => {}
        }
        let before = self.query.text();
        self.query.key(press, cx.keymap);
        if self.query.text() != before {
            self.filter();
        }
        ViewEvent::Stay
    }

    /// Handles a pasted text.
    pub(super) fn paste(&mut self, text: &str) {
        self.query.paste(text);
        self.filter();
    }

    fn switch(&self) -> ViewEvent {
        self.entry().map_or(ViewEvent::Stay, |entry| ViewEvent::Switch(entry.at))
    }

    /// Returns the rows, and the cursor position in the search field.
    pub(super) fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let muted = cx.theme.fg(ColorRole::Muted);
        let scope = match self.is_project {
            true => format!("{} · inherited global resources are dimmed", self.file),
            false => self.file.clone(),
        };
        let gap = || (!is_low(cx)).then(Row::default);
        let mut content = vec![truncate(&Row::styled(scope, muted), cx.columns, "…")];
        content.extend(gap());
        let (query, column) = self.query.row(cx.columns, cx.theme);
        // The title and the rule above it are added below.
        let cursor = (content.len() + 2, column);
        content.push(truncate(&query, cx.columns, ""));
        content.extend(gap());
        if self.lines.is_empty() {
            content.push(truncate(&Row::styled("  No resources found", muted), cx.columns, "…"));
        }
        let (notice, height) = self.notice(cx);
        let first = self.selected.saturating_sub(height / 2).min(self.lines.len().saturating_sub(height));
        for (at, line) in self.lines.iter().enumerate().skip(first).take(height) {
            content.push(truncate(&self.row(*line, at == self.selected, cx.theme), cx.columns, "…"));
        }
        let is_entry = |line: &&Line| matches!(line, Line::Entry(_));
        let n = self.lines.iter().filter(is_entry).count();
        if self.lines.len() > height {
            let at = self.lines.iter().take(self.selected + 1).filter(is_entry).count();
            content.push(Row::styled(format!("  ({at}/{n})"), cx.theme.fg(ColorRole::Dim)));
        }
        if let Some(problem) = &self.problem {
            let problem = one_line(problem);
            content.push(truncate(&Row::styled(problem, cx.theme.fg(ColorRole::Error)), cx.columns, "…"));
        }
        content.extend(notice);
        let title = if self.is_project { "Project resources" } else { "Global resources" };
        (framed(title, content, &self.hints(cx), cx), Some(cursor))
    }

    fn hints(&self, cx: DialogCx<'_>) -> Vec<String> {
        let other = if self.is_project { "global" } else { "project" };
        let mut hints = vec![hint("space", if self.is_project { "inherit/load/unload" } else { "toggle" })];
        if self.has_other {
            hints.push(hint(&cx.keymap.hint(KeyAction::Tab), other));
        }
        hints.push(hint(&cx.keymap.hint(KeyAction::SelectCancel), "close"));
        hints
    }

    fn row(&self, line: Line, is_selected: bool, theme: &Palette) -> Row {
        let (Line::Group(at) | Line::Kind(at) | Line::Entry(at)) = line;
        let Some(entry) = self.entries.get(at) else { return Row::default() };
        let is_foreign = entry.project.is_some_and(|mark| mark.is_inherited);
        let text = one_line;
        match line {
            Line::Group(_) if is_foreign => {
                Row::styled(format!("  {} · inherited global", text(&entry.group)), theme.bold(ColorRole::Dim))
            }
            Line::Group(_) => Row::styled(format!("  {}", text(&entry.group)), theme.bold(ColorRole::Accent)),
            Line::Kind(_) => Row::styled(format!("    {}", heading(entry.kind)), theme.fg(ColorRole::Muted)),
            Line::Entry(_) => {
                let said = entry.project.map_or(ProjectOverride::Inherit, |mark| mark.said);
                let (sign, role) = match (said, entry.is_enabled) {
                    (ProjectOverride::Load, _) => ("[+]", ColorRole::Success),
                    (ProjectOverride::Unload, _) => ("[-]", ColorRole::Warning),
                    (ProjectOverride::Inherit, true) => ("[x]", ColorRole::Success),
                    (ProjectOverride::Inherit, false) => ("[ ]", ColorRole::Dim),
                };
                let more = match said {
                    ProjectOverride::Load => "  project load",
                    ProjectOverride::Unload => "  project unload",
                    ProjectOverride::Inherit if is_foreign => "  inherited global",
                    ProjectOverride::Inherit => "",
                };
                let is_dim = is_foreign && said == ProjectOverride::Inherit;
                let mut style = if is_dim { theme.fg(ColorRole::Dim) } else { ratatui_core::style::Style::new() };
                if is_selected {
                    style = theme.fg(ColorRole::Accent).add_modifier(Modifier::BOLD);
                }
                Row::from(vec![
                    Span::styled(if is_selected { "→     " } else { "      " }, style),
                    Span::styled(sign, if is_dim { theme.fg(ColorRole::Dim) } else { theme.fg(role) }),
                    Span::styled(format!(" {}", text(&entry.name)), style),
                    Span::styled(more, theme.fg(ColorRole::Muted)),
                ])
            }
        }
    }
}

/// Returns whether there is room for notices beside the list on a screen of so many rows.
pub(super) fn has_room_for_notices(rows: usize) -> bool {
    rows > LOW
}

/// Returns whether there is no room for blank rows.
fn is_low(cx: DialogCx<'_>) -> bool {
    cx.max_rows < LOW
}

fn height(cx: DialogCx<'_>) -> usize {
    let around = if is_low(cx) { AROUND - 2 } else { AROUND };
    cx.max_rows.saturating_sub(around + 2).max(1)
}
