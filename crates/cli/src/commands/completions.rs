//! `pinch completions`: completions for shells, and the manual. All are made from the table of flags and from the commands themselves.

mod surface;
mod bash;
mod zsh;
mod fish;
mod powershell;
mod manual;

use std::io::Write as _;
use std::process::ExitCode;

use crate::exit::{Failure, unwritten};
use crate::output;
use surface::Surface;

/// What `pinch completions` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For which shell; man for the manual page, markdown for the same as a document.
    #[arg(value_enum, value_name = "FORM")]
    form: Form,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Man,
    Markdown,
}

/// Runs the command. `commands` are those that are not read by hand.
pub(crate) fn run(args: &Args, commands: &clap::Command) -> Result<ExitCode, Failure> {
    let surface = Surface::new(commands);
    let text = match args.form {
        Form::Bash => bash::script(&surface),
        Form::Zsh => zsh::script(&surface),
        Form::Fish => fish::script(&surface),
        Form::Powershell => powershell::script(&surface),
        Form::Man => manual::roff(&surface),
        Form::Markdown => manual::markdown(&surface),
    };
    output::stdout().write_all(text.as_bytes()).map_err(|error| unwritten(&error))?;
    Ok(ExitCode::SUCCESS)
}
