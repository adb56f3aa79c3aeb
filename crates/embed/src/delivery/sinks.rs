//! Who wants to hear of replies while a run goes on.

use std::future::ready;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use crate::replies::piece::{AgentStream, BlockReply, ReasoningText, ToolNote};

/// The text of an answer so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialReply {
    /// All of it.
    pub text: String,
    /// What is new.
    pub delta: String,
    /// Media named in the new part.
    pub media_urls: Vec<String>,
}

/// Receives replies, one after another, in order. Each method may take its time, but not for ever: who holds one event for too long is cut
/// off. All methods do nothing unless written.
pub trait ReplySinks: Send + Sync {
    /// The text of the answer grew.
    fn on_partial_reply<'a>(&'a self, _reply: &'a PartialReply) -> BoxFuture<'a, ()> {
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
    fn on_reasoning_stream<'a>(&'a self, _reasoning: &'a ReasoningText) -> BoxFuture<'a, ()> {
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
    fn on_agent_event<'a>(&'a self, _stream: AgentStream, _data: &'a Arc<Value>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// The last call: the sink was too slow, and what is left goes into the payloads of the result.
    fn on_lagged(&self) {}
}
