//! Draws a frame from the state.

use std::time::Duration;

use ratatui_core::text::Span;

use super::input::DOUBLE_PRESS_MS;
use super::{ChatApp, RunActivity};
use crate::Row;
use crate::chat::backend::{ElevatedMode, ReasoningMode, Verbosity};
use crate::compose::{self, LOW, RowsWithCursor};
use crate::dialog::DialogCx;
use crate::figures::tokens;
use crate::front::ScreenFrame;
use crate::image::CellSize;
use crate::keymap::KeyAction;
use crate::terminal::{PlainNotes, Size};
use crate::text::{SanitizeMode, one_line, sanitize, truncate, width};
use crate::theme::ColorRole;

/// Maximum number of rows in the footer.
const MAX_FOOTER: usize = 2;
/// Separator in the footer.
const SEPARATOR: &str = " | ";

impl ChatApp {
    /// Returns how often the screen must be animated; `None`: not at all.
    pub(crate) fn animation(&self, now_ms: i64) -> Option<Duration> {
        if self.colors_due_ms.is_some() {
            return Some(Duration::from_millis(50));
        }
        if self.is_plain() {
            return self.plain_activity(now_ms).map(|_| compose::PLAIN_INTERVAL);
        }
        if self.is_busy() || self.compacting.is_some() || self.transcript.runs_bash() {
            return self.loader.interval().or(Some(Duration::from_secs(1)));
        }
        let counts_down = self.dialogs.last().is_some_and(|open| open.dialog.counts_down());
        (counts_down || self.shows_exit_hint(now_ms)).then_some(Duration::from_millis(500))
    }

    fn shows_exit_hint(&self, now_ms: i64) -> bool {
        self.clear_at.is_some_and(|at| now_ms - at <= DOUBLE_PRESS_MS) && self.editor.is_empty()
    }

    /// Sets the size of the screen for the next frame, and of its cells in pixels.
    pub(crate) fn set_screen(&mut self, size: Size, cell: CellSize) {
        self.transcript.images().set_screen(size.height(), cell);
    }

    /// Returns new content in plain lines.
    fn plain_view(&mut self, size: Size, now_ms: i64) -> ScreenFrame {
        let finished = self.transcript.take_finished(size.width(), &self.theme, &self.keymap);
        let waiting = self.waiting().map(|message| ("Queued", message.text.as_str()));
        let mut rows = compose::queue_rows(waiting, size.width(), (&self.theme, &self.keymap));
        // No key can edit them.
        rows.pop();
        let mut prompt = "> ";
        if let Some(open) = self.dialogs.last_mut() {
            let (columns, max_rows) = (size.width(), size.height().max(compose::MIN_PLAIN_ROWS));
            let cx = DialogCx { theme: &self.theme, keymap: &self.keymap, max_rows, columns, now_ms };
            rows.extend(open.dialog.rows(cx).0);
            prompt = "? ";
        }
        let activity = self.plain_activity(now_ms);
        let prompt = (activity.is_none() || !self.dialogs.is_empty()).then_some(prompt);
        ScreenFrame {
            finished,
            plain: PlainNotes { rows, activity, prompt, is_secret: false },
            ..ScreenFrame::default()
        }
    }

    /// Describes the current activity, without parts that keep changing.
    fn plain_activity(&self, now_ms: i64) -> Option<String> {
        if self.shows_exit_hint(now_ms) {
            return Some(format!("Press {} again to exit", self.keymap.hint(KeyAction::Clear)));
        }
        match (self.run(), self.compacting) {
            (Some(run), _) if run.is_aborting => Some("stopping".to_owned()),
            (Some(run), _) => Some(match &run.activity {
                // Answers begin and end many times during a run.
                RunActivity::Sending | RunActivity::Waiting | RunActivity::Streaming => "working".to_owned(),
                RunActivity::Running { tool } => format!("working, {}", sanitize(tool, SanitizeMode::Output)),
                RunActivity::Busy { activity, .. } => sanitize(activity, SanitizeMode::Output).into_owned(),
            }),
            (None, Some(_)) => Some("compacting".to_owned()),
            (None, None) => None,
        }
    }

