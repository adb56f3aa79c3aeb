//! The development tasks that need pinch itself. `cargo xtask` builds this program when it is needed, and starts it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to a person")]

mod cargo;

mod catalog;
mod interop;
mod bench;
mod browser;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of pinch that need pinch itself.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures speed and memory against the budgets.
    Bench(bench::Args),
    /// Runs pinch beside other people's programs: servers, clients.
    Interop(interop::Args),
    /// Opens an exported session in a browser: checks the page, takes pictures of it.
    Browser(browser::Args),
    /// Makes the catalog of models, or checks it.
    Catalog(catalog::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Bench(args) => bench::run(&args),
        Command::Interop(args) => interop::run(&args),
        Command::Browser(args) => browser::run(&args),
        Command::Catalog(args) => catalog::run(&args),
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
