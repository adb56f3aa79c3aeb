//! Diffs as rows: removed and added lines in their colours, with changed words highlighted.
//!
//! ```
//! use pinch_tui::diff::{self, DiffOptions};
//! use pinch_tui::theme::{ColorDepth, Palette};
//!
//! let theme = Palette::builtin("dark", ColorDepth::None);
//! let rows = diff::rows("-1 let a = 1;\n+1 let a = 2;\n 2 next", &DiffOptions { columns: 40, max_lines: None }, &theme);
//! let shown: Vec<String> = rows.iter().map(ToString::to_string).collect();
//! assert_eq!(shown, ["1 addition, 1 removal", "-1 let a = 1;", "+1 let a = 2;", " 2 next"]);
//! ```

use std::time::{Duration, Instant};

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;
use similar::{Algorithm, ChangeTag, TextDiff};

use crate::Row;
use crate::text::{SanitizeMode, chop, sanitize};
use crate::theme::{ColorRole, Palette};

/// Time limit for comparing words; later lines have no highlights.
const DEADLINE: Duration = Duration::from_millis(20);

/// Options for displaying a diff.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// Maximum width of the rows, in columns.
    pub columns: usize,
    /// Maximum number of lines shown; `None`: all.
    pub max_lines: Option<usize>,
}

/// A line of a diff: its sign, its number with surrounding spaces, and its text.
struct DiffLine<'a> {
    sign: char,
    head: &'a str,
    text: &'a str,
}

fn parse(line: &str) -> DiffLine<'_> {
    let sign = line.chars().next().filter(|c| matches!(c, '+' | '-')).unwrap_or(' ');
    let body = line.strip_prefix(['+', '-', ' ']).unwrap_or(line);
    let digits = body.trim_start_matches(' ');
    let n_head = body.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let end = if body[n_head..].starts_with(' ') { n_head + 1 } else { n_head };
    DiffLine { sign, head: &body[..end], text: &body[end..] }
}

/// Returns the rows of a diff whose lines consist of a sign (`+`, `-` or a space), a number, a space and a text, below a row that counts
/// the changes.
pub fn rows(diff: &str, options: &DiffOptions, theme: &Palette) -> Vec<Row> {
    let diff = sanitize(diff, SanitizeMode::Output);
    let lines: Vec<DiffLine<'_>> = diff.lines().map(parse).collect();
    let count = |sign| lines.iter().filter(|line| line.sign == sign).count();
    let (added, removed) = (count('+'), count('-'));
    let noun = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let header = format!("{}, {}", noun(added, "addition", "additions"), noun(removed, "removal", "removals"));
    let mut rows = chop(&[Span::styled(header, theme.fg(ColorRole::Muted))], options.columns);
    let until = Instant::now() + DEADLINE;
    let shown = options.max_lines.unwrap_or(usize::MAX);
    let mut at = 0;
    while at < lines.len().min(shown) {
        let is_pair = lines[at].sign == '-'
            && lines.get(at + 1).is_some_and(|next| next.sign == '+')
            && lines.get(at + 2).is_none_or(|next| next.sign != '+')
            && (at == 0 || lines[at - 1].sign != '-');
        if is_pair && at + 1 < shown {
            let (old, new) = (&lines[at], &lines[at + 1]);
            let (old_spans, new_spans) = words(old.text, new.text, until, theme);
            rows.extend(line_rows(old, old_spans, options.columns, theme));
            rows.extend(line_rows(new, new_spans, options.columns, theme));
            at += 2;
        } else {
            let line = &lines[at];
            let spans = vec![Span::styled(line.text.to_owned(), style_of(line.sign, theme))];
            rows.extend(line_rows(line, spans, options.columns, theme));
            at += 1;
        }
    }
    rows
}

fn style_of(sign: char, theme: &Palette) -> Style {
    theme.fg(match sign {
        '+' => ColorRole::ToolDiffAdded,
        '-' => ColorRole::ToolDiffRemoved,
        _ => ColorRole::ToolDiffContext,
    })
}

fn line_rows(line: &DiffLine<'_>, text: Vec<Span<'static>>, columns: usize, theme: &Palette) -> Vec<Row> {
    let mut spans = vec![Span::styled(format!("{}{}", line.sign, line.head), style_of(line.sign, theme))];
    spans.extend(text);
    chop(&spans, columns)
}

/// Returns the texts of a removed and an added line, with the differing words reversed. Leading blanks of a change are not reversed.
fn words(old: &str, new: &str, until: Instant, theme: &Palette) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
    let left = until.saturating_duration_since(Instant::now());
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(left).diff_words(old, new);
    let mut sides = (Vec::new(), Vec::new());
    for change in diff.iter_all_changes() {
        let text = change.value();
        let push = |side: &mut Vec<Span<'static>>, sign: char, is_changed: bool| {
            let style = style_of(sign, theme);
            let blanks = if is_changed && side.is_empty() { text.len() - text.trim_start().len() } else { 0 };
            if blanks > 0 {
                side.push(Span::styled(text[..blanks].to_owned(), style));
            }
            let marked = if is_changed { style.add_modifier(Modifier::REVERSED) } else { style };
            if blanks < text.len() {
                side.push(Span::styled(text[blanks..].to_owned(), marked));
            }
        };
        match change.tag() {
            ChangeTag::Equal => {
                push(&mut sides.0, '-', false);
                push(&mut sides.1, '+', false);
            }
            ChangeTag::Delete => push(&mut sides.0, '-', true),
            ChangeTag::Insert => push(&mut sides.1, '+', true),
        }
    }
    sides
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::ColorDepth;

    fn marked(diff: &str) -> Vec<String> {
        let theme = Palette::builtin("dark", ColorDepth::None);
        let rows = rows(diff, &DiffOptions { columns: 60, max_lines: None }, &theme);
        let text = |row: &Row| {
            row.spans.iter().fold(String::new(), |text, span| {
                match span.style.add_modifier.contains(Modifier::REVERSED) {
                    true => format!("{text}<{}>", span.content),
                    false => text + &span.content,
                }
            })
        };
        rows.iter().skip(1).map(|row| text(row).replace("><", "")).collect()
    }

    #[test]
    fn changed_words_are_highlighted_if_one_line_replaces_one_line() {
        assert_eq!(
            marked(" 1 same\n-2   let a = 1;\n+2   let b = 1;\n 3 end"),
            [" 1 same", "-2   let <a> = 1;", "+2   let <b> = 1;", " 3 end"]
        );
        assert_eq!(marked("日本 without a sign"), [" 日本 without a sign"]);
        assert_eq!(marked("-1 a\n-2 b\n+1 c\n+2 d"), ["-1 a", "-2 b", "+1 c", "+2 d"]);
    }

    #[test]
    fn rows_fit_and_untrusted_text_is_sanitised() {
        let theme = Palette::builtin("dark", ColorDepth::True);
        let diff = format!("+1 {}\u{1b}[2J\n-20 日本語\n", "long ".repeat(50));
        for columns in 1..40 {
            for row in rows(&diff, &DiffOptions { columns, max_lines: Some(3) }, &theme) {
                assert!(crate::text::row_width(&row) <= columns && !row.to_string().contains('\u{1b}'));
            }
        }
    }
}
