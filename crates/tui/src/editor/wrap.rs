//! Wraps lines into rows, and caches the result per line so that only changes are rewrapped.

use std::ops::Range;

use super::marker::{MAX_LABEL, Markers};
use super::step::{Step, next, steps};

/// The rows of one line.
///
/// Rows are contiguous: blanks at a break belong to the row before it, where one of them may extend a column beyond the width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WrappedLine {
    /// Starts of the rows, except for the first one, which begins at 0.
    starts: Vec<usize>,
}

impl WrappedLine {
    /// Wraps a line into rows.
    pub(super) fn new(line: &str, width: usize, markers: &Markers) -> Self {
        let mut starts = Vec::new();
        // A byte takes at most one column.
        if line.len() > width {
            break_rows(line, 0, width, markers, |start| {
                starts.push(start);
                true
            });
        }
        Self { starts }
    }

    /// Rewraps a line where it changed: `removed` bytes at `at` became `inserted` ones. The cost is proportional to the rows that change.
    pub(super) fn change(
        &mut self,
        line: &str,
        width: usize,
        markers: &Markers,
        at: usize,
        removed: usize,
        inserted: usize,
    ) {
        // What ends a row can be as far after it as the next row but one, and a change can create a marker or a grapheme that begins before
        // it.
        let first = at.saturating_sub(MAX_LABEL);
        let kept = self.starts.partition_point(|start| *start <= first).saturating_sub(3);
        let old = self.starts.split_off(kept);
        let from = self.starts.last().copied().unwrap_or(0);
        let mut old =
            old.into_iter().filter(|start| *start >= at + removed).map(|start| start - removed + inserted).peekable();
        let starts = &mut self.starts;
        break_rows(line, from, width, markers, |start| {
            starts.push(start);
            if start < at + inserted {
                return true;
            }
            while old.next_if(|old| *old < start).is_some() {}
            // From here on the rows are the same as before.
            let is_same = old.next_if_eq(&start).is_some();
            if is_same {
                starts.extend(old.by_ref());
            }
            !is_same
        });
    }

    /// Returns the number of rows, which is at least one.
    pub(super) fn n_rows(&self) -> usize {
        self.starts.len() + 1
    }

    /// Returns the byte range of a row.
    pub(super) fn row(&self, row: usize, line: &str) -> Range<usize> {
        let start = row.checked_sub(1).map_or(0, |before| self.starts[before]);
        start..self.starts.get(row).copied().unwrap_or(line.len())
    }

    /// Returns the row of a byte. A byte between two rows is the start of the second one.
    pub(super) fn row_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// Returns the last cursor position in a row: before its last character, since the position after that is in the next row.
    pub(super) fn last_position(&self, row: usize, line: &str, markers: &Markers) -> usize {
        let range = self.row(row, line);
        if row == self.starts.len() {
            return range.end;
        }
        super::step::previous(line, range.end, markers).map_or(range.start, |step| step.at.max(range.start))
    }
}

/// Calls `begin` with the start of each row after the one that begins at `from`, until it returns false.
fn break_rows(line: &str, from: usize, width: usize, markers: &Markers, mut begin: impl FnMut(usize) -> bool) {
    let mut used = 0;
    // Start of the current word, and the number of columns before it.
    let mut word: Option<(usize, usize)> = None;
    let mut at = from;
    while let Some(step) = next(line, at, markers) {
        at = step.end();
        let columns = step.columns(width);
        let is_space = step.text == " ";
        if used + columns > width + usize::from(is_space) {
            if let Some((start, before)) = word.take() {
                if !begin(start) {
                    return;
                }
                used -= before;
            }
            if used > 0 && used + columns > width + usize::from(is_space) {
                if !begin(step.at) {
                    return;
                }
                used = 0;
            }
        }
        used += columns;
        if is_space {
            word = Some((at, used));
        }
    }
}

/// Returns the column of a byte in the row that begins at `start`.
pub(super) fn column_of(line: &str, start: usize, at: usize, width: usize, markers: &Markers) -> usize {
    steps(line, start..at, markers).map(|step| step.columns(width)).sum()
}

/// Returns the position in a part of a line that is closest to a column without exceeding it, and its column. The second half of a wide
/// character belongs to that character.
pub(super) fn position_at(
    line: &str,
    range: Range<usize>,
    column: usize,
    width: usize,
    markers: &Markers,
) -> (usize, usize) {
    let mut used = 0;
    let mut last: Option<Step<'_>> = None;
    for step in steps(line, range.clone(), markers) {
        let columns = step.columns(width);
        if used + columns > column {
            return (step.at, used);
        }
        used += columns;
        last = Some(step);
    }
    (last.map_or(range.start, |step| step.end()), used)
}

/// The rows of all lines, wrapped on demand.
#[derive(Clone, Debug)]
pub(super) struct WrapCache {
    width: usize,
    lines: Vec<Option<WrappedLine>>,
}

