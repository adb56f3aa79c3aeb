//! The tree of a session, with all its branches, for moving to any entry.

mod describe;
mod layout;

use std::collections::{HashMap, HashSet};

use pinch_coding_agent::entry::EntryId;
use pinch_coding_agent::session_log::SessionLog;
use pinch_stdx::host::{Host, ms_from_iso};
use ratatui_core::style::Modifier;
use ratatui_core::text::Span;

use self::describe::{Described, TreeEntryKind, describe};
use self::layout::{TreeRow, lay_out};
use super::{DialogCx, DialogEvent, DialogNews, DialogView, framed, hint, hint_rows};
use crate::Row;
use crate::editor_line::LineEditor;
use crate::effect::Effect;
use crate::key::{KeyCode, KeyPress};
use crate::keymap::{KeyAction, KeyContext};
use crate::text::{SanitizeMode, one_line, sanitize, truncate};
use crate::theme::{ColorRole, Palette};

/// Which entries are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeFilter {
    Default,
    NoTools,
    UserOnly,
    LabeledOnly,
    All,
}

impl TreeFilter {
    const ALL: [Self; 5] = [Self::Default, Self::NoTools, Self::UserOnly, Self::LabeledOnly, Self::All];

    fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::NoTools => "no-tools",
            Self::UserOnly => "user-only",
            Self::LabeledOnly => "labeled-only",
            Self::All => "all",
        }
    }

    /// Parses the name used in the settings; the default filter for other texts.
    pub(crate) fn parse(word: &str) -> Self {
        Self::ALL.into_iter().find(|filter| filter.as_str() == word).unwrap_or(Self::Default)
    }

    fn shows(self, node: &EntryNode) -> bool {
        match self {
            Self::All => true,
            Self::LabeledOnly => node.label.is_some(),
            Self::UserOnly => node.text.kind == TreeEntryKind::User,
            Self::NoTools => !matches!(node.text.kind, TreeEntryKind::Note | TreeEntryKind::Tool),
            Self::Default => node.text.kind != TreeEntryKind::Note,
        }
    }
}

/// An entry.
struct EntryNode {
    id: EntryId,
    parent: Option<usize>,
    text: Described,
    label: Option<String>,
    /// When the label was set, in Unix milliseconds.
    label_ms: Option<i64>,
}

/// The dialog.
pub(crate) struct TreeDialog {
    nodes: Vec<EntryNode>,
    leaf: Option<usize>,
    /// Entries from the root to the leaf.
    path: HashSet<usize>,
    filter: TreeFilter,
    search: String,
    folded: HashSet<usize>,
    rows: Vec<TreeRow>,
    selected: usize,
    height: usize,
    shows_label_times: bool,
    state: TreeState,
    problem: Option<String>,
    /// When a label was saved last, in Unix milliseconds.
    labelled_ms: i64,
    /// Whether moving elsewhere first asks if the abandoned branch should be summarised.
    asks_for_summary: bool,
    /// Its clock has the local time zone.
    host: Host,
}

/// How keys are handled.
enum TreeState {
    Browsing,
    /// The label of an entry is being edited.
    Labelling {
        node: usize,
        line: LineEditor,
    },
    /// An entry is chosen, and the dialog asks whether to summarise the abandoned branch.
    Asking {
        node: usize,
        choice: usize,
    },
    /// The dialog asks what the summary should focus on.
    Focusing {
        node: usize,
        line: LineEditor,
    },
}

/// Formats the time of a label by the local clock: `08:00` today, `1/15 08:00` this year, `26/1/15 08:00` before.
fn label_time(host: &Host, at_ms: i64, now_ms: i64) -> String {
    let (at, now) = (host.local_time(at_ms), host.local_time(now_ms));
    let part = |text: &str, range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
    let number = |range| part(&at, range).trim_start_matches('0').to_owned();
    let time = part(&at, 11..16);
    if part(&at, 0..10) == part(&now, 0..10) {
        return time;
    }
    let day = format!("{}/{}", number(5..7), number(8..10));
    match part(&at, 0..4) == part(&now, 0..4) {
        true => format!("{day} {time}"),
        false => format!("{}/{day} {time}", part(&at, 2..4)),
    }
}

