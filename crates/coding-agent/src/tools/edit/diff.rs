//! Rendering a change: with line numbers for people, and as a patch for programs.

use std::borrow::Cow;
use std::time::Duration;

use pinch_stdx::text::to_line_feeds;
use similar::{DiffOp, TextDiff};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 4;
/// How long to search for a minimal difference; after that, a larger one is used.
const PATIENCE: Duration = Duration::from_secs(2);

/// A change of one file in both formats.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenderedDiff {
    /// Lines with sign and number; gaps are shown as dots.
    pub diff: String,
    /// A unified diff.
    pub patch: String,
    /// Number of the first changed line in the new file, starting at 1.
    pub first_changed_line: usize,
}

/// Compares two versions of a file; all line breaks count as line feeds.
pub fn show(old: &str, new: &str, path: &str) -> RenderedDiff {
    let (old, new) = (comparable(old), comparable(new));
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&*old, &*new);
    let last_place = old.split('\n').count().max(new.split('\n').count());
    let view = DiffView { old: lines(&old), new: lines(&new), ops: diff.ops(), last_place };
    let first_changed_line = view.ops.iter().find(|op| !is_equal(op)).map_or(1, |op| op.new_range().start + 1);
    RenderedDiff { diff: view.numbered(), patch: view.patch(&diff, path, &old, &new), first_changed_line }
}

fn comparable(text: &str) -> Cow<'_, str> {
    to_line_feeds(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

fn is_equal(op: &DiffOp) -> bool {
    matches!(op, DiffOp::Equal { .. })
}

struct DiffView<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    ops: &'a [DiffOp],
    /// Number of the last line in the longer version, counting the empty one after a final line feed, as in an editor.
    last_place: usize,
}

impl DiffView<'_> {
    fn numbered(&self) -> String {
        let width = self.last_place.to_string().len();
        let mut out: Vec<String> = Vec::new();
        let line = |sign: char, number: usize, text: &str| format!("{sign}{:>width$} {text}", number + 1);
        let dots = || format!(" {:width$} ...", "");
        for (at, op) in self.ops.iter().enumerate() {
            let (first, last) = (at == 0, at + 1 == self.ops.len());
            match op {
                DiffOp::Equal { .. } => {
                    let range = op.old_range();
                    let before = if first { 0 } else { CONTEXT };
                    let after = if last { 0 } else { CONTEXT };
                    let show = |out: &mut Vec<String>, range: std::ops::Range<usize>| {
                        out.extend(range.map(|n| line(' ', n, self.old[n])));
                    };
                    if range.len() <= before + after {
                        show(&mut out, range);
                    } else {
                        show(&mut out, range.start..range.start + before);
                        out.push(dots());
                        show(&mut out, range.end - after..range.end);
                    }
                }
                _ => {
                    out.extend(op.old_range().map(|n| line('-', n, self.old[n])));
                    out.extend(op.new_range().map(|n| line('+', n, self.new[n])));
                }
            }
        }
        out.join("\n")
    }

    fn patch(&self, diff: &TextDiff<'_, '_, '_, str>, path: &str, old: &str, new: &str) -> String {
        let mut out = format!("--- {path}\n+++ {path}\n");
        for group in diff.grouped_ops(CONTEXT) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let span = |start: usize, end: usize| {
                // An empty hunk is numbered by the line before it.
                format!("{},{}", if start == end { start } else { start + 1 }, end - start)
            };
            out.push_str(&format!(
                "@@ -{} +{} @@\n",
                span(first.old_range().start, last.old_range().end),
                span(first.new_range().start, last.new_range().end)
            ));
            for op in &group {
                if is_equal(op) {
                    op.old_range().for_each(|n| patch_line(&mut out, ' ', &self.old, n, old));
                } else {
                    op.old_range().for_each(|n| patch_line(&mut out, '-', &self.old, n, old));
                    op.new_range().for_each(|n| patch_line(&mut out, '+', &self.new, n, new));
                }
            }
        }
        out
    }
}

fn patch_line(out: &mut String, sign: char, lines: &[&str], n: usize, whole: &str) {
    out.push(sign);
    out.push_str(lines[n]);
    out.push('\n');
    if n + 1 == lines.len() && !whole.ends_with('\n') {
        out.push_str("\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_folded() {
        let old: String = (1..=40).map(|n| format!("L{n}\n")).collect();
        let new = old.replace("L5\n", "five\n").replace("L30\n", "thirty\nthirty-b\n");
        let shown = show(&old, &new, "a.txt");
        insta::assert_snapshot!(shown.diff, @r"
          1 L1
          2 L2
          3 L3
          4 L4
        - 5 L5
        + 5 five
          6 L6
          7 L7
          8 L8
          9 L9
            ...
         26 L26
         27 L27
         28 L28
         29 L29
        -30 L30
        +30 thirty
        +31 thirty-b
         31 L31
         32 L32
         33 L33
         34 L34
            ...
        ");
        assert_eq!(shown.first_changed_line, 5);
        assert!(shown.patch.contains("\n@@ -26,9 +26,10 @@\n L26\n"), "{}", shown.patch);
    }

    /// The empty line after the final line feed counts, as in an editor.
    #[test]
    fn numbers_are_as_wide_as_the_last_line_number() {
        let old: String = (1..=9).map(|n| format!("L{n}\n")).collect();
        let shown = show(&old, &old.replace("L9", "nine"), "a.txt");
        assert!(shown.diff.ends_with("\n- 9 L9\n+ 9 nine"), "{}", shown.diff);
        let shown = show(old.trim_end(), &old.trim_end().replace("L9", "nine"), "a.txt");
        assert!(shown.diff.ends_with("\n-9 L9\n+9 nine"), "{}", shown.diff);
    }

    #[test]
    fn a_missing_final_line_feed_is_reported() {
        let shown = show("a\nb", "a\nc", "f");
        assert_eq!(
            shown.patch,
            "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
        );
    }
}
