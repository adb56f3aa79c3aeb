//! The `pinch` command: arguments in, exit code out.

mod output;
mod exit;
mod signals;

mod browser;
mod line_input;

mod folders;
mod logging;
mod open_log;
mod find_model;
mod sandbox;
mod wiring;
mod messages;

mod embedded;

mod show;

mod demo_script;

mod commands;

mod args;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use args::{CliCommand, PinchCli};
use exit::{Blame, CommandFailure};
use logging::StandardError;
use pinch_cli::options::CliOptions;
use pinch_embed::stdx::host::Host;

/// Prevents other processes of the same user, such as the commands that a model runs, from reading the keys in the environment and the
/// memory of this process through `/proc` or a debugger. Only root can, and there are no core dumps.
fn hide_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Every kernel that can run this program supports it.
        _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

fn main() -> ExitCode {
    hide_memory();
    let invocation = match read_arguments() {
        Ok(invocation) => invocation,
        Err(code) => return code,
    };
    if let Err(failure) = logging::start(&Host::system(), invocation.standard_error()) {
        return report(&failure);
    }
    // Boxed individually, or the smallest command would use as much stack as the largest.
    run(async {
        match invocation {
            Invocation::Command(CliCommand::Agent(args)) => Box::pin(commands::agent::run(args)).await,
            Invocation::Command(CliCommand::Chat(args)) => Box::pin(commands::chat::run(args)).await,
            Invocation::Command(CliCommand::Auth(command)) => Box::pin(commands::auth::run(command)).await,
            Invocation::Command(CliCommand::Demo(args)) => Box::pin(commands::demo::run(args)).await,
            Invocation::Command(CliCommand::Doctor(args)) => Box::pin(commands::doctor::run(args)).await,
            Invocation::Command(CliCommand::Policy(command)) => commands::policy::run(&command),
            Invocation::Command(CliCommand::Skills(command)) => commands::skills::run(&command).await,
            Invocation::Command(CliCommand::Sessions(command)) => commands::sessions::run(&command),
            Invocation::Command(CliCommand::Completions(args)) => {
                commands::completions::run(&args, &PinchCli::command())
            }
            Invocation::Command(CliCommand::Export(args)) => Box::pin(commands::export::run(args)).await,
            Invocation::Packages(args) => Box::pin(commands::packages::run(&args)).await,
            Invocation::Conversation(options) => Box::pin(commands::conversation::run(*options)).await,
        }
    })
}

/// Runs a command to its end.
fn run(command: impl Future<Output = Result<ExitCode, CommandFailure>>) -> ExitCode {
    let started = check_descriptors().and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build());
    let runtime = match started {
        Ok(runtime) => runtime,
        Err(error) => return report(&CommandFailure::internal(format!("cannot start: {error}"))),
    };
    let done = runtime.block_on(command);
    // Threads that wait for the disk or a name server must not delay the exit.
    runtime.shutdown_background();
    // But dropped processes must not outlive the program.
    pinch_embed::stdx::process::wait_for_killed(std::time::Duration::from_secs(4));
    match done {
        Ok(code) => code,
        Err(failure) => report(&failure),
    }
}

/// Fails if there are too few file descriptors to start: setting up signals would panic.
#[cfg(unix)]
fn check_descriptors() -> std::io::Result<()> {
    let pair = || std::os::unix::net::UnixStream::pair();
    let _spare = [pair()?, pair()?, pair()?, pair()?];
    Ok(())
}

#[cfg(not(unix))]
fn check_descriptors() -> std::io::Result<()> {
    Ok(())
}

/// The invocation selected by the command line.
enum Invocation {
    Command(CliCommand),
    Packages(Vec<OsString>),
    Conversation(Box<CliOptions>),
}

impl Invocation {
    /// Returns whether stderr is part of a screen.
    fn standard_error(&self) -> StandardError<'_> {
        match self {
            Self::Command(CliCommand::Chat(_)) => StandardError::Screen { agent_dir: None },
            Self::Conversation(options) if commands::interactive::is_wanted(options) => {
                StandardError::Screen { agent_dir: options.agent_dir.as_deref() }
            }
            _ => StandardError::Free,
        }
    }
}

/// Parses the arguments; returns an exit code if nothing else is to be done.
fn read_arguments() -> Result<Invocation, ExitCode> {
    let given: Vec<OsString> = std::env::args_os().skip(1).collect();
    if commands::packages::is_command(&given) {
        return Ok(Invocation::Packages(given));
    }
    let mut args = Vec::new();
    for arg in given {
        args.push(arg.into_string().map_err(|arg| {
            report(&CommandFailure::user(format!("argument is not valid UTF-8: {}", arg.to_string_lossy())))
        })?);
    }
    // Short forms.
    if args.first().is_some_and(|first| commands::auth::is_short_form(first)) {
        args.insert(0, "auth".to_owned());
    }
    if let [first, rest @ ..] = &mut args[..]
        && first == "auth"
    {
        match rest.first() {
            None => args.push("--help".to_owned()),
            Some(word) => {
                if let Some(text) = commands::auth::unknown(word) {
                    return Err(report(&CommandFailure::user(text)));
                }
                if word == "help" {
                    rest[0] = "--help".to_owned();
                }
            }
        }
    }
    if args.first().is_some_and(|first| CliCommand::is_named(first)) {
        let program = std::iter::once("pinch".to_owned());
        return PinchCli::try_parse_from(program.chain(args)).map(|cli| Invocation::Command(cli.command)).map_err(
            |error| {
                // Help is an answer, not an error.
                let code = if error.use_stderr() { ExitCode::from(Blame::User as u8) } else { ExitCode::SUCCESS };
                let text = error.render().to_string();
                let written = match error.use_stderr() {
                    true => output::stderr().write_all(text.as_bytes()),
                    false => output::stdout().write_all(text.as_bytes()),
                };
                if written.is_err() { ExitCode::from(Blame::Internal as u8) } else { code }
            },
        );
    }
    let options = CliOptions::parse(args);
    if options.version {
        return Err(answer(&format!("pinch {}\n", env!("CARGO_PKG_VERSION"))));
    }
    Ok(Invocation::Conversation(Box::new(options)))
}

/// Prints the requested text and exits.
fn answer(text: &str) -> ExitCode {
    match output::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(Blame::Internal as u8),
    }
}

fn report(failure: &CommandFailure) -> ExitCode {
    exit::tell(failure);
    failure.code()
}
