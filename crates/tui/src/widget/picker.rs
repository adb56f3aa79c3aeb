//! A selection list: a window of rows around the selection, and a search.

use pinch_stdx::text::fuzzy;
use ratatui_core::style::Modifier;
use ratatui_core::text::Span;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::Row;
use crate::key::{KeyCode, KeyPress};
use crate::keymap::{KeyAction, KeyContext, Keymap};
use crate::text::{SanitizeMode, one_line, row_width, sanitize, truncate};
use crate::theme::{ColorRole, Palette};

/// Number of columns up to which details are not shown, unless they are values.
const NARROW: usize = 40;
/// Number of columns from which values are shown.
const MIN_VALUES: usize = 20;

/// An item of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickItem {
    /// What is shown.
    pub label: String,
    /// Details, in a second column or on the right side.
    pub detail: String,
    /// Text that searches match; empty: the label and the detail.
    pub search: String,
    /// Whether it is the current choice, which is marked.
    pub is_current: bool,
}

impl PickItem {
    /// Creates an item with only a label.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Sets the details.
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// Sets the text that searches match.
    pub fn search(self, search: impl Into<String>) -> Self {
        Self { search: search.into(), ..self }
    }

    /// Sets whether it is the current choice.
    pub fn current(self, is_current: bool) -> Self {
        Self { is_current, ..self }
    }
}

/// Effect of a key on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickerEvent {
    /// None: the list does not handle the key.
    Ignored,
    /// The selection or the search text has changed.
    Changed,
    /// The item at this index was chosen.
    Chosen(usize),
    /// The list was cancelled.
    Cancelled,
}

/// A selection list.
#[derive(Clone, Debug)]
pub struct Picker {
    items: Vec<PickItem>,
    /// Indices of the items that match the search, in order.
    shown: Vec<usize>,
    selected: usize,
    /// Number of items shown at a time, and its maximum on large screens.
    height: usize,
    max_height: usize,
    query: Option<String>,
    /// Whether there is room for a row that counts the items.
    counts: bool,
    /// Width to which sanitised labels are truncated if there are details.
    label_columns: usize,
    /// Whether the details are values, which are shown on narrow screens as well.
    has_values: bool,
}

impl Picker {
    /// Creates a list with a search; the current item is selected.
    pub fn new(items: Vec<PickItem>, height: usize) -> Self {
        let mut picker = Self::without_search(items, height);
        picker.query = Some(String::new());
        picker
    }

    /// Creates a list without a search: digits choose items if there are at most nine.
    pub fn without_search(items: Vec<PickItem>, height: usize) -> Self {
        let mut picker = Self {
            items: Vec::new(),
            shown: Vec::new(),
            selected: 0,
            height: height.max(1),
            max_height: height.max(1),
            counts: true,
            query: None,
            label_columns: 0,
            has_values: false,
        };
        picker.set_items(items);
        picker
    }

    /// Shows details on narrow screens as well, shortened.
    pub fn with_values(self) -> Self {
        Self { has_values: true, ..self }
    }

    /// Shows fewer items at a time if the list would otherwise take more than this many rows; at least one.
    pub fn fit(&mut self, rows: usize) {
        let room = rows.saturating_sub(usize::from(self.query.is_some())).max(1);
        let n_shown = self.shown.len();
        self.height = if n_shown <= room.min(self.max_height) {
            self.max_height
        } else if room > 2 {
            self.max_height.min(room - 1)
        } else {
            self.max_height.min(room)
        };
        self.counts = room > self.height;
    }

    /// Replaces the items. The search text is kept, and the current item selected.
    pub fn set_items(&mut self, items: Vec<PickItem>) {
        self.label_columns = items.iter().map(|item| crate::text::width(&item.label)).max().unwrap_or(0);
        self.items = items;
        self.filter();
        let current = self.shown.iter().position(|&at| self.items.get(at).is_some_and(|item| item.is_current));
        self.selected = current.unwrap_or(0);
    }

    /// Sets the search text.
    pub fn set_query(&mut self, query: impl Into<String>) {
        self.query = Some(query.into());
        self.filter();
        self.selected = 0;
    }

    /// Returns the search text.
    pub fn query(&self) -> &str {
        self.query.as_deref().unwrap_or_default()
    }

    /// Selects an item by its index, if it matches the search.
    pub fn select(&mut self, item: usize) {
        if let Some(at) = self.shown.iter().position(|&shown| shown == item) {
            self.selected = at;
        }
    }

    /// Returns the index of the selected item among all items.
    pub fn selected(&self) -> Option<usize> {
        self.shown.get(self.selected).copied()
    }

    /// Returns the label of the selected item.
    pub fn selected_label(&self) -> Option<&str> {
        Some(&*self.items.get(self.selected()?)?.label)
    }

    /// Returns the indices of the items that match the search.
    pub fn shown(&self) -> &[usize] {
        &self.shown
    }

