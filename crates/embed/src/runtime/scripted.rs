//! A runtime without a model, for tests of hosts and of the loop that retries: each attempt follows a script.
//!
//! ```
//! # async fn run() -> Result<(), pinch_embed::RunError> {
//! use std::sync::Arc;
//!
//! use pinch_embed::Engine;
//! use pinch_embed::runtime::scripted::{self, ScriptedAttempt, ScriptedRuntime};
//!
//! let runtime = ScriptedRuntime::new([ScriptedAttempt::answer("It is noon.")]);
//! let engine = Engine::builder("/tmp/state").runtime(scripted::ID, Arc::new(runtime)).build();
//! let request = engine.request("s1", None, None, "What time is it?").runtime(scripted::ID);
//! let result = engine.run(request).finish().await?;
//! assert_eq!(result.payloads[0].reply.text, "It is noon.");
//! # Ok(())
//! # }
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, ready};
use futures::stream::BoxStream;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::auth::RequestAuth;
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::error::LlmError;
use pinch_llm::event::{BlockKind, StreamEvent};
use pinch_llm::message::{AssistantMessage, Block, Image, Message, StopReason};
use pinch_llm::model::Model;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::{Emitter, pulled};

use super::{AttemptEvent, AttemptRuntime, Attempts, Capabilities, QueueRefusal, RunControl};
use crate::run::decide::{Repair, RepairOutcome};
use crate::run::facts::Facts;
use crate::run::outcome::FailureStage;
use crate::run::scope::RunScope;
use crate::run::{AttemptEnd, AttemptOutcome, AttemptPlan, RunError};

/// The id under which hosts usually register a [`ScriptedRuntime`].
pub const ID: &str = "scripted";

/// What one attempt does.
#[derive(Clone, Debug)]
pub struct ScriptedAttempt {
    text: Option<String>,
    end: ScriptedEnd,
}

#[derive(Clone, Debug)]
enum ScriptedEnd {
    Good,
    Failed(Arc<LlmError>),
    /// When the run is stopped.
    Stopped,
    Given(Box<AttemptOutcome>),
}

impl ScriptedAttempt {
    /// Answers with a text.
    pub fn answer(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), end: ScriptedEnd::Good }
    }

    /// Fails before anything was answered.
    pub fn failing(error: LlmError) -> Self {
        Self { text: None, end: ScriptedEnd::Failed(Arc::new(error)) }
    }

    /// Begins to answer, and then says nothing more until the run is stopped.
    pub fn hanging(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), end: ScriptedEnd::Stopped }
    }

    /// Reports this outcome, after the events of its last answer if there is one.
    pub fn with_outcome(outcome: AttemptOutcome) -> Self {
        Self { text: None, end: ScriptedEnd::Given(Box::new(outcome)) }
    }
}

/// Which attempt is about to be made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ScriptedPlace<'a> {
    /// The model.
    pub model: &'a Model,
    /// The time, in milliseconds since 1970.
    pub now: i64,
    /// Number of earlier attempts of all runs.
    pub n_before: usize,
}

type AttemptMaker = Box<dyn Fn(ScriptedPlace<'_>) -> Option<ScriptedAttempt> + Send + Sync>;
type RepairMaker = Box<dyn Fn(&Repair) -> RepairOutcome + Send + Sync>;

/// Plays scripted attempts. It runs no tools, writes no session, and accepts no messages during an attempt.
pub struct ScriptedRuntime {
    attempts: AttemptMaker,
    repairs: RepairMaker,
    capabilities: Capabilities,
    n_attempts: AtomicUsize,
}

impl ScriptedRuntime {
    /// Creates a runtime that makes these attempts, whichever runs they belong to. A further attempt ends its run with an internal error.
    pub fn new(attempts: impl IntoIterator<Item = ScriptedAttempt>) -> Self {
        let attempts: Mutex<VecDeque<_>> = Mutex::new(attempts.into_iter().collect());
        Self::with(move |_| attempts.lock().unwrap_or_else(PoisonError::into_inner).pop_front())
    }

    /// Creates a runtime that asks for each attempt. `None` ends the run with an internal error.
    pub fn with(attempt: impl Fn(ScriptedPlace<'_>) -> Option<ScriptedAttempt> + Send + Sync + 'static) -> Self {
        Self {
            attempts: Box::new(attempt),
            repairs: Box::new(|repair| match repair {
                Repair::Compact { .. } => RepairOutcome::NotCompacted { reason: "there is no conversation".to_owned() },
                Repair::TruncateToolResults => RepairOutcome::NotTruncated,
            }),
            capabilities: Capabilities::ALL,
            n_attempts: AtomicUsize::new(0),
        }
    }

    /// Sets the outcomes of repairs; by default none succeeds.
    #[must_use]
    pub fn repairs(mut self, repair: impl Fn(&Repair) -> RepairOutcome + Send + Sync + 'static) -> Self {
        self.repairs = Box::new(repair);
        self
    }

    /// Sets the capabilities that it claims; by default all.
    #[must_use]
    pub fn claims(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }
}

impl fmt::Debug for ScriptedRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedRuntime").field("n_attempts", &self.n_attempts).finish_non_exhaustive()
    }
}

