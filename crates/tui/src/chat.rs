//! A chat with agents in a terminal. The agents run elsewhere: a [`ChatBackend`] sends messages to them and reports events.

mod backend;
mod commands;
mod effect;
mod last_session;
mod question;
mod agent_question;
mod state;
mod driver;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_coding_agent::tools::bash::BashTool;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

pub use self::backend::{
    AgentAnswer, AgentQuestion, AgentQuestions, AnswerOption, ChatAgent, ChatBackend, ChatError, ChatEvent, ChatModel,
    ChatReply, ChatSession, ChatSessionInfo, ChatUpdate, CommandDecision, CommandQuestion, ElevatedMode,
    GroupActivation, MessageOutcome, OutgoingMessage, PermissionLimit, QueueMode, ReasoningMode, SessionPatch,
    UsageMode, Verbosity,
};
use self::driver::ChatDriver;
use self::last_session::LastSessions;
use self::state::{ChatApp, ChatSetup};
use crate::front::Front;
use crate::terminal::{DeviceError, TerminalCapabilities};

/// Options of the chat.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChatOptions {
    /// Clock, environment and home directory.
    pub host: Host,
    /// Version shown in the header.
    pub version: String,
    /// The directory of `keybindings.json`.
    pub agent_dir: PathBuf,
    /// The working directory, for path completion.
    pub cwd: PathBuf,
    /// The agent to talk to; `None`: the default one.
    pub agent: Option<String>,
    /// The session, by its key or by its name within the agent; `None`: the agent's last session, else its main session.
    pub session: Option<String>,
    /// Thinking level, overriding the session's.
    pub thinking: Option<ThinkingLevel>,
    /// How much tool activity is shown, overriding the session's setting.
    pub verbose: Option<Verbosity>,
    /// A message to send first.
    pub message: Option<String>,
    /// Time limit of runs; `None`: the configured one.
    pub timeout: Option<Duration>,
    /// Maximum number of messages shown when a session is opened.
    pub history_limit: usize,
    /// Runs shell commands of the user; `None`: they are refused.
    pub shell: Option<Arc<BashTool>>,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
    /// How the user is notified while the window is in the background: the setting `terminal.notify`.
    pub notify: String,
    /// Whether progress is reported to the terminal: the setting `terminal.showTerminalProgress`.
    pub shows_progress: bool,
    /// Whether to write plain lines and read line by line, for screen readers and terminals that cannot move their cursor.
    pub plain: bool,
}

impl ChatOptions {
    /// Default for [`ChatOptions::history_limit`].
    pub const HISTORY_LIMIT: usize = 200;

    /// Creates options for the main session of the default agent.
    pub fn new(host: Host, agent_dir: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            host,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agent_dir: agent_dir.into(),
            cwd: cwd.into(),
            agent: None,
            session: None,
            thinking: None,
            verbose: None,
            message: None,
            timeout: None,
            history_limit: Self::HISTORY_LIMIT,
            shell: None,
            warnings: Vec::new(),
            notify: "auto".to_owned(),
            shows_progress: false,
            plain: false,
        }
    }
}

/// How the chat ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatEnd {
    /// The user exited.
    Exited,
    /// The terminal is gone.
    HungUp,
}

/// Why the chat did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatStartError {
    /// There is no usable terminal.
    #[error(transparent)]
    Terminal(#[from] DeviceError),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] ChatError),
    /// The agent does not exist.
    #[error("unknown agent {agent:?}; agents: {}", known.join(", "))]
    UnknownAgent {
        /// The requested agent.
        agent: String,
        /// The existing agents.
        known: Vec<String>,
    },
}

impl From<io::Error> for ChatStartError {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error.into())
    }
}

/// Returns the last open session of an agent, if it still exists.
async fn left_in(last: &LastSessions, agent: &str, backend: &dyn ChatBackend) -> Option<String> {
    let key = last.of(agent)?;
    // A failing backend is reported when the session is opened.
    let sessions = backend.list_sessions(agent).await.ok()?;
    sessions.iter().any(|session| session.key == key).then_some(key)
}

/// Runs the chat until the user exits or `stop` is cancelled. Active runs are then stopped.
///
/// The terminal is restored before it returns.
///
/// # Errors
/// [`ChatStartError`].
pub fn chat(
    options: ChatOptions,
    backend: Arc<dyn ChatBackend>,
    stop: &Cancel,
) -> BoxFuture<'_, Result<ChatEnd, ChatStartError>> {
    Box::pin(async move {
        let agents = backend.list_agents().await?;
        let agent = match &options.agent {
            Some(agent) => agent.clone(),
            None => agents.first().map(|agent| agent.id.clone()).unwrap_or_default(),
        };
        if !agents.iter().any(|known| known.id == agent) {
            let known = agents.into_iter().map(|agent| agent.id).collect();
            return Err(ChatStartError::UnknownAgent { agent, known });
        }
        let last = LastSessions::new(&options.agent_dir, backend.target(), options.host.clone());
        let session = match options.session {
            Some(session) => Some(session),
            None => left_in(&last, &agent, &*backend).await,
        };
        let capabilities = match options.plain {
            true => TerminalCapabilities::plain(options.host.env()),
            false => TerminalCapabilities::of(options.host.env()),
        };
        let setup = ChatSetup {
            host: options.host.clone(),
            version: options.version,
            agent_dir: options.agent_dir,
            cwd: options.cwd,
            target: backend.target(),
            agents,
            agent,
            session,
            thinking: options.thinking,
            verbose: options.verbose,
            timeout: options.timeout,
            message: options.message,
            has_shell: options.shell.is_some(),
            notify: options.notify,
            shows_progress: options.shows_progress,
        };
        let (mut state, effects) = ChatApp::new(setup, &capabilities);
        for warning in &options.warnings {
            state.warning(warning);
        }
        let front = Front::new(capabilities, state.links())?;
        let driver = ChatDriver::new(front, state, backend, options.host, options.shell, options.history_limit, last);
        Ok(driver.run(effects, stop).await)
    })
}
