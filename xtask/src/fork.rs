//! `cargo xtask fork`: builds and tests the crates outside the workspace, which use only published interfaces: `tests/fork` and the programs in
//! `examples`.

use anyhow::Context;

use crate::cargo;

/// Directories of the crates.
const CRATES: [&str; 2] = ["tests/fork", "examples/review"];

/// Arguments of `cargo xtask fork`: none.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs the command; returns true when the crates are formatted and their tests pass.
pub(crate) fn run(_: &Args) -> anyhow::Result<bool> {
    for dir in CRATES {
        if !check(dir)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn check(dir: &str) -> anyhow::Result<bool> {
    // Use the workspace's version of every dependency, so that nothing else is downloaded or tested.
    let lock = cargo::root().join("Cargo.lock");
    let copy = cargo::root().join(dir).join("Cargo.lock");
    std::fs::copy(&lock, &copy).with_context(|| format!("cannot copy {} to {}", lock.display(), copy.display()))?;
    let manifest = format!("{dir}/Cargo.toml");
    Ok(cargo::run(&["fmt", "--manifest-path", &manifest, "--check"], &[])?
        && cargo::run(&["test", "--manifest-path", &manifest, "--target-dir", "target"], &[])?)
}
