//! Draws a frame from the state.

use std::time::Duration;

use pinch_coding_agent::extension::ui::WidgetPlace;
use ratatui_core::style::Style;
use ratatui_core::text::Span;

use super::{App, SessionActivity};
use crate::Row;
use crate::compose::{self, LOW, RowsWithCursor};
use crate::dialog::DialogCx;
use crate::front::ScreenFrame;
use crate::keymap::KeyAction;
use crate::sgr;
use crate::terminal::{PlainNotes, Size};
use crate::text::{SanitizeMode, pad, sanitize, truncate};
use crate::theme::ColorRole;
use crate::transcript::{Remaining, SearchStatus, TranscriptWindow};

/// Maximum number of lines shown of an extension's widget.
pub(super) const MAX_WIDGET: usize = 10;
/// Duration of a hint, in milliseconds.
const HINT_MS: i64 = 1_000;
/// Time without events after which the provider counts as stalled, in milliseconds.
const STALL_MS: i64 = 30_000;

/// Returns the number of transcript columns in fullscreen mode. The column of the scrollbar is always reserved, so that nothing moves when
/// it appears.
fn fullscreen_columns(size: Size) -> usize {
    size.width().saturating_sub(1).max(1)
}

impl App {
    /// Returns how often the screen must be animated; `None`: not at all.
    pub(crate) fn animation(&self, now_ms: i64) -> Option<Duration> {
        if self.colors_due_ms.is_some() {
            return Some(Duration::from_millis(50));
        }
        if self.transcript.search_status() == Some(SearchStatus::Searching) {
            return Some(Duration::ZERO);
        }
        if self.transcript.is_pulled() {
            return Some(Duration::from_millis(50));
        }
        let second = Some(Duration::from_secs(1));
        if self.is_plain() {
            return (self.ongoing.activity != SessionActivity::Idle).then_some(compose::PLAIN_INTERVAL);
        }
        if self.ongoing.activity != SessionActivity::Idle || self.transcript.runs_bash() {
            return self.working.interval(&self.loader).or(second);
        }
        let hint = self.clear_at.is_some_and(|at| now_ms - at <= HINT_MS);
        let counts_down = self.dialogs.last().is_some_and(|open| open.dialog.counts_down());
        let note = self.note.as_ref().is_some_and(|(_, until)| now_ms <= *until);
        (hint || note || counts_down).then_some(Duration::from_millis(500))
    }

    /// Returns new content in plain lines.
    fn plain_view(&mut self, size: Size, now_ms: i64) -> ScreenFrame {
        let finished = self.transcript.take_finished(size.width(), &self.theme, &self.keymap);
        let mut rows = self.queue_rows(size.width());
        // No key can edit them.
        rows.pop();
        let mut prompt = "> ";
        if let Some(open) = self.dialogs.last_mut() {
            let (columns, max_rows) = (size.width(), size.height().max(compose::MIN_PLAIN_ROWS));
            let cx = DialogCx { theme: &self.theme, keymap: &self.keymap, max_rows, columns, now_ms };
            rows.extend(open.dialog.rows(cx).0);
            prompt = "? ";
        }
        let is_secret = self.dialogs.last().is_some_and(|open| open.dialog.is_secret());
        let activity = self.plain_activity(now_ms);
        let is_busy = self.ongoing.activity != SessionActivity::Idle;
        let prompt = (!is_busy || !self.dialogs.is_empty()).then_some(prompt);
        ScreenFrame { finished, plain: PlainNotes { rows, activity, prompt, is_secret }, ..ScreenFrame::default() }
    }

    /// Describes the current activity, without parts that keep changing.
    fn plain_activity(&self, now_ms: i64) -> Option<String> {
        if self.clear_at.is_some_and(|at| now_ms - at <= HINT_MS) {
            return Some(format!("Press {} again to exit", self.keymap.hint(KeyAction::Clear)));
        }
        let ongoing = &self.ongoing;
        if ongoing.activity == SessionActivity::Idle {
            return None;
        }
        let mut text = if self.is_aborting { "Stopping".to_owned() } else { ongoing.text.clone() };
        if let Some(tool) = self.transcript.running_tool() {
            text.push_str(&format!(", {}", sanitize(tool, SanitizeMode::Output)));
        }
        Some(text)
    }

