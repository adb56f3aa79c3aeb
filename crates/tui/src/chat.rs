//! A chat with agents in a terminal. The agents run elsewhere: a [`ChatBackend`] sends messages to them and tells what happens.

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

use pinch_coding_agent::tools::bash::BashTool;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

pub use self::backend::{
    AgentAnswer, AgentQuestion, AgentQuestions, AnswerOption, ChatAgent, ChatBackend, ChatError, ChatEvent, ChatModel,
    ChatReply, ChatSession, ChatSessionInfo, ChatUpdate, CommandDecision, CommandQuestion, ElevatedMode,
    MessageOutcome, OutgoingMessage, QueueMode, ReasoningMode, SessionPatch, UsageMode, Verbosity,
};
use self::driver::ChatDriver;
use self::last_session::LastSessions;
use self::state::{ChatApp, ChatSetup};
use crate::front::Front;
use crate::terminal::{DeviceError, TerminalCapabilities};

/// How the chat runs.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChatOptions {
    /// Clock, environment and home directory.
    pub host: Host,
    /// The version that the header names.
    pub version: String,
    /// The directory of `keybindings.json`.
    pub agent_dir: PathBuf,
    /// The working directory, which paths are completed in.
    pub cwd: PathBuf,
    /// The agent to talk to; `None`: the default one.
    pub agent: Option<String>,
    /// The session, by its key or by its name within the agent; `None`: the one that the agent was left in, or else its main session.
    pub session: Option<String>,
    /// How much the model thinks, instead of what the session says.
    pub thinking: Option<ThinkingLevel>,
    /// How much is shown of tools, instead of what the session says.
    pub verbose: Option<Verbosity>,
    /// A message to send at once.
    pub message: Option<String>,
    /// The time limit of runs; `None`: the configured one.
    pub timeout: Option<Duration>,
    /// How many messages of a session are shown when it is opened.
    pub history_limit: usize,
    /// Runs the commands of the user; `None`: they are refused.
    pub shell: Option<Arc<BashTool>>,
    /// What the user should know, one sentence each.
    pub warnings: Vec<String>,
    /// Write everything in plain lines and read line by line, for screen readers and terminals that cannot move their cursor.
    pub plain: bool,
}

impl ChatOptions {
    /// Messages that are shown of a session unless something else is wanted.
    pub const HISTORY_LIMIT: usize = 200;

    /// Options for the main session of the default agent.
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
            plain: false,
        }
    }
}

/// How the chat ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChatEnd {
    /// The user left.
    Left,
    /// The terminal is gone.
    HungUp,
}

/// The chat did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatStartError {
    /// There is no terminal that can be used.
    #[error(transparent)]
    Terminal(#[from] DeviceError),
    /// The backend does not work.
    #[error(transparent)]
    Backend(#[from] ChatError),
    /// The agent does not exist.
    #[error("unknown agent {agent:?}; agents: {}", known.join(", "))]
    UnknownAgent {
        /// The agent.
        agent: String,
        /// The agents that exist.
        known: Vec<String>,
    },
}

impl From<io::Error> for ChatStartError {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error.into())
    }
}

/// The session that an agent was left in, if it is still there.
async fn left_in(last: &LastSessions, agent: &str, backend: &dyn ChatBackend) -> Option<String> {
    let key = last.of(agent)?;
    // A backend that does not work says so when the session is opened.
    let sessions = backend.list_sessions(agent).await.ok()?;
    sessions.iter().any(|session| session.key == key).then_some(key)
}

/// Runs the chat until the user leaves or `stop` is cancelled. Runs that are active then are stopped.
///
/// When it returns the terminal is as it was before.
///
/// # Errors
/// [`ChatStartError`].
pub async fn chat(
    options: ChatOptions,
    backend: Arc<dyn ChatBackend>,
    stop: &Cancel,
) -> Result<ChatEnd, ChatStartError> {
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
    };
    let (mut state, effects) = ChatApp::new(setup, &capabilities);
    for warning in &options.warnings {
        state.warning(warning);
    }
    let front = Front::new(capabilities, state.links())?;
    let driver = ChatDriver::new(front, state, backend, options.host, options.shell, options.history_limit, last);
    Ok(driver.run(effects, stop).await)
}
