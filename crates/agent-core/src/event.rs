//! The events of a run.
//!
//! The order in every run: `AgentStart` is first and `AgentEnd` last, once each; every `MessageStart` is followed by its `MessageEnd`, with
//! updates between them only for the model's answers; every `ToolStart` has one `ToolEnd`, and both come before the message with the
//! result; results come in the order of the calls; `TurnEnd` comes last in its turn.

use std::sync::Arc;

use pinch_llm::error::LlmError;
use pinch_llm::event::StreamEvent;
use pinch_llm::ids::ToolCallId;
use pinch_llm::message::{AssistantMessage, Message, ToolCall};

use crate::tool::{JsonObject, ToolOutput};

/// One event of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentEvent {
    /// The run starts.
    AgentStart,
    /// A turn starts: messages are added, then the model is called.
    TurnStart,
    /// A message starts. An answer of the model is still empty here.
    MessageStart(Arc<Message>),
    /// More of the model's answer.
    MessageUpdate(StreamEvent),
    /// A message is complete and part of the conversation.
    MessageEnd {
        /// The message.
        message: Arc<Message>,
        /// The typed failure of an answer, in memory only.
        error: Option<Arc<LlmError>>,
        /// The number of a message that came from a queue.
        queued: Option<u64>,
    },
    /// A tool call starts.
    ToolStart(ToolStart),
    /// A partial result.
    ToolUpdate {
        /// The call.
        start: ToolStart,
        /// The partial result.
        so_far: Box<ToolOutput>,
    },
    /// A tool call has ended.
    ToolEnd {
        /// The call.
        start: ToolStart,
        /// Its result.
        output: Box<ToolOutput>,
        /// How long it ran, in milliseconds; `None` if it never ran.
        duration_ms: Option<i64>,
    },
    /// A turn has ended.
    TurnEnd {
        /// The model's answer.
        message: Arc<AssistantMessage>,
        /// The results of its calls, in the order of the calls.
        results: Vec<Arc<Message>>,
        /// Whether the loop will call the model again.
        continues: bool,
    },
    /// The run has ended.
    AgentEnd(RunEnd),
}

/// The call that an event belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolStart {
    /// The call's id.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// The raw arguments.
    pub args: Arc<JsonObject>,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// All messages that the run added, including prompts.
    pub messages: Vec<Arc<Message>>,
    /// Why it ended.
    pub reason: EndReason,
    /// The failure, if `why` is `Failed`.
    pub error: Option<Arc<LlmError>>,
    /// Calls of [external tools](crate::tool::ToolMode::External) that wait for their results, if `why` is `CallsPending`. Hooks may have
    /// changed their arguments.
    pub pending_calls: Vec<ToolCall>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The model was done.
    Done,
    /// The tools ended the run.
    ToolsEnded,
    /// A hook stopped it.
    Stopped,
    /// The model's answer failed.
    Failed,
    /// It was cancelled.
    Aborted,
    /// The caller has to run tool calls of the answer.
    CallsPending,
}
