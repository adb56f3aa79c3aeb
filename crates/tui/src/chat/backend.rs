//! The interface between the chat and agents with sessions, wherever they run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, ToolOutput};
use pinch_llm::message::Message;
use pinch_llm::thinking::ThinkingLevel;

/// A backend that gives access to agents.
///
/// Sessions are identified by keys such as `agent:main:main`; events contain the key that the message was sent with. Futures do nothing
/// unless polled, and dropping one cancels its operation.
pub trait ChatBackend: Send + Sync {
    /// Returns a short description of where the agents run.
    fn target(&self) -> String;

    /// Sends a message, and drives the run that it starts to its end. [`ChatBackend::next_event`] reports events in the meantime. Dropping
    /// the future stops that run, or withdraws a message that no run has read.
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<MessageOutcome, ChatError>>;

    /// Stops the active run of a session. Returns whether there was one.
    fn abort<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<bool, ChatError>>;

    /// Returns the last messages of a session, oldest first, at most `limit`.
    fn history<'a>(&'a self, session_key: &'a str, limit: usize)
    -> BoxFuture<'a, Result<Vec<Arc<Message>>, ChatError>>;

    /// Answers a question about a command.
    fn decide<'a>(&'a self, question: &'a str, decision: CommandDecision) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Answers the questions of an agent; `None`: the user declines to answer.
    fn answer<'a>(
        &'a self,
        questions: &'a str,
        answers: Option<Vec<AgentAnswer>>,
    ) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Returns the state of a session. One that does not exist yet has the settings that it would begin with.
    fn session<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<ChatSessionInfo, ChatError>>;

    /// Returns the sessions of an agent, most recently used first.
    fn list_sessions<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<Vec<ChatSession>, ChatError>>;

    /// Changes a setting of a session.
    fn patch_session<'a>(&'a self, session_key: &'a str, patch: SessionPatch) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Begins a new session for a key.
    fn reset_session<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Compacts a session; optional instructions focus the summary. Returns the outcome, for people.
    fn compact<'a>(
        &'a self,
        session_key: &'a str,
        instructions: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, ChatError>>;

    /// Returns the agents, the default one first. There is at least one.
    fn list_agents(&self) -> BoxFuture<'_, Result<Vec<ChatAgent>, ChatError>>;

    /// Returns the models that an agent can use.
    fn list_models<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<Vec<ChatModel>, ChatError>>;

    /// Returns the state of the backend and of a session, in Markdown.
    fn status<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<String, ChatError>>;

    /// Returns what takes up the model's context window in a session, in Markdown.
    fn context<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<String, ChatError>>;

    /// Returns the credentials of an agent and their state, for one provider or all, in Markdown.
    fn credentials<'a>(&'a self, agent: &'a str, provider: Option<&'a str>)
    -> BoxFuture<'a, Result<String, ChatError>>;

    /// Logs in to a provider for an agent's runs; without a provider, the user chooses. The terminal belongs to the backend until the future
    /// is done or dropped.
    fn login<'a>(&'a self, agent: &'a str, provider: Option<&'a str>) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Returns the next event, or `None` when there will be no more. Cancel-safe: dropping the future loses nothing.
    fn next_event(&self) -> BoxFuture<'_, Option<ChatEvent>>;
}

/// An error of the backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChatError {
    /// The message, for people.
    pub message: String,
}

impl ChatError {
    /// Creates an error with a message for people.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// A message of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingMessage {
    /// Its unique id.
    pub id: String,
    /// The session.
    pub session_key: String,
    /// The text.
    pub text: String,
    /// Thinking level, overriding the session's.
    pub thinking: Option<ThinkingLevel>,
    /// Time limit of the run that it starts; `None`: the configured one.
    pub timeout: Option<Duration>,
    /// What happens if the session is busy; `None`: as configured.
    pub queue: Option<QueueMode>,
    /// Whether commands leave the sandbox; `None`: as configured.
    pub elevated: Option<ElevatedMode>,
    /// Whether its replies are also delivered to [`ChatSessionInfo::channel`].
    pub deliver: bool,
    /// Whether the user sees the tools of the run, so that replies need not report failed ones.
    pub shows_tools: bool,
}

/// Outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// It started a run, which has ended; an event reports how.
    Ended,
    /// A run started by another message has read it.
    Joined,
    /// No run has read it: too many messages waited, or a later one replaced them.
    Dropped,
}

