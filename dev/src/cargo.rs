//! Where the workspace is, what cargo has built in it, and calls of cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The directory of this program, where `pinch` of the same profile is, too.
pub(crate) fn profile_dir() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the running program")?;
    Ok(own.parent().context("the running program has no directory")?.to_owned())
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> anyhow::Result<PathBuf> {
    Ok(profile_dir()?.parent().context("this program is not in a target directory")?.to_owned())
}

/// Runs cargo in the root with these arguments, which are shown; true when it succeeds.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<bool> {
    println!("\n==> cargo {}", args.join(" "));
    Ok(command().args(args).status().context("cannot start cargo")?.success())
}

/// A call of cargo in the root.
pub(crate) fn command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}
