//! Paths of the workspace and of cargo's output, and calls to cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The directory of this program, which also contains `pinch` of the same profile.
pub(crate) fn profile_dir() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the running program")?;
    Ok(own.parent().context("the running program has no directory")?.to_owned())
}

/// Cargo's target directory.
pub(crate) fn target_dir() -> anyhow::Result<PathBuf> {
    Ok(profile_dir()?.parent().context("this program is not in a target directory")?.to_owned())
}

/// Runs cargo in the root with these arguments, printing them first; returns true on success.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<bool> {
    println!("\n==> cargo {}", args.join(" "));
    Ok(command().args(args).status().context("cannot start cargo")?.success())
}

/// A cargo command that runs in the root.
pub(crate) fn command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}
