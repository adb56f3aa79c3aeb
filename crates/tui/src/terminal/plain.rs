//! An append-only screen: new content is written below the old, in plain lines. For screen readers, logs, and terminals that cannot move
//! their cursor.

use crate::Row;
use crate::text::is_obeyed;

/// How often the current activity is repeated, in milliseconds.
const REPEAT_MS: i64 = 10_000;

/// Notes besides the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainNotes {
    /// Waiting messages, and the open dialog. Lines already written are not repeated.
    pub(crate) rows: Vec<Row>,
    /// The current activity.
    pub(crate) activity: Option<String>,
    /// Prompt for the user's input; `None`: no input is expected now.
    pub(crate) prompt: Option<&'static str>,
    /// Whether the input is secret.
    pub(crate) is_secret: bool,
}

/// State of the output that affects what comes next.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainScreen {
    said: Vec<String>,
    /// The activity, when it began, and when it was last written.
    activity: Option<(String, i64, i64)>,
    /// The prompt on the last line, if any.
    prompt: Option<&'static str>,
}

impl PlainScreen {
    /// Returns the bytes that write new content.
    pub(crate) fn draw(&mut self, finished: &[Row], notes: &PlainNotes, now_ms: i64) -> Vec<u8> {
        let mut lines: Vec<String> = finished.iter().filter_map(line).collect();
        let rows: Vec<String> = notes.rows.iter().filter_map(line).collect();
        lines.extend(rows.iter().filter(|row| !self.said.contains(row)).cloned());
        self.said = rows;
        lines.extend(self.activity(notes.activity.as_deref(), now_ms));
        let mut out = String::new();
        if !lines.is_empty() && self.prompt.take().is_some() {
            out.push('\n');
        }
        for line in lines {
            out.extend(line.chars().filter(|c| !is_obeyed(*c)));
            out.push('\n');
        }
        if notes.prompt != self.prompt {
            if self.prompt.is_some() {
                out.push('\n');
            }
            out.push_str(notes.prompt.unwrap_or_default());
            self.prompt = notes.prompt;
        }
        out.into_bytes()
    }

    /// Returns the line about the current activity: when it begins, and again after a while.
    fn activity(&mut self, activity: Option<&str>, now_ms: i64) -> Option<String> {
        let Some(activity) = activity else {
            self.activity = None;
            return None;
        };
        match &mut self.activity {
            Some((known, since, said_at)) if known == activity => {
                if now_ms - *said_at < REPEAT_MS {
                    return None;
                }
                *said_at = now_ms;
                Some(format!("Still: {activity}, {} s", (now_ms - *since) / 1_000))
            }
            known => {
                *known = Some((activity.to_owned(), now_ms, now_ms));
                Some(activity.to_owned())
            }
        }
    }

    /// Records that the user has typed a line, so that the cursor is at the beginning of the next one.
    pub(crate) fn typed(&mut self) {
        self.prompt = None;
    }

    /// Forgets what was written, so that everything open is written again.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns the bytes to write before the program exits, with the last rows.
    pub(crate) fn leave(&mut self, last: &[Row]) -> Vec<u8> {
        self.draw(last, &PlainNotes::default(), 0)
    }
}

/// Returns a row as a line of text, without decoration; `None` if it is only decoration.
fn line(row: &Row) -> Option<String> {
    let is_drawing = |c: char| ('\u{2500}'..='\u{259f}').contains(&c);
    let text = row.to_string();
    let text = text.trim_end();
    if !text.is_empty() && text.chars().all(|c| is_drawing(c) || c == ' ') {
        return None;
    }
    Some(text.chars().map(|c| if c == '│' { '|' } else { c }).filter(|c| !is_drawing(*c)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&str]) -> Vec<Row> {
        lines.iter().map(|line| Row::from((*line).to_owned())).collect()
    }

    fn said(screen: &mut PlainScreen, finished: &[&str], notes: &PlainNotes, now_ms: i64) -> String {
        String::from_utf8(screen.draw(&rows(finished), notes, now_ms)).unwrap()
    }

    #[test]
    fn nothing_is_repeated_and_the_prompt_is_on_its_own_line() {
        let mut screen = PlainScreen::default();
        let idle = PlainNotes { prompt: Some("> "), ..PlainNotes::default() };
        assert_eq!(said(&mut screen, &["hello"], &idle, 0), "hello\n> ");
        assert_eq!(said(&mut screen, &[], &idle, 5), "");
        assert_eq!(said(&mut screen, &["news"], &idle, 6), "\nnews\n> ");
        screen.typed();
        let busy = PlainNotes { activity: Some("Working".to_owned()), ..PlainNotes::default() };
        assert_eq!(said(&mut screen, &["You:", "x"], &busy, 10), "You:\nx\nWorking\n");
        assert_eq!(said(&mut screen, &[], &busy, 9_000), "");
        assert_eq!(said(&mut screen, &[], &busy, 10_010), "Still: Working, 10 s\n");
        assert_eq!(said(&mut screen, &["done"], &idle, 11_000), "done\n> ");
        assert_eq!(String::from_utf8(screen.leave(&rows(&["bye"]))).unwrap(), "\nbye\n");
    }

    #[test]
    fn only_new_lines_of_a_dialog_are_written() {
        let mut screen = PlainScreen::default();
        let dialog = |lines: &[&str]| PlainNotes { rows: rows(lines), prompt: Some("? "), ..PlainNotes::default() };
        assert_eq!(said(&mut screen, &[], &dialog(&["────", "Go on?", "  Yes", "→ No"]), 0), "Go on?\n  Yes\n→ No\n? ");
        screen.typed();
        assert_eq!(said(&mut screen, &[], &dialog(&["────", "Go on?", "→ Yes", "  No"]), 0), "→ Yes\n  No\n? ");
        assert_eq!(said(&mut screen, &[], &PlainNotes::default(), 0), "\n");
        assert_eq!(said(&mut screen, &[], &dialog(&["Go on?"]), 0), "Go on?\n? ", "another one with the same words");
    }

    #[test]
    fn control_characters_are_dropped() {
        let busy = PlainNotes { activity: Some("run\u{1b}[2J".to_owned()), ..PlainNotes::default() };
        assert_eq!(said(&mut PlainScreen::default(), &["a\u{9b}b\u{202e}"], &busy, 0), "ab\nrun[2J\n");
    }

    #[test]
    fn decoration_is_omitted() {
        let notes = PlainNotes::default();
        let table = ["┌───┬───┐", "│ a │ b │", "└───┴───┘", "", "▍x"];
        assert_eq!(said(&mut PlainScreen::default(), &table, &notes, 0), "| a | b |\n\nx\n");
    }
}
