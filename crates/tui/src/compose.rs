//! Composes a frame: the open end of the transcript, the editor or a dialog, and the rows around them.

use std::time::Duration;

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::Row;
use crate::editor::Editor;
use crate::editor::complete::Autocomplete;
use crate::keymap::{KeyAction, Keymap};
use crate::terminal::{Cursor, Size};
use crate::text::{SanitizeMode, sanitize, truncate};
use crate::theme::{ColorRole, Palette};
use crate::transcript::{TranscriptView, typed_prompt};

/// Lower screens have no room for decoration.
pub(crate) const LOW: usize = 8;
/// Interval at which plain lines report activity.
pub(crate) const PLAIN_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum number of rows for dialogs in plain lines.
pub(crate) const MIN_PLAIN_ROWS: usize = 24;
/// Maximum number of queued messages shown.
const MAX_QUEUE: usize = 5;

/// Rows, and the cursor position in them.
pub(crate) type RowsWithCursor = (Vec<Row>, Option<(usize, usize)>);

/// Returns the rows of the transcript that are not final, as many of the last ones as fit.
pub(crate) fn open_rows(
    transcript: &mut TranscriptView,
    room: usize,
    columns: usize,
    look: (&Palette, &Keymap),
    now_ms: i64,
) -> Vec<Row> {
    let (theme, keymap) = look;
    let mut open = transcript.live(columns, theme, keymap, now_ms);
    // One row is left for the scrollback, so that its end is visible.
    let room = room.saturating_sub(1);
    if open.len() > room {
        let hidden = open.len() - room + 1;
        open.drain(..hidden.min(open.len()));
        let text = format!("… {hidden} lines above");
        open.insert(0, truncate(&Row::styled(text, theme.fg(ColorRole::Dim)), columns, ""));
        open.truncate(room);
    }
    open
}

/// Formats waiting messages: what they wait for, and their texts.
pub(crate) fn queue_rows<'a>(
    waiting: impl Iterator<Item = (&'a str, &'a str)>,
    columns: usize,
    look: (&Palette, &Keymap),
) -> Vec<Row> {
    let (theme, keymap) = look;
    let dim = theme.fg(ColorRole::Dim);
    let line = |(what, text): (&str, &str)| {
        let text = sanitize(&typed_prompt(text), SanitizeMode::Output).split_whitespace().collect::<Vec<_>>().join(" ");
        truncate(&Row::styled(format!("{what}: {text}"), dim), columns, "…")
    };
    let mut rows: Vec<Row> = waiting.map(line).collect();
    if rows.is_empty() {
        return rows;
    }
    if rows.len() > MAX_QUEUE {
        let more = rows.len() - MAX_QUEUE;
        rows.truncate(MAX_QUEUE);
        rows.push(Row::styled(format!("{more} more"), dim));
    }
    let hint = format!("↳ {} to edit all queued messages", keymap.hint(KeyAction::MessageDequeue));
    rows.push(truncate(&Row::styled(hint, dim), columns, "…"));
    rows
}

/// Inserts waiting messages before the text of the editor. Returns a status text.
pub(crate) fn give_back(mut messages: Vec<String>, editor: &mut Editor) -> String {
    let n = messages.len();
    let own = editor.text();
    if !own.trim().is_empty() {
        messages.push(own);
    }
    editor.restore(&messages.join("\n\n"));
    format!("Moved {n} queued {} to the editor", if n == 1 { "message" } else { "messages" })
}

/// Returns the editor with its suggestions. `rule`: the style of the rules around it.
pub(crate) fn editor_rows(
    editor: &mut Editor,
    completion: &Autocomplete,
    size: Size,
    room: usize,
    look: (&Palette, Style),
) -> RowsWithCursor {
    let (theme, rule) = look;
    let height = Editor::visible_rows(size.height()).min(room.saturating_sub(2)).max(1);
    let (mut rows, mut cursor) = editor.rows(size.width(), height, theme, rule);
    if size.height() < LOW && rows.len() > 2 {
        // No room for rules.
        rows.pop();
        rows.remove(0);
        cursor = cursor.map(|(row, column)| (row.saturating_sub(1), column));
    }
    let left = room.saturating_sub(rows.len());
    rows.extend(completion.rows(size.width(), theme).into_iter().take(left));
    (rows, cursor)
}

/// Stacks everything below the transcript. On a tiny screen, the middle part has priority.
pub(crate) fn stack(before: Vec<Row>, middle: RowsWithCursor, after: Vec<Row>, height: usize) -> RowsWithCursor {
    let (middle, cursor) = middle;
    let mut rows = before;
    let offset = rows.len();
    rows.extend(middle);
    rows.extend(after);
    let cut = rows.len().saturating_sub(height).min(offset);
    rows.drain(..cut);
    rows.truncate(height);
    (rows, cursor.map(|(row, column)| (row + offset - cut, column)))
}

/// Returns the place of the terminal's cursor in the live area: where text is inserted, at this position. If it is hidden, or `anchors`, one
/// is drawn there. `anchors`: the terminal's own marks the beginning of the live area, so that resizes leave nothing behind.
pub(crate) fn place_cursor(
    live: &mut [Row],
    position: Option<(usize, usize)>,
    is_shown: bool,
    anchors: bool,
) -> Option<Cursor> {
    let (row, column) = position?;
    let cursor = Cursor { row, column, visible: is_shown };
    if !is_shown || anchors {
        draw_cursor(live, cursor);
    }
    (!anchors).then_some(cursor)
}

/// Draws a cursor where the terminal's own is hidden.
fn draw_cursor(rows: &mut [Row], cursor: Cursor) {
    let Some(row) = rows.get_mut(cursor.row) else { return };
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut column = 0;
    let mut is_drawn = false;
    for span in &row.spans {
        for grapheme in span.content.graphemes(true) {
            let style = if column == cursor.column && !is_drawn { span.style.patch(reversed) } else { span.style };
            is_drawn |= column == cursor.column;
            column += crate::text::grapheme_width(grapheme);
            spans.push(Span::styled(grapheme.to_owned(), style));
        }
    }
    if !is_drawn {
        spans.push(Span::raw(" ".repeat(cursor.column.saturating_sub(column))));
        spans.push(Span::styled(" ", reversed));
    }
    row.spans = spans;
}
