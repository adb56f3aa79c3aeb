//! `cargo xtask tidy`: what no compiler checks. It says how much it looked at, so that it cannot be content with nothing.

mod sources;

mod docs;
mod layers;
mod modules;
mod names;
mod security;
mod signatures;
mod sizes;
mod tools;
mod unused;

use sources::SourceFile;

/// What `cargo xtask tidy` takes: nothing.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// What one check found.
#[derive(Default)]
struct TidyReport {
    /// What was looked at, for people.
    checked: String,
    /// How many things were looked at.
    n_checked: usize,
    /// What must be changed.
    errors: Vec<String>,
    /// What should be thought about.
    warnings: Vec<String>,
}

/// Runs the command; true when nothing must be changed.
pub(crate) fn run(_: &Args) -> anyhow::Result<bool> {
    let sources = sources::read(crate::cargo::root())?;
    let checks: [(&str, TidyReport); 9] = [
        ("layers", layers::check(&crate::cargo::metadata()?)),
        ("modules", modules::check(&sources)),
        ("names", names::check(&sources)),
        ("signatures", signatures::check(&sources)),
        ("sizes", sizes::check(&sources)),
        ("docs", docs::check(&sources)),
        ("security", security::check(&sources)),
        ("unused", unused::check(&sources)),
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
