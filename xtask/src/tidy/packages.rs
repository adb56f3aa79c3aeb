//! Number of packages in the program's dependency tree.

use super::TidyReport;
use crate::cargo;

/// Maximum number of packages of the program.
const MAX_PACKAGES: usize = 300;

/// Counts the packages that the program is built from on this machine.
pub(super) fn check() -> anyhow::Result<TidyReport> {
    let tree = ["tree", "--locked", "-p", "pinch-cli", "-e", "normal,build", "--prefix", "none", "-f", "{p}"];
    let text = cargo::output(&tree)?;
    let mut packages: Vec<&str> = text.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    packages.sort_unstable();
    packages.dedup();
    let mut report = TidyReport { n_checked: packages.len(), ..TidyReport::default() };
    if packages.len() >= MAX_PACKAGES {
        report.errors.push(format!("pinch is built from {} packages; keep it below {MAX_PACKAGES}", packages.len()));
    }
    report.checked = format!("{} packages of pinch", packages.len());
    Ok(report)
}
