//! `cargo xtask codegen`: makes the files that are generated and committed.

use std::path::PathBuf;

use anyhow::Context;

use crate::{cargo, launch};

/// The reference of the command line, which the program writes about itself.
const REFERENCE: &str = "docs/cli.md";

/// What `cargo xtask codegen` takes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A JSON file of model records, by provider and id. Without it the catalog is only checked for being readable.
    #[arg(long)]
    models: Option<PathBuf>,
    /// Writes nothing; fails when a file is not what it would be made.
    #[arg(long)]
    check: bool,
}

/// Runs the command; true when everything is up to date.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    let mut catalog = vec!["catalog".into()];
    if let Some(models) = &args.models {
        catalog.extend(["--models".into(), models.into()]);
    }
    if args.check {
        catalog.push("--check".into());
    }
    let is_good = launch::DEV.run(&catalog, &[])?.success();
    Ok(reference(args.check)? && is_good)
}

/// Writes the reference of the command line, or compares it.
fn reference(check: bool) -> anyhow::Result<bool> {
    let path = cargo::root().join(REFERENCE);
    let new = launch::PINCH.output(&["completions".into(), "markdown".into()])?;
    let is_same = std::fs::read_to_string(&path).is_ok_and(|old| old == new);
    if !is_same && !check {
        std::fs::write(&path, &new).with_context(|| format!("cannot write {REFERENCE}"))?;
    }
    let state = match (is_same, check) {
        (true, _) => "up to date",
        (false, true) => "stale",
        (false, false) => "written",
    };
    println!("{REFERENCE}: {state}");
    Ok(is_same || !check)
}
