//! What the chat talks to: agents with sessions, wherever they run.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, ToolOutput};
use pinch_llm::message::Message;
use pinch_llm::thinking::ThinkingLevel;

/// Agents that can be talked to.
///
/// Sessions are named by their keys, such as `agent:main:main`; events name a session by the key that the message was sent with. Futures do
/// nothing unless polled, and dropping one gives up what it stands for.
pub trait ChatBackend: Send + Sync {
    /// Where the agents run, in a word or two.
    fn target(&self) -> String;

    /// Sends a message, and drives the run that it starts to its end. What happens meanwhile is told by [`ChatBackend::next_event`].
    /// Dropping the future stops that run; a message that no run has read is withdrawn.
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<MessageOutcome, ChatError>>;

    /// Stops the active run of a session. Returns whether there was one.
    fn abort<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<bool, ChatError>>;

    /// The last messages of a session, oldest first, at most `limit`.
    fn history<'a>(&'a self, session_key: &'a str, limit: usize)
    -> BoxFuture<'a, Result<Vec<Arc<Message>>, ChatError>>;

    /// Answers a question about a command.
    fn decide<'a>(&'a self, question: &'a str, decision: CommandDecision) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Answers the questions of an agent; `None`: the user does not want to answer.
    fn answer<'a>(
        &'a self,
        questions: &'a str,
        answers: Option<Vec<AgentAnswer>>,
    ) -> BoxFuture<'a, Result<(), ChatError>>;

    /// What is known about a session. One that does not exist yet has the settings that it would begin with.
    fn session<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<ChatSessionInfo, ChatError>>;

    /// The sessions of an agent, the one used last first.
    fn list_sessions<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<Vec<ChatSession>, ChatError>>;

    /// Changes a setting of a session.
    fn patch_session<'a>(&'a self, session_key: &'a str, patch: SessionPatch) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Begins a new session for a key.
    fn reset_session<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<(), ChatError>>;

    /// Compacts a session, with a view to something if instructions say so. Returns what came of it, for people.
    fn compact<'a>(
        &'a self,
        session_key: &'a str,
        instructions: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, ChatError>>;

    /// The agents, the default one first. There is at least one.
    fn list_agents(&self) -> BoxFuture<'_, Result<Vec<ChatAgent>, ChatError>>;

    /// The models that an agent can use.
    fn list_models<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<Vec<ChatModel>, ChatError>>;

    /// The state of the backend and of a session, in Markdown.
    fn status<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<String, ChatError>>;

    /// What fills the model's window in a session, in Markdown.
    fn context<'a>(&'a self, session_key: &'a str) -> BoxFuture<'a, Result<String, ChatError>>;

    /// The credentials of an agent and their state, for one provider or all, in Markdown.
    fn credentials<'a>(&'a self, agent: &'a str, provider: Option<&'a str>)
    -> BoxFuture<'a, Result<String, ChatError>>;

    /// The next event; `None` when there will be none. Nothing is lost when the future is dropped.
    fn next_event(&self) -> BoxFuture<'_, Option<ChatEvent>>;
}

/// Something was not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChatError {
    /// Why, for people.
    pub message: String,
}

impl ChatError {
    /// An error with a message for people.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// A message of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingMessage {
    /// Identifies it among all messages.
    pub id: String,
    /// The session.
    pub session_key: String,
    /// The text.
    pub text: String,
    /// How much the model thinks, instead of what the session says.
    pub thinking: Option<ThinkingLevel>,
    /// The time limit of the run that it starts; `None`: the configured one.
    pub timeout: Option<Duration>,
    /// What happens if the session is busy; `None`: what the configuration says.
    pub queue: Option<QueueMode>,
    /// Whether commands leave the sandbox; `None`: what the configuration says.
    pub elevated: Option<ElevatedMode>,
    /// Whether the user sees the tools of the run: then no reply has to report that one has failed.
    pub shows_tools: bool,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// A run that it started has ended; how is told by an event.
    Ended,
    /// A run that another message started has read it.
    Joined,
    /// Nobody has read it: too many messages waited, or a later one took their place.
    Dropped,
}

