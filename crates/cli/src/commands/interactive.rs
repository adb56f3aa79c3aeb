//! `pinch` in a terminal: the interactive mode.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use pinch_cli::options::CliOptions;
use pinch_embed::coding_agent::models::local_servers::LocalServer;
use pinch_embed::coding_agent::settings::SettingsManager;
use pinch_embed::stdx::cancel::Cancel;
use pinch_embed::stdx::host::Host;
use pinch_tui::app::{
    FirstLogin, InteractiveEnd, InteractiveError, InteractiveOptions, SessionOpening, TerminalUi, first_login,
    interactive,
};
use pinch_tui::terminal;

use crate::exit::{self, Blame, CommandFailure};
use crate::folders::Folders;
use crate::messages::Messages;
use crate::wiring::SessionUser;
use crate::{browser, signals, wiring};

/// Exit code after a hang-up of the terminal.
pub(crate) const HUNG_UP: u8 = 129;

/// The changelog.
const CHANGELOG: &str = include_str!("../../CHANGELOG.md");

/// Returns whether to start the interactive mode: there is a terminal, and no other output is requested.
pub(crate) fn is_wanted(options: &CliOptions) -> bool {
    !options.print && options.mode.is_none() && terminal::is_terminal()
}

/// Fails if the terminal's cursor cannot be moved.
pub(crate) fn check_movable(host: &Host) -> Result<(), CommandFailure> {
    if host.env().get("TERM") == Some("dumb") {
        return Err(CommandFailure::user(
            "the interactive mode needs a terminal that can move its cursor, and TERM is dumb\nhint: use --plain, or to ask something: pinch -p \"…\"",
        ));
    }
    Ok(())
}

/// Fails if there is no terminal for a chat.
pub(super) fn check_terminal() -> Result<(), CommandFailure> {
    if !terminal::is_terminal() {
        return Err(CommandFailure::user(
            "the chat needs a terminal as standard input and output\nhint: to send one message, use: pinch agent --agent main --message \"…\"",
        ));
    }
    Ok(())
}

/// Returns whether the screen-reader mode is requested: by the flag, the environment or the user's settings in an agent directory.
pub(super) fn is_plain(flag: bool, host: &Host, agent_dir: &Path) -> bool {
    flag || host.env().is_on("PINCH_PLAIN") || SettingsManager::of_user(agent_dir, host).settings().interface.plain
}

/// Runs the interactive mode until the user leaves. Without a model it starts with a login.
pub(crate) async fn run(options: &CliOptions, host: &Host) -> Result<ExitCode, CommandFailure> {
    let folders = Folders::find(options.agent_dir.as_deref(), host)?;
    let interface = interface(options, &folders, host);
    if !interface.plain {
        check_movable(host)?;
    }
    let failure = match converse(options, interface.clone(), None, host).await {
        Err(failure) if failure.lacks_model => failure,
        done => return done,
    };
    match log_in_first(options, &folders, interface.clone(), host).await? {
        FirstLogin::LoggedIn => converse(options, interface, None, host).await,
        FirstLogin::LocalServer(server) => converse(options, interface, Some(server), host).await,
        FirstLogin::Left => Err(failure),
    }
}

/// Offers a login, and model servers on this machine.
async fn log_in_first(
    options: &CliOptions,
    folders: &Folders,
    interface: InteractiveOptions,
    host: &Host,
) -> Result<FirstLogin, CommandFailure> {
    let services = Arc::new(wiring::services(options, folders, host));
    let stop = Cancel::new();
    let kept = exit::keep_warnings();
    let is_plain = interface.plain;
    let (done, _) = guarded(is_plain, &stop, Box::pin(first_login(interface, &services, &stop))).await;
    drop(kept);
    services.settle().await;
    done.map_err(|error| CommandFailure::new(Blame::Internal, error.to_string()))
}

/// Runs the interface until it ends or a signal arrives. In line mode, Ctrl+C is for the interface.
async fn guarded<T>(is_plain: bool, stop: &Cancel, work: LocalBoxFuture<'_, T>) -> (T, Option<ExitCode>) {
    if is_plain { signals::guard_without_interrupt(stop, work).await } else { signals::guard(stop, work).await }
}

/// Returns the interface options.
fn interface(options: &CliOptions, folders: &Folders, host: &Host) -> InteractiveOptions {
    let mut wanted = InteractiveOptions::new(host.clone(), &folders.agent_dir, &folders.cwd);
    wanted.theme.clone_from(&options.use_theme);
    wanted.tui_mode.clone_from(&options.tui_mode);
    wanted.verbose = options.verbose;
    wanted.resume = options.resume;
    wanted.plain = is_plain(options.plain, host, &folders.agent_dir);
    wanted.changelog = CHANGELOG;
    wanted.offline = options.offline;
    wanted.browser = Some(browser::open);
    wanted
}

async fn converse(
    options: &CliOptions,
    interface: InteractiveOptions,
    local_server: Option<LocalServer>,
    host: &Host,
) -> Result<ExitCode, CommandFailure> {
    let messages = Messages::read(options, host)?;
    let ui = TerminalUi::new();
    let stop = Cancel::new();
    // Messages written meanwhile would disturb the screen.
    let kept = exit::keep_warnings();
    let opening = async {
        let mut runtime =
            wiring::runtime(options, host, SessionUser::Person(Arc::new(ui.clone())), local_server).await?;
        let prompts = messages.into_prompts(&runtime.session_mut().control(), &stop).await;
        Ok::<_, CommandFailure>(SessionOpening { runtime, prompts, warnings: exit::take_warnings() })
    };
    let (end, code) =
        guarded(interface.plain, &stop, Box::pin(interactive(interface, &ui, Box::pin(opening), &stop))).await;
    drop(kept);
    let (runtime, end_code) = match end {
        Ok(InteractiveEnd::Exited(runtime)) => (Some(runtime), ExitCode::SUCCESS),
        Ok(InteractiveEnd::HungUp(runtime)) => (Some(runtime), ExitCode::from(HUNG_UP)),
        Ok(_) => (None, ExitCode::SUCCESS),
        Err(InteractiveError::SessionOpening(failure)) => return Err(failure),
        Err(error) => return Err(CommandFailure::new(Blame::Internal, error.to_string())),
    };
    if let Some(mut runtime) = runtime {
        runtime.close().await;
        runtime.take_notes().iter().for_each(|note| exit::warn(note));
    }
    Ok(code.unwrap_or(end_code))
}
