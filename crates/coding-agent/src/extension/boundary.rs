//! What extensions put behind a turn, or behind everything before the session comes to rest.

use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Content, Message, StopReason, Usage};
use serde_json::Value;

use crate::entry::{CustomMessage, Entry, EntryBody, EntryId};

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
        /// The first entry that is kept as it was; `None`: nothing is.
        first_kept: Option<EntryId>,
        /// Data for programs.
        details: Option<Value>,
        /// What making it cost.
        usage: Option<Usage>,
    },
}

impl Draft {
    /// Reads a draft; it is written like an entry, without an id.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(super) fn from_value(value: &Value) -> Result<Self, String> {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["custom", "custom_message", "context_edit", "compaction"].contains(&kind) {
            return Err(format!("an entry of type \"{kind}\" cannot be drafted"));
        }
        let mut whole = value.clone();
        whole["id"] = "draft".into();
        match Entry::from_value(&whole).map(|entry| entry.body) {
            Some(EntryBody::Custom { custom_type, data }) => Ok(Self::Custom { custom_type, data }),
            Some(EntryBody::CustomMessage(message)) => Ok(Self::Message(message)),
            Some(EntryBody::ContextEdit { target_id, replacement }) => {
                Ok(Self::Edit { target: target_id, replacement })
            }
            Some(EntryBody::Compaction(made)) => Ok(Self::Compaction {
                summary: made.summary,
                first_kept: made.first_kept_entry_id,
                details: made.details,
                usage: made.usage,
            }),
            _ => Err(format!("the members of a \"{kind}\" do not fit")),
        }
    }

    /// As an entry is written, without id, parent and time.
    pub(super) fn to_value(&self) -> Value {
        let body = match self.clone() {
            Self::Custom { custom_type, data } => EntryBody::Custom { custom_type, data },
            Self::Message(message) => EntryBody::CustomMessage(message),
            Self::Edit { target, replacement } => EntryBody::ContextEdit { target_id: target, replacement },
            Self::Compaction { summary, first_kept, details, usage } => {
                EntryBody::Compaction(crate::entry::Compaction {
                    summary,
                    first_kept_entry_id: first_kept,
                    details,
                    usage,
                    ..Default::default()
                })
            }
        };
        let mut value = Entry { id: EntryId::new(""), parent_id: None, timestamp: String::new(), body }.to_value();
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, _| !["id", "parentId", "timestamp", "tokensBefore"].contains(&name.as_str()));
        }
        value
    }
}

/// How the last answer came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    #[default]
    Completed,
    /// It was cut off.
    Aborted,
    /// It failed.
    Failed,
}

impl Outcome {
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
    pub outcome: Outcome,
}

/// The session is about to come to rest.
#[derive(Clone, Copy, Debug)]
pub struct BeforeSettle {
    /// How the last answer came out.
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drafts_are_written_as_they_are_read() {
        for draft in [
            json!({"type": "custom", "customType": "c", "data": {"a": 1}}),
            json!({"type": "custom_message", "customType": "c", "content": "x", "display": true, "details": [1]}),
            json!({"type": "context_edit", "targetId": "a", "replacement": null}),
            json!({"type": "context_edit", "targetId": "a", "replacement": {"content": "y"}}),
            json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "a"}),
            json!({"type": "compaction", "summary": "s"}),
        ] {
            assert_eq!(Draft::from_value(&draft).unwrap().to_value(), draft);
        }
        let error = |draft: Value| Draft::from_value(&draft).unwrap_err();
        assert_eq!(error(json!({"type": "message"})), "an entry of type \"message\" cannot be drafted");
        assert_eq!(error(json!(7)), "an entry of type \"\" cannot be drafted");
        assert_eq!(error(json!({"type": "compaction"})), "the members of a \"compaction\" do not fit");
    }
}