/// Something happened.
#[derive(Clone, Debug)]
pub enum ChatEvent {
    /// In a run.
    Run {
        /// The session.
        session_key: String,
        /// The run.
        run_id: String,
        /// What happened.
        update: ChatUpdate,
    },
    /// A tool wants to run a command, and waits until [`ChatBackend::decide`] is called.
    Question(CommandQuestion),
    /// An agent asks the user, and waits until [`ChatBackend::answer`] is called.
    Asked(AgentQuestions),
    /// Nobody waits any longer for the answer to the question, or the questions, with this id.
    QuestionWithdrawn(String),
}

/// A question: may this command run?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandQuestion {
    /// Identifies the question.
    pub id: String,
    /// The session whose run wants to run it, if known.
    pub session_key: Option<String>,
    /// The command.
    pub command: String,
    /// The directory that it would run in.
    pub cwd: String,
    /// Why it is asked.
    pub reason: String,
}

/// Questions that an agent asks together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentQuestions {
    /// Identifies them.
    pub id: String,
    /// The session whose run asks, if known.
    pub session_key: Option<String>,
    /// The questions; they are asked one after another.
    pub questions: Vec<AgentQuestion>,
    /// When nobody waits for the answers any longer, in Unix milliseconds.
    pub expires_ms: i64,
}

/// A question of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentQuestion {
    /// Names it among those that are asked with it.
    pub id: String,
    /// A few words about it.
    pub header: String,
    /// The question.
    pub text: String,
    /// Answers to choose from. The user may always give another one.
    pub options: Vec<AnswerOption>,
    /// Whether several of them may be chosen.
    pub is_multiple: bool,
}

/// An answer to choose.
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
    /// The id of the question.
    pub question: String,
    /// Labels of the options that were chosen, and what the user typed.
    pub values: Vec<String>,
}

/// What happened in a run. A run has one end: [`ChatUpdate::Final`] or [`ChatUpdate::Failed`].
#[derive(Clone, Debug)]
pub enum ChatUpdate {
    /// The run reads the message with this id.
    MessageRead(String),
    /// The run has begun.
    Started,
    /// The model begins an answer.
    AnswerStarted,
    /// The text of the answer is cut at byte `at`, and goes on with `text`.
    Text {
        /// How much of the text so far stays, in bytes.
        at: usize,
        /// What follows.
        text: String,
    },
    /// The model thinks: more of its thoughts.
    Thinking(String),
    /// The model does not think any longer.
    ThinkingEnded,
    /// A tool begins.
    ToolStarted {
        /// The id of the call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments.
        arguments: Arc<JsonObject>,
    },
    /// A result so far.
    ToolProgress {
        /// The id of the call.
        id: String,
        /// The result so far.
        output: ToolOutput,
    },
    /// A tool has ended.
    ToolEnded {
        /// The id of the call.
        id: String,
        /// The result.
        output: ToolOutput,
        /// How long it took, in milliseconds.
        duration_ms: Option<i64>,
    },
    /// The run does something that takes time.
    Busy {
        /// What it does, as in `compacting`.
        activity: String,
        /// When it is over, in Unix milliseconds, if that is known.
        until_ms: Option<i64>,
    },
    /// Something that the user may want to know: another model, another profile.
    Notice(String),
    /// The run has ended.
    Final {
        /// Its replies; those that were shown as they arrived are among them.
        replies: Vec<ChatReply>,
        /// It was stopped.
        aborted: bool,
        /// The tokens that it used, in words, if the session wants to see them.
        usage: Option<String>,
    },
    /// The run has failed.
    Failed(String),
}

