//! The interactive mode: a conversation in a terminal.

mod branch;
mod bridge;
mod commands;
mod footer;
mod state;
mod console;
mod login;
mod driver;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_coding_agent::runtime::SessionRuntime;
use pinch_coding_agent::services::Services;
use pinch_coding_agent::session::Prompt;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::{Env, Host};

pub use self::bridge::TerminalUi;
use self::console::Console;
use self::driver::Driver;
use self::state::{App, AppOptions};
use crate::effect::Effect;
use crate::front::Front;
use crate::prompt_history::PromptHistory;
use crate::terminal::{DeviceError, TerminalCapabilities};

/// Prompts of earlier sessions that the editor gets.
const RECALLED: usize = 100;

/// How the interactive mode runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InteractiveOptions {
    /// Clock, environment and home directory.
    pub host: Host,
    /// The version that the header names.
    pub version: String,
    /// The directory of `keybindings.json`.
    pub agent_dir: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// A theme in place of the one of the settings.
    pub theme: Option<String>,
    /// `regular` or `fullscreen`, in place of what the settings say.
    pub tui_mode: Option<String>,
    /// Write everything in plain lines and read line by line, for screen readers and terminals that cannot move their cursor.
    pub plain: bool,
    /// Opens a web page in the user's browser, and says whether it could.
    pub browser: Option<fn(&str, &Env) -> bool>,
    /// Let the user choose a session first.
    pub resume: bool,
    /// Show what was loaded even if the settings want a quiet start.
    pub verbose: bool,
    /// What changed in which version, in Markdown with headings such as `## [1.2.3]`; empty: nothing is shown of it.
    pub changelog: &'static str,
    /// Do not ask whether there is a later version, whatever the settings say.
    pub offline: bool,
}

impl InteractiveOptions {
    /// Options that leave everything to the settings.
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

/// A session to begin with.
pub struct SessionOpening {
    /// The session.
    pub runtime: SessionRuntime,
    /// What is sent first, one after another.
    pub prompts: Vec<Prompt>,
    /// What the user should know, one sentence each.
    pub warnings: Vec<String>,
}

/// How the interactive mode ended.
pub enum InteractiveEnd {
    /// The user left. The session is to be closed.
    Left(Box<SessionRuntime>),
    /// The terminal is gone. The session is to be closed.
    HungUp(Box<SessionRuntime>),
    /// The user left before there was a session.
    LeftEarly,
}

/// The interactive mode did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InteractiveError<E> {
    /// There is no terminal that can be used.
    #[error(transparent)]
    Terminal(#[from] DeviceError),
    /// There is no session.
    #[error("there is no session")]
    SessionOpening(E),
}

impl<E> From<io::Error> for InteractiveError<E> {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error.into())
    }
}

/// Takes the terminal over.
async fn open_console(options: InteractiveOptions, ui: &TerminalUi) -> Result<Console, DeviceError> {
    let capabilities = match options.plain {
        true => TerminalCapabilities::plain(options.host.env()),
        false => TerminalCapabilities::of(options.host.env()),
    };
    let requests = ui.take_requests().await.ok_or_else(|| io::Error::other("the user interface is already in use"))?;
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
    Ok(Console::new(front, app, host, requests))
}

/// Helps a user who has no model yet: offers the providers to log in to. Returns whether the user has logged in to one.
///
/// # Errors
/// When the terminal cannot be used.
pub async fn first_login(
    options: InteractiveOptions,
    services: &Arc<Services>,
    stop: &Cancel,
) -> Result<bool, DeviceError> {
    let mut console = open_console(options, &TerminalUi::new()).await?;
    console.app.welcome();
    login::choose(&mut console, services, false).await;
    let done = loop {
        tokio::select! {
            event = console.next() => console.handle(event).await,
            _ = stop.cancelled() => console.exiting = true,
        }
        if let Some(Effect::Login(provider)) = console.postponed.pop_front() {
            if login::log_in(&mut console, services, &provider, stop).await {
                break true;
            }
            login::choose(&mut console, services, false).await;
        }
        if console.exiting || !console.app.has_dialog() {
            break false;
        }
    };
    console.leave(&[]);
    Ok(done)
}

/// Runs the interactive mode until the user leaves or `stop` is cancelled. `opening` makes the session; the terminal is in use meanwhile, and
/// extensions can ask the user through `ui`.
///
/// When it returns the terminal is as it was before.
///
/// # Errors
/// When the terminal cannot be used, or there is no session.
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
                return Ok(InteractiveEnd::LeftEarly);
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
    Box::pin(driver.show_news()).await;
    if resume {
        driver.choose_session();
    }
    let (mut console, runtime) = driver.run(opened.prompts).await;
    let gone = console.gone;
    let last = console.app.farewell(&runtime);
    console.leave(&last);
    let runtime = Box::new(runtime);
    Ok(if gone { InteractiveEnd::HungUp(runtime) } else { InteractiveEnd::Left(runtime) })
}
