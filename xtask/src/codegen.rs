//! `cargo xtask codegen`: writes the committed generated files.

use std::path::PathBuf;

use anyhow::Context;

use crate::{cargo, launch};

/// References that the program prints about itself: documents, and the arguments that print them.
const REFERENCES: [(&str, [&str; 2]); 2] =
    [("docs/cli.md", ["completions", "markdown"]), ("docs/settings.md", ["completions", "settings"])];

/// Arguments of `cargo xtask codegen`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// JSON file of model records, by provider and ID; without it, only check that the catalog can be read
    #[arg(long)]
    models: Option<PathBuf>,
    /// Write only the order of the program's functions, traced in a release build under valgrind, which takes minutes
    #[arg(long, conflicts_with_all = ["models", "check"])]
    link_order: bool,
    /// Write nothing, and fail if a file is out of date
    #[arg(long)]
    check: bool,
}

/// Runs the command; returns true when everything is up to date.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    if args.link_order {
        return Ok(launch::DEV.run(&["link-order".into()], &[])?.success());
    }
    let mut catalog = vec!["catalog".into()];
    if let Some(models) = &args.models {
        catalog.extend(["--models".into(), models.into()]);
    }
    if args.check {
        catalog.push("--check".into());
    }
    let mut is_good = launch::DEV.run(&catalog, &[])?.success();
    let mut picture = vec!["picture".into()];
    if args.check {
        picture.push("--check".into());
    }
    is_good &= launch::DEV.run(&picture, &[])?.success();
    let mut is_current = true;
    for (document, arguments) in REFERENCES {
        is_current &= reference(document, &arguments, args.check)?;
    }
    Ok(is_current && is_good)
}

/// Writes a reference, or compares it with the committed one.
fn reference(document: &str, arguments: &[&str], check: bool) -> anyhow::Result<bool> {
    let path = cargo::root().join(document);
    let arguments: Vec<_> = arguments.iter().map(Into::into).collect();
    let new = launch::PINCH.output(&arguments)?;
    let is_same = std::fs::read_to_string(&path).is_ok_and(|old| old == new);
    if !is_same && !check {
        std::fs::write(&path, &new).with_context(|| format!("cannot write {document}"))?;
    }
    let state = match (is_same, check) {
        (true, _) => "up to date",
        (false, true) => "stale",
        (false, false) => "written",
    };
    println!("{document}: {state}");
    Ok(is_same || !check)
}
