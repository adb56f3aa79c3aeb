//! A provider that answers from a script, for testing programs without a server.
//!
//! ```
//! use std::sync::Arc;
//! use pinch_llm::provider::scripted::{ScriptedReply, ScriptedProvider};
//!
//! let provider = Arc::new(ScriptedProvider::new([ScriptedReply::text("Hello!")]));
//! // hand `provider` to whatever takes a `dyn Provider`, then look at what it was asked:
//! assert!(provider.requests().is_empty());
//! ```
//!
//! Replies can also be made from the request, come in pieces of random but repeatable sizes and at a model's pace, estimate their usage, fail
//! with a status before the first event, or break off in the middle.

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
use crate::message::{AssistantMessage, Block, StopReason, Usage};
use crate::model::Model;
use crate::request::Request;

/// Answers calls with prepared replies, one after the other, and keeps every request.
pub struct ScriptedProvider {
    answers: Mutex<VecDeque<ScriptEntry>>,
    requests: Mutex<Vec<Request>>,
    pieces: Mutex<DeltaSizes>,
    tokens_per_second: Option<f64>,
    /// The prompt each session sent last, when usage is estimated.
    prompts: Option<Mutex<HashMap<String, String>>>,
    exhausted: String,
}

/// One answer of the script.
enum ScriptEntry {
    Ready(ScriptedReply),
    Made(Make),
}

/// Makes a reply from the request and the number of the call, which counts from 1.
type Make = Box<dyn Fn(Request, usize) -> BoxFuture<'static, Result<ScriptedReply, LlmError>> + Send + Sync>;

/// One prepared answer.
#[derive(Clone, Debug, Default)]
pub struct ScriptedReply {
    /// What is streamed, in order.
    pub steps: Vec<ScriptedStep>,
    /// Why it stops; without it `ToolUse` when there is a call, else `Stop`.
    pub stop: Option<StopReason>,
    /// The error's text, for stop reasons that are failures.
    pub error_message: Option<String>,
    /// The usage of the answer; when it is zero, a provider that estimates puts its estimate here.
    pub usage: Usage,
    /// The provider's id of the answer.
    pub response_id: Option<String>,
    /// The request fails with this text before anything is streamed.
    pub fail_before_start: Option<String>,
    /// The status that goes with `fail_before_start`; it decides what kind of failure it is.
    pub status: Option<StatusCode>,
    /// Breaks off with this text after so many deltas.
    pub break_after: Option<(usize, String)>,
}

/// One step of a prepared answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ScriptedStep {
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
    /// A block of text or thinking or a tool call, cut into deltas by the provider. Other blocks are left out.
    Block(Block),
    /// Nothing more comes until the caller cancels.
    Hang,
}

impl ScriptedReply {
    /// One text in one delta.
    pub fn text(text: impl Into<String>) -> Self {
        Self { steps: vec![ScriptedStep::Text(vec![text.into()])], ..Self::default() }
    }

    /// One tool call.
    pub fn call(id: impl Into<String>, name: impl Into<String>, arguments: Map<String, Value>) -> Self {
        Self { steps: vec![ScriptedStep::ToolCall { id: id.into(), name: name.into(), arguments }], ..Self::default() }
    }

    /// These blocks, cut into deltas by the provider.
    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self { steps: blocks.into_iter().map(ScriptedStep::Block).collect(), ..Self::default() }
    }

    /// An answer that is an error.
    pub fn error(text: impl Into<String>) -> Self {
        Self { stop: Some(StopReason::Error), error_message: Some(text.into()), ..Self::default() }
    }

    /// A refusal with a status, before any event.
    pub fn refused(status: StatusCode, text: impl Into<String>) -> Self {
        Self { fail_before_start: Some(text.into()), status: Some(status), ..Self::default() }
    }

    /// The same reply, breaking off after so many deltas.
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
    /// A provider with these replies.
    pub fn new(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let answers = replies.into_iter().map(ScriptEntry::Ready).collect();
        Self { answers: Mutex::new(answers), ..Self::default() }
    }

    /// Sizes of the deltas that blocks are cut into, in tokens of four characters, drawn from a seed so that a run can be repeated.
    /// Without it 3 to 5 and seed 0.
    #[must_use]
    pub fn pieces(mut self, tokens: RangeInclusive<usize>, seed: u64) -> Self {
        self.pieces = Mutex::new(DeltaSizes::new(tokens, seed));
        self
    }

    /// Streams at a pace: each delta waits for the time its tokens take. Without it nothing waits.
    #[must_use]
    pub fn tokens_per_second(mut self, tokens: f64) -> Self {
        self.tokens_per_second = Some(tokens).filter(|tokens| tokens.is_finite() && *tokens > 0.0);
        self
    }

    /// Estimates the usage of replies that have none, four characters a token. A session's repeated prompt counts as read from a cache.
    #[must_use]
    pub fn estimating_usage(mut self) -> Self {
        self.prompts = Some(Mutex::default());
        self
    }

    /// The error when the script is over.
    #[must_use]
    pub fn when_exhausted(mut self, text: impl Into<String>) -> Self {
        self.exhausted = text.into();
        self
    }

    /// Adds a reply at the end of the script.
    pub fn push(&self, reply: ScriptedReply) {
        lock(&self.answers).push_back(ScriptEntry::Ready(reply));
    }

    /// Adds a reply that is made when its turn comes, from the request and the number of the call, which counts from 1. Its failure is the
    /// answer's.
    pub fn push_made<F, Fut>(&self, make: F)
    where
        F: Fn(Request, usize) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ScriptedReply, LlmError>> + Send + 'static,
    {
        let make: Make = Box::new(move |request, n| Box::pin(make(request, n)));
        lock(&self.answers).push_back(ScriptEntry::Made(make));
    }

    /// Replaces the replies that were not used yet.
    pub fn set(&self, replies: impl IntoIterator<Item = ScriptedReply>) {
        *lock(&self.answers) = replies.into_iter().map(ScriptEntry::Ready).collect();
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }

    /// How many calls there were.
    pub fn n_calls(&self) -> usize {
        lock(&self.requests).len()
    }

    /// Replies that were not used yet.
    pub fn n_left(&self) -> usize {
        lock(&self.answers).len()
    }

    /// A model for the provider: sees, does not think, costs nothing, has a window of 128 000 tokens and answers of 16 384.
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
            .field("n_left", &self.n_left())
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
        // What the stream needs later is taken along: it may outlive the provider.
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
