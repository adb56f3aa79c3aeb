//! Commands of RPC mode. The names are pi's.
//!
//! Commands fall into classes by what they need of the session. Handlers match a class exhaustively, so that a command without a handler does
//! not compile.

use std::time::Duration;

use pinch_agent_core::queue::{QueueKind, QueueMode};
use pinch_llm::message::Image;
use serde_json::Value;

use crate::entry::EntryId;

mod parse;

pub use parse::parse;

/// A line that was understood.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RpcRequest {
    /// What the client recognises the answer by; returned unchanged.
    pub id: Option<Value>,
    /// The command's name.
    pub name: String,
    /// The command.
    pub command: RpcCommand,
}

/// A line that was not understood, as its answer reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RejectedLine {
    /// The id, if there was one.
    pub id: Option<Value>,
    /// The command's name; `parse` for lines that hold none.
    pub name: String,
    /// Why it was rejected.
    pub error: String,
}

impl RejectedLine {
    /// A line that holds no command.
    pub fn no_command(why: &str) -> Self {
        Self { id: None, name: "parse".to_owned(), error: format!("Failed to parse command: {why}") }
    }
}

/// What a client can ask for, by what it needs of the session.
#[derive(Clone, Debug, PartialEq)]
pub enum RpcCommand {
    /// Needs no session: done at once, whether a run is under way or not.
    Control(ControlCommand),
    /// Reads the session. During a run it is answered between two events.
    Query(QueryCommand),
    /// Writes the session as an HTML page, from a snapshot and beside everything else.
    ExportHtml {
        /// The file; `None`: one in the working directory.
        path: Option<String>,
    },
    /// Starts a run, adds to one, or stops one.
    Run(RunCommand),
    /// Changes the session. During a run the change takes effect between two events.
    Mutation(Mutation),
    /// Needs the session for itself. During a run it cancels the run and waits for its end.
    Exclusive(ExclusiveCommand),
}

/// Commands that need no session.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlCommand {
    /// Protocol versions and capabilities; a command of ours.
    Hello(Hello),
    /// What can be written after a `/`.
    GetCommands,
    /// Models that can be used.
    GetAvailableModels,
    /// How many waiting messages are taken at a time.
    SetQueueMode {
        /// Of which queue.
        kind: QueueKind,
        /// How many.
        mode: QueueMode,
    },
    /// Switches automatic compaction.
    SetAutoCompaction {
        /// On or off.
        enabled: bool,
    },
    /// Switches the retry of failed answers.
    SetAutoRetry {
        /// On or off.
        enabled: bool,
    },
}

/// Commands that read the session.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryCommand {
    /// Model, levels, modes, counts.
    GetState,
    /// The conversation.
    GetMessages,
    /// Entries in file order.
    GetEntries {
        /// Only those after this one.
        since: Option<EntryId>,
    },
    /// Entries as a tree.
    GetTree,
    /// Messages that can be forked before.
    GetForkMessages,
    /// The text of the last answer.
    GetLastAssistantText,
    /// Counts, tokens, cost.
    GetSessionStats,
    /// Thinking levels that the model has.
    GetAvailableThinkingLevels,
}

/// Commands that start a run, add to one, or stop one.
#[derive(Clone, Debug, PartialEq)]
pub enum RunCommand {
    /// A prompt of the user.
    Prompt {
        /// Text and images.
        input: UserInput,
        /// The queue it waits in while another prompt runs.
        queue: Option<QueueKind>,
    },
    /// A message the model reads at its next turn.
    Steer(UserInput),
    /// A message the model reads when it would be done.
    FollowUp(UserInput),
    /// Removes the waiting messages from the queues.
    ClearQueue,
    /// Cancels the run.
    Abort,
    /// Cancels the wait for a retry.
    AbortRetry,
    /// Runs a shell command of the user.
    Bash {
        /// The command.
        command: String,
        /// The model does not see it.
        exclude: bool,
    },
    /// Cancels shell commands of the user.
    AbortBash,
}

/// Commands that change the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Mutation {
    /// Another model.
    SetModel {
        /// Provider that serves it.
        provider: String,
        /// Its id.
        model: String,
    },
    /// The next model.
    CycleModel,
    /// Another thinking level.
    SetThinkingLevel {
        /// The level's name.
        level: String,
    },
    /// The next thinking level.
    CycleThinkingLevel,
    /// Another name for the session.
    SetSessionName {
        /// The name.
        name: String,
    },
}

/// Commands that need the session for themselves.
#[derive(Clone, Debug, PartialEq)]
pub enum ExclusiveCommand {
    /// Compacts the conversation.
    Compact {
        /// What the summary should focus on.
        focus: Option<String>,
    },
    /// Starts a new session.
    NewSession {
        /// The session it follows.
        parent: Option<String>,
    },
    /// Opens another session.
    SwitchSession {
        /// Its file.
        path: String,
    },
    /// Changes over to a copy that ends before a message of the user.
    Fork {
        /// The message.
        entry: EntryId,
    },
    /// Changes over to a copy of the branch.
    Clone,
}

/// What a client announces about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hello {
    /// Names of capabilities that are off until a client asks for them; `None`: they stay as they are.
    pub capabilities: Option<Vec<String>>,
    /// How long a call waits for its approval; `None`: the usual time.
    pub approval_limit: Option<Duration>,
}

/// Text and images of the user.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UserInput {
    /// The text.
    pub text: String,
    /// The images.
    pub images: Vec<Image>,
}

/// The answer of a client to a request of an extension.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UiReply {
    /// The request's id.
    pub id: String,
    /// What was answered; `None` when the user answered nothing.
    pub answer: Option<UiAnswer>,
}

/// What a user answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UiAnswer {
    /// A text.
    Value(String),
    /// Yes or no.
    Confirmed(bool),
}

/// The answer of a client to a request for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolReply {
    /// The request's id.
    pub id: String,
    /// What was answered.
    pub decision: ToolDecision,
}

/// The user's decision about a call that is about to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolDecision {
    /// It may run.
    Approve,
    /// It may run, and so may all later calls of its tool in this session.
    ApproveForSession,
    /// It may not.
    Deny {
        /// Why, for the model.
        reason: Option<String>,
    },
}

/// One line of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientLine {
    /// A command.
    Command(Box<RpcRequest>),
    /// An answer to an extension; nothing is answered to it.
    UiReply(UiReply),
    /// An answer to a request for approval; nothing is answered to it.
    ToolReply(ToolReply),
}
