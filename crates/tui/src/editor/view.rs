//! Drawing of editors: rows of text between two rules, or a single row that scrolls sideways.

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;

use super::Editor;
use super::step::{Step, steps};
use super::vi::ViMode;
use crate::Row;
use crate::text::{grapheme_width, truncate, width};
use crate::theme::{ColorRole, Palette};

/// Prompt before the text of a single-line editor.
const PROMPT: &str = "> ";

/// State of the last drawing.
#[derive(Clone, Debug, Default)]
pub(super) struct EditorView {
    pub(super) placeholder: String,
    /// Number of free columns on both sides.
    pub(super) padding: usize,
    /// Number of text rows above the visible ones.
    scroll: usize,
    /// Number of columns left of the visible ones, in a single-line editor.
    shift: usize,
    /// Number of visible text rows; 0 before the first drawing.
    height: usize,
}

impl EditorView {
    /// Returns the number of rows in a page.
    pub(super) fn page(&self) -> usize {
        if self.height == 0 { 5 } else { self.height }
    }

    /// Scrolls back to the beginning.
    pub(super) fn reset(&mut self) {
        self.scroll = 0;
        self.shift = 0;
    }
}

impl Editor {
    /// Returns the maximum number of text rows that an editor should show in a terminal with this many rows.
    pub fn visible_rows(terminal_rows: usize) -> usize {
        if terminal_rows < 16 { 3 } else { (terminal_rows * 3 / 10).max(5) }
    }

    /// Draws the editor: at most `height` rows of text between two rules, which say how much is above and below; a single-line editor is
    /// one row without rules. Also returns the row and column of the cursor.
    ///
    /// Movements by rows and pages refer to the last drawing.
    pub fn rows(
        &mut self,
        columns: usize,
        height: usize,
        theme: &Palette,
        rule_style: Style,
    ) -> (Vec<Row>, Option<(usize, usize)>) {
        if columns == 0 {
            return (Vec::new(), None);
        }
        if self.is_single_line {
            return self.single_row(columns, theme);
        }
        let padding = self.view.padding.min((columns - 1) / 2);
        // The cursor after a full row needs a column.
        let text_width = (columns - 2 * padding - usize::from(padding == 0)).max(1);
        if text_width != self.wrap.width() {
            self.wrap.set_width(text_width);
            self.column.forget();
        }
        let (n_rows, cursor_row, cursor_column) = self.measure();
        let height = height.max(1);
        self.view.height = height;
        let lowest = self.view.scroll.min(cursor_row).min(n_rows.saturating_sub(height));
        self.view.scroll = lowest.max((cursor_row + 1).saturating_sub(height));
        let first = self.view.scroll;
        let n_shown = height.min(n_rows - first);

        let mut rows = Vec::with_capacity(n_shown + 2);
        rows.push(rule(columns, &more('↑', first), rule_style));
        if self.is_empty() && !self.view.placeholder.is_empty() {
            let text = Span::styled(self.view.placeholder.clone(), theme.fg(ColorRole::Dim));
            rows.push(indented(padding, truncate(&Row::from(text), text_width, "…").spans));
        } else {
            self.push_text(&mut rows, first, n_shown, padding, theme);
        }
        let mut labels = more('↓', n_rows - first - n_shown);
        labels.extend(self.mode_label());
        rows.push(rule(columns, &labels, rule_style));
        let cursor = (1 + cursor_row - first, (padding + cursor_column).min(columns - 1));
        (rows, Some(cursor))
    }

    /// Returns the number of rows of the text, and the row and column of the cursor.
    fn measure(&mut self) -> (usize, usize, usize) {
        let (mut n_rows, mut above) = (0, 0);
        for (at, line) in self.buffer.lines().iter().enumerate() {
            if at == self.cursor.line {
                above = n_rows;
            }
            n_rows += self.wrap.line(at, line, &self.markers).n_rows();
        }
        let (row, column) = self.row_and_column(self.cursor);
        (n_rows, above + row, column)
    }

    /// Returns a label for the mode, if the user should know it.
    fn mode_label(&self) -> Option<String> {
        match (self.history.search(), self.vi_mode()) {
            (Some((query, true)), _) => Some(format!("search: {query}")),
            (Some((query, false)), _) => Some(format!("no match: {query}")),
            (None, Some(ViMode::Normal)) => Some("normal".to_owned()),
            (None, Some(ViMode::Insert) | None) => None,
        }
    }

