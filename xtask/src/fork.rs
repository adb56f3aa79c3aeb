//! `cargo xtask fork`: builds and tests `tests/fork`, a crate outside the workspace that uses only published interfaces.

use anyhow::Context;

use crate::cargo;

const MANIFEST: &str = "tests/fork/Cargo.toml";

/// Arguments of `cargo xtask fork`: none.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs the command; returns true when the crate is formatted and its tests pass.
pub(crate) fn run(_: &Args) -> anyhow::Result<bool> {
    // Use the workspace's version of every dependency, so that nothing else is downloaded or tested.
    let lock = cargo::root().join("Cargo.lock");
    let copy = cargo::root().join("tests/fork/Cargo.lock");
    std::fs::copy(&lock, &copy).with_context(|| format!("cannot copy {} to {}", lock.display(), copy.display()))?;
    Ok(cargo::run(&["fmt", "--manifest-path", MANIFEST, "--check"], &[])?
        && cargo::run(&["test", "--manifest-path", MANIFEST, "--target-dir", "target"], &[])?)
}
