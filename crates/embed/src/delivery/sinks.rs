//! Who wants to hear of replies while a run goes on.

use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::replies::piece::{AgentStream, BlockReply, ToolNote};

/// The text of an answer so far. Borrowed: a sink that keeps the whole text at every growth pays for it itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartialReply<'a> {
    /// All of it.
    pub text: &'a str,
    /// What is new.
    pub delta: &'a str,
    /// Media named in the new part.
    pub media_urls: &'a [String],
}

/// The reasoning of an answer so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReasoningSoFar<'a> {
    /// As it is shown: a heading, and each line in italics.
    pub formatted: &'a str,
    /// As the model gave it.
    pub raw: &'a str,
}

/// The payload of an event for programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AgentData<'a> {
    /// Text so far, of the answer or of the reasoning.
    Text(PartialReply<'a>),
    /// Anything else, as JSON.
    Value(&'a Arc<Value>),
}

impl AgentData<'_> {
    /// The payload as JSON. For text this copies all of it.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(reply) => {
                let mut data = json!({"text": reply.text, "delta": reply.delta});
                if !reply.media_urls.is_empty() {
                    data["mediaUrls"] = json!(reply.media_urls);
                }
                data
            }
            Self::Value(value) => (***value).clone(),
        }
    }
}

/// Receives replies, one after another, in order. Each method may take its time, but not for ever: who holds one event for too long is cut
/// off. All methods do nothing unless written.
pub trait ReplySinks: Send + Sync {
    /// The text of the answer grew.
    fn on_partial_reply<'a>(&'a self, _reply: PartialReply<'a>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// A block is finished.
    fn on_block_reply<'a>(&'a self, _block: &'a BlockReply) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// A tool begins: blocks told so far should be sent now.
    fn on_block_reply_flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// An answer of the model begins.
    fn on_assistant_message_start(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// The reasoning grew.
    fn on_reasoning_stream<'a>(&'a self, _reasoning: ReasoningSoFar<'a>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// The reasoning is over.
    fn on_reasoning_end(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// A tool has something to say.
    fn on_tool_result<'a>(&'a self, _note: &'a ToolNote) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// An event for programs.
    fn on_agent_event<'a>(&'a self, _stream: AgentStream, _data: AgentData<'a>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// The last call: the sink was too slow, and what is left goes into the payloads of the result.
    fn on_lagged(&self) {}
}
