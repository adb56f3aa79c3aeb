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
        let block = ChangeBlock::at(&lines, at);
        for (line, spans) in block.spans(until, theme).into_iter().take(shown - at) {
            rows.extend(line_rows(line, spans, options.columns, theme));
        }
        at += block.old.len() + block.new.len();
    }
    rows
}

/// Maximum lines of a block whose lines are compared with each other.
const MAX_COMPARED: usize = 50;
/// How similar lines must be to be shown as changes of each other, from 0 to 1.
const SIMILAR: f32 = 0.5;

/// Lines that replace others: removed lines and the added ones after them. Another line is a block of its own.
struct ChangeBlock<'a> {
    old: &'a [DiffLine<'a>],
    new: &'a [DiffLine<'a>],
}

impl<'a> ChangeBlock<'a> {
    fn at(lines: &'a [DiffLine<'a>], at: usize) -> Self {
        let rest = &lines[at..];
        let n_old = rest.iter().take_while(|line| line.sign == '-').count();
        let (old, rest) = rest.split_at(n_old);
        let n_new = rest.iter().take_while(|line| line.sign == '+').count().max(usize::from(old.is_empty()));
        Self { old, new: &rest[..n_new] }
    }

    /// Returns the lines with their texts, in which the words are marked that differ from a similar line of the other side.
    fn spans(&self, until: Instant, theme: &Palette) -> Vec<(&'a DiffLine<'a>, Vec<Span<'static>>)> {
        let plain =
            |line: &'a DiffLine<'a>| (line, vec![Span::styled(line.text.to_owned(), style_of(line.sign, theme))]);
        let (mut old, mut new): (Vec<_>, Vec<_>) =
            (self.old.iter().map(plain).collect(), self.new.iter().map(plain).collect());
        for (from, to) in self.pairs(until) {
            let (from_spans, to_spans) = words(self.old[from].text, self.new[to].text, until, theme);
            (old[from].1, new[to].1) = (from_spans, to_spans);
        }
        old.extend(new);
        old
    }

    /// Returns which removed line became which added one, in order.
    fn pairs(&self, until: Instant) -> Vec<(usize, usize)> {
        if self.old.len() == 1 && self.new.len() == 1 {
            return vec![(0, 0)];
        }
        let mut pairs = Vec::new();
        if self.old.len().max(self.new.len()) > MAX_COMPARED {
            return pairs;
        }
        let mut next = 0;
        for (from, line) in self.old.iter().enumerate() {
            let is_similar = |other: &DiffLine<'_>| {
                let left = until.saturating_duration_since(Instant::now());
                let diff =
                    TextDiff::configure().algorithm(Algorithm::Myers).timeout(left).diff_words(line.text, other.text);
                !left.is_zero() && !line.text.trim().is_empty() && diff.ratio() >= SIMILAR
            };
            if let Some(found) = self.new[next..].iter().position(is_similar) {
                pairs.push((from, next + found));
                next += found + 1;
            }
        }
        pairs
    }
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
        assert_eq!(marked("+1 a\n-2 b"), ["+1 a", "-2 b"]);
    }

    #[test]
    fn changed_words_are_highlighted_in_similar_lines_of_a_block() {
        assert_eq!(
            marked("-1 let a = one;\n-2 let b = two;\n+1 let a = 1;\n+2 // new\n+3 let b = 2;\n 4 end"),
            ["-1 let a = <one;>", "-2 let b = <two;>", "+1 let a = <1;>", "+2 // new", "+3 let b = <2;>", " 4 end"]
        );
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