    fn filter(&mut self) {
        let query = self.query().trim();
        let all = 0..self.items.len();
        self.shown = match query.is_empty() {
            true => all.collect(),
            false => fuzzy::filter(all, query, |&at| match self.items.get(at) {
                Some(item) if item.search.is_empty() => format!("{} {}", item.label, item.detail),
                Some(item) => item.search.clone(),
                None => String::new(),
            }),
        };
    }

    /// Returns the item that a typed line refers to: by its number among the displayed ones, or by an unambiguous prefix of its label.
    pub(crate) fn item_of_line(&self, line: &str) -> Option<usize> {
        let line = line.trim().to_lowercase();
        if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.shown.get(line.parse::<usize>().ok()?.checked_sub(1)?).copied();
        }
        let label = |at: &usize| self.items.get(*at).map(|item| item.label.to_lowercase()).unwrap_or_default();
        let mut named = self.shown.iter().filter(|at| !line.is_empty() && label(at).starts_with(&line));
        let first = named.next().copied();
        let exact = self.shown.iter().find(|at| label(at) == line).copied();
        exact.or(first.filter(|_| named.next().is_none()))
    }

    /// Prepares for a typed line that refers to no item. Returns whether its characters may be handled as keys: they are a new search, while
    /// a list without a search would choose an item at the first digit.
    pub(crate) fn begin_line(&mut self) -> bool {
        let has_search = self.query.is_some();
        if has_search {
            self.set_query("");
        }
        has_search
    }

    /// Handles a key: list keys, and typing if there is a search.
    pub fn key(&mut self, press: &KeyPress, keymap: &Keymap) -> PickerEvent {
        let n = self.shown.len();
        let last = n.saturating_sub(1);
        let to = match keymap.action(KeyContext::Select, &press.key) {
            Some(KeyAction::SelectUp) => {
                if self.selected == 0 {
                    last
                } else {
                    self.selected - 1
                }
            }
            Some(KeyAction::SelectDown) => {
                if self.selected >= last {
                    0
                } else {
                    self.selected + 1
                }
            }
            Some(KeyAction::SelectPageUp) => self.selected.saturating_sub(self.height),
            Some(KeyAction::SelectPageDown) => (self.selected + self.height).min(last),
            Some(KeyAction::SelectConfirm) => return self.selected().map_or(PickerEvent::Ignored, PickerEvent::Chosen),
            Some(KeyAction::SelectCancel) if !self.query().is_empty() => {
                self.set_query("");
                return PickerEvent::Changed;
            }
            Some(KeyAction::SelectCancel) => return PickerEvent::Cancelled,
            _ => match (press.key.code, press.text) {
                (KeyCode::Home, _) => 0,
                (KeyCode::End, _) => last,
                (_, Some(c)) if self.query.is_none() => {
                    let digit =
                        c.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).filter(|digit| *digit >= 1);
                    return match digit.and_then(|digit| self.shown.get(digit - 1)) {
                        Some(&item) if n <= 9 => PickerEvent::Chosen(item),
                        _ => PickerEvent::Ignored,
                    };
                }
                _ => return self.edit_query(press),
            },
        };
        self.selected = to;
        PickerEvent::Changed
    }

    fn edit_query(&mut self, press: &KeyPress) -> PickerEvent {
        let Some(query) = &mut self.query else { return PickerEvent::Ignored };
        match (press.key.code, press.text) {
            (_, Some(c)) => query.push(c),
            (KeyCode::Backspace, _) if press.key.alt || press.key.ctrl => {
                let kept = query.trim_end().rfind(' ').map_or(0, |at| at + 1);
                query.truncate(kept);
            }
            (KeyCode::Backspace, _) => {
                let kept = query.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
                query.truncate(kept);
            }
            (KeyCode::Char('u'), _) if press.key.ctrl => query.clear(),
            _ => return PickerEvent::Ignored,
        }
        self.filter();
        self.selected = 0;
        PickerEvent::Changed
    }

    /// Pastes a text into the search.
    pub fn paste(&mut self, text: &str) {
        if let Some(query) = &mut self.query {
            query.extend(sanitize(text, SanitizeMode::Prose).chars().filter(|c| !c.is_control()));
            self.filter();
            self.selected = 0;
        }
    }

    /// Returns the rows: the search, the window of items, and their number if not all are shown.
    pub fn rows(&self, columns: usize, theme: &Palette) -> Vec<Row> {
        let mut rows = Vec::new();
        if let Some(query) = &self.query {
            let query = sanitize(query, SanitizeMode::Output);
            let line = vec![
                Span::styled("> ", theme.fg(ColorRole::Accent)),
                Span::raw(query.into_owned()),
                Span::styled(" ", ratatui_core::style::Style::new().add_modifier(Modifier::REVERSED)),
            ];
            rows.push(truncate(&Row::from(line), columns, ""));
        }
        if self.shown.is_empty() {
            let text = if self.query().is_empty() { "  Nothing to choose from" } else { "  No match" };
            rows.push(truncate(&Row::styled(text, theme.fg(ColorRole::Muted)), columns, ""));
            return rows;
        }
        let first = self.selected.saturating_sub(self.height / 2).min(self.shown.len().saturating_sub(self.height));
        for (at, &item) in self.shown.iter().enumerate().skip(first).take(self.height) {
            if let Some(item) = self.items.get(item) {
                rows.push(self.row(item, at == self.selected, columns, theme));
            }
        }
        if self.counts && self.shown.len() > self.height {
            let text = format!("  ({}/{})", self.selected + 1, self.shown.len());
            rows.push(Row::styled(text, theme.fg(ColorRole::Muted)));
        }
        rows
    }

    fn row(&self, item: &PickItem, is_selected: bool, columns: usize, theme: &Palette) -> Row {
        let (sign, style) = match is_selected {
            true => ("→ ", theme.fg(ColorRole::Accent).add_modifier(Modifier::BOLD)),
            false => ("  ", ratatui_core::style::Style::new()),
        };
        let mut spans = vec![Span::styled(format!("{sign}{}", one_line(&item.label)), style)];
        if item.is_current {
            spans.push(Span::styled(" ✓", theme.fg(ColorRole::Success)));
        }
        let mut row = Row::from(spans);
        let is_narrow = columns <= NARROW;
        if !item.detail.is_empty() && (!is_narrow || self.has_values && columns >= MIN_VALUES) {
            let at = (self.label_columns + 6).min(if is_narrow { columns - columns / 3 } else { columns / 2 });
            row = truncate(&row, at.saturating_sub(2), "…");
            let gap = at.saturating_sub(row_width(&row));
            row.push_span(Span::raw(" ".repeat(gap)));
            row.push_span(Span::styled(one_line(&item.detail), theme.fg(ColorRole::Muted)));
        }
        truncate(&row, columns, "…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::theme::ColorDepth;

    fn picker(n: usize) -> Picker {
        Picker::new((0..n).map(|at| PickItem::new(format!("item {at}")).current(at == 2)).collect(), 4)
    }

    fn press(picker: &mut Picker, key: &str) -> PickerEvent {
        let press = match key.len() {
            1 => KeyPress::typed(key.chars().next().unwrap()),
            _ => KeyPress::of(key.parse::<Key>().unwrap()),
        };
        picker.key(&press, &Keymap::default())
    }

    fn shown(picker: &Picker) -> String {
        let theme = Palette::builtin("dark", ColorDepth::None);
        picker.rows(50, &theme).iter().map(|row| format!("{row}\n")).collect()
    }

    #[test]
    fn a_list_fits_into_few_rows() {
        for room in 1..20 {
            let mut picker = picker(9);
            picker.fit(room);
            for _ in 0..9 {
                let rows = shown(&picker);
                assert!(rows.lines().count() <= room.max(2) && rows.contains('→'), "{room}: {rows}");
                press(&mut picker, "down");
            }
        }
        let mut picker = picker(9);
        picker.fit(3);
        picker.fit(20);
        assert_eq!(shown(&picker).lines().count(), 6, "the search, four items and their number");
    }

    #[test]
    fn the_window_follows_the_selection_which_wraps_around() {
        let mut picker = picker(6);
        insta::assert_snapshot!(shown(&picker));
        for _ in 0..3 {
            assert_eq!(press(&mut picker, "up"), PickerEvent::Changed);
        }
        assert_eq!(picker.selected(), Some(5));
        assert_eq!(press(&mut picker, "down"), PickerEvent::Changed);
        assert_eq!(press(&mut picker, "pageDown"), PickerEvent::Changed);
        assert_eq!(press(&mut picker, "enter"), PickerEvent::Chosen(4));
    }

    #[test]
    fn typing_searches_and_the_first_cancel_clears_the_search() {
        let mut picker = picker(6);
        press(&mut picker, "4");
        insta::assert_snapshot!(shown(&picker));
        assert_eq!(press(&mut picker, "enter"), PickerEvent::Chosen(4));
        press(&mut picker, "x");
        insta::assert_snapshot!(shown(&picker));
        assert_eq!(press(&mut picker, "enter"), PickerEvent::Ignored);
        assert_eq!(press(&mut picker, "escape"), PickerEvent::Changed);
        assert_eq!(press(&mut picker, "escape"), PickerEvent::Cancelled);
    }

    #[test]
    fn digits_choose_in_short_lists_without_a_search() {
        let items = |n: usize| (0..n).map(|at| PickItem::new(at.to_string())).collect();
        assert_eq!(press(&mut Picker::without_search(items(3), 4), "2"), PickerEvent::Chosen(1));
        assert_eq!(press(&mut Picker::without_search(items(3), 4), "4"), PickerEvent::Ignored);
        assert_eq!(press(&mut Picker::without_search(items(12), 4), "2"), PickerEvent::Ignored);
    }

    #[test]
    fn untrusted_text_stays_on_its_row() {
        let item = PickItem::new("a\nb\u{1b}[2J").detail("c\u{202e}d\ne");
        insta::assert_snapshot!(shown(&Picker::new(vec![item], 4)));
    }
}