/// A reply of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatReply {
    /// The text.
    pub text: String,
    /// Paths and addresses of media.
    pub media: Vec<String>,
    /// It reports a failure.
    pub is_error: bool,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatAgent {
    /// Its id.
    pub id: String,
    /// The key of its main session.
    pub main_session: String,
}

/// A session in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatSession {
    /// Its key.
    pub key: String,
    /// The name that people gave it.
    pub label: Option<String>,
    /// When a message arrived last, in Unix milliseconds.
    pub updated_ms: i64,
    /// The tokens of its conversation, if known.
    pub tokens: Option<u64>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatModel {
    /// Its provider.
    pub provider: String,
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The size of its window in tokens; 0: unknown.
    pub window: u64,
}

/// What is known about a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatSessionInfo {
    /// The name that people gave it.
    pub label: Option<String>,
    /// The model, as `provider/id`; `None`: there is none.
    pub model: Option<String>,
    /// How much the model thinks; `None`: nobody chose.
    pub thinking: Option<ThinkingLevel>,
    /// The levels that the model has.
    pub thinking_levels: Vec<ThinkingLevel>,
    /// How much is shown of tools.
    pub verbose: Verbosity,
    /// How much is shown of the model's thoughts.
    pub reasoning: ReasoningMode,
    /// What is shown of the tokens of runs.
    pub usage: UsageMode,
    /// What happens to messages while the session is busy; `None`: what the configuration says.
    pub queue: Option<QueueMode>,
    /// Whether commands leave the sandbox; `None`: what the configuration says.
    pub elevated: Option<ElevatedMode>,
    /// The tokens of the conversation; `None`: unknown.
    pub tokens: Option<u64>,
    /// The size of the model's window in tokens; `None`: unknown.
    pub window: Option<u64>,
}

/// A change of a session's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionPatch {
    /// The model, as people name it; `None`: the one that is configured.
    Model(Option<String>),
    /// How much the model thinks; `None`: as configured.
    Thinking(Option<ThinkingLevel>),
    /// How much is shown of tools.
    Verbose(Verbosity),
    /// How much is shown of the model's thoughts.
    Reasoning(ReasoningMode),
    /// What is shown of the tokens of runs.
    Usage(UsageMode),
    /// What happens to messages while the session is busy; `None`: as configured.
    Queue(Option<QueueMode>),
    /// Whether commands leave the sandbox.
    Elevated(ElevatedMode),
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Reads the word; `None` when it is another one.
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
    /// The answer to a question about a command.
    CommandDecision {
        /// It may run this time.
        Once "once",
        /// It may run this time, and from now on with the same arguments in the same directory.
        Always "always",
        /// It may not run.
        Deny "deny",
    }
}

words! {
    /// How much is shown of tools.
    #[derive(Default)]
    Verbosity {
        /// Nothing.
        #[default]
        Off "off",
        /// Their names and arguments.
        On "on",
        /// Their results, too.
        Full "full",
    }
}

words! {
    /// How much is shown of the model's thoughts.
    #[derive(Default)]
    ReasoningMode {
        /// Nothing.
        #[default]
        Off "off",
        /// Thoughts that are complete.
        On "on",
        /// Thoughts as they come.
        Stream "stream",
    }
}

words! {
    /// What is shown of the tokens of runs.
    #[derive(Default)]
    UsageMode {
        /// Nothing.
        #[default]
        Off "off",
        /// How many there were.
        Tokens "tokens",
        /// How many there were, and what they cost.
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
        /// They do; the user is asked about those that are not on the allow list.
        Ask "ask",
        /// They do, under the rules for all commands.
        Full "full",
    }
}

words! {
    /// What happens to messages while their session is busy.
    QueueMode {
        /// The run reads them in its next turn.
        Steer "steer",
        /// Each gets a run of its own afterwards.
        FollowUp "followup",
        /// One run reads all of them afterwards.
        Collect "collect",
        /// The run is stopped.
        Interrupt "interrupt",
    }
}
