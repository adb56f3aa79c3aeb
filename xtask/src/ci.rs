//! `cargo xtask ci`: everything that must pass before a change is merged, ordered so that failures show up early.

mod background;

use std::time::Instant;

use background::BackgroundCheck;

use crate::launch::browser;
use crate::tools::{CargoTool, DENY, SHEAR};
use crate::{cargo, fork, test, tidy};

/// Arguments of `cargo xtask ci`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Install cargo-deny and cargo-shear below target/tools first, if missing. Compiling them takes minutes.
    #[arg(long)]
    install_tools: bool,
}

const CLIPPY: &[&str] =
    &["clippy", "--locked", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
/// The library of the fuzz targets is outside of the workspace. It shares the workspace's build output.
const FUZZ_CLIPPY: &[&str] =
    &["clippy", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target", "--", "-D", "warnings"];
/// With the same features as the lints, so that dependencies are not checked once more.
const DOC: &[&str] = &["doc", "--locked", "--workspace", "--all-features", "--no-deps"];

/// A step: its name and its function.
type CiStep = (&'static str, fn() -> anyhow::Result<StepOutcome>);

/// Outcome of a step.
enum StepOutcome {
    Good,
    Failed,
    /// Nothing was checked; contains the reason.
    LeftOut(&'static str),
}

impl From<bool> for StepOutcome {
    fn from(is_good: bool) -> Self {
        if is_good { Self::Good } else { Self::Failed }
    }
}

/// The features are checked beside the steps from the lints on: each check builds few crates, so alone it leaves processors idle.
const FEATURES: &str = "features";
const FEATURES_START_BEFORE: &str = "lints";

/// The tests come last so that their output is at the end.
const STEPS: &[CiStep] = &[
    ("formatting", || Ok(cargo::run(&["fmt", "--all", "--check"], &[])?.into())),
    ("tidy", || Ok(tidy::run(&tidy::Args {})?.into())),
    ("licences and sources", || tool(&DENY)),
    ("unused dependencies", || tool(&SHEAR)),
    ("lints", || Ok(cargo::run(CLIPPY, &[])?.into())),
    ("lints of the fuzz targets", || Ok(cargo::run(FUZZ_CLIPPY, &[])?.into())),
    ("documentation", || Ok(cargo::run(DOC, &[("RUSTDOCFLAGS", "-D warnings")])?.into())),
    ("fork", || Ok(fork::run(&fork::Args {})?.into())),
    ("browser", check_pages),
];

/// Runs the command; returns true when everything passes.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    if args.install_tools && !(DENY.install()? && SHEAR.install()?) {
        return Ok(false);
    }
    let mut features = None;
    for (name, work) in STEPS {
        if *name == FEATURES_START_BEFORE {
            features = Some(BackgroundCheck::start(FEATURES)?);
        }
        let start = Instant::now();
        let outcome = work()?;
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            StepOutcome::Good => println!("==> {name}: good after {seconds:.0} s"),
            StepOutcome::LeftOut(why) => println!("==> {name}: left out, {why}"),
            StepOutcome::Failed => {
                println!("==> {name}: FAILED after {seconds:.0} s");
                return Ok(false);
            }
        }
    }
    if let Some((is_good, seconds)) = features.map(BackgroundCheck::finish).transpose()? {
        println!("==> {FEATURES}: {} after {seconds:.0} s", if is_good { "good" } else { "FAILED" });
        if !is_good {
            return Ok(false);
        }
    }
    test::run(&test::Args { full: false, live: false, rest: Vec::new() })
}

fn tool(tool: &CargoTool) -> anyhow::Result<StepOutcome> {
    let missing = StepOutcome::LeftOut("its tool is not installed: `cargo xtask ci --install-tools` does that");
    Ok(tool.run()?.map_or(missing, StepOutcome::from))
}

fn check_pages() -> anyhow::Result<StepOutcome> {
    if browser::find().is_none() {
        return Ok(StepOutcome::LeftOut("there is none on this machine"));
    }
    Ok(browser::run(&["browser".into()])?.success().into())
}
