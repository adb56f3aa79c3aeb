//! `pinch config`: chooses which resources to load, in a terminal.

use std::process::ExitCode;

use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;
use pinch_embed::stdx::text::with_causes;
use pinch_tui::configure::{ConfigureEnd, ConfigureOptions, configure};
use pinch_tui::terminal;

use super::parse::PackageCommand;
use super::read_settings;
use crate::commands::interactive::{HUNG_UP, check_movable};
use crate::exit::{Blame, CommandFailure};
use crate::folders::Folders;

/// Shows the list until the user leaves it.
pub(super) async fn run(
    folders: &Folders,
    command: &PackageCommand,
    host: &Host,
    stop: &Cancel,
) -> Result<ExitCode, CommandFailure> {
    if !terminal::is_terminal() {
        return Err(CommandFailure::user(
            "pinch config needs a terminal\nhint: edit \"packages\" in settings.json: an object with a source and lists of patterns",
        ));
    }
    check_movable(host)?;
    let directory = read_settings(folders, command, host);
    let switches = directory.resource_switches();
    let mut switches = switches.ok_or_else(|| CommandFailure::internal("resources need an agent directory"))?;
    if command.is_local && !switches.has_project() {
        return Err(CommandFailure::user("this project is not trusted\nhint: use --approve to change its settings"));
    }
    let mut options = ConfigureOptions::new(host.clone(), &folders.agent_dir);
    options.theme = directory.settings().settings().interface.theme.clone();
    options.begins_with_project = command.is_local;
    let end = configure(options, &mut switches, stop).await;
    match end.map_err(|error| CommandFailure::new(Blame::Internal, with_causes(&error)))? {
        ConfigureEnd::Exited => Ok(ExitCode::SUCCESS),
        ConfigureEnd::HungUp => Ok(ExitCode::from(HUNG_UP)),
    }
}
