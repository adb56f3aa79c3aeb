//! Messages of extensions and embedding programs: part of the conversation, but said by neither the user nor the model.

use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_stdx::cancel::Cancel;

use super::run::RunInput;
use super::{AgentSession, SessionRun};
use crate::entry::CustomMessage;

impl AgentSession {
    /// Puts a message into the conversation without asking the model: it reads it with the next prompt. The run tells the message's start and
    /// end and is over.
    pub fn note(&mut self, message: &CustomMessage) -> SessionRun<'_> {
        let message = self.custom_message(message);
        SessionRun::new(self, RunInput::Note(message), Cancel::new())
    }

    /// Asks the model with a message in place of a prompt of the user.
    pub fn prompt_custom(&mut self, message: &CustomMessage, cancel: &Cancel) -> SessionRun<'_> {
        let message = self.custom_message(message);
        SessionRun::new(self, RunInput::Message(message), cancel.child())
    }

    fn custom_message(&self, message: &CustomMessage) -> Arc<Message> {
        self.control.custom(message)
    }
}
