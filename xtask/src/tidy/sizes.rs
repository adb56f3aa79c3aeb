//! File lengths, not counting tests.

use super::{SourceFile, TidyReport};

/// Number of lines from which a file's length is questioned.
const ASK: usize = 500;
/// Number of lines from which a file must be split.
const SPLIT: usize = 800;

/// Checks every Rust file.
pub(super) fn check(sources: &[SourceFile]) -> TidyReport {
    let mut report = TidyReport::default();
    let mut lengths = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let n_lines =
            if source.is_test() { source.text.lines().count() } else { source.without_tests().lines().count() };
        report.n_checked += 1;
        match n_lines {
            n if n > SPLIT => report.errors.push(format!("{}: {n} lines; split it at {SPLIT}", source.path)),
            n if n > ASK => report.warnings.push(format!("{}: {n} lines; why more than {ASK}?", source.path)),
            _ => {}
        }
        lengths.push(n_lines);
    }
    lengths.sort_unstable();
    let (median, longest) = (lengths.get(lengths.len() / 2), lengths.last());
    report.checked = format!(
        "{} files (median {} lines, longest {})",
        report.n_checked,
        median.copied().unwrap_or(0),
        longest.copied().unwrap_or(0)
    );
    report
}
