//! `cargo xtask test`: runs every test: unit and integration tests, documentation tests, and the case files.
//!
//! The case files and `tidy` are tests of workspace packages, so plain `cargo test --workspace` runs them as well.

use crate::{cargo, launch};

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Repeat randomised tests as often as before a release: a thousand kills instead of sixty.
    #[arg(long)]
    pub(crate) full: bool,
    /// Call every provider that has a key in the environment once, instead of running the tests. Provider names may follow.
    #[arg(long, conflicts_with = "full")]
    pub(crate) live: bool,
    /// Passed on to cargo test, e.g. `-p pinch-llm` or `-- part_of_a_name`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(crate) rest: Vec<String>,
}

/// Runs the command; returns true when all tests pass.
pub(crate) fn run(args: &Args) -> anyhow::Result<bool> {
    if args.live {
        let rest = std::iter::once("live").chain(args.rest.iter().map(String::as_str));
        let rest: Vec<std::ffi::OsString> = rest.map(Into::into).collect();
        return Ok(launch::DEV.run(&rest, &[])?.success());
    }
    let chosen = args.rest.iter().any(|arg| arg == "-p" || arg == "--package" || arg.starts_with("--package="));
    let mut all = vec!["test"];
    if !chosen {
        all.extend(["--workspace", "--all-features"]);
    }
    all.extend(args.rest.iter().map(String::as_str));
    let env: &[(&str, &str)] = if args.full { &[("PINCH_TEST_KILLS", "1000")] } else { &[] };
    cargo::run(&all, env)
}
