//! Development tasks of pinch: `cargo xtask --help` lists them.

// A command-line tool talks to a person, and a broken checkout may well stop it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to a person")]

mod cargo;

mod bench;
mod browser;
mod codegen;
mod interop;
mod test;
mod tidy;

mod ci;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of pinch.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Does everything CI does: formatting, tidy, lints, documentation, tests.
    Ci(ci::Args),
    /// Runs every test: of the crates, across them, in the documentation, and the case files.
    Test(test::Args),
    /// Checks what compilers do not: layers, file sizes, module docs, tools used.
    Tidy(tidy::Args),
    /// Measures speed and memory against the budgets.
    Bench(bench::Args),
    /// Runs black-box case files and prints a table for each suite and kind.
    Cases(pinch_tests::cases::Args),
    /// Runs pinch beside other people's programs: servers, clients.
    Interop(interop::Args),
    /// Opens an exported session in a browser: checks the page, takes pictures of it.
    Browser(browser::Args),
    /// Makes the files that are generated and committed, or checks them.
    Codegen(codegen::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Ci(args) => ci::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Tidy(args) => tidy::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Cases(args) => pinch_tests::cases::run(&args, &mut std::io::stdout()),
        Command::Interop(args) => interop::run(&args),
        Command::Browser(args) => browser::run(&args),
        Command::Codegen(args) => codegen::run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
