//! `pinch install`, `remove`, `update`, `list` and `config`: packages of skills, prompts, themes and extensions.

mod name;
mod texts;
mod parse;
mod config;
mod catalogs;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

use pinch_embed::coding_agent::document::ChangeError;
use pinch_embed::coding_agent::packages::source::without_passwords;
use pinch_embed::coding_agent::packages::{ConfiguredPackage, PackageError, PackageScope, Packages};
use pinch_embed::coding_agent::services::{DirectorySettings, ServiceOptions};
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;
use pinch_embed::stdx::text::with_causes;

use crate::exit::{CommandFailure, unwritten, warn};
use crate::folders::Folders;
use crate::output;
use crate::signals;
use crate::wiring::trust_of;
use parse::{PackageAction, PackageCommand, Update};

/// Returns whether the program's arguments are a package command.
pub(crate) fn is_command(args: &[OsString]) -> bool {
    args.first().and_then(|name| name.to_str()).is_some_and(|name| name::PackageCommandName::parse(name).is_some())
}

/// A command in completions and the manual.
pub(crate) struct CommandSurface {
    pub(crate) name: &'static str,
    /// The positional argument.
    pub(crate) argument: Option<&'static str>,
    pub(crate) is_argument_optional: bool,
    /// Names of an option, its value's name, and its description.
    pub(crate) options: Vec<(&'static str, Option<&'static str>, &'static str)>,
}

/// Returns all package commands.
pub(crate) fn surface() -> Vec<CommandSurface> {
    let of = |name: name::PackageCommandName| CommandSurface {
        name: name.as_str(),
        argument: texts::argument(name),
        is_argument_optional: name == name::PackageCommandName::Update,
        options: texts::options(name),
    };
    name::PackageCommandName::ALL.map(of).into()
}

/// Runs the command at the start of the arguments.
pub(crate) async fn run(args: &[OsString]) -> Result<ExitCode, CommandFailure> {
    let args: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let Some(command) = parse::parse(&args)? else {
        let name = args
            .first()
            .and_then(|name| name::PackageCommandName::parse(name))
            .unwrap_or(name::PackageCommandName::List);
        say(texts::help(name))?;
        return Ok(ExitCode::SUCCESS);
    };
    let host = Host::system();
    let folders = Folders::find(None, &host)?;
    let cancel = Cancel::new();
    let (done, code) = signals::guard(&cancel, carry_out(&command, &folders, &host, &cancel)).await;
    done.or_else(|failure| code.ok_or(failure))
}

async fn carry_out(
    command: &PackageCommand,
    folders: &Folders,
    host: &Host,
    cancel: &Cancel,
) -> Result<ExitCode, CommandFailure> {
    let scope = if command.is_local { PackageScope::Project } else { PackageScope::User };
    let packages = || open(folders, command, host);
    match &command.action {
        PackageAction::Install(source) => {
            let packages = packages()?;
            say(format_args!("Installing {source}..."))?;
            packages.install(source, scope, cancel).await.map_err(failure)?;
            say(format_args!("Installed {source}"))
        }
        PackageAction::Remove(source) => {
            let packages = packages()?;
            say(format_args!("Removing {source}..."))?;
            match packages.remove(source, scope, cancel).await {
                // Printed without the error prefix.
                Err(error @ PackageError::NotFound { .. }) => {
                    Err(CommandFailure::bare(crate::exit::Blame::User, error.to_string()))
                }
                done => done.map_err(failure),
            }?;
            say(format_args!("Removed {source}"))
        }
        PackageAction::Update(update) if update.models => catalogs::run(folders, command, host, cancel).await,
        PackageAction::Update(update) => update_all(&packages()?, update, cancel).await,
        PackageAction::List => list(&packages()?.list()),
        PackageAction::Config => return config::run(folders, command, host, cancel).await,
    }?;
    Ok(ExitCode::SUCCESS)
}

async fn update_all(packages: &Packages, update: &Update, cancel: &Cancel) -> Result<(), CommandFailure> {
    if let Some(source) = &update.packages {
        packages.update(source.as_deref(), cancel).await.map_err(failure)?;
        match source {
            Some(source) => say(format_args!("Updated {source}"))?,
            None => say("Updated packages")?,
        }
    }
    if update.program {
        say(texts::how_to_update(update.force))?;
    }
    if update.show_packages_hint {
        say(texts::PACKAGES_STAY)?;
    }
    Ok(())
}

fn list(listed: &[ConfiguredPackage]) -> Result<(), CommandFailure> {
    if listed.is_empty() {
        return say("No packages installed.");
    }
    let mut lines = Vec::new();
    for (scope, title) in [(PackageScope::User, "User packages:"), (PackageScope::Project, "Project packages:")] {
        let of_scope: Vec<&ConfiguredPackage> = listed.iter().filter(|one| one.scope == scope).collect();
        if of_scope.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(title.to_owned());
        for one in of_scope {
            let mark = if one.entry.filter.is_some() { " (filtered)" } else { "" };
            lines.push(format!("  {}{mark}", one.entry.source));
            lines.extend(one.path.iter().map(|path| format!("    {}", path.display())));
        }
    }
    say(lines.join("\n"))
}

/// Opens the user's packages in this directory. Whether the project is trusted is decided without prompting.
fn open(folders: &Folders, command: &PackageCommand, host: &Host) -> Result<Packages, CommandFailure> {
    let directory = read_settings(folders, command, host);
    let packages = directory.packages().ok_or_else(|| CommandFailure::internal("packages need an agent directory"))?;
    if !packages.trusted && !command.is_local && packages.settings_file(PackageScope::Project).is_file() {
        warn("this project is not trusted, so its packages are ignored. Use --approve to trust it");
    }
    Ok(packages)
}

/// Reads settings and prints their problems.
fn read_settings(folders: &Folders, command: &PackageCommand, host: &Host) -> DirectorySettings {
    let mut options = ServiceOptions::new(host.clone(), &folders.agent_dir);
    options.trust = trust_of(command.approve, host);
    let (directory, problems) = DirectorySettings::read(&options, &folders.cwd);
    problems.iter().for_each(|problem| warn(problem));
    directory
}

fn failure(error: PackageError) -> CommandFailure {
    let text = with_causes(&error);
    match error {
        PackageError::Settings(ChangeError::Damaged(_)) => CommandFailure::configuration(text),
        PackageError::Settings(_) | PackageError::Io { .. } => CommandFailure::internal(text),
        _ => CommandFailure::user(text),
    }
}

/// Prints a line; passwords in URLs are removed.
fn say(text: impl Display) -> Result<(), CommandFailure> {
    writeln!(output::stdout(), "{}", without_passwords(&text.to_string())).map_err(|error| unwritten(&error))
}