    /// Returns the frame for a screen of this size.
    pub(crate) fn view(&mut self, size: Size, is_fullscreen: bool, now_ms: i64) -> ScreenFrame {
        if self.is_plain() {
            return self.plain_view(size, now_ms);
        }
        let mut frame = ScreenFrame { title: self.window_title(), ..ScreenFrame::default() };
        frame.progress = self.activity() != SessionActivity::Idle
            && self.interface.as_ref().is_some_and(|interface| interface.terminal.show_progress);
        frame.status = self.program_status();
        if is_fullscreen {
            self.transcript.follow_pull(now_ms);
            self.note = self.note.take_if(|(_, until)| now_ms <= *until);
            self.transcript.search_step(fullscreen_columns(size), &self.theme, &self.keymap);
        }
        // The colours of rows in the scrollback must be right from the start.
        if self.colors_due_ms.is_some_and(|due| now_ms >= due) {
            self.colors_due_ms = None;
        }
        let (bottom, cursor) = self.bottom(size, now_ms);
        let room = size.height().saturating_sub(bottom.len());
        let mut cursor_row = 0;
        if is_fullscreen {
            frame.live = self.fullscreen_transcript(size, room);
            cursor_row += frame.live.len();
        } else {
            if self.colors_due_ms.is_none() {
                frame.finished = self.transcript.take_finished(size.width(), &self.theme, &self.keymap);
            }
            let look = (&self.theme, &self.keymap);
            let open = compose::open_rows(&mut self.transcript, room.max(1), size.width(), look, now_ms);
            cursor_row += open.len();
            frame.live = open;
        }
        frame.images = self.transcript.images().take_frame();
        frame.live.extend(bottom);
        cursor_row += self.draw_overlays(&mut frame.live, size);
        let shows_cursor = self.interface.as_ref().is_none_or(|interface| interface.hardware_cursor);
        let position = cursor.map(|(row, column)| (cursor_row + row, column));
        let anchors = !is_fullscreen && self.activity() != SessionActivity::Idle && self.awaits_text();
        frame.cursor = compose::place_cursor(&mut frame.live, position, shows_cursor, anchors);
        frame
    }

    /// Returns whether the editor has the focus and is empty.
    fn awaits_text(&self) -> bool {
        self.dialogs.is_empty() && self.editor.is_empty()
    }

    /// Returns the part of the transcript that fits above the rest, with a scrollbar and a note about rows below it.
    fn fullscreen_transcript(&mut self, size: Size, room: usize) -> Vec<Row> {
        let columns = fullscreen_columns(size);
        let TranscriptWindow { mut rows, below, thumb } =
            self.transcript.window(columns, room, &self.theme, &self.keymap);
        let missing = room.saturating_sub(rows.len());
        rows.splice(0..0, std::iter::repeat_n(Row::default(), missing));
        let (n, noun) = match below {
            Remaining::Nothing => (0, ""),
            Remaining::Lines(n) => (n, "line"),
            Remaining::Messages(n) => (n, "message"),
        };
        let note = self.note.as_ref().map(|(text, _)| text.clone()).or_else(|| {
            let s = if n == 1 { "" } else { "s" };
            let key = self.keymap.hint(KeyAction::Interrupt);
            (n > 0).then(|| format!("↓ {n} {noun}{s} below ({key} returns)"))
        });
        if let Some(text) = note
            && let Some(last) = rows.last_mut()
        {
            *last = truncate(&Row::styled(text, self.theme.fg(ColorRole::Accent)), columns, "…");
        }
        if let Some(thumb) = thumb.filter(|_| size.width() > 1) {
            for (at, row) in rows.iter_mut().enumerate() {
                let (sign, role) = match thumb.contains(&at) {
                    true => ("┃", ColorRole::BorderAccent),
                    false => ("│", ColorRole::BorderMuted),
                };
                *row = pad(std::mem::take(row), columns, Style::new());
                row.spans.push(Span::styled(sign, self.theme.fg(role)));
            }
        }
        rows
    }

    /// Returns everything below the transcript, and the cursor position in it.
    fn bottom(&mut self, size: Size, now_ms: i64) -> RowsWithCursor {
        let columns = size.width();
        let mut rows = self.queue_rows(columns);
        rows.extend(self.activity_row(columns, now_ms));
        rows.extend(self.widget_rows(WidgetPlace::AboveEditor, columns));
        rows.extend(self.widget_component_rows(WidgetPlace::AboveEditor, columns));
        let mut after = self.widget_rows(WidgetPlace::BelowEditor, columns);
        after.extend(self.widget_component_rows(WidgetPlace::BelowEditor, columns));
        after.extend(self.footer_rows(columns));
        self.ask_header(columns);
        if size.height() < LOW {
            after.truncate(1);
        }
        let room = size.height().saturating_sub(rows.len() + after.len()).max(1);
        let middle = self.middle(size, room, now_ms);
        compose::stack(rows, middle, after, size.height())
    }

