//! `cargo xtask ci`: everything that has to hold before a change is merged, in the order in which it fails fastest.

use std::time::Instant;

use crate::launch::browser;
use crate::{cargo, tidy};

/// What `cargo xtask ci` takes: nothing.
#[derive(clap::Args)]
pub(crate) struct Args {}

const CLIPPY: &[&str] =
    &["clippy", "--locked", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];

/// Runs the command; true when everything holds. The tests come last, so that the end of the output is theirs.
pub(crate) fn run(_: &Args) -> anyhow::Result<bool> {
    step("formatting", || cargo::run(&["fmt", "--all", "--check"], &[]))
        .and_then(|ok| Ok(ok && step("tidy", || tidy::run(&tidy::Args {}))?))
        .and_then(|ok| Ok(ok && step("lints", || cargo::run(CLIPPY, &[]))?))
        .and_then(|ok| {
            let docs =
                || cargo::run(&["doc", "--locked", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")]);
            Ok(ok && step("documentation", docs)?)
        })
        .and_then(|ok| {
            if browser::find().is_none() {
                println!("==> browser: left out, there is none on this machine");
                return Ok(ok);
            }
            Ok(ok && step("browser", || Ok(browser::run(&["browser".into()])?.success()))?)
        })
        .and_then(|ok| Ok(ok && crate::test::run(&crate::test::Args { full: false, rest: Vec::new() })?))
}

fn step(name: &str, work: impl FnOnce() -> anyhow::Result<bool>) -> anyhow::Result<bool> {
    let start = Instant::now();
    let ok = work()?;
    println!("==> {name}: {} after {:.0} s", if ok { "good" } else { "FAILED" }, start.elapsed().as_secs_f64());
    Ok(ok)
}
