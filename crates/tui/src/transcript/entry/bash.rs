//! A shell command of the user.

use std::collections::VecDeque;

use pinch_agent_core::tool::{JsonObject, ToolError};
use pinch_coding_agent::tools::bash::UserCommand;
use serde_json::Value;

use super::ViewCx;
use super::frame::paragraphs;
use crate::Row;
use crate::theme::ColorRole;

/// Number of output lines shown.
const PREVIEW: usize = 20;
/// Number of lines kept while it runs.
const KEPT: usize = 2_000;

/// View of a command.
pub(crate) struct Bash {
    command: String,
    /// Whether it is hidden from the model.
    exclude: bool,
    /// The last lines of the output; the last one may be incomplete.
    lines: VecDeque<String>,
    /// Its outcome; `None`: still running.
    end: Option<Vec<String>>,
    expanded: bool,
}

impl Bash {
    pub(super) fn begun(command: &str, exclude: bool) -> Self {
        Self { command: command.to_owned(), exclude, lines: VecDeque::new(), end: None, expanded: false }
    }

    /// Creates a view of a command in a stored session.
    pub(super) fn of(raw: &JsonObject) -> Self {
        let text = |name: &str| raw.get(name).and_then(Value::as_str).unwrap_or_default();
        let flag = |name: &str| raw.get(name).and_then(Value::as_bool).unwrap_or(false);
        let mut bash = Self::begun(text("command"), flag("excludeFromContext"));
        bash.push(text("output"));
        let path = raw.get("fullOutputPath").and_then(Value::as_str);
        bash.end = Some(notes(flag("cancelled"), raw.get("exitCode").and_then(Value::as_i64), flag("truncated"), path));
        bash
    }

    pub(super) fn is_finished(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn toggle(&mut self) {
        self.expanded = !self.expanded;
    }

    /// Appends output. A lone carriage return restarts the line, as progress bars expect.
    pub(super) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive(['\n', '\r']) {
            let is_end = piece.ends_with('\n');
            let overwrites = piece.ends_with('\r');
            let piece = piece.trim_end_matches(['\n', '\r']);
            if self.lines.is_empty() {
                self.lines.push_back(String::new());
            }
            if let Some(last) = self.lines.back_mut() {
                last.push_str(piece);
                if overwrites {
                    last.push('\r');
                }
                if let Some(at) = last.trim_end_matches('\r').rfind('\r') {
                    last.drain(..=at);
                }
            }
            if is_end {
                self.lines.push_back(String::new());
            }
            if self.lines.len() > KEPT {
                self.lines.pop_front();
            }
        }
    }

    pub(super) fn end(&mut self, end: &Result<UserCommand, ToolError>) {
        self.end = Some(match end {
            Ok(done) => {
                self.lines.clear();
                self.push(&done.output);
                let path = done.full_output_path.as_ref().map(|path| path.display().to_string());
                notes(done.cancelled, done.exit_code, done.truncated, path.as_deref())
            }
            Err(error) => vec![format!("Error: {error}")],
        });
    }

    pub(super) fn texts(&self, each: &mut dyn FnMut(&str)) {
        let notes = self.end.iter().flatten();
        [&self.command].into_iter().chain(&self.lines).chain(notes).for_each(|text| each(text));
    }

    pub(super) fn rows(&self, cx: ViewCx<'_>) -> Vec<Row> {
        let theme = cx.theme;
        let mode = if self.exclude { ColorRole::Dim } else { ColorRole::BashMode };
        let rule = || Row::styled("─".repeat(cx.columns), theme.fg(mode));
        let mut rows = vec![rule()];
        rows.extend(paragraphs(&format!("$ {}", self.command), theme.bold(mode), cx.columns, 1));
        let lines: Vec<&str> = self.lines.iter().map(|line| line.trim_end_matches('\r')).collect();
        let n = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
        let first = if self.expanded || cx.options.expanded { 0 } else { n.saturating_sub(PREVIEW) };
        for line in &lines[first..n] {
            rows.extend(paragraphs(line, theme.fg(ColorRole::ToolOutput), cx.columns, 1));
        }
        let muted = |text: &str| paragraphs(text, theme.fg(ColorRole::Muted), cx.columns, 1);
        if first > 0 {
            rows.extend(muted(&format!("... {first} more lines ({})", cx.expand_hint())));
        }
        match &self.end {
            None => rows.extend(muted("Running…")),
            Some(notes) => rows.extend(notes.iter().flat_map(|note| muted(note))),
        }
        rows.push(rule());
        rows
    }
}

fn notes(cancelled: bool, exit_code: Option<i64>, truncated: bool, path: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    if cancelled {
        notes.push("(cancelled)".to_owned());
    } else if let Some(code) = exit_code.filter(|code| *code != 0) {
        notes.push(format!("(exit {code})"));
    }
    if truncated {
        let whole = path.map(|path| format!(" Full output: {path}")).unwrap_or_default();
        notes.push(format!("Output truncated.{whole}"));
    }
    notes
}
