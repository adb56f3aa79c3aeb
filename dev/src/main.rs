//! Development tasks that need pinch itself. `cargo xtask` builds this program on demand and starts it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to a person")]

mod cargo;

mod tmux;
mod transcript;

mod catalog;
mod interop;
mod live;
mod bench;
mod browser;
mod link_order;
mod picture;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of pinch that need pinch itself
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct DevCli {
    #[command(subcommand)]
    command: DevCommand,
}

#[derive(Subcommand)]
enum DevCommand {
    /// Measure speed and memory against the budgets
    Bench(bench::Args),
    /// Run pinch against other programs: servers, clients
    Interop(interop::Args),
    /// Call every provider that has a key in the environment
    #[command(bin_name = "cargo xtask test --live")]
    Live(live::Args),
    /// Open an exported session in a browser, check the page and take screenshots
    Browser(browser::Args),
    /// Write the catalog of models, or check it
    Catalog(catalog::Args),
    /// Trace usual runs and write the order in which the program's functions are linked
    LinkOrder,
    /// Draw the picture of `pinch demo`, or check it
    Picture(picture::Args),
}

fn main() -> ExitCode {
    let done = match DevCli::parse().command {
        DevCommand::Bench(args) => bench::run(&args),
        DevCommand::Interop(args) => interop::run(&args),
        DevCommand::Live(args) => live::run(&args),
        DevCommand::Browser(args) => browser::run(&args),
        DevCommand::Catalog(args) => catalog::run(&args),
        DevCommand::LinkOrder => link_order::run(),
        DevCommand::Picture(args) => picture::run(&args),
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
