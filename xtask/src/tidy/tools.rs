//! What the tools of embedded runs add to every request: their descriptions and schemas.

use super::TidyReport;
use crate::cargo;

/// The table, which a test compares with the tools of a real request.
const TABLE: &str = "tests/tool-sizes.txt";

/// Maximum length of all descriptions and schemas, in characters.
const BUDGET: usize = 10_000;

/// Adds up the table.
pub(super) fn check() -> anyhow::Result<TidyReport> {
    let text = std::fs::read_to_string(cargo::root().join(TABLE))?;
    let (mut report, mut total) = (TidyReport::default(), 0);
    for line in text.lines() {
        let numbers: Option<Vec<usize>> = line.split(' ').skip(1).map(|word| word.parse().ok()).collect();
        match numbers.as_deref() {
            Some([about, schema]) => total += about + schema,
            _ => report.errors.push(format!("{TABLE}: {line:?} is not a name and two numbers")),
        }
        report.n_checked += 1;
    }
    if total > BUDGET {
        report.errors.push(format!("the tools take {total} characters of every request; keep them below {BUDGET}"));
    }
    report.checked = format!("{} tools with {total} of {BUDGET} characters", report.n_checked);
    Ok(report)
}