    /// Returns the dialog, or the editor with its suggestions.
    fn middle(&mut self, size: Size, room: usize, now_ms: i64) -> RowsWithCursor {
        let columns = size.width();
        if let Some(open) = self.dialogs.iter_mut().rfind(|open| !open.dialog.is_overlay()) {
            let cx = DialogCx { theme: &self.theme, keymap: &self.keymap, max_rows: room, columns, now_ms };
            let (mut rows, cursor) = open.dialog.rows(cx);
            rows.truncate(room);
            return (rows, cursor.filter(|(row, _)| *row < room));
        }
        if let Some((mut rows, cursor)) = self.search_rows(size) {
            rows.truncate(room);
            return (rows, cursor);
        }
        let rule = match self.editor.is_shell_command() {
            true => self.theme.fg(ColorRole::BashMode),
            false => self.theme.fg(self.level_token()),
        };
        if let Some(drawn) = self.editor_component_rows(size, room, rule) {
            return drawn;
        }
        compose::editor_rows(&mut self.editor, &self.completion, size, room, (&self.theme, rule))
    }

    /// Returns the colour of the thinking level.
    fn level_token(&self) -> ColorRole {
        match self.thinking.as_str() {
            "minimal" => ColorRole::ThinkingMinimal,
            "low" => ColorRole::ThinkingLow,
            "medium" => ColorRole::ThinkingMedium,
            "high" => ColorRole::ThinkingHigh,
            "off" => ColorRole::ThinkingOff,
            _ => ColorRole::ThinkingXhigh,
        }
    }

    fn queue_rows(&self, columns: usize) -> Vec<Row> {
        let steering = self.queue.0.iter().map(|text| ("Steering", text.as_str()));
        let follow_up = self.queue.1.iter().map(|text| ("Follow-up", text.as_str()));
        let waiting = self.waiting.iter().map(|(_, message)| ("After compaction", message.text.as_str()));
        compose::queue_rows(steering.chain(follow_up).chain(waiting), columns, (&self.theme, &self.keymap))
    }

    fn activity_row(&self, columns: usize, now_ms: i64) -> Option<Row> {
        if self.clear_at.is_some_and(|at| now_ms - at <= HINT_MS) && self.editor.is_empty() {
            let text = format!("Press {} again to exit", self.keymap.hint(KeyAction::Clear));
            return Some(truncate(&Row::styled(text, self.theme.fg(ColorRole::Warning)), columns, "…"));
        }
        let ongoing = &self.ongoing;
        let is_working = ongoing.activity == SessionActivity::Working && !self.is_aborting;
        if ongoing.activity == SessionActivity::Idle || (is_working && self.working.is_hidden) {
            return None;
        }
        let message = self.working.message(is_working);
        let elapsed = u64::try_from(now_ms - ongoing.since_ms).unwrap_or(0);
        let cancel = self.keymap.hint(KeyAction::Interrupt);
        let rest = match (self.is_aborting, ongoing.until_ms) {
            (true, _) => "Stopping…".to_owned(),
            (false, Some(until)) => {
                let left = u64::try_from(until - now_ms).unwrap_or(0).div_ceil(1000);
                format!("{} in {left}s ({cancel} to cancel)", ongoing.text)
            }
            (false, None) => {
                let mut text = if message.is_some() { String::new() } else { ongoing.text.clone() };
                if let Some(tool) = self.transcript.running_tool() {
                    text.push_str(&format!(" · {}", sanitize(tool, SanitizeMode::Output)));
                }
                if ongoing.activity == SessionActivity::Working && self.transcript.silent_ms(now_ms) > STALL_MS {
                    text.push_str(" · waiting for the provider");
                }
                let dots = if message.is_some() { "" } else { "…" };
                format!("{text}{dots} {}s ({cancel} to interrupt)", elapsed / 1000)
            }
        };
        let row = self.working.row(&self.loader, Duration::from_millis(elapsed), (message, &rest), &self.theme);
        Some(truncate(&row, columns, "…"))
    }

    fn widget_rows(&self, place: WidgetPlace, columns: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        for widget in self.widgets.iter().filter(|widget| widget.place == place) {
            let lines = widget.lines.iter().flat_map(|line| line.lines());
            let row = |line| truncate(&sgr::row(line, &self.theme), columns, "…");
            rows.extend(lines.take(MAX_WIDGET).map(row));
            if widget.lines.len() > MAX_WIDGET {
                rows.push(Row::styled("... (widget truncated)", self.theme.fg(ColorRole::Muted)));
            }
        }
        rows
    }

    fn window_title(&self) -> String {
        if let Some(title) = &self.title {
            return sanitize(title, SanitizeMode::Output).into_owned();
        }
        let folder = self.options.cwd.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let busy = if self.activity() == SessionActivity::Idle { "" } else { "* " };
        let title = match &self.footer.session_name {
            Some(name) => format!("{busy}pinch - {name} - {folder}"),
            None => format!("{busy}pinch - {folder}"),
        };
        sanitize(&title, SanitizeMode::Output).into_owned()
    }
}