const CHOICES: [&str; 3] = ["No summary", "Summarize", "Summarize with custom prompt"];

impl TreeDialog {
    /// Creates the dialog for the tree of a session.
    pub(crate) fn new(log: &SessionLog, filter: TreeFilter, height: usize, asks_for_summary: bool, host: Host) -> Self {
        let tree = log.tree();
        let mut parents = vec![None; tree.nodes.len()];
        for (at, node) in tree.nodes.iter().enumerate() {
            for &child in &node.children {
                parents[child] = Some(at);
            }
        }
        let mut calls = HashMap::new();
        let nodes: Vec<EntryNode> = tree
            .nodes
            .iter()
            .enumerate()
            .map(|(at, node)| {
                let text = log
                    .try_entry(at)
                    .map_or_else(|_| Described::unknown(&node.type_name), |entry| describe(&entry.body, &mut calls));
                let label = node.label.as_ref();
                EntryNode {
                    id: node.id.clone(),
                    parent: parents[at],
                    text,
                    label: label.map(|label| label.text.clone()),
                    label_ms: label.and_then(|label| ms_from_iso(&label.timestamp)),
                }
            })
            .collect();
        let leaf = log.leaf_id().and_then(|leaf| nodes.iter().rposition(|node| node.id == *leaf));
        let mut path = HashSet::new();
        let mut at = leaf;
        while let Some(node) = at.filter(|node| path.insert(*node)) {
            at = nodes[node].parent;
        }
        let mut dialog = Self {
            nodes,
            leaf,
            path,
            filter,
            search: String::new(),
            folded: HashSet::new(),
            rows: Vec::new(),
            selected: 0,
            height: height.max(5),
            shows_label_times: false,
            state: TreeState::Browsing,
            problem: None,
            labelled_ms: 0,
            asks_for_summary,
            host,
        };
        dialog.arrange(dialog.leaf);
        dialog
    }

    /// Selects an entry.
    pub(crate) fn at(mut self, entry: &EntryId) -> Self {
        if let Some(node) = self.nodes.iter().rposition(|node| node.id == *entry) {
            self.arrange(Some(node));
        }
        self
    }