impl Default for WrapCache {
    fn default() -> Self {
        // Default width of terminals.
        Self { width: 80, lines: Vec::new() }
    }
}

impl WrapCache {
    /// Sets the width of rows, at least one column.
    pub(super) fn set_width(&mut self, width: usize) {
        if width.max(1) != self.width {
            self.width = width.max(1);
            self.clear();
        }
    }

    /// Returns the width of rows.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }

    /// Returns the rows of a line.
    pub(super) fn line(&mut self, at: usize, line: &str, markers: &Markers) -> &WrappedLine {
        let width = self.width();
        if self.lines.len() <= at {
            self.lines.resize(at + 1, None);
        }
        self.lines[at].get_or_insert_with(|| WrappedLine::new(line, width, markers))
    }

    /// Records a change within a line.
    pub(super) fn change(
        &mut self,
        at: usize,
        line: &str,
        markers: &Markers,
        byte: usize,
        removed: usize,
        inserted: usize,
    ) {
        let width = self.width();
        if let Some(Some(rows)) = self.lines.get_mut(at) {
            rows.change(line, width, markers, byte, removed, inserted);
        }
    }

    /// Records the replacement of lines.
    pub(super) fn replace(&mut self, lines: Range<usize>, n_new: usize) {
        let n = self.lines.len();
        if lines.start < n {
            self.lines.splice(lines.start..lines.end.min(n), std::iter::repeat_n(None, n_new));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows<'a>(wrapped: &WrappedLine, line: &'a str) -> Vec<&'a str> {
        (0..wrapped.n_rows()).map(|row| &line[wrapped.row(row, line)]).collect()
    }

    #[test]
    fn rows_break_after_blanks_and_inside_long_words() {
        let mut markers = Markers::default();
        let label = markers.add_paste("x", 1);
        for (line, width, expected) in [
            ("", 5, &[""][..]),
            ("one two three", 7, &["one two ", "three"]),
            ("one two", 3, &["one ", "two"]),
            ("one  two", 3, &["one ", " ", "two"]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("a abcdefgh", 4, &["a ", "abcd", "efgh"]),
            ("日本語", 4, &["日本", "語"]),
            ("日本", 1, &["日", "本"]),
            ("abc", 3, &["abc"]),
            ("abc ", 3, &["abc "]),
            ("abc  ", 3, &["abc ", " "]),
            (&format!("see {label} there"), 12, &["see ", &format!("{label} "), "there"]),
        ] {
            assert_eq!(rows(&WrappedLine::new(line, width, &markers), line), expected, "{line:?} at {width}");
        }
    }

    #[test]
    fn a_change_keeps_the_cached_rows_of_other_lines() {
        let (mut cache, markers) = (WrapCache::default(), Markers::default());
        cache.set_width(3);
        for at in 0..4 {
            cache.line(at, "abcdef", &markers);
        }
        cache.change(1, "abxcdef", &markers, 2, 0, 1);
        cache.replace(2..3, 2);
        let known: Vec<Option<usize>> = cache.lines.iter().map(|line| Some(line.as_ref()?.n_rows())).collect();
        assert_eq!(known, [Some(2), Some(3), None, None, Some(2)]);
        cache.set_width(3);
        assert_eq!(cache.lines.len(), 5, "the same width changes nothing");
    }

    proptest! {
        #[test]
        fn no_row_exceeds_the_width_by_more_than_one_blank(line in "[a-c日é👍 ]{0,60}", width in 1usize..12) {
            let markers = Markers::default();
            let wrapped = WrappedLine::new(&line, width, &markers);
            prop_assert_eq!(rows(&wrapped, &line).concat(), line.clone());
            for row in 0..wrapped.n_rows() {
                let range = wrapped.row(row, &line);
                let used: usize = steps(&line, range.clone(), &markers).map(|step| step.columns(width)).sum();
                prop_assert!(used <= width + usize::from(line[range.clone()].ends_with(' ')));
                prop_assert!(!range.is_empty() || line.is_empty());
            }
        }

        #[test]
        fn incremental_wrapping_equals_wrapping_the_whole_line(
            line in "[a-c日é\u{301}👍🇩 ]{0,90}", new in "[a日\u{301}🇩 ]{0,9}", width in 1usize..9, a in 0usize..90, len in 0usize..9,
        ) {
            let markers = Markers::default();
            let mut wrapped = WrappedLine::new(&line, width, &markers);
            let bound = |n: usize| line.char_indices().map(|(at, _)| at).nth(n).unwrap_or(line.len());
            let (start, end) = (bound(a), bound(a + len));
            let mut changed = line.clone();
            changed.replace_range(start..end, &new);
            wrapped.change(&changed, width, &markers, start, end - start, new.len());
            prop_assert_eq!(wrapped, WrappedLine::new(&changed, width, &markers));
        }
    }
}