impl AttemptRuntime for ScriptedRuntime {
    fn id(&self) -> &str {
        ID
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        let attempts: Box<dyn Attempts + 'a> = Box::new(Playing { runtime: self, scope, model });
        Box::pin(ready(Ok(attempts)))
    }
}

/// The attempts of one run with one model.
struct Playing<'a> {
    runtime: &'a ScriptedRuntime,
    scope: &'a RunScope,
    model: Arc<Model>,
}

impl Attempts for Playing<'_> {
    fn attempt<'a>(
        &'a mut self,
        _: &'a AttemptPlan,
        _: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxStream<'a, AttemptEvent> {
        let n_before = self.runtime.n_attempts.fetch_add(1, Ordering::Relaxed);
        let now = self.scope.host.now_ms();
        let attempt = (self.runtime.attempts)(ScriptedPlace { model: &self.model, now, n_before });
        Box::pin(pulled(move |emitter| async move {
            let last = match attempt {
                Some(attempt) => AttemptEvent::End(Box::new(self.play(attempt, now, &cancel, &emitter).await)),
                None => AttemptEvent::Broken(RunError::Internal(format!("attempt {} has no script", n_before + 1))),
            };
            emitter.emit(last).await;
        }))
    }

    fn repair<'a>(
        &'a mut self,
        repair: &'a Repair,
        _: Arc<dyn RequestAuth>,
        _: Cancel,
    ) -> BoxFuture<'a, RepairOutcome> {
        Box::pin(ready((self.runtime.repairs)(repair)))
    }

    fn control(&self) -> Arc<dyn RunControl> {
        Arc::new(NoMessages)
    }
}

impl Playing<'_> {
    async fn play(
        &self,
        attempt: ScriptedAttempt,
        now: i64,
        cancel: &Cancel,
        emitter: &Emitter<AttemptEvent>,
    ) -> AttemptOutcome {
        let mut facts = Facts::default();
        let mut events = AnswerEvents { facts: &mut facts, emitter };
        let end = match attempt.end {
            ScriptedEnd::Given(outcome) => {
                if let Some(answer) = &outcome.last_assistant {
                    events.begin(answer).await;
                    events.end(Arc::clone(answer)).await;
                }
                return *outcome;
            }
            ScriptedEnd::Failed(error) => AttemptEnd::failed(FailureStage::Prompt, error),
            end => {
                let (api, provider, id) = (self.model.api.clone(), self.model.provider.clone(), self.model.id.clone());
                let mut answer = AssistantMessage::pending(api, provider, id, now);
                events.begin(&Arc::new(answer.clone())).await;
                let block = Arc::new(Block::text(attempt.text.unwrap_or_default()));
                events.block(&block).await;
                answer.content = vec![block];
                answer.stop_reason = StopReason::Stop;
                let mut attempt_end = AttemptEnd::Good;
                if matches!(end, ScriptedEnd::Stopped) {
                    attempt_end = AttemptEnd::stopped(cancel.cancelled().await, false);
                    answer.stop_reason = StopReason::Aborted;
                }
                events.end(Arc::new(answer)).await;
                attempt_end
            }
        };
        facts.into_outcome(end)
    }
}

/// Emits the events of an answer.
struct AnswerEvents<'a> {
    facts: &'a mut Facts,
    emitter: &'a Emitter<AttemptEvent>,
}

impl AnswerEvents<'_> {
    async fn begin(&mut self, answer: &Arc<AssistantMessage>) {
        self.emit(AgentEvent::MessageStart(Arc::new(Message::Assistant(Arc::clone(answer))))).await;
    }

    async fn block(&mut self, block: &Arc<Block>) {
        let text = match &**block {
            Block::Text(text) => text.text.as_str(),
            _ => "",
        };
        for update in [
            StreamEvent::BlockStart { index: 0, kind: BlockKind::Text },
            StreamEvent::Delta { index: 0, text: text.into() },
            StreamEvent::BlockEnd { index: 0, block: Arc::clone(block) },
        ] {
            self.emit(AgentEvent::MessageUpdate(update)).await;
        }
    }

    async fn end(&mut self, answer: Arc<AssistantMessage>) {
        let message = Arc::new(Message::Assistant(answer));
        self.emit(AgentEvent::MessageEnd { message, error: None, queued: None }).await;
    }

    async fn emit(&mut self, event: AgentEvent) {
        let event = SessionEvent::Agent(event);
        self.facts.observe(&event, |_| false);
        self.emitter.emit(AttemptEvent::Session(event)).await;
    }
}

struct NoMessages;

impl RunControl for NoMessages {
    fn queue(&self, _: QueueKind, _: String, _: Vec<Image>) -> Result<(), QueueRefusal> {
        Err(QueueRefusal::Unsupported)
    }

    fn is_streaming(&self) -> bool {
        false
    }
}