    /// Rebuilds the rows and selects an entry, or its nearest visible ancestor.
    fn arrange(&mut self, wanted: Option<usize>) {
        let tokens: Vec<String> = self.search.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let is_shown: Vec<bool> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(at, node)| {
                let is_hidden = node.text.is_empty && self.leaf != Some(at);
                let found = || {
                    let text = format!("{} {}", node.text.plain(), node.label.as_deref().unwrap_or_default());
                    let text = text.to_lowercase();
                    tokens.iter().all(|token| text.contains(token.as_str()))
                };
                !is_hidden && self.filter.shows(node) && (tokens.is_empty() || found())
            })
            .collect();
        let parents: Vec<Option<usize>> = self.nodes.iter().map(|node| node.parent).collect();
        self.rows = lay_out(&parents, &is_shown, &self.path, &self.folded);
        let mut at = wanted;
        let mut found = None;
        for _ in 0..=self.nodes.len() {
            let Some(node) = at else { break };
            found = self.rows.iter().position(|row| row.node == node);
            if found.is_some() {
                break;
            }
            at = self.nodes[node].parent;
        }
        self.selected = found.unwrap_or(self.rows.len().saturating_sub(1));
    }

    fn selected_node(&self) -> Option<usize> {
        self.rows.get(self.selected).map(|row| row.node)
    }

    fn set_filter(&mut self, filter: TreeFilter) -> DialogEvent {
        // Pressing the key again restores the default.
        self.filter = if self.filter == filter { TreeFilter::Default } else { filter };
        self.arrange(self.selected_node());
        DialogEvent::Changed
    }

    fn choose(&mut self) -> DialogEvent {
        let Some(node) = self.selected_node() else { return DialogEvent::Ignored };
        if self.leaf == Some(node) {
            self.problem = Some("Already at this point".to_owned());
            return DialogEvent::Changed;
        }
        if self.asks_for_summary {
            self.state = TreeState::Asking { node, choice: 0 };
            return DialogEvent::Changed;
        }
        self.go(node, false, None)
    }

    fn go(&self, node: usize, summarise: bool, focus: Option<String>) -> DialogEvent {
        let Some(node) = self.nodes.get(node) else { return DialogEvent::Ignored };
        DialogEvent::close_with(Effect::Navigate { target: node.id.clone(), summarise, focus })
    }

    /// Folds the selected branch, or moves to the start of its segment.
    fn fold_or_up(&mut self) {
        let Some(row) = self.rows.get(self.selected) else { return };
        if row.can_fold && self.folded.insert(row.node) {
            self.arrange(Some(row.node));
            return;
        }
        let above = self.rows.get(..self.selected).unwrap_or_default();
        self.selected = above.iter().rposition(|row| row.begins_segment).unwrap_or(0);
    }

    fn unfold_or_down(&mut self) {
        let Some(row) = self.rows.get(self.selected) else { return };
        if self.folded.remove(&row.node) {
            self.arrange(Some(row.node));
            return;
        }
        let below = self.rows.iter().skip(self.selected + 1);
        if let Some(at) = below.clone().position(|row| row.begins_segment) {
            self.selected += at + 1;
        } else {
            self.selected = self.rows.len().saturating_sub(1);
        }
    }

    fn browse(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        self.problem = None;
        let last = self.rows.len().saturating_sub(1);
        let action =
            cx.keymap.action(KeyContext::Tree, &press.key).or_else(|| cx.keymap.action(KeyContext::Select, &press.key));
        match action {
            Some(KeyAction::TreeFoldOrUp) => self.fold_or_up(),
            Some(KeyAction::TreeUnfoldOrDown) => self.unfold_or_down(),
            Some(KeyAction::TreeEditLabel) => {
                let Some(node) = self.selected_node() else { return DialogEvent::Ignored };
                let line = LineEditor::new(self.nodes[node].label.as_deref().unwrap_or_default());
                self.state = TreeState::Labelling { node, line };
            }
            Some(KeyAction::TreeToggleLabelTimestamp) => self.shows_label_times = !self.shows_label_times,
            Some(KeyAction::TreeFilterDefault) => return self.set_filter(TreeFilter::Default),
            Some(KeyAction::TreeFilterNoTools) => return self.set_filter(TreeFilter::NoTools),
            Some(KeyAction::TreeFilterUserOnly) => return self.set_filter(TreeFilter::UserOnly),
            Some(KeyAction::TreeFilterLabeledOnly) => return self.set_filter(TreeFilter::LabeledOnly),
            Some(KeyAction::TreeFilterAll) => return self.set_filter(TreeFilter::All),
            Some(step @ (KeyAction::TreeFilterCycleForward | KeyAction::TreeFilterCycleBackward)) => {
                let all = TreeFilter::ALL;
                let at = all.iter().position(|filter| *filter == self.filter).unwrap_or(0);
                let step = if step == KeyAction::TreeFilterCycleForward { 1 } else { all.len() - 1 };
                self.filter = all[(at + step) % all.len()];
                self.arrange(self.selected_node());
            }
            Some(KeyAction::SelectUp) => self.selected = if self.selected == 0 { last } else { self.selected - 1 },
            Some(KeyAction::SelectDown) => self.selected = if self.selected >= last { 0 } else { self.selected + 1 },
            Some(KeyAction::SelectPageUp) => self.selected = self.selected.saturating_sub(self.height),
            Some(KeyAction::SelectPageDown) => self.selected = (self.selected + self.height).min(last),
            Some(KeyAction::SelectConfirm) => return self.choose(),
            Some(KeyAction::SelectCancel) if !self.search.is_empty() => {
                self.search.clear();
                self.arrange(self.selected_node());
            }
            Some(KeyAction::SelectCancel) => return DialogEvent::Close(Vec::new()),
            _ => match (press.key.code, press.text) {
                (KeyCode::Left, _) => self.selected = self.selected.saturating_sub(self.height),
                (KeyCode::Right, _) => self.selected = (self.selected + self.height).min(last),
                (KeyCode::Home, _) => self.selected = 0,
                (KeyCode::End, _) => self.selected = last,
                (KeyCode::Backspace, _) if self.search.pop().is_some() => self.arrange(self.selected_node()),
                (_, Some(c)) => {
                    self.search.push(c);
                    self.arrange(self.selected_node());
                }
                _ => return DialogEvent::Ignored,
            },
        }
        DialogEvent::Changed
    }

    fn row(&self, at: usize, row: &TreeRow, cx: DialogCx<'_>) -> Row {
        let node = &self.nodes[row.node];
        let theme = cx.theme;
        let is_selected = at == self.selected;
        let mut spans = vec![Span::styled(if is_selected { "→ " } else { "  " }, theme.fg(ColorRole::Accent))];
        spans.push(Span::styled(row.prefix.clone(), theme.fg(ColorRole::Dim)));
        if self.path.contains(&row.node) {
            spans.push(Span::styled("• ", theme.fg(ColorRole::Accent)));
        }
        if let Some(label) = &node.label {
            let label = one_line(label);
            spans.push(Span::styled(format!("[{label}] "), theme.fg(ColorRole::Warning)));
            if self.shows_label_times {
                let time = node.label_ms.map(|at_ms| label_time(&self.host, at_ms, cx.now_ms)).unwrap_or_default();
                spans.push(Span::styled(format!("{time} "), theme.fg(ColorRole::Muted)));
            }
        }
        spans.extend(node.text.spans(theme));
        let line = truncate(&Row::from(spans), cx.columns, "…");
        if is_selected { line.style(theme.bg(ColorRole::SelectedBg).add_modifier(Modifier::BOLD)) } else { line }
    }

    /// Returns the entries around the selected one. `below`: number of rows for what follows them.
    fn list(&self, below: usize, cx: DialogCx<'_>) -> Vec<Row> {
        // The title, the line about the list, and the rules take four rows.
        let height = self.height.min(cx.max_rows.saturating_sub(4 + below)).max(1);
        let first = self.selected.saturating_sub(height / 2).min(self.rows.len().saturating_sub(height));
        let mut rows: Vec<Row> =
            (self.rows.iter().enumerate().skip(first).take(height)).map(|(at, row)| self.row(at, row, cx)).collect();
        let muted = |text: String, theme: &Palette| Row::styled(text, theme.fg(ColorRole::Muted));
        if rows.is_empty() {
            rows.push(muted("  No entries".to_owned(), cx.theme));
        }
        let mut line =
            format!("  ({}/{}) {}", (self.selected + 1).min(self.rows.len()), self.rows.len(), self.filter.as_str());
        if !self.search.is_empty() {
            line.push_str(&format!("  search: {}", sanitize(&self.search, SanitizeMode::Output)));
        }
        rows.push(truncate(&muted(line, cx.theme), cx.columns, "…"));
        rows
    }
}

