//! Views of a session, available even while a run borrows it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Message, StopReason};
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;

use crate::entry::{Entry, EntryId};
use crate::session_log::SessionLog;

/// A session at one moment.
#[derive(Debug)]
pub struct SessionView<'a> {
    /// The log.
    pub log: &'a SessionLog,
    /// The model of the next request.
    pub model: &'a Arc<Model>,
    /// The thinking level of the next request.
    pub thinking: ThinkingLevel,
    /// The conversation, if already loaded.
    pub(super) conversation: Option<&'a [Arc<Message>]>,
}

impl<'a> SessionView<'a> {
    pub(super) fn of_log(log: &'a SessionLog, model: &'a Arc<Model>, thinking: ThinkingLevel) -> Self {
        Self { log, model, thinking, conversation: None }
    }

    /// Returns the conversation as the model sees it, before roles are converted.
    pub fn messages(&self) -> Cow<'a, [Arc<Message>]> {
        match self.conversation {
            Some(messages) => Cow::Borrowed(messages),
            None => Cow::Owned(self.log.context().messages),
        }
    }

    /// Returns the text of the last answer, skipping empty cancelled ones.
    pub fn last_text(&self) -> Option<String> {
        let counts = |a: &&Arc<AssistantMessage>| !(a.content.is_empty() && a.stop_reason == StopReason::Aborted);
        let messages = self.messages();
        let answer = messages.iter().rev().find_map(|message| message.as_assistant().filter(counts))?;
        let text = answer.text("").trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the user messages that can be forked before, as entry and text, in file order.
    pub fn fork_points(&self) -> Vec<(EntryId, String)> {
        let point = |entry: Arc<Entry>| match entry.body.as_message().map(|message| &**message) {
            Some(Message::User(user)) => Some((entry.id.clone(), user.content.text(""))),
            _ => None,
        };
        self.log.entries().filter_map(point).filter(|(_, text)| !text.is_empty()).collect()
    }
}

/// A callback that receives a view of the session while a run borrows it.
pub(super) struct ViewCallback(Box<dyn FnOnce(&SessionView<'_>) + Send>);

impl ViewCallback {
    pub(super) fn new(callback: impl FnOnce(&SessionView<'_>) + Send + 'static) -> Self {
        Self(Box::new(callback))
    }
}

impl ViewCallback {
    /// Calls it.
    pub(super) fn call(self, view: &SessionView<'_>) {
        (self.0)(view);
    }
}

impl fmt::Debug for ViewCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