/// An event of the backend.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChatEvent {
    /// An update of a run.
    Run {
        /// Key of the session.
        session_key: String,
        /// Id of the run.
        run_id: String,
        /// The update.
        update: ChatUpdate,
    },
    /// A tool needs approval for a command, and waits until [`ChatBackend::decide`] is called.
    Question(CommandQuestion),
    /// An agent has questions, and waits until [`ChatBackend::answer`] is called.
    Asked(AgentQuestions),
    /// The question or questions with this id no longer need an answer.
    QuestionWithdrawn(String),
}

/// A request for approval of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandQuestion {
    /// Id of the request.
    pub id: String,
    /// Session whose run wants to run the command, if known.
    pub session_key: Option<String>,
    /// The command.
    pub command: String,
    /// Its working directory.
    pub cwd: String,
    /// Why approval is needed.
    pub reason: String,
}

/// Questions of an agent, asked together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentQuestions {
    /// Id of the set of questions.
    pub id: String,
    /// Session whose run asks, if known.
    pub session_key: Option<String>,
    /// The questions, in order.
    pub questions: Vec<AgentQuestion>,
    /// When the questions expire, in Unix milliseconds.
    pub expires_ms: i64,
}

/// A question of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentQuestion {
    /// Id within the set.
    pub id: String,
    /// Short heading.
    pub header: String,
    /// The question.
    pub text: String,
    /// Predefined answers. The user may always give a different one.
    pub options: Vec<AnswerOption>,
    /// Whether several of them may be chosen.
    pub is_multiple: bool,
}

/// A predefined answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerOption {
    /// The answer.
    pub label: String,
    /// What it means.
    pub description: Option<String>,
}

/// The answer to a question of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentAnswer {
    /// Id of the question.
    pub question: String,
    /// Labels of the chosen options, and text typed by the user.
    pub values: Vec<String>,
}

/// An update of a run. A run has exactly one end: [`ChatUpdate::Final`] or [`ChatUpdate::Failed`].
#[derive(Clone, Debug)]
pub enum ChatUpdate {
    /// The run has read the message with this id.
    MessageRead(String),
    /// The run has started.
    Started,
    /// The model begins an answer.
    AnswerStarted,
    /// The text of the answer is truncated at byte `at`, then `text` is appended.
    Text {
        /// How much of the text so far is kept, in bytes.
        at: usize,
        /// Text to append.
        text: String,
    },
    /// More of the model's thinking.
    Thinking(String),
    /// The model has stopped thinking.
    ThinkingEnded,
    /// A tool has started.
    ToolStarted {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
        /// The arguments.
        arguments: Arc<JsonObject>,
    },
    /// A partial result.
    ToolProgress {
        /// Id of the call.
        id: String,
        /// The result so far.
        output: ToolOutput,
    },
    /// A tool has ended.
    ToolEnded {
        /// Id of the call.
        id: String,
        /// The result.
        output: ToolOutput,
        /// Duration in milliseconds.
        duration_ms: Option<i64>,
    },
    /// The run is doing something that takes time.
    Busy {
        /// A verb form for the activity, such as `compacting`.
        activity: String,
        /// When it ends, in Unix milliseconds, if known.
        until_ms: Option<i64>,
    },
    /// A notice for the user, for example about another model or profile.
    Notice(String),
    /// The run has ended.
    Final {
        /// Its replies, including those already shown as they arrived.
        replies: Vec<ChatReply>,
        /// Whether it was stopped.
        aborted: bool,
        /// Token usage in words, if enabled in the session.
        usage: Option<String>,
    },
    /// The run has failed with this message.
    Failed(String),
}

/// A reply of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatReply {
    /// The text.
    pub text: String,
    /// Paths and URLs of media.
    pub media: Vec<String>,
    /// Whether it reports a failure.
    pub is_error: bool,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatAgent {
    /// Its id.
    pub id: String,
    /// Key of its main session.
    pub main_session: String,
}

/// A session in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatSession {
    /// Its key.
    pub key: String,
    /// Label given by the user.
    pub label: Option<String>,
    /// Time of the last message, in Unix milliseconds.
    pub updated_ms: i64,
    /// Tokens in its conversation, if known.
    pub tokens: Option<u64>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatModel {
    /// Its provider.
    pub provider: String,
    /// Its id.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Size of its context window in tokens; 0: unknown.
    pub window: u64,
}

