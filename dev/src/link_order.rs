//! The order of the program's functions: `crates/cli/link-order.ld`, which `cargo xtask codegen --link-order` writes.
//!
//! The linker puts the functions that usual runs call next to each other, so that a run keeps little of the program in memory. Which ones
//! those are is traced with valgrind in a release build. The file names functions without their hashes, so it stays valid for other versions
//! of the compiler and of dependencies; a function that is renamed merely loses its place until the file is written again.

mod map;
mod script;
mod trace;

use anyhow::{Context, bail};

use crate::cargo;

const LINK_ORDER: &str = "crates/cli/link-order.ld";

/// Builds the program with its symbols, traces usual runs, and writes the linker script; returns true on success.
pub(crate) fn run() -> anyhow::Result<bool> {
    let scratch = tempfile::tempdir().context("cannot create a temporary directory")?;
    let map = scratch.path().join("map");
    let target = cargo::target_dir()?;
    let mut build = cargo::command();
    build.args(["rustc", "--release", "--package", "pinch-cli", "--bin", "pinch"]).arg("--target-dir").arg(&target);
    build.arg("--").args(["-C", "strip=none", "-C"]).arg(format!("link-arg=-Wl,-Map={}", map.display()));
    // Without the present order, the map shows the functions in the order of the crates.
    if !build.env("PINCH_LINK_ORDER", "0").status().context("cannot start cargo")?.success() {
        bail!("the release build failed");
    }
    let map = std::fs::read_to_string(&map).context("the linker has written no map; is it lld?")?;
    let sections = map::code_sections(&map);
    let runs = trace::called(&target.join("release/pinch"), scratch.path())?;
    let order = script::LinkOrder::new(&sections, runs);
    std::fs::write(cargo::root().join(LINK_ORDER), order.to_string())
        .with_context(|| format!("cannot write {LINK_ORDER}"))?;
    for tier in order.tiers() {
        let (called, placed) = (tier.called / 1000, tier.placed / 1000);
        println!(
            "pinch {}: {} more names; {called} KB of code is called, {placed} KB is placed",
            tier.run,
            tier.n_names()
        );
    }
    println!("{LINK_ORDER}: written");
    Ok(true)
}