    /// Returns the frame for a screen of this size.
    pub(crate) fn view(&mut self, size: Size, now_ms: i64) -> ScreenFrame {
        if self.is_plain() {
            return self.plain_view(size, now_ms);
        }
        let mut frame = ScreenFrame { title: self.window_title(), ..ScreenFrame::default() };
        frame.progress = self.is_working() && self.setup.shows_progress;
        frame.status = self.program_status();
        let (bottom, cursor) = self.bottom(size, now_ms);
        let room = size.height().saturating_sub(bottom.len()).max(1);
        // The colours of rows in the scrollback must be right from the start.
        if self.colors_due_ms.is_some_and(|due| now_ms >= due) {
            self.colors_due_ms = None;
        }
        if self.colors_due_ms.is_none() {
            frame.finished = self.transcript.take_finished(size.width(), &self.theme, &self.keymap);
        }
        let look = (&self.theme, &self.keymap);
        frame.live = compose::open_rows(&mut self.transcript, room, size.width(), look, now_ms);
        frame.images = self.transcript.images().take_frame();
        let above = frame.live.len();
        frame.live.extend(bottom);
        let position = cursor.map(|(row, column)| (above + row, column));
        let anchors = self.is_working() && self.dialogs.is_empty() && self.editor.is_empty();
        frame.cursor = compose::place_cursor(&mut frame.live, position, true, anchors);
        frame
    }

    /// Returns everything below the transcript.
    fn bottom(&mut self, size: Size, now_ms: i64) -> RowsWithCursor {
        let columns = size.width();
        let waiting = self.waiting().map(|message| ("Queued", message.text.as_str()));
        let mut before = compose::queue_rows(waiting, columns, (&self.theme, &self.keymap));
        before.push(self.status_row(columns, now_ms));
        let mut after = self.footer_rows(columns);
        if size.height() < LOW {
            after.truncate(1);
        }
        let room = size.height().saturating_sub(before.len() + after.len()).max(1);
        let middle = self.middle(size, room, now_ms);
        compose::stack(before, middle, after, size.height())
    }

    /// Returns the dialog, or the editor with its suggestions.
    fn middle(&mut self, size: Size, room: usize, now_ms: i64) -> RowsWithCursor {
        if let Some(open) = self.dialogs.last_mut() {
            let cx =
                DialogCx { theme: &self.theme, keymap: &self.keymap, max_rows: room, columns: size.width(), now_ms };
            let (mut rows, cursor) = open.dialog.rows(cx);
            rows.truncate(room);
            return (rows, cursor.filter(|(row, _)| *row < room));
        }
        let is_shell = self.editor.lines().first().is_some_and(|line| line.starts_with('!'));
        let rule = self.theme.fg(if is_shell { ColorRole::BashMode } else { ColorRole::Border });
        compose::editor_rows(&mut self.editor, &self.completion, size, room, (&self.theme, rule))
    }

