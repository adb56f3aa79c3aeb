//! Development tasks for pinch: `cargo xtask --help` lists them.
//!
//! This program builds in seconds because it does not depend on pinch. Tasks that need pinch are in another program, which this one builds
//! and starts.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to a person")]

mod cargo;

mod launch;

mod tools;

mod codegen;
mod features;
mod fork;
mod fuzz;
mod test;
mod tidy;

mod ci;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks for pinch.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct XtaskCli {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Runs everything CI runs: formatting, tidy, licences, dependencies, lints, features, documentation, tests.
    Ci(ci::Args),
    /// Runs every test: unit and integration tests, documentation tests, and the case files.
    Test(test::Args),
    /// Checks what compilers do not: layers, file sizes, module docs, number of dependencies.
    Tidy(tidy::Args),
    /// Checks that each feature of each crate compiles alone, and each crate with no features.
    Features(features::Args),
    /// Builds and tests the crate outside the workspace that uses only published interfaces.
    Fork(fork::Args),
    /// Runs fuzz targets under libFuzzer for a fixed time.
    Fuzz(fuzz::Args),
    /// Measures speed and memory use against the budgets.
    Bench(launch::Args),
    /// Runs black-box case files and prints a table for each suite and kind.
    Cases(launch::Args),
    /// Runs pinch against third-party programs: servers and clients.
    Interop(launch::Args),
    /// Opens an exported session in a browser, checks the page and takes screenshots.
    Browser(launch::Args),
    /// Writes the committed generated files, or checks them.
    Codegen(codegen::Args),
}

fn main() -> ExitCode {
    match run(XtaskCli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: XtaskCommand) -> anyhow::Result<ExitCode> {
    let ok = match command {
        XtaskCommand::Ci(args) => ci::run(&args)?,
        XtaskCommand::Test(args) => test::run(&args)?,
        XtaskCommand::Tidy(args) => tidy::run(&args)?,
        XtaskCommand::Features(args) => features::run(&args)?,
        XtaskCommand::Fork(args) => fork::run(&args)?,
        XtaskCommand::Fuzz(args) => fuzz::run(&args)?,
        XtaskCommand::Codegen(args) => codegen::run(&args)?,
        XtaskCommand::Bench(args) => {
            let program = if args.measure_nothing_of_it() { launch::DEV } else { launch::DEV_RELEASE };
            return Ok(launch::exit_code(program.run(&args.of("bench"), &[])?));
        }
        XtaskCommand::Cases(args) => return Ok(launch::exit_code(launch::CASES.run(&args.of("--run"), &[])?)),
        XtaskCommand::Interop(args) => return Ok(launch::exit_code(launch::DEV.run(&args.of("interop"), &[])?)),
        XtaskCommand::Browser(args) => return Ok(launch::exit_code(launch::browser::run(&args.of("browser"))?)),
    };
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
