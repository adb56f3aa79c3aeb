//! The `pinch` command: arguments in, exit code out.

mod exit;
mod signals;

mod args;
mod folders;
mod open_log;
mod find_model;
mod wiring;

mod embedded;

mod show;

mod demo_script;

mod commands;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use exit::{Failure, Kind};

fn main() -> ExitCode {
    let cli = match Cli::try_parse_from(args::spell_out(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, not mistakes.
            let code = if error.use_stderr() { ExitCode::from(Kind::User as u8) } else { ExitCode::SUCCESS };
            if error.print().is_err() {
                return ExitCode::from(Kind::Internal as u8);
            }
            return code;
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&Failure::internal(format!("cannot start: {error}"))),
    };
    let done = runtime.block_on(async {
        match cli.command {
            Some(Command::Agent(args)) => commands::agent::run(args).await,
            Some(Command::Auth(command)) => commands::auth::run(command).await,
            Some(Command::Demo(args)) => commands::demo::run(args).await,
            None => commands::chat::run(cli.chat).await,
        }
    });
    // Threads that wait for the disk or a name server must not hold the end up.
    runtime.shutdown_background();
    match done {
        Ok(code) => code,
        Err(failure) => report(&failure),
    }
}

fn report(failure: &Failure) -> ExitCode {
    exit::tell(failure);
    failure.code()
}