    /// Returns the row with the current activity and its location.
    fn status_row(&self, columns: usize, now_ms: i64) -> Row {
        let fit = |row: Row| truncate(&row, columns, "…");
        if self.shows_exit_hint(now_ms) {
            let text = format!("Press {} again to exit", self.keymap.hint(KeyAction::Clear));
            return fit(Row::styled(text, self.theme.fg(ColorRole::Warning)));
        }
        let target = sanitize(&self.setup.target, SanitizeMode::Output);
        let target = if self.is_disconnected { "disconnected" } else { &*target };
        let seconds = |from: i64, to: i64| u64::try_from(to - from).unwrap_or(0).div_ceil(1_000);
        let busy = match (self.run(), self.compacting) {
            (Some(run), _) => {
                let elapsed = now_ms - run.since_ms;
                let activity = match &run.activity {
                    _ if run.is_aborting => "stopping".to_owned(),
                    RunActivity::Sending => "sending".to_owned(),
                    RunActivity::Waiting => "waiting".to_owned(),
                    RunActivity::Streaming => "streaming".to_owned(),
                    RunActivity::Running { tool } => format!("running {}", sanitize(tool, SanitizeMode::Output)),
                    RunActivity::Busy { activity, until_ms } => {
                        let left = until_ms.map(|until| format!(" for {}s", seconds(now_ms, until)));
                        format!("{}{}", sanitize(activity, SanitizeMode::Output), left.unwrap_or_default())
                    }
                };
                Some((activity, elapsed))
            }
            (None, Some(since)) => Some(("compacting".to_owned(), now_ms - since)),
            (None, None) if self.waiting().next().is_some() => Some(("waiting for the next run".to_owned(), 0)),
            (None, None) => None,
        };
        let Some((activity, elapsed)) = busy else {
            return fit(Row::styled(format!("{target} | idle"), self.theme.fg(ColorRole::Dim)));
        };
        let elapsed = u64::try_from(elapsed).unwrap_or(0);
        let stop = self.keymap.hint(KeyAction::Interrupt);
        let text = format!("{activity} • {}s | {target} ({stop} to stop)", elapsed / 1_000);
        fit(self.loader.row(Duration::from_millis(elapsed), &text, &self.theme))
    }

    /// Returns agent, session, model and non-default settings, in as few rows as possible.
    fn footer_rows(&self, columns: usize) -> Vec<Row> {
        let facts = &self.facts;
        let label = facts.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        let mut parts = vec![format!("agent {}", self.agent), format!("session {}{label}", self.short_session())];
        parts.push(facts.model.clone().unwrap_or_else(|| "no model".to_owned()));
        if let Some(level) = self.thinking.or(facts.thinking) {
            parts.push(format!("think {level}"));
        }
        if self.verbosity() != Verbosity::Off {
            parts.push(format!("verbose {}", self.verbosity()));
        }
        match facts.reasoning {
            ReasoningMode::Off => {}
            ReasoningMode::On => parts.push("reasoning".to_owned()),
            ReasoningMode::Stream => parts.push("reasoning:stream".to_owned()),
        }
        if let Some(mode) = facts.queue {
            parts.push(format!("queue {mode}"));
        }
        if let Some(mode) = facts.elevated.filter(|mode| *mode != ElevatedMode::Off) {
            parts.push(format!("elevated {mode}"));
        }
        if let Some(limit) = facts.permissions {
            parts.push(format!("permissions {limit}"));
        }
        if let Some(activation) = facts.activation {
            parts.push(format!("activation {activation}"));
        }
        if let Some(channel) = facts.channel.as_ref().filter(|_| self.delivers) {
            parts.push(format!("deliver to {channel}"));
        }
        parts.push(match (facts.tokens, facts.window) {
            (None, _) => "tokens ?".to_owned(),
            (Some(used), None | Some(0)) => format!("tokens {}", tokens(used)),
            (Some(used), Some(window)) => {
                format!("tokens {}/{} ({}%)", tokens(used), tokens(window), used.saturating_mul(100) / window)
            }
        });
        let mut lines: Vec<String> = Vec::new();
        for part in parts {
            let part = one_line(&part);
            let is_full = lines.len() == MAX_FOOTER;
            match lines.last_mut() {
                Some(line) if is_full || width(line) + SEPARATOR.len() + width(&part) <= columns => {
                    line.push_str(SEPARATOR);
                    line.push_str(&part);
                }
                _ => lines.push(part),
            }
        }
        let dim = self.theme.fg(ColorRole::Dim);
        lines.into_iter().map(|line| truncate(&Row::from(Span::styled(line, dim)), columns, "…")).collect()
    }

    fn window_title(&self) -> String {
        let busy = if self.is_busy() { "* " } else { "" };
        let title = format!("{busy}pinch - {} - {}", self.agent, self.short_session());
        sanitize(&title, SanitizeMode::Output).into_owned()
    }
}