impl DialogView for TreeDialog {
    fn rows(&mut self, cx: DialogCx<'_>) -> (Vec<Row>, Option<(usize, usize)>) {
        let mut cursor = None;
        let key = |action| cx.keymap.hint(action);
        let mut hints = vec![
            hint(&key(KeyAction::SelectConfirm), "go"),
            hint(&format!("{}/{}", key(KeyAction::TreeFoldOrUp), key(KeyAction::TreeUnfoldOrDown)), "fold"),
            hint(&key(KeyAction::TreeEditLabel), "label"),
            hint(&key(KeyAction::TreeFilterCycleForward), "filter"),
            hint(&key(KeyAction::SelectCancel), "close"),
        ];
        let mut content = self.list(hint_rows(&hints, cx).len() + 1, cx);
        match &mut self.state {
            TreeState::Browsing => {}
            TreeState::Labelling { line, .. } | TreeState::Focusing { line, .. } => {
                let (row, column) = line.row(cx.columns, cx.theme);
                content.push(row);
                // The title and one row of the frame are above the content.
                cursor = Some((content.len() + 1, column));
                hints =
                    vec![hint(&key(KeyAction::SelectConfirm), "save"), hint(&key(KeyAction::SelectCancel), "cancel")];
            }
            TreeState::Asking { choice, .. } => {
                for (at, text) in CHOICES.iter().enumerate() {
                    let (sign, style) = match at == *choice {
                        true => ("→ ", cx.theme.bold(ColorRole::Accent)),
                        false => ("  ", ratatui_core::style::Style::new()),
                    };
                    content.push(Row::styled(format!("{sign}{text}"), style));
                }
                hints.truncate(1);
            }
        }
        if let Some(problem) = &self.problem {
            content.push(truncate(&Row::styled(problem.clone(), cx.theme.fg(ColorRole::Warning)), cx.columns, "…"));
        }
        let title = match self.state {
            TreeState::Labelling { .. } => "Label of the entry (empty removes it)",
            TreeState::Asking { .. } => "Summarize the branch you are leaving?",
            TreeState::Focusing { .. } => "Instructions for the summary",
            TreeState::Browsing => "Session tree",
        };
        (framed(title, content, &hints, cx), cursor)
    }

