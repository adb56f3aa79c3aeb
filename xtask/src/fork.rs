//! `cargo xtask fork`: builds and tests `tests/fork`, a crate outside of the workspace that uses published interfaces only.

use anyhow::Context;

use crate::cargo;

const MANIFEST: &str = "tests/fork/Cargo.toml";

/// What `cargo xtask fork` takes.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs the command; true when the crate is formatted and its tests pass.
pub(crate) fn run(_: &Args) -> anyhow::Result<bool> {
    // The workspace's versions of all dependencies, so that what it has compiled is used again.
    let lock = cargo::root().join("Cargo.lock");
    let copy = cargo::root().join("tests/fork/Cargo.lock");
    std::fs::copy(&lock, &copy).with_context(|| format!("cannot copy {} to {}", lock.display(), copy.display()))?;
    Ok(cargo::run(&["fmt", "--manifest-path", MANIFEST, "--check"], &[])?
        && cargo::run(&["test", "--manifest-path", MANIFEST, "--target-dir", "target"], &[])?)
}
