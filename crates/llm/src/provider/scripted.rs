//! A provider that answers from a script, for testing programs without a server.
//!
//! ```
//! use std::sync::Arc;
//! use pinch_llm::provider::scripted::{ScriptedReply, ScriptedProvider};
//!
//! let provider = Arc::new(ScriptedProvider::new([ScriptedReply::text("Hello!")]));
//! // pass `provider` to anything that takes a `dyn Provider`, then inspect the requests:
//! assert!(provider.requests().is_empty());
//! ```
//!
//! Replies can also be made from the request, be streamed in chunks of random but reproducible sizes and at a model's pace, estimate their
//! usage, fail with a status before the first event, or break off in the middle.

mod pieces;
mod usage;
mod play;

use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use http::StatusCode;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::pulled;
use serde_json::{Map, Value, json};

use self::pieces::DeltaSizes;
use super::Provider;
use crate::error::LlmError;
use crate::event::EventStream;
use crate::ids::SessionId;
use crate::message::{AssistantMessage, Block, StopReason, Usage};
use crate::model::Model;
use crate::request::Request;

/// Answers calls with prepared replies in order, and records every request.
pub struct ScriptedProvider {
    answers: Mutex<VecDeque<ScriptEntry>>,
    requests: Mutex<Vec<Request>>,
    pieces: Mutex<DeltaSizes>,
    tokens_per_second: Option<f64>,
    /// The last prompt of each session, if usage is estimated.
    prompts: Option<Mutex<HashMap<SessionId, String>>>,
    exhausted: String,
}

/// An answer in the script.
enum ScriptEntry {
    Ready(ScriptedReply),
    Made(Make),
}

/// Makes a reply from the request and the number of the call, starting at 1.
type Make = Box<dyn Fn(Request, usize) -> BoxFuture<'static, Result<ScriptedReply, LlmError>> + Send + Sync>;

/// A prepared answer.
#[derive(Clone, Debug, Default)]
pub struct ScriptedReply {
    /// The streamed steps, in order.
    pub steps: Vec<ScriptedStep>,
    /// The stop reason; by default `ToolUse` if there is a call, else `Stop`.
    pub stop: Option<StopReason>,
    /// The error's text, for stop reasons that are failures.
    pub error_message: Option<String>,
    /// The usage of the answer; if it is zero, an estimating provider replaces it.
    pub usage: Usage,
    /// The provider's id of the answer.
    pub response_id: Option<String>,
    /// If set, the request fails with this text before anything is streamed.
    pub fail_before_start: Option<String>,
    /// The status for `fail_before_start`, which determines the kind of failure.
    pub status: Option<StatusCode>,
    /// If set, the answer breaks off with this text after so many deltas.
    pub break_after: Option<(usize, String)>,
}

/// A step of a prepared answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ScriptedStep {
    /// A text block, as deltas.
    Text(Vec<String>),
    /// A thinking block, as deltas.
    Thinking(Vec<String>),
    /// A tool call, whose arguments arrive in one delta.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// A block of text or thinking or a tool call, split into deltas by the provider. Other blocks are skipped.
    Block(Block),
    /// Streams nothing more until the caller cancels.
    Hang,
}

impl ScriptedReply {
    /// Creates a reply of one text in one delta.
    pub fn text(text: impl Into<String>) -> Self {
        Self { steps: vec![ScriptedStep::Text(vec![text.into()])], ..Self::default() }
    }

    /// Creates a reply of one tool call.
    pub fn call(id: impl Into<String>, name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self { steps: vec![ScriptedStep::ToolCall { id: id.into(), name: name.into(), arguments }], ..Self::default() }
    }

    /// Creates a reply of blocks, split into deltas by the provider.
    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self { steps: blocks.into_iter().map(ScriptedStep::Block).collect(), ..Self::default() }
    }

    /// Creates a failed answer.
    pub fn error(text: impl Into<String>) -> Self {
        Self { stop: Some(StopReason::Error), error_message: Some(text.into()), ..Self::default() }
    }

    /// Creates a rejection with a status, before any event.
    pub fn refused(status: StatusCode, text: impl Into<String>) -> Self {
        Self { fail_before_start: Some(text.into()), status: Some(status), ..Self::default() }
    }

    /// Makes the reply break off after so many deltas.
    #[must_use]
    pub fn breaking_after(mut self, n_deltas: usize, text: impl Into<String>) -> Self {
        self.break_after = Some((n_deltas, text.into()));
        self
    }
}

impl Default for ScriptedProvider {
    fn default() -> Self {
        Self {
            answers: Mutex::default(),
            requests: Mutex::default(),
            pieces: Mutex::new(DeltaSizes::new(3..=5, 0)),
            tokens_per_second: None,
            prompts: None,
            exhausted: "No more faux responses queued".to_owned(),
        }
    }
}

