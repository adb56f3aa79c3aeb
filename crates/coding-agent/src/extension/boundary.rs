//! What extensions put behind a turn, or behind everything before the session comes to rest.

use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Content, Message, StopReason, Usage};
use serde_json::Value;

use crate::entry::{CustomMessage, EntryId};

/// An entry that is to be appended.
#[derive(Clone, Debug, PartialEq)]
pub enum Draft {
    /// State of an extension; never sent to a model.
    Custom {
        /// Whose state it is.
        custom_type: String,
        /// The state.
        data: Option<Value>,
    },
    /// A message of an extension.
    Message(CustomMessage),
    /// Changes what the model sees of an earlier entry of the branch.
    Edit {
        /// The entry.
        target: EntryId,
        /// Content in place of the old one; `None` hides the entry.
        replacement: Option<Content>,
    },
    /// A summary in place of what came before.
    Compaction {
        /// The summary.
        summary: String,
        /// The first entry that is kept unchanged; `None` keeps nothing.
        first_kept: Option<EntryId>,
        /// Data for programs.
        details: Option<Value>,
        /// What making it cost.
        usage: Option<Usage>,
    },
}

/// How the last answer came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// Well.
    #[default]
    Completed,
    /// It was cut off.
    Aborted,
    /// It failed.
    Failed,
}

impl AnswerOutcome {
    /// Of an answer that ended like this.
    pub fn of(stop: &StopReason) -> Self {
        match stop {
            StopReason::Aborted => Self::Aborted,
            stop if stop.is_failure() => Self::Failed,
            _ => Self::Completed,
        }
    }

    /// The word used in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Failed => "error",
        }
    }
}

/// What is to happen, as the extensions that were asked before left it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Boundary {
    /// Entries that are appended, in this order.
    pub drafts: Vec<Draft>,
    /// The model is asked once more.
    pub goes_on: bool,
}

impl Boundary {
    /// Takes in what one extension says.
    pub(super) fn add(&mut self, action: BoundaryAction) {
        if let Some(drafts) = action.drafts {
            self.drafts = drafts;
        }
        if let Some(goes_on) = action.goes_on {
            self.goes_on = goes_on;
        }
    }
}

/// What an extension says; `None`: it stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundaryAction {
    /// All entries that are appended; they take the place of those before.
    pub drafts: Option<Vec<Draft>>,
    /// Whether the model is asked once more.
    pub goes_on: Option<bool>,
}

impl BoundaryAction {
    /// The model is asked once more.
    pub fn go_on() -> Self {
        Self { drafts: None, goes_on: Some(true) }
    }
}

/// A turn that is over. Its messages are in the log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TurnEnd<'a> {
    /// Which of its run, counted from 0.
    pub turn_index: u64,
    /// The model's answer.
    pub message: &'a Arc<AssistantMessage>,
    /// The results of its calls.
    pub results: &'a [Arc<Message>],
    /// The answer's entry.
    pub message_entry: Option<&'a EntryId>,
    /// The entries of the results.
    pub result_entries: &'a [EntryId],
    /// How the answer came out.
    pub outcome: AnswerOutcome,
}

/// The session is about to come to rest.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BeforeSettle {
    /// How the last answer came out.
    pub outcome: AnswerOutcome,
}