/// State of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatSessionInfo {
    /// Label given by the user.
    pub label: Option<String>,
    /// Model, as `provider/id`; `None`: there is none.
    pub model: Option<String>,
    /// Thinking level; `None`: not set.
    pub thinking: Option<ThinkingLevel>,
    /// Thinking levels that the model supports.
    pub thinking_levels: Vec<ThinkingLevel>,
    /// How much tool activity is shown.
    pub verbose: Verbosity,
    /// How thinking is shown.
    pub reasoning: ReasoningMode,
    /// How token usage is shown.
    pub usage: UsageMode,
    /// What happens to messages while the session is busy; `None`: as configured.
    pub queue: Option<QueueMode>,
    /// Whether commands leave the sandbox; `None`: as configured.
    pub elevated: Option<ElevatedMode>,
    /// The most that runs may do; `None`: as configured.
    pub permissions: Option<PermissionLimit>,
    /// Which messages of a group the agent answers; `None`: as configured.
    pub activation: Option<GroupActivation>,
    /// The channel to which replies can be delivered; `None`: there is none.
    pub channel: Option<String>,
    /// Tokens in the conversation; `None`: unknown.
    pub tokens: Option<u64>,
    /// Size of the model's context window in tokens; `None`: unknown.
    pub window: Option<u64>,
}

/// A change of a session's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionPatch {
    /// The model, as typed by the user; `None`: the configured one.
    Model(Option<String>),
    /// Thinking level; `None`: as configured.
    Thinking(Option<ThinkingLevel>),
    /// How much tool activity is shown.
    Verbose(Verbosity),
    /// How thinking is shown.
    Reasoning(ReasoningMode),
    /// How token usage is shown.
    Usage(UsageMode),
    /// What happens to messages while the session is busy; `None`: as configured.
    Queue(Option<QueueMode>),
    /// Whether commands leave the sandbox.
    Elevated(ElevatedMode),
    /// The most that runs may do; `None`: as configured.
    Permissions(Option<PermissionLimit>),
    /// Which messages of a group the agent answers.
    Activation(GroupActivation),
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the keyword.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Parses the keyword; `None` if it is unknown.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The decision about a command.
    CommandDecision {
        /// Allow it once.
        Once "once",
        /// Allow it now, and in future with the same arguments in the same directory.
        Always "always",
        /// Deny it.
        Deny "deny",
    }
}

words! {
    /// How much tool activity is shown.
    #[derive(Default)]
    Verbosity {
        /// Nothing.
        #[default]
        Off "off",
        /// Names and arguments.
        On "on",
        /// Results as well.
        Full "full",
    }
}

words! {
    /// How thinking is shown.
    #[derive(Default)]
    ReasoningMode {
        /// Hidden.
        #[default]
        Off "off",
        /// Shown when complete.
        On "on",
        /// Shown as it arrives.
        Stream "stream",
    }
}

words! {
    /// How token usage is shown.
    #[derive(Default)]
    UsageMode {
        /// Hidden.
        #[default]
        Off "off",
        /// Number of tokens.
        Tokens "tokens",
        /// Number of tokens and their cost.
        Full "full",
    }
}

words! {
    /// Whether commands leave the sandbox.
    ElevatedMode {
        /// They do not.
        Off "off",
        /// The same as [`ElevatedMode::Ask`].
        On "on",
        /// They do; the user must approve those that are not on the allow list.
        Ask "ask",
        /// They do, subject to the rules for all commands.
        Full "full",
    }
}

words! {
    /// The most that the runs of a session may do.
    PermissionLimit {
        /// Read files in the workspace.
        ReadOnly "read-only",
        /// Change files in the workspace; the user must approve commands that are not on the allow list.
        Guarded "guarded",
        /// The same, with a reviewer asked about commands first, if there is one.
        Workspace "workspace",
        /// What the configuration allows.
        Full "full",
    }
}

words! {
    /// Which messages of a group the agent answers.
    GroupActivation {
        /// Those that mention it.
        Mention "mention",
        /// All of them.
        Always "always",
    }
}

words! {
    /// What happens to messages while their session is busy.
    QueueMode {
        /// The run reads them in its next turn.
        Steer "steer",
        /// Each gets its own run afterwards.
        FollowUp "followup",
        /// A single run reads all of them afterwards.
        Collect "collect",
        /// The run is stopped.
        Interrupt "interrupt",
    }
}
