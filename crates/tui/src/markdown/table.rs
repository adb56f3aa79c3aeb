//! Tables that fit: columns as wide as their content if there is room, narrower ones with wrapped cells if not, and records if even those
//! are too narrow.

use pulldown_cmark::Alignment;
use ratatui_core::text::Span;

use super::blocks::Table;
use super::inline::{StyledLines, wrapped};
use crate::Row;
use crate::text::{row_width, width, wrap};
use crate::theme::{ColorRole, Palette};

/// A column is at least as wide as its longest word, up to this width.
const MAX_WORD: usize = 30;
/// Narrower cells are unreadable.
const MIN_CELL: usize = 5;

/// Layout of a table's rows, determined by the rows known first.
#[derive(Clone, Debug)]
pub(super) struct TableLayout {
    columns: usize,
    /// Width of each column; `None` if some would be too narrow to read.
    widths: Option<Vec<usize>>,
    alignments: Vec<Alignment>,
    head: Vec<StyledLines>,
    /// Whether rows were shown.
    is_begun: bool,
}

impl TableLayout {
    /// Creates the layout for a table.
    pub(super) fn new(table: &Table, columns: usize) -> Self {
        let n = table.head.len().max(table.rows.iter().map(Vec::len).max().unwrap_or(0));
        // Borders, and a space on each side of a cell.
        let room = columns.saturating_sub(3 * n + 1);
        let widths = widths(table, n, room);
        Self { columns, widths, alignments: table.alignments.clone(), head: table.head.clone(), is_begun: false }
    }

    /// Changes the width for rows that follow: only what no longer fits becomes narrower.
    pub(super) fn resized(mut self, columns: usize) -> Self {
        self.columns = columns;
        let n = self.head.len();
        if let Some(widths) = &mut self.widths {
            let room = columns.saturating_sub(3 * n.max(widths.len()) + 1);
            while widths.iter().sum::<usize>() > room
                && let Some(widest) = widths.iter_mut().max()
                && *widest > MIN_CELL
            {
                *widest -= 1;
            }
            if widths.iter().sum::<usize>() > room {
                self.widths = None;
                self.is_begun = true;
            }
        }
        self
    }

    /// Returns the number of columns in the table.
    pub(super) fn n_cells(&self) -> usize {
        self.head.len()
    }

    /// Returns the header and the first rows.
    pub(super) fn first_rows(&mut self, table: &Table, theme: &Palette) -> Vec<Row> {
        let Some(widths) = &self.widths else {
            // Each record contains the header, which is only shown separately if there are no records.
            return self.rows(&table.rows, theme);
        };
        let mut rows = vec![self.rule(widths, ["┌", "┬", "┐"], theme)];
        rows.extend(self.drawn(&table.head, widths, theme));
        rows.extend(self.rows(&table.rows, theme));
        rows
    }

    /// Returns more rows.
    pub(super) fn rows(&mut self, table_rows: &[Vec<StyledLines>], theme: &Palette) -> Vec<Row> {
        let mut rows = Vec::new();
        for row in table_rows {
            match &self.widths {
                Some(widths) => {
                    rows.push(self.rule(widths, ["├", "┼", "┤"], theme));
                    rows.extend(self.drawn(row, widths, theme));
                }
                None => {
                    if std::mem::replace(&mut self.is_begun, true) {
                        rows.push(Row::styled("─".repeat(self.columns.min(8)), theme.fg(ColorRole::MdHr)));
                    }
                    rows.extend(self.record(row, true));
                }
            }
        }
        rows
    }

    /// Returns the end of the table.
    pub(super) fn last_rows(&self, theme: &Palette) -> Vec<Row> {
        match &self.widths {
            Some(widths) => vec![self.rule(widths, ["└", "┴", "┘"], theme)],
            None if self.is_begun => Vec::new(),
            None => self.record(&self.head, false),
        }
    }

