//! Events and answers of plugin hooks inside sessions: tool calls, messages, compactions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pinch_agent_core::tool::JsonObject;
use pinch_llm::message::{Block, Message, ToolResult};
use pinch_ports::{ApprovalDecision, ApprovalSeverity};

/// A tool is about to run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BeforeToolCall {
    /// Name of the tool.
    pub tool: String,
    /// Id of the call.
    pub call_id: String,
    /// Its arguments, with the changes of earlier plugins.
    pub params: JsonObject,
}

/// Changes to a tool call. The first block is final.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCallChanges {
    /// The reason for the model why the call is blocked; `None`: it is not. A blank reason means a fixed text.
    pub block: Option<String>,
    /// Members that replace those of the arguments.
    pub params: JsonObject,
    /// The approval that the call needs; `None`: none.
    pub approval: Option<RequiredApproval>,
}

/// An approval by a person that a plugin requires for a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredApproval {
    /// What is to be approved.
    pub title: String,
    /// More about it; may be empty.
    pub description: String,
    /// How much is at stake.
    pub severity: ApprovalSeverity,
    /// How long to wait for an answer, at most ten minutes.
    pub timeout: Duration,
    /// Whether the call runs if nobody answers in time.
    pub allows_on_timeout: bool,
}

/// The approval that a plugin required for a tool call was given, refused, or is no longer waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalResolved {
    /// Name of the tool.
    pub tool: String,
    /// Id of the call.
    pub call_id: String,
    /// The outcome.
    pub resolution: ApprovalResolution,
}

/// Outcome of a required approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalResolution {
    /// A person decided.
    Decided(ApprovalDecision),
    /// Nobody answered in time.
    TimedOut,
    /// The run was aborted, or nobody can be asked.
    Cancelled,
}

impl ApprovalResolution {
    /// Returns OpenClaw's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decided(ApprovalDecision::AllowOnce) => "allow-once",
            Self::Decided(ApprovalDecision::AllowAlways) => "allow-always",
            Self::Decided(ApprovalDecision::Deny) => "deny",
            Self::TimedOut => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A tool has run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AfterToolCall {
    /// Name of the tool.
    pub tool: String,
    /// Id of the call.
    pub call_id: String,
    /// The arguments that it ran with.
    pub params: JsonObject,
    /// Its output.
    pub content: Vec<Block>,
    /// Text of its error, if it failed.
    pub error: Option<String>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// The result of a tool is about to enter the conversation and the transcript.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolResultPersist {
    /// The result, with the changes of earlier plugins.
    pub result: ToolResult,
    /// Whether it stands in for a missing one, because the run of its call was interrupted.
    pub is_synthetic: bool,
}

/// A message is about to enter the conversation and the transcript.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct BeforeMessageWrite {
    /// The message, with the changes of earlier plugins.
    pub message: Arc<Message>,
}

/// Changes to a message that is about to enter the conversation and the transcript.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MessageWrite {
    /// Keep it.
    #[default]
    Keep,
    /// Another message of the same role.
    Replace(Arc<Message>),
    /// Keep its text out of the conversation and the transcript: a note takes its place. No other plugin is asked.
    Block,
}

/// A conversation is about to be compacted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompactionStarting {
    /// Number of messages of the conversation.
    pub n_messages: usize,
    /// Number of messages that the summary replaces.
    pub n_compacting: usize,
    /// Tokens of the conversation.
    pub n_tokens: u64,
    /// The messages that the summary replaces.
    pub messages: Vec<Arc<Message>>,
    /// The transcript, if it is a file.
    pub session_file: Option<PathBuf>,
}

/// A compaction has ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompactionFinished {
    /// Number of messages of the conversation afterwards; `None` if the compaction failed before it was known.
    pub n_messages: Option<usize>,
    /// Number of messages that the summary replaced; 0 after a failure.
    pub n_compacted: usize,
    /// Estimated tokens of the conversation afterwards; `None` after a failure.
    pub n_tokens: Option<u64>,
    /// Why it failed.
    pub error: Option<String>,
    /// The transcript, if it is a file.
    pub session_file: Option<PathBuf>,
}
