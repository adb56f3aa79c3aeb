//! Commands of RPC mode, with pi's names.
//!
//! Commands are grouped by how they access the session. Handlers match each group exhaustively, so a command without a handler does not
//! compile.

use std::time::Duration;

use pinch_agent_core::queue::{QueueKind, QueueMode};
use pinch_llm::message::Image;
use serde_json::Value;

use crate::entry::EntryId;

mod parse;

pub use parse::parse;

/// A valid line with a command.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RpcRequest {
    /// Correlates the answer with the command; returned unchanged.
    pub id: Option<Value>,
    /// Name of the command.
    pub name: String,
    /// The command.
    pub command: RpcCommand,
}

/// An invalid line, as reported in its answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RejectedLine {
    /// The id, if present.
    pub id: Option<Value>,
    /// Name of the command; `parse` for lines without one.
    pub name: String,
    /// The error message.
    pub error: String,
}

impl RejectedLine {
    /// Rejects a line without a command.
    pub fn no_command(why: &str) -> Self {
        Self { id: None, name: "parse".to_owned(), error: format!("Failed to parse command: {why}") }
    }
}

/// A client's command, by how it accesses the session.
#[derive(Clone, Debug, PartialEq)]
pub enum RpcCommand {
    /// Needs no session: executed immediately, even during a run.
    Control(ControlCommand),
    /// Reads the session. During a run, answered between two events.
    Query(QueryCommand),
    /// Writes the session as an HTML page, from a snapshot and in the background.
    ExportHtml {
        /// Path of the file; `None` uses a file in the working directory.
        path: Option<String>,
    },
    /// Starts, extends or stops a run.
    Run(RunCommand),
    /// Changes the session. During a run, takes effect between two events.
    Mutation(Mutation),
    /// Needs exclusive access to the session. Cancels a run and waits for its end.
    Exclusive(ExclusiveCommand),
}

/// Commands that need no session.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlCommand {
    /// Negotiates protocol version and capabilities; an extension of pinch.
    Hello(Hello),
    /// Lists the slash commands.
    GetCommands,
    /// Lists the available models.
    GetAvailableModels,
    /// Sets how many queued messages are taken at a time.
    SetQueueMode {
        /// The queue.
        kind: QueueKind,
        /// The mode.
        mode: QueueMode,
    },
    /// Enables or disables automatic compaction.
    SetAutoCompaction {
        /// Whether to enable it.
        enabled: bool,
    },
    /// Enables or disables retries of failed answers.
    SetAutoRetry {
        /// Whether to enable them.
        enabled: bool,
    },
}

/// Commands that read the session.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryCommand {
    /// Returns model, levels, modes and counts.
    GetState,
    /// Returns the conversation.
    GetMessages,
    /// Returns the entries in file order.
    GetEntries {
        /// Only those after this entry.
        since: Option<EntryId>,
    },
    /// Returns the entries as trees.
    GetTree,
    /// Returns the messages that can be forked before.
    GetForkMessages,
    /// Returns the text of the last answer.
    GetLastAssistantText,
    /// Returns message counts, tokens and cost.
    GetSessionStats,
    /// Returns the thinking levels of the model.
    GetAvailableThinkingLevels,
}

/// Commands that start, extend or stop a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunCommand {
    /// Sends a prompt.
    Prompt {
        /// Text and images.
        input: UserInput,
        /// The queue to use while another prompt is running.
        queue: Option<QueueKind>,
    },
    /// Queues a message for the model's next turn.
    Steer(UserInput),
    /// Queues a message for when the run would end.
    FollowUp(UserInput),
    /// Removes all messages from the queues.
    ClearQueue,
    /// Cancels the run.
    Abort,
    /// Cancels a retry delay.
    AbortRetry,
    /// Runs a shell command of the user.
    Bash {
        /// The command.
        command: String,
        /// Whether to hide it from the model.
        exclude: bool,
    },
    /// Cancels the user's shell commands.
    AbortBash,
}

/// Commands that change the session.
#[derive(Clone, Debug, PartialEq)]
pub enum Mutation {
    /// Switches to another model.
    SetModel {
        /// Provider that serves it.
        provider: String,
        /// Id of the model.
        model: String,
    },
    /// Switches to the next model.
    CycleModel,
    /// Sets the thinking level.
    SetThinkingLevel {
        /// Name of the level.
        level: String,
    },
    /// Switches to the next thinking level.
    CycleThinkingLevel,
    /// Renames the session.
    SetSessionName {
        /// The new name.
        name: String,
    },
}

/// Commands that need exclusive access to the session.
#[derive(Clone, Debug, PartialEq)]
pub enum ExclusiveCommand {
    /// Compacts the conversation.
    Compact {
        /// What the summary should focus on.
        focus: Option<String>,
    },
    /// Starts a new session.
    NewSession {
        /// The parent session.
        parent: Option<String>,
    },
    /// Switches to another session.
    SwitchSession {
        /// Path of its file.
        path: String,
    },
    /// Forks the session before a user message.
    Fork {
        /// The message.
        entry: EntryId,
    },
    /// Copies the branch to a new session.
    Clone,
}

/// A client's announcement of its capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hello {
    /// Capabilities to enable, which are off by default; `None` leaves them unchanged.
    pub capabilities: Option<Vec<String>>,
    /// Time limit for approvals; `None` uses the default.
    pub approval_limit: Option<Duration>,
}

/// Text and images from the user.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UserInput {
    /// The text.
    pub text: String,
    /// The images.
    pub images: Vec<Image>,
}

/// A client's answer to an extension's request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UiReply {
    /// Id of the request.
    pub id: String,
    /// The answer; `None` if the user dismissed the dialog.
    pub answer: Option<UiAnswer>,
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UiAnswer {
    /// A text.
    Value(String),
    /// Yes or no.
    Confirmed(bool),
}

/// A client's answer to an approval request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolReply {
    /// Id of the request.
    pub id: String,
    /// The decision.
    pub decision: ToolDecision,
}

/// The user's decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolDecision {
    /// Run it.
    Approve,
    /// Run it, and all later calls of its tool in this session.
    ApproveForSession,
    /// Do not run it.
    Deny {
        /// The reason, for the model.
        reason: Option<String>,
    },
}

/// A line from a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientLine {
    /// A command.
    Command(Box<RpcRequest>),
    /// An answer to an extension; has no response.
    UiReply(UiReply),
    /// An answer to an approval request; has no response.
    ToolReply(ToolReply),
}
