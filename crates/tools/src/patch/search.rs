//! Searching lines in a file, literally and loosely. The time depends on the length of the file and of the lines, not on their product.

use std::borrow::Cow;
use std::collections::HashMap;

use pinch_stdx::cancel::Cancel;

/// Why a search ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStop {
    /// It would take too long.
    TooMuch,
    /// The caller cancelled.
    Cancelled,
}

/// Maximum work for a patch: bytes of lines read, and lines compared.
const MAX_WORK: usize = 1_000_000_000;
/// How many lines are compared between two looks at the limit.
const BLOCK: usize = 1024;

/// Limits the work for a whole patch.
#[derive(Clone, Debug)]
pub(super) struct WorkLimit {
    left: usize,
    cancel: Cancel,
}

impl WorkLimit {
    pub(super) fn new(cancel: Cancel) -> Self {
        Self { left: MAX_WORK, cancel }
    }

    pub(super) fn spend(&mut self, n: usize) -> Result<(), SearchStop> {
        if self.cancel.is_cancelled() {
            return Err(SearchStop::Cancelled);
        }
        self.left = self.left.checked_sub(n).ok_or(SearchStop::TooMuch)?;
        Ok(())
    }
}

/// What two lines must have in common to be taken for the same, strictest first.
const FORMS: [fn(&str) -> Cow<'_, str>; 4] = [as_is, without_end, trimmed, folded];

fn as_is(line: &str) -> Cow<'_, str> {
    line.into()
}

fn without_end(line: &str) -> Cow<'_, str> {
    line.trim_end().into()
}

fn trimmed(line: &str) -> Cow<'_, str> {
    line.trim().into()
}

/// Maps typographic punctuation to its keyboard equivalent.
fn folded(line: &str) -> Cow<'_, str> {
    let fold = |c: char| match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    };
    match line.trim() {
        ascii if ascii.is_ascii() => ascii.into(),
        other => other.chars().map(fold).collect::<String>().into(),
    }
}

/// The lines of a file in one form, as numbers: equal lines have the same.
struct NumberedLines<'a> {
    numbers: HashMap<Cow<'a, str>, usize>,
    lines: Vec<usize>,
}

/// Searches the lines of one file. Each form is computed at most once.
pub(super) struct LineSearch<'a> {
    lines: Vec<&'a str>,
    n_bytes: usize,
    forms: [Option<NumberedLines<'a>>; FORMS.len()],
}

impl<'a> LineSearch<'a> {
    pub(super) fn new(lines: Vec<&'a str>) -> Self {
        let n_bytes = lines.iter().map(|line| line.len() + 1).sum();
        Self { lines, n_bytes, forms: [const { None }; FORMS.len()] }
    }

    /// Finds lines at or after a position, first literally, then with increasingly loose comparisons; with `is_at_end`, only at the end of
    /// the file.
    pub(super) fn find(
        &mut self,
        wanted: &[&str],
        from: usize,
        is_at_end: bool,
        limit: &mut WorkLimit,
    ) -> Result<Option<usize>, SearchStop> {
        let Some(last) = self.lines.len().checked_sub(wanted.len()) else { return Ok(None) };
        let from = if is_at_end { last } else { from };
        let n_wanted = wanted.iter().map(|line| line.len() + 1).sum();
        for (known, form) in self.forms.iter_mut().zip(FORMS) {
            let known = match known {
                Some(known) => known,
                unknown => {
                    limit.spend(self.n_bytes)?;
                    unknown.insert(NumberedLines::new(&self.lines, form))
                }
            };
            limit.spend(n_wanted)?;
            let wanted: Option<Vec<usize>> =
                wanted.iter().map(|line| known.numbers.get(&form(line)).copied()).collect();
            // A line that is nowhere in the file saves the search.
            let Some(wanted) = wanted else { continue };
            let there = known.lines.get(from..).unwrap_or_default();
            if let Some(at) = position(there, &wanted, limit)? {
                return Ok(Some(from + at));
            }
        }
        Ok(None)
    }
}

impl<'a> NumberedLines<'a> {
    fn new(lines: &[&'a str], form: fn(&str) -> Cow<'_, str>) -> Self {
        let mut numbers = HashMap::new();
        let mut number_of = |line: &&'a str| {
            let next = numbers.len();
            *numbers.entry(form(line)).or_insert(next)
        };
        let lines = lines.iter().map(&mut number_of).collect();
        Self { numbers, lines }
    }
}

/// Returns the first position of numbers in others (Knuth, Morris and Pratt).
fn position(there: &[usize], wanted: &[usize], limit: &mut WorkLimit) -> Result<Option<usize>, SearchStop> {
    // For each start of `wanted`, the length of its longest end that is a start too.
    let mut borders = vec![0; wanted.len()];
    let mut n_same = 0;
    for at in 1..wanted.len() {
        while n_same > 0 && wanted[at] != wanted[n_same] {
            n_same = borders[n_same - 1];
        }
        n_same += usize::from(wanted[at] == wanted[n_same]);
        borders[at] = n_same;
    }
    let mut n_same = 0;
    for (at, line) in there.iter().enumerate() {
        if at % BLOCK == 0 {
            limit.spend(BLOCK)?;
        }
        while n_same > 0 && *line != wanted[n_same] {
            n_same = borders[n_same - 1];
        }
        n_same += usize::from(*line == wanted[n_same]);
        if n_same == wanted.len() {
            return Ok(Some(at + 1 - n_same));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use pinch_stdx::cancel::CancelReason;

    use super::*;

    fn find(lines: &[&str], wanted: &[&str], from: usize, is_at_end: bool) -> Option<usize> {
        let mut limit = WorkLimit::new(Cancel::new());
        LineSearch::new(lines.to_vec()).find(wanted, from, is_at_end, &mut limit).unwrap()
    }

    #[test]
    fn repeated_lines_are_found_where_they_first_match() {
        let lines = ["a", "a", "b", "a", "a", "a", "b", "a", "b"];
        assert_eq!(find(&lines, &["a", "a", "a", "b"], 0, false), Some(3));
        assert_eq!(find(&lines, &["a", "b"], 2, false), Some(5));
        assert_eq!(find(&lines, &["a", "b"], 0, true), Some(7));
        assert_eq!(find(&lines, &["a", "a"], 0, true), None);
        assert_eq!(find(&lines, &["b"], 9, false), None);
        assert_eq!(find(&lines, &["c"], 0, false), None);
        assert_eq!(find(&[], &["a"], 0, false), None);
        assert_eq!(find(&[" a", "a ", "“a”"], &["a"], 0, false), Some(1));
        assert_eq!(find(&[" a", "“a”"], &["\"a\""], 0, false), Some(1));
    }

    #[test]
    fn one_limit_covers_all_searches_and_cancelling_ends_them() {
        let cancel = Cancel::new();
        let lines = vec!["x"; 10_000];
        let mut limit = WorkLimit { left: 100_000, cancel: cancel.clone() };
        let go = |limit: &mut WorkLimit| LineSearch::new(lines.clone()).find(&["x", "y"], 0, false, limit);
        assert_eq!(go(&mut limit), Ok(None));
        assert_eq!(go(&mut limit), Err(SearchStop::TooMuch));
        cancel.cancel(CancelReason::User);
        assert_eq!(go(&mut WorkLimit::new(cancel)), Err(SearchStop::Cancelled));
    }
}
