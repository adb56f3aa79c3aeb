//! The recorded cases: one test for `cargo test`, and the command behind `cargo xtask cases`.
//!
//! `--run` as the first argument selects the command. All other arguments are treated as those of a test binary.

#![expect(clippy::print_stderr, reason = "a command-line tool talks to a person")]

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use pinch_tests::{cases, harness};

/// Runs black-box case files and prints a table for each suite and kind
#[derive(Parser)]
#[command(name = "cargo xtask cases", bin_name = "cargo xtask cases")]
struct RunnerCommand {
    #[command(flatten)]
    args: cases::Args,
}

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_none_or(|arg| arg != "--run") {
        return harness::run(&harness::HarnessOptions::parse_or_exit(), every_case_holds, &mut std::io::stdout());
    }
    args.remove(1);
    match cases::run(&RunnerCommand::parse_from(args).args, &mut std::io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the case files of the workspace; the tables are returned either way.
fn every_case_holds() -> Result<String, String> {
    let mut out = Vec::new();
    let ran = cases::run(&cases::Args::default(), &mut out);
    let out = String::from_utf8_lossy(&out).into_owned();
    match ran {
        Ok(true) => Ok(out),
        Ok(false) => Err(format!("{out}\nsee the failed cases above; `cargo xtask cases --verbose` says more\n")),
        Err(error) => Err(format!("{out}\nerror: {error:#}\n")),
    }
}
