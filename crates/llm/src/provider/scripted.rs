//! A provider that answers from a script: for tests of programs that use this crate, without a server.
//!
//! ```
//! use std::sync::Arc;
//! use pinch_llm::provider::scripted::{Reply, ScriptedProvider};
//!
//! let provider = Arc::new(ScriptedProvider::new([Reply::text("Hello!")]));
//! // hand `provider` to whatever takes a `dyn Provider`, then look at what it was asked:
//! assert!(provider.requests().is_empty());
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::{Giver, pulled};
use serde_json::{Map, Value};

use super::Provider;
use crate::error::{LlmError, LlmErrorKind};
use crate::event::stream::failure;
use crate::event::{BlockKind, EventStream, Finished, StreamEvent};
use crate::ids::ToolCallId;
use crate::message::block::{Text, Thinking};
use crate::message::{AssistantMessage, Block, StopReason, ToolCall, Usage};
use crate::request::Request;

/// Answers calls with prepared replies, one after the other, and keeps every request.
#[derive(Debug, Default)]
pub struct ScriptedProvider {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Request>>,
}

/// One prepared answer.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// What is streamed, in order.
    pub steps: Vec<Step>,
    /// Why it stops; without it `ToolUse` when there is a call, else `Stop`.
    pub stop: Option<StopReason>,
    /// The error's text, for stop reasons that are failures.
    pub error_message: Option<String>,
    /// The usage of the answer.
    pub usage: Usage,
    /// The request fails with this text before anything is streamed.
    pub fail_before_start: Option<String>,
}

/// One step of a prepared answer.
#[derive(Clone, Debug)]
pub enum Step {
    /// A text block, by its deltas.
    Text(Vec<String>),
    /// A thinking block, by its deltas.
    Thinking(Vec<String>),
    /// A tool call; its arguments come in one delta.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// Nothing more comes until the caller cancels.
    Hang,
}

impl Reply {
    /// One text in one delta.
    pub fn text(text: impl Into<String>) -> Self {
        Self { steps: vec![Step::Text(vec![text.into()])], ..Self::default() }
    }

    /// One tool call.
    pub fn call(id: impl Into<String>, name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self { steps: vec![Step::ToolCall { id: id.into(), name: name.into(), arguments }], ..Self::default() }
    }

    /// An answer that is an error.
    pub fn error(text: impl Into<String>) -> Self {
        Self { stop: Some(StopReason::Error), error_message: Some(text.into()), ..Self::default() }
    }
}

impl ScriptedProvider {
    /// A provider with these replies.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: Mutex::new(replies.into_iter().collect()), requests: Mutex::default() }
    }

    /// Adds a reply at the end of the script.
    pub fn push(&self, reply: Reply) {
        lock(&self.replies).push_back(reply);
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }

    /// Replies that were not used yet.
    pub fn n_left(&self) -> usize {
        lock(&self.replies).len()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Provider for ScriptedProvider {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        let reply = lock(&self.replies).pop_front().unwrap_or_else(|| Reply::error("script exhausted"));
        let now = request.host.now_ms();
        let model = Arc::clone(&request.model);
        let mut message = AssistantMessage::pending(model.api.clone(), model.provider.clone(), model.id.clone(), now);
        message.usage = reply.usage;
        lock(&self.requests).push(request);
        EventStream::new(&model, now, pulled(move |giver| play(reply, message, giver, cancel)))
    }
}

/// Streams a reply. The token is checked before every block and delta; inside a tool call it is not.
async fn play(reply: Reply, mut message: AssistantMessage, giver: Giver<StreamEvent>, cancel: Cancel) {
    let provider = message.provider.clone();
    let aborted = || LlmError::new(provider.clone(), LlmErrorKind::Aborted, "Request was aborted");
    if let Some(text) = reply.fail_before_start {
        let kind = crate::error::classify::classify(None, None, &text);
        return giver.give(StreamEvent::End(failure(message, LlmError::new(provider, kind, text)))).await;
    }
    if cancel.is_cancelled() {
        return giver.give(StreamEvent::End(failure(message, aborted()))).await;
    }
    giver.give(StreamEvent::Start(Arc::new(message.clone()))).await;
    let calls = reply.steps.iter().any(|step| matches!(step, Step::ToolCall { .. }));
    for step in reply.steps {
        let index = message.content.len();
        let (kind, deltas, block) = match step {
            Step::Hang => {
                cancel.cancelled().await;
                return giver.give(StreamEvent::End(failure(message, aborted()))).await;
            }
            Step::Text(deltas) => {
                let block = Block::Text(Text::default());
                (BlockKind::Text, deltas, block)
            }
            Step::Thinking(deltas) => {
                (BlockKind::Thinking { redacted: false }, deltas, Block::Thinking(Thinking::default()))
            }
            Step::ToolCall { id, name, arguments } => {
                let id = ToolCallId::from(id);
                let json = Value::Object(arguments.clone()).to_string();
                let kind = BlockKind::ToolCall { id: id.clone(), name: name.clone() };
                let call =
                    ToolCall { id, name, arguments, thought_signature: None, arguments_error: None, namespace: None };
                (kind, vec![json], Block::ToolCall(call))
            }
        };
        let checks = !matches!(block, Block::ToolCall(_));
        if cancel.is_cancelled() {
            return giver.give(StreamEvent::End(failure(message, aborted()))).await;
        }
        giver.give(StreamEvent::BlockStart { index, kind }).await;
        message.content.push(Arc::new(block));
        for delta in deltas {
            if checks && cancel.is_cancelled() {
                return giver.give(StreamEvent::End(failure(message, aborted()))).await;
            }
            match Arc::make_mut(&mut message.content[index]) {
                Block::Text(text) => text.text.push_str(&delta),
                Block::Thinking(thinking) => thinking.thinking.push_str(&delta),
                _ => {}
            }
            giver.give(StreamEvent::Delta { index, text: delta.into() }).await;
        }
        giver.give(StreamEvent::BlockEnd { index, block: Arc::clone(&message.content[index]) }).await;
    }
    let default = if calls { StopReason::ToolUse } else { StopReason::Stop };
    message.stop_reason = reply.stop.unwrap_or(default);
    message.error_message = reply.error_message;
    let error = message.stop_reason.is_failure().then(|| {
        let text = message.error_message.clone().unwrap_or_default();
        let kind = match message.stop_reason {
            StopReason::Aborted => LlmErrorKind::Aborted,
            _ => crate::error::classify::classify(None, None, &text),
        };
        Arc::new(LlmError::new(provider, kind, text))
    });
    giver.give(StreamEvent::End(Finished { message: Arc::new(message), error })).await;
}
