//! The events of a session: those of its runs, and what happens around them.

use std::path::PathBuf;

use pinch_agent_core::event::{AgentEvent, RunEnd};
use pinch_llm::thinking::ThinkingLevel;

use crate::compaction::{Compacted, CompactionReason};
use crate::entry::{Entry, EntryId};

/// One event of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// An event of the run under way. `AgentEnd` comes as [`SessionEvent::RunEnd`].
    Agent(AgentEvent),
    /// A run is over.
    RunEnd {
        /// How.
        end: RunEnd,
        /// Another attempt follows.
        will_retry: bool,
    },
    /// The session is idle: the last event of a prompt.
    Settled {
        /// The prompt was cancelled.
        aborted: bool,
    },
    /// An entry that belongs to no message event entered the log.
    EntryAppended(Box<Entry>),
    /// What waits has changed.
    QueueUpdate {
        /// Texts of the steering queue.
        steering: Vec<String>,
        /// Texts of the follow-up queue.
        follow_up: Vec<String>,
    },
    /// Compaction begins.
    CompactionStart {
        /// Why.
        reason: CompactionReason,
    },
    /// Compaction is over.
    CompactionEnd {
        /// Why it began.
        reason: CompactionReason,
        /// The summary, when there is one.
        result: Option<Box<Compacted>>,
        /// It was cancelled.
        aborted: bool,
        /// The failed prompt is tried again.
        will_retry: bool,
        /// What went wrong.
        error_message: Option<String>,
    },
    /// A failed request for a summary will be sent again after a while.
    SummaryRetryScheduled {
        /// Which repetition, counted from 1.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// How long it waits, in milliseconds.
        delay_ms: u64,
        /// What went wrong.
        error_message: String,
    },
    /// A request for a summary is sent again.
    SummaryRetryStart {
        /// What is summarised.
        source: SummarySource,
        /// Why the session compacts, when it does.
        reason: Option<CompactionReason>,
    },
    /// Sending requests for a summary again is over, well or badly.
    SummaryRetryEnd,
    /// A failed answer is retried after a delay.
    RetryStart {
        /// Which repetition, counted from 1.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// How long it waits, in milliseconds.
        delay_ms: u64,
        /// What went wrong.
        error_message: String,
    },
    /// Asking again is over.
    RetryEnd {
        /// There is a good answer.
        success: bool,
        /// Which repetition was the last.
        attempt: u32,
        /// What went wrong last.
        final_error: Option<String>,
    },
    /// The thinking level is another one now.
    ThinkingLevelChanged {
        /// The level.
        level: ThinkingLevel,
    },
    /// The session has another name now.
    InfoChanged {
        /// The name, when it has one.
        name: Option<String>,
    },
    /// An extension failed; the session continues without it.
    ExtensionError(ExtensionFailure),
    /// Another program wrote to the session's file.
    Conflict {
        /// The file.
        path: PathBuf,
        /// The entry this session continues from.
        leaf: Option<EntryId>,
    },
}

/// A failure of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionFailure {
    /// The extension's name: the path it was loaded from; of a command `command:` and its name.
    pub extension: String,
    /// The point or place at which it failed.
    pub event: String,
    /// What went wrong.
    pub error: String,
}

/// What a summary is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummarySource {
    /// The older part of the conversation.
    Compaction,
    /// A branch that is left.
    BranchSummary,
}

impl SummarySource {
    /// The word used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::BranchSummary => "branchSummary",
        }
    }
}
