//! Messages of extensions and embedding programs: part of the conversation, but from neither the user nor the model.

use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_stdx::cancel::Cancel;

use super::run::RunInput;
use super::{AgentSession, SessionRun};
use crate::entry::CustomMessage;

impl AgentSession {
    /// Adds a message to the conversation without calling the model, which reads it with the next prompt. The run emits the start and end
    /// of the message.
    pub fn note(&mut self, message: &CustomMessage) -> SessionRun<'_> {
        let message = self.custom_message(message);
        SessionRun::new(self, RunInput::Note(message), Cancel::new())
    }

    /// Calls the model with a message instead of a user's prompt.
    pub fn prompt_custom(&mut self, message: &CustomMessage, cancel: &Cancel) -> SessionRun<'_> {
        let message = self.custom_message(message);
        SessionRun::new(self, RunInput::Message(message), cancel.child())
    }

    fn custom_message(&self, message: &CustomMessage) -> Arc<Message> {
        self.control.custom(message)
    }
}