    fn rule(&self, widths: &[usize], [left, middle, right]: [&str; 3], theme: &Palette) -> Row {
        let parts: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        Row::styled(format!("{left}{}{right}", parts.join(middle)), theme.fg(ColorRole::MdHr))
    }

    fn drawn(&self, row: &[StyledLines], widths: &[usize], theme: &Palette) -> Vec<Row> {
        let style = theme.fg(ColorRole::MdHr);
        let cells: Vec<Vec<Row>> =
            widths.iter().enumerate().map(|(at, width)| wrapped(&cell(row, at), *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let mut rows = Vec::new();
        for nth in 0..height {
            let mut spans = vec![Span::styled("│ ", style)];
            for (at, width) in widths.iter().enumerate() {
                let line = cells[at].get(nth).cloned().unwrap_or_default();
                let missing = width.saturating_sub(row_width(&line));
                let before = match self.alignments.get(at) {
                    Some(Alignment::Right) => missing,
                    Some(Alignment::Center) => missing / 2,
                    _ => 0,
                };
                if before > 0 {
                    spans.push(Span::raw(" ".repeat(before)));
                }
                spans.extend(line.spans);
                if missing > before {
                    spans.push(Span::raw(" ".repeat(missing - before)));
                }
                spans.push(Span::styled(if at + 1 == widths.len() { " │" } else { " │ " }, style));
            }
            rows.push(Row::from(spans));
        }
        rows
    }

    /// Formats a row as a list of names and values.
    fn record(&self, row: &[StyledLines], is_named: bool) -> Vec<Row> {
        let mut rows = Vec::new();
        for (at, value) in row.iter().enumerate() {
            let mut line: Vec<Span<'static>> = Vec::new();
            if is_named {
                line.extend(cell(&self.head, at).into_iter().flatten());
                line.push(Span::raw(": "));
            }
            line.extend(value.iter().flatten().cloned());
            rows.extend(wrap(&line, self.columns));
        }
        rows
    }
}

fn cell(row: &[StyledLines], at: usize) -> StyledLines {
    row.get(at).cloned().unwrap_or_default()
}

fn line_width(line: &[Span<'_>]) -> usize {
    line.iter().map(|span| width(&span.content)).sum()
}

/// Returns the width of each column; `None` if some would be too narrow to read.
fn widths(table: &Table, n: usize, room: usize) -> Option<Vec<usize>> {
    let all = || std::iter::once(&table.head).chain(&table.rows);
    let natural: Vec<usize> = (0..n)
        .map(|at| all().flat_map(|row| cell(row, at)).map(|line| line_width(&line)).max().unwrap_or(0).max(1))
        .collect();
    if natural.iter().sum::<usize>() <= room {
        return Some(natural);
    }
    let longest_word = |at: usize| {
        let text = all().flat_map(|row| cell(row, at)).map(|line| {
            let text: String = line.iter().map(|span| span.content.as_ref()).collect();
            text.split(' ').map(width).max().unwrap_or(0)
        });
        text.max().unwrap_or(0).clamp(1, MAX_WORD)
    };
    let mut least: Vec<usize> = (0..n).map(|at| longest_word(at).min(natural[at])).collect();
    if least.iter().sum::<usize>() > room {
        // Words are also split.
        least = natural.iter().map(|natural| (*natural).min(MIN_CELL)).collect();
        if least.iter().sum::<usize>() > room {
            return None;
        }
    }
    let mut left = room - least.iter().sum::<usize>();
    let wanted: usize = natural.iter().zip(&least).map(|(natural, least)| natural - least).sum();
    let mut widths = least.clone();
    for (at, width) in widths.iter_mut().enumerate() {
        let share = ((natural[at] - least[at]) * (room - least.iter().sum::<usize>())).checked_div(wanted).unwrap_or(0);
        *width += share;
        left -= share.min(left);
    }
    for (at, width) in widths.iter_mut().enumerate() {
        if left > 0 && *width < natural[at] {
            *width += 1;
            left -= 1;
        }
    }
    Some(widths)
}
