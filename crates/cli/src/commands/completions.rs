//! `pinch completions`: shell completions, the manual and the settings reference. All are generated from the program's own tables.

mod surface;
mod bash;
mod zsh;
mod fish;
mod powershell;
mod manual;
mod settings;

use std::io::Write as _;
use std::process::ExitCode;

use crate::exit::{CommandFailure, unwritten};
use crate::output;
use surface::Surface;

/// Arguments of `pinch completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Shell to generate completions for; man prints the manual page, markdown the manual as Markdown, settings the settings reference
    #[arg(value_enum, value_name = "FORM")]
    form: Form,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Man,
    Markdown,
    Settings,
}

/// Runs the command. `commands` are those parsed by clap.
pub(crate) fn run(args: &Args, commands: &clap::Command) -> Result<ExitCode, CommandFailure> {
    let surface = Surface::new(commands);
    let text = match args.form {
        Form::Bash => bash::script(&surface),
        Form::Zsh => zsh::script(&surface),
        Form::Fish => fish::script(&surface),
        Form::Powershell => powershell::script(&surface),
        Form::Man => manual::roff(&surface),
        Form::Markdown => manual::markdown(&surface),
        Form::Settings => settings::markdown(),
    };
    output::stdout().write_all(text.as_bytes()).map_err(|error| unwritten(&error))?;
    Ok(ExitCode::SUCCESS)
}