    fn key(&mut self, press: &KeyPress, cx: DialogCx<'_>) -> DialogEvent {
        let select = cx.keymap.action(KeyContext::Select, &press.key);
        match &mut self.state {
            TreeState::Browsing => return self.browse(press, cx),
            TreeState::Labelling { node, line } => match select {
                Some(KeyAction::SelectConfirm) => {
                    let text = line.text().trim().to_owned();
                    let target = self.nodes[*node].id.clone();
                    self.state = TreeState::Browsing;
                    self.labelled_ms = cx.now_ms;
                    return DialogEvent::Do(vec![Effect::Label {
                        target,
                        label: Some(text).filter(|text| !text.is_empty()),
                    }]);
                }
                Some(KeyAction::SelectCancel) => self.state = TreeState::Browsing,
                _ => line.key(press, cx.keymap),
            },
            TreeState::Asking { node, choice } => match (select, press.text) {
                (Some(KeyAction::SelectUp), _) => *choice = (*choice + CHOICES.len() - 1) % CHOICES.len(),
                (Some(KeyAction::SelectDown), _) => *choice = (*choice + 1) % CHOICES.len(),
                (Some(KeyAction::SelectCancel), _) => self.state = TreeState::Browsing,
                (Some(KeyAction::SelectConfirm), _) => {
                    let node = *node;
                    match *choice {
                        0 => return self.go(node, false, None),
                        1 => return self.go(node, true, None),
                        _ => self.state = TreeState::Focusing { node, line: LineEditor::new("") },
                    }
                }
                _ => return DialogEvent::Ignored,
            },
            TreeState::Focusing { node, line } => match select {
                Some(KeyAction::SelectConfirm) => {
                    let (node, text) = (*node, line.text().trim().to_owned());
                    return self.go(node, true, Some(text).filter(|text| !text.is_empty()));
                }
                Some(KeyAction::SelectCancel) => self.state = TreeState::Asking { node: *node, choice: 2 },
                _ => line.key(press, cx.keymap),
            },
        }
        DialogEvent::Changed
    }

    fn paste(&mut self, text: &str) {
        match &mut self.state {
            TreeState::Labelling { line, .. } | TreeState::Focusing { line, .. } => line.paste(text),
            TreeState::Browsing => {
                self.search.extend(sanitize(text, SanitizeMode::Prose).chars().filter(|c| !c.is_control()));
                self.arrange(self.selected_node());
            }
            TreeState::Asking { .. } => {}
        }
    }

    fn learn(&mut self, news: DialogNews) {
        match news {
            DialogNews::Label { target, label } => {
                for node in self.nodes.iter_mut().filter(|node| node.id == target) {
                    node.label.clone_from(&label);
                    node.label_ms = Some(self.labelled_ms);
                }
                self.arrange(self.selected_node());
            }
            DialogNews::Problem(text) => self.problem = Some(text),
            DialogNews::Sessions(_) | DialogNews::LocalServers(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