    /// Draws `n` rows of text, starting at row `first`.
    fn push_text(&mut self, rows: &mut Vec<Row>, first: usize, n: usize, padding: usize, theme: &Palette) {
        let text_width = self.wrap.width();
        let (mut skip, mut left) = (first, n);
        for (at, line) in self.buffer.lines().iter().enumerate() {
            let wrapped = self.wrap.line(at, line, &self.markers);
            let n_rows = wrapped.n_rows();
            for row in skip..n_rows {
                if left == 0 {
                    return;
                }
                left -= 1;
                let steps = steps(line, wrapped.row(row, line), &self.markers);
                rows.push(indented(padding, spans(steps, text_width, theme)));
            }
            skip = skip.saturating_sub(n_rows);
        }
    }

    /// Returns the width of a character in a single-line editor.
    fn columns_of(&self, step: &Step<'_>, max: usize) -> usize {
        if self.is_masked { 1 } else { step.columns(max) }
    }

    fn single_row(&mut self, columns: usize, theme: &Palette) -> (Vec<Row>, Option<(usize, usize)>) {
        let prompt = if columns > PROMPT.len() { PROMPT } else { "" };
        let room = columns - prompt.len();
        let mut row = vec![Span::raw(prompt)];
        if self.is_empty() {
            let text = Span::styled(self.view.placeholder.clone(), theme.fg(ColorRole::Dim));
            row.extend(truncate(&Row::from(text), room, "…").spans);
            return (vec![Row::from(row)], Some((0, prompt.len())));
        }
        let line = self.buffer.line(0);
        let column_of = |to: usize| -> usize {
            if !self.is_masked && line.is_ascii() {
                return to;
            }
            steps(line, 0..to, &self.markers).map(|step| self.columns_of(&step, room)).sum()
        };
        let (cursor, total) = (column_of(self.cursor.byte), column_of(line.len()));
        // The cursor after the text needs a column.
        let visible = (room - 1).max(1);
        let quarter = visible / 4;
        let shift = self.view.shift.min(cursor.saturating_sub(quarter));
        let shift = shift.max((cursor + quarter).saturating_sub(visible)).min(total.saturating_sub(visible));
        let mut text = String::new();
        let (mut at, mut used) = (0, 0);
        for step in steps(line, 0..line.len(), &self.markers) {
            let step_columns = self.columns_of(&step, room);
            let (start, end) = (at, at + step_columns);
            at = end;
            if end <= shift && end > 0 {
                continue;
            }
            // The second half of a character that begins left of the visible part.
            let shown = end - start.max(shift);
            if used + shown > visible {
                break;
            }
            used += shown;
            match step.text {
                _ if self.is_masked => text.push('•'),
                _ if start < shift => text.push_str(&" ".repeat(shown)),
                grapheme if grapheme_width(grapheme) > room => text.push('…'),
                grapheme => text.push_str(grapheme),
            }
        }
        self.view.shift = shift;
        row.push(Span::raw(text));
        (vec![Row::from(row)], Some((0, (prompt.len() + cursor - shift).min(columns - 1))))
    }
}

/// Returns a row of text with free columns before it.
fn indented(padding: usize, mut spans: Vec<Span<'static>>) -> Row {
    if padding > 0 {
        spans.insert(0, Span::raw(" ".repeat(padding)));
    }
    Row::from(spans)
}

/// Returns the characters of one row. A character wider than the row is truncated, and a blank after it omitted.
fn spans<'a>(steps: impl Iterator<Item = Step<'a>>, max: usize, theme: &Palette) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let mut text = String::new();
    let mut used = 0;
    for step in steps {
        let columns = step.columns(max);
        if used + columns > max {
            break;
        }
        used += columns;
        if step.is_marker {
            spans.push(Span::raw(std::mem::take(&mut text)));
            let label = Span::styled(step.text.to_owned(), theme.fg(ColorRole::Accent).add_modifier(Modifier::BOLD));
            spans.extend(truncate(&Row::from(label), max, "…").spans);
        } else if grapheme_width(step.text) > max {
            text.push('…');
        } else {
            text.push_str(step.text);
        }
    }
    spans.push(Span::raw(text));
    spans.retain(|span| !span.content.is_empty());
    spans
}

/// Returns the text in a rule about rows that are not visible.
fn more(arrow: char, n: usize) -> Vec<String> {
    if n > 0 { vec![format!("{arrow} {n} more")] } else { Vec::new() }
}

/// Returns a rule with labels in it.
fn rule(columns: usize, labels: &[String], style: Style) -> Row {
    let mut text = String::new();
    for label in labels {
        text.push_str("─── ");
        text.push_str(label);
        text.push(' ');
    }
    let missing = columns.saturating_sub(width(&text));
    text.push_str(&"─".repeat(missing));
    truncate(&Row::from(Span::styled(text, style)), columns, "")
}
