//! Entries that extensions append after a turn, or before the session becomes idle.

use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Content, Message, StopReason, Usage};
use serde_json::Value;

use crate::entry::{CustomMessage, EntryId};

/// An entry to append.
#[derive(Clone, Debug, PartialEq)]
pub enum Draft {
    /// State of an extension; never sent to a model.
    Custom {
        /// Type chosen by the extension.
        custom_type: String,
        /// The state.
        data: Option<Value>,
    },
    /// A message from an extension.
    Message(CustomMessage),
    /// Changes how the model sees an earlier entry of the branch.
    Edit {
        /// The entry to edit.
        target: EntryId,
        /// Replacement content; `None` hides the entry.
        replacement: Option<Content>,
    },
    /// A summary that replaces the entries before it.
    Compaction {
        /// The summary.
        summary: String,
        /// The first entry to keep unchanged; `None` keeps nothing.
        first_kept: Option<EntryId>,
        /// Machine-readable details.
        details: Option<Value>,
        /// Tokens and cost of making it.
        usage: Option<Usage>,
    },
}

/// The outcome of the last answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// It succeeded.
    #[default]
    Completed,
    /// It was cancelled.
    Aborted,
    /// It failed.
    Failed,
}

impl AnswerOutcome {
    /// Returns the outcome for a stop reason.
    pub fn of(stop: &StopReason) -> Self {
        match stop {
            StopReason::Aborted => Self::Aborted,
            stop if stop.is_failure() => Self::Failed,
            _ => Self::Completed,
        }
    }

    /// Returns the name used in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Failed => "error",
        }
    }
}

/// The combined result of the extensions called so far.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Boundary {
    /// Entries to append, in this order.
    pub drafts: Vec<Draft>,
    /// Whether to call the model again.
    pub continues: bool,
}

impl Boundary {
    /// Applies the result of one extension.
    pub(super) fn add(&mut self, action: BoundaryAction) {
        if let Some(drafts) = action.drafts {
            self.drafts = drafts;
        }
        if let Some(continues) = action.continues {
            self.continues = continues;
        }
    }
}

/// The result of one extension; `None` leaves a part unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundaryAction {
    /// All entries to append, replacing the previous ones.
    pub drafts: Option<Vec<Draft>>,
    /// Whether to call the model again.
    pub continues: Option<bool>,
}

impl BoundaryAction {
    /// Returns a result that calls the model again.
    pub fn continue_run() -> Self {
        Self { drafts: None, continues: Some(true) }
    }
}

/// A finished turn. Its messages are in the log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TurnEnd<'a> {
    /// Index of the turn in its run, starting at 0.
    pub turn_index: u64,
    /// The model's answer.
    pub message: &'a Arc<AssistantMessage>,
    /// The results of its tool calls.
    pub results: &'a [Arc<Message>],
    /// Entry of the answer.
    pub message_entry: Option<&'a EntryId>,
    /// Entries of the results.
    pub result_entries: &'a [EntryId],
    /// Outcome of the answer.
    pub outcome: AnswerOutcome,
}

/// The session is about to become idle.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BeforeSettle {
    /// Outcome of the last answer.
    pub outcome: AnswerOutcome,
}
