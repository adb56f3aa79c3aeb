//! A complete answer.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::error::{LlmError, LlmErrorKind};
use crate::event::Finished;
use crate::message::{AssistantMessage, Cost, Message, StopReason, ToolCall, Usage};

/// A model's complete answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reply {
    /// The complete message. To continue the conversation, pass the reply to [`Chat::message`](crate::client::Chat::message).
    pub message: Arc<AssistantMessage>,
    /// Tokens of the request and the answer.
    pub usage: Usage,
    /// Price in US dollars; zero if the model's prices are unknown.
    pub cost: Cost,
    /// Why the model stopped.
    pub stop_reason: StopReason,
}

impl Reply {
    /// Converts the end of a stream to a reply.
    ///
    /// # Errors
    /// Returns the failure that the stream ended with; a partial answer is lost.
    pub fn from_finished(finished: Finished) -> Result<Self, LlmError> {
        let Finished { message, error } = finished;
        if let Some(error) = error {
            return Err(Arc::unwrap_or_clone(error));
        }
        if message.stop_reason == StopReason::Aborted {
            return Err(LlmError::aborted(message.provider.clone()));
        }
        if message.stop_reason.is_failure() {
            let text = message.error_message.clone().unwrap_or_default();
            return Err(LlmError::new(message.provider.clone(), LlmErrorKind::Protocol, text));
        }
        Ok(Self { usage: message.usage, cost: message.usage.cost, stop_reason: message.stop_reason, message })
    }

    /// Returns the text of the answer, without thinking; empty if there is none.
    pub fn text(&self) -> String {
        self.message.text("")
    }

    /// Returns the tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.message.tool_calls()
    }

    /// Parses the text as JSON; meant for requests with a [`ResponseFormat`](crate::request::ResponseFormat).
    ///
    /// # Errors
    /// Returns [`LlmErrorKind::Protocol`] if the text is not JSON, or does not match `T`. An answer that reached its length limit usually
    /// does not.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, LlmError> {
        serde_json::from_str(&self.text()).map_err(|why| {
            let text = format!("the reply is not the JSON that was asked for: {why}");
            let error = LlmError::new(self.message.provider.clone(), LlmErrorKind::Protocol, text);
            LlmError { source: Some(Arc::new(why)), ..error }
        })
    }
}

impl From<Reply> for Message {
    fn from(reply: Reply) -> Self {
        Self::Assistant(reply.message)
    }
}

impl From<&Reply> for Message {
    fn from(reply: &Reply) -> Self {
        Self::Assistant(Arc::clone(&reply.message))
    }
}
