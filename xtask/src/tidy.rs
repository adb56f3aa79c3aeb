//! `cargo xtask tidy`: checks that no compiler makes. Reports how many items it checked, so that checking nothing cannot pass unnoticed.

mod sources;

mod docs;
mod layers;
mod modules;
mod names;
mod packages;
mod security;
mod signatures;
mod sizes;
mod tools;
mod unused;

use sources::SourceFile;

/// Arguments of `cargo xtask tidy`: none.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Result of one check.
#[derive(Default)]
struct TidyReport {
    /// What was checked, for display.
    checked: String,
    /// Number of items checked.
    n_checked: usize,
    /// Problems that must be fixed.
    errors: Vec<String>,
    /// Problems that should be considered.
    warnings: Vec<String>,
}

/// Runs the command; returns true when there are no errors.
pub(crate) fn run(_: &Args) -> anyhow::Result<bool> {
    let sources = sources::read(crate::cargo::root())?;
    let checks: [(&str, TidyReport); 10] = [
        ("layers", layers::check(&crate::cargo::metadata()?)),
        ("modules", modules::check(&sources)),
        ("names", names::check(&sources)),
        ("signatures", signatures::check(&sources)),
        ("sizes", sizes::check(&sources)),
        ("docs", docs::check(&sources)),
        ("security", security::check(&sources)),
        ("unused", unused::check(&sources)),
        ("packages", packages::check()?),
        ("tools", tools::check()?),
    ];
    let mut ok = true;
    for (name, report) in &checks {
        for warning in &report.warnings {
            println!("warning [{name}] {warning}");
        }
        for error in &report.errors {
            println!("error [{name}] {error}");
        }
        let nothing = report.n_checked == 0;
        println!("{name}: {} checked, {} errors", report.checked, report.errors.len());
        if nothing {
            println!("error [{name}] there was nothing to check");
        }
        ok &= report.errors.is_empty() && !nothing;
    }
    Ok(ok)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        assert!(super::run(&super::Args {}).unwrap(), "see the errors above, or run `cargo xtask tidy`");
    }
}
