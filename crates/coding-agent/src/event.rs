//! Session events: those of its runs, and others.

use std::path::PathBuf;

use pinch_agent_core::event::{AgentEvent, RunEnd};
use pinch_llm::thinking::ThinkingLevel;

use crate::compaction::{Compacted, CompactionReason};
use crate::entry::{Entry, EntryId};

/// An event of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// An event of the current run. `AgentEnd` is reported as [`SessionEvent::RunEnd`].
    Agent(AgentEvent),
    /// A run ended.
    RunEnd {
        /// How it ended.
        end: RunEnd,
        /// Whether another attempt follows.
        will_retry: bool,
    },
    /// The session is idle: the last event of a prompt.
    Settled {
        /// Whether the prompt was cancelled.
        aborted: bool,
    },
    /// An entry was appended that belongs to no message event.
    EntryAppended(Box<Entry>),
    /// The queues changed.
    QueueUpdate {
        /// Texts in the steering queue.
        steering: Vec<String>,
        /// Texts in the follow-up queue.
        follow_up: Vec<String>,
    },
    /// A compaction started.
    CompactionStart {
        /// What triggered it.
        reason: CompactionReason,
    },
    /// A compaction ended.
    CompactionEnd {
        /// What triggered it.
        reason: CompactionReason,
        /// The result, if it succeeded.
        result: Option<Box<Compacted>>,
        /// Whether it was cancelled.
        aborted: bool,
        /// Whether the failed prompt is retried.
        will_retry: bool,
        /// The error message, if it failed.
        error_message: Option<String>,
    },
    /// A failed summary request will be retried after a delay.
    SummaryRetryScheduled {
        /// Number of the retry, starting at 1.
        attempt: u32,
        /// Maximum number of retries.
        max_attempts: u32,
        /// Delay in milliseconds.
        delay_ms: u64,
        /// The error that caused the retry.
        error_message: String,
    },
    /// A summary request is being retried.
    SummaryRetryStart {
        /// What is being summarised.
        source: SummarySource,
        /// What triggered the compaction, if it is one.
        reason: Option<CompactionReason>,
    },
    /// Retrying a summary request ended, successfully or not.
    SummaryRetryEnd,
    /// A failed answer is retried after a delay.
    RetryStart {
        /// Number of the retry, starting at 1.
        attempt: u32,
        /// Maximum number of retries.
        max_attempts: u32,
        /// Delay in milliseconds.
        delay_ms: u64,
        /// The error that caused the retry.
        error_message: String,
    },
    /// Retrying ended.
    RetryEnd {
        /// Whether an answer succeeded.
        success: bool,
        /// Number of the last retry.
        attempt: u32,
        /// The last error, if it failed.
        final_error: Option<String>,
    },
    /// The thinking level changed.
    ThinkingLevelChanged {
        /// The new level.
        level: ThinkingLevel,
    },
    /// The session's name changed.
    InfoChanged {
        /// The new name, if it has one.
        name: Option<String>,
    },
    /// An extension failed; the session continues without it.
    ExtensionError(ExtensionFailure),
    /// Another program wrote to the session's file.
    Conflict {
        /// Path of the file.
        path: PathBuf,
        /// The entry this session continues from.
        leaf: Option<EntryId>,
    },
}

/// A failure of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionFailure {
    /// Name of the extension: the path it was loaded from, or `command:` followed by a command's name.
    pub extension: String,
    /// The point or operation that failed.
    pub event: String,
    /// The error message.
    pub error: String,
}

/// What a summary is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummarySource {
    /// The older part of the conversation.
    Compaction,
    /// An abandoned branch.
    BranchSummary,
}

impl SummarySource {
    /// Returns the name used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::BranchSummary => "branchSummary",
        }
    }
}