impl ScriptedProvider {
    /// Creates a provider with these replies.
    pub fn new(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let answers = replies.into_iter().map(ScriptEntry::Ready).collect();
        Self { answers: Mutex::new(answers), ..Self::default() }
    }

    /// Sets the sizes of the deltas that blocks are split into, in tokens of four characters, drawn from a seed so that a run can be
    /// reproduced. The default is 3 to 5 with seed 0.
    #[must_use]
    pub fn pieces(mut self, tokens: RangeInclusive<usize>, seed: u64) -> Self {
        self.pieces = Mutex::new(DeltaSizes::new(tokens, seed));
        self
    }

    /// Sets the streaming pace: each delta is delayed by the time for its tokens. By default nothing is delayed.
    #[must_use]
    pub fn tokens_per_second(mut self, tokens: f64) -> Self {
        self.tokens_per_second = Some(tokens).filter(|tokens| tokens.is_finite() && *tokens > 0.0);
        self
    }

    /// Estimates the usage of replies without one, at four characters per token. A session's repeated prompt counts as a cache read.
    #[must_use]
    pub fn estimating_usage(mut self) -> Self {
        self.prompts = Some(Mutex::default());
        self
    }

    /// Sets the error text for calls after the last reply.
    #[must_use]
    pub fn when_exhausted(mut self, text: impl Into<String>) -> Self {
        self.exhausted = text.into();
        self
    }

    /// Appends a reply to the script.
    pub fn push(&self, reply: ScriptedReply) {
        lock(&self.answers).push_back(ScriptEntry::Ready(reply));
    }

    /// Appends a reply that is made when it is needed, from the request and the number of the call, starting at 1. If that fails, the
    /// answer fails.
    pub fn push_with<F, Fut>(&self, make: F)
    where
        F: Fn(Request, usize) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ScriptedReply, LlmError>> + Send + 'static,
    {
        let make: Make = Box::new(move |request, n| Box::pin(make(request, n)));
        lock(&self.answers).push_back(ScriptEntry::Made(make));
    }

    /// Replaces the replies that have not been used yet.
    pub fn set(&self, replies: impl IntoIterator<Item = ScriptedReply>) {
        *lock(&self.answers) = replies.into_iter().map(ScriptEntry::Ready).collect();
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }

    /// Returns the number of calls.
    pub fn n_calls(&self) -> usize {
        lock(&self.requests).len()
    }

    /// Returns the number of replies that have not been used yet.
    pub fn remaining(&self) -> usize {
        lock(&self.answers).len()
    }

    /// Creates a model for the provider: with vision, without thinking, free, with a window of 128 000 tokens and answers of up to 16 384.
    pub fn model(api: &str) -> Model {
        let record = json!({
            "id": "faux-1", "name": "Faux Model", "api": api, "provider": "faux", "baseUrl": "http://localhost:0", "reasoning": false,
            "input": ["text", "image"], "contextWindow": 128_000, "maxTokens": 16_384,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        });
        #[expect(clippy::expect_used, reason = "the record above has every member a model must have")]
        Model::from_record(&record).expect("the record is complete")
    }
}

impl std::fmt::Debug for ScriptedProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedProvider")
            .field("remaining", &self.remaining())
            .field("n_calls", &self.n_calls())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Provider for ScriptedProvider {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        let answer = lock(&self.answers).pop_front();
        let answer = answer.unwrap_or_else(|| {
            ScriptEntry::Ready(ScriptedReply {
                fail_before_start: Some(self.exhausted.clone()),
                ..ScriptedReply::default()
            })
        });
        let n_call = {
            let mut requests = lock(&self.requests);
            requests.push(request.clone());
            requests.len()
        };
        let now = request.host.now_ms();
        let model = Arc::clone(&request.model);
        let message = AssistantMessage::pending(model.api.clone(), model.provider.clone(), model.id.clone(), now);
        // The stream may outlive the provider, so move everything it needs into it.
        let show = play::Playback {
            pieces: lock(&self.pieces).fork(),
            tokens_per_second: self.tokens_per_second,
            prompt: self.prompts.as_ref().map(|prompts| usage::PromptCost::of(&request, &mut lock(prompts))),
            message,
            cancel,
        };
        let making = match answer {
            ScriptEntry::Ready(reply) => play::Making::Ready(reply),
            ScriptEntry::Made(make) => play::Making::Now(make(request.clone(), n_call)),
        };
        EventStream::new(&model, now, pulled(move |emitter| play::play(making, request, show, emitter)))
    }
}

#[cfg(test)]
mod tests;
