//! The interactive mode: a conversation in a terminal.

mod branch;
mod theme_file;
mod bridge;
mod missing_directory;
mod commands;
mod footer;
mod state;
mod console;
mod shared_page;
mod login;
mod first_login;
mod driver;

use std::io;
use std::path::PathBuf;

use futures::future::BoxFuture;
use pinch_coding_agent::runtime::SessionRuntime;
use pinch_coding_agent::session::Prompt;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::{Env, Host};

pub use self::bridge::TerminalUi;
use self::console::Console;
use self::driver::Driver;
pub use self::first_login::{FirstLogin, first_login};
pub use self::missing_directory::{DirectoryChoice, MissingDirectory};
use self::state::{App, AppOptions};
use crate::front::Front;
use crate::prompt_history::PromptHistory;
use crate::terminal::{DeviceError, TerminalCapabilities};

/// Number of prompts from earlier sessions loaded into the editor.
const RECALLED: usize = 100;

/// Options of the interactive mode.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InteractiveOptions {
    /// Clock, environment and home directory.
    pub host: Host,
    /// Version shown in the header.
    pub version: String,
    /// The directory of `keybindings.json`.
    pub agent_dir: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// Theme, overriding the settings.
    pub theme: Option<String>,
    /// `regular` or `fullscreen`, overriding the settings.
    pub tui_mode: Option<String>,
    /// Whether to write plain lines and read line by line, for screen readers and terminals that cannot move their cursor.
    pub plain: bool,
    /// Opens a web page in the user's browser; returns whether it could.
    pub browser: Option<fn(&str, &Env) -> bool>,
    /// Whether the user chooses a session first.
    pub resume: bool,
    /// Whether to show loaded resources even if the settings ask for a quiet start.
    pub verbose: bool,
    /// Changelog in Markdown with headings such as `## [1.2.3]`; empty: none is shown.
    pub changelog: &'static str,
    /// Whether to skip the check for a later version, regardless of the settings.
    pub offline: bool,
}

impl InteractiveOptions {
    /// Creates options that leave everything to the settings.
    pub fn new(host: Host, agent_dir: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            host,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agent_dir: agent_dir.into(),
            cwd: cwd.into(),
            theme: None,
            tui_mode: None,
            plain: false,
            browser: None,
            resume: false,
            verbose: false,
            changelog: "",
            offline: false,
        }
    }
}

/// A session to start with.
pub struct SessionOpening {
    /// The session.
    pub runtime: SessionRuntime,
    /// Prompts to send first, in order.
    pub prompts: Vec<Prompt>,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
}

/// How the interactive mode ended.
pub enum InteractiveEnd {
    /// The user exited. The caller must close the session.
    Exited(Box<SessionRuntime>),
    /// The terminal is gone. The caller must close the session.
    HungUp(Box<SessionRuntime>),
    /// The user exited before there was a session.
    ExitedEarly,
}

/// Why the interactive mode did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InteractiveError<E> {
    /// There is no usable terminal.
    #[error(transparent)]
    Terminal(#[from] DeviceError),
    /// The session could not be opened.
    #[error("there is no session")]
    SessionOpening(E),
}

impl<E> From<io::Error> for InteractiveError<E> {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error.into())
    }
}

/// Takes over the terminal.
fn open_console(options: InteractiveOptions, ui: &TerminalUi) -> BoxFuture<'_, Result<Console, DeviceError>> {
    Box::pin(async move {
        let capabilities = match options.plain {
            true => TerminalCapabilities::plain(options.host.env()),
            false => TerminalCapabilities::of(options.host.env()),
        };
        let bridge =
            ui.take_requests().await.ok_or_else(|| io::Error::other("the user interface is already in use"))?;
        let host = options.host.clone();
        let options = AppOptions {
            host: options.host,
            version: options.version,
            agent_dir: options.agent_dir,
            cwd: options.cwd,
            theme: options.theme,
            tui_mode: options.tui_mode,
            browser: options.browser,
            verbose: options.verbose,
            changelog: options.changelog,
            offline: options.offline,
        };
        let app = App::new(options, &capabilities);
        let front = Front::new(capabilities, app.links())?;
        let mut console = Console::new(front, app, host, bridge);
        console.look_at_tmux();
        Ok(console)
    })
}

/// Runs the interactive mode until the user exits or `stop` is cancelled. `opening` creates the session; meanwhile the terminal is in use,
/// and extensions can ask the user through `ui`.
///
/// The terminal is restored before it returns.
///
/// # Errors
/// If the terminal cannot be used, or the session cannot be opened.
pub async fn interactive<E>(
    options: InteractiveOptions,
    ui: &TerminalUi,
    opening: impl Future<Output = Result<SessionOpening, E>>,
    stop: &Cancel,
) -> Result<InteractiveEnd, InteractiveError<E>> {
    let resume = options.resume;
    let history = PromptHistory::new(&options.agent_dir, &options.cwd);
    let earlier = tokio::task::spawn_blocking(move || history.load(RECALLED));
    let mut console = open_console(options, ui).await?;
    console.draw();
    let opened = {
        let mut opening = std::pin::pin!(opening);
        loop {
            tokio::select! {
                biased;
                opened = &mut opening => break opened,
                event = console.next() => console.handle(event).await,
                _ = stop.cancelled() => console.exiting = true,
            }
            if console.exiting {
                console.leave(&[]);
                return Ok(InteractiveEnd::ExitedEarly);
            }
        }
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            console.leave(&[]);
            return Err(InteractiveError::SessionOpening(error));
        }
    };
    for warning in &opened.warnings {
        console.app.warning(warning);
    }
    let mut driver = Driver::new(console, opened.runtime, stop.clone());
    driver.recall_prompts(earlier.await.unwrap_or_else(|error| Err(io::Error::other(error))));
    driver.choose_mode();
    driver.show_news().await;
    if resume {
        driver.choose_session();
    }
    let (mut console, runtime) = driver.run(opened.prompts).await;
    let gone = console.gone;
    let last = console.app.exit_rows(&runtime);
    console.leave(&last);
    let runtime = Box::new(runtime);
    Ok(if gone { InteractiveEnd::HungUp(runtime) } else { InteractiveEnd::Exited(runtime) })
}
