//! An engine runtime: the loop of `pinch-agent-core` on conversations that are kept in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::future::{BoxFuture, ready};
use futures::stream::BoxStream;
use pinch_agent_core::queue::{MessageQueues, QueueKind};
use pinch_agent_core::tool::ToolEffect;
use pinch_agent_core::{Agent, AgentEvent, EndReason, RunEnd};
use pinch_coding_agent::auth::{Authorised, RequestAuth};
use pinch_coding_agent::event::SessionEvent;
use pinch_embed::run::decide::{Repair, RepairOutcome};
use pinch_embed::run::facts::Facts;
use pinch_embed::run::outcome::{AttemptStart, FailureStage};
use pinch_embed::run::scope::RunScope;
use pinch_embed::run::{AttemptEnd, AttemptPlan, RunError};
use pinch_embed::runtime::{
    AttemptEvent, AttemptRuntime, Attempts, Capabilities, PendingMessage, QueueRefusal, RunControl,
};
use pinch_llm::error::Emitted;
use pinch_llm::message::{Block, Content, Image, Message, StopReason, UserMessage};
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::ToolChoice;
use pinch_llm::stdx::cancel::{Cancel, CancelReason};
use pinch_llm::stdx::host::Host;
use pinch_llm::stdx::pull::pulled;

/// The ID under which hosts register [`MemoryRuntime`].
pub const ID: &str = "memory";

/// Conversations by session ID.
#[derive(Clone, Default)]
struct Conversations(Arc<Mutex<HashMap<String, Vec<Arc<Message>>>>>);

/// Runs attempts without session files. Conversations live as long as the runtime and cannot be compacted.
pub struct MemoryRuntime {
    provider: Arc<dyn Provider>,
    conversations: Conversations,
}

impl MemoryRuntime {
    /// Creates a runtime that sends all requests to one provider.
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        Self { provider, conversations: Conversations::default() }
    }

    /// The conversation of a session so far, oldest message first, without the system prompt.
    pub fn conversation(&self, session_id: &str) -> Vec<Arc<Message>> {
        self.conversations.get(session_id)
    }
}

impl Conversations {
    fn get(&self, session_id: &str) -> Vec<Arc<Message>> {
        locked(&self.0).get(session_id).cloned().unwrap_or_default()
    }

    fn set(&self, session_id: &str, messages: &[Arc<Message>]) {
        let messages = messages.iter().filter(|message| !matches!(***message, Message::System(_)));
        locked(&self.0).insert(session_id.to_owned(), messages.cloned().collect());
    }
}

impl AttemptRuntime for MemoryRuntime {
    fn id(&self) -> &str {
        ID
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE.profiles(true).resumable(true)
    }

    fn open<'a>(
        &'a self,
        scope: &'a RunScope,
        model: Arc<Model>,
    ) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        let tools = match scope.tools.for_model(&model, &scope.extensions) {
            Ok(tools) => tools,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        let prompt = scope.prompt.for_model(&model);
        let agent = Agent::builder(model)
            .provider(Arc::clone(&self.provider))
            .host(scope.host.clone())
            .system(prompt(&tools).whole())
            .tools(&tools)
            .messages(self.conversations.get(&scope.request.session_id))
            .build();
        Box::pin(ready(match agent {
            Ok(agent) => {
                let control = Arc::new(MemoryControl::new(agent.queues(), scope.host.clone()));
                let attempts: Box<dyn Attempts + 'a> =
                    Box::new(MemoryAttempts { runtime: self, scope, agent, control });
                Ok(attempts)
            }
            Err(error) => Err(RunError::Config(error.to_string())),
        }))
    }
}

/// The attempts of one run with one model.
struct MemoryAttempts<'a> {
    runtime: &'a MemoryRuntime,
    scope: &'a RunScope,
    agent: Agent,
    control: Arc<MemoryControl>,
}

impl MemoryAttempts<'_> {
    /// Returns the initial messages of an attempt, and prepares the conversation it continues from.
    fn prepare(&mut self, start: AttemptStart) -> Vec<Arc<Message>> {
        let now = self.scope.host.now_ms();
        let request = &self.scope.request;
        self.agent.options.tool_choice = None;
        match start {
            AttemptStart::Prompt => vec![Arc::new(user(&request.prompt, &request.images, now))],
            AttemptStart::Resume => {
                // A failed answer is not sent to the model again.
                while self.agent.messages.last().is_some_and(|message| has_failed(message)) {
                    self.agent.messages.pop();
                }
                Vec::new()
            }
            AttemptStart::Continue => vec![Arc::new(Message::user("Go on.", now))],
            AttemptStart::FinalReply => {
                self.agent.options.tool_choice = Some(ToolChoice::None);
                vec![Arc::new(Message::user("Answer now, without tools.", now))]
            }
        }
    }
}

impl Attempts for MemoryAttempts<'_> {
    fn attempt<'a>(
        &'a mut self,
        plan: &'a AttemptPlan,
        auth: Arc<dyn RequestAuth>,
        cancel: Cancel,
    ) -> BoxStream<'a, AttemptEvent> {
        Box::pin(pulled(move |emitter| async move {
            let cancel = cancel.child();
            let _streaming = self.control.start(&cancel);
            self.agent.provider = Arc::new(Authorised::new(Arc::clone(&self.runtime.provider), auth));
            self.agent.thinking = plan.thinking;
            let input = self.prepare(plan.start);
            let tools = self.agent.tools.clone();
            let mutates = |name: &str| tools.get(name).is_some_and(|tool| tool.spec().effect != ToolEffect::Reads);
            let (mut facts, mut end) = (Facts::default(), None);
            let mut run = match self.agent.run(input, cancel.clone()) {
                Ok(run) => run,
                Err(error) => {
                    emitter.emit(AttemptEvent::Broken(RunError::Internal(error.to_string()))).await;
                    return;
                }
            };
            while let Some(event) = run.next().await {
                if let AgentEvent::AgentEnd(run_end) = &event {
                    end = Some(attempt_end(run_end, &cancel));
                }
                let event = SessionEvent::Agent(event);
                facts.observe(&event, mutates);
                emitter.emit(AttemptEvent::Session(event)).await;
            }
            drop(run);
            self.runtime.conversations.set(&self.scope.request.session_id, &self.agent.messages);
            emitter
                .emit(match end {
                    Some(end) => AttemptEvent::End(Box::new(facts.into_outcome(end))),
                    None => AttemptEvent::Broken(RunError::Internal("the loop ended without an end".to_owned())),
                })
                .await;
        }))
    }

    fn repair<'a>(
        &'a mut self,
        repair: &'a Repair,
        _: Arc<dyn RequestAuth>,
        _: Cancel,
    ) -> BoxFuture<'a, RepairOutcome> {
        // Neither is requested: conversations cannot be compacted, and no outcome reports oversized tool results.
        Box::pin(ready(match repair {
            Repair::Compact { .. } => {
                RepairOutcome::NotCompacted { reason: "conversations in memory stay whole".to_owned() }
            }
            Repair::TruncateToolResults => RepairOutcome::NotTruncated,
        }))
    }

    fn control(&self) -> Arc<dyn RunControl> {
        Arc::clone(&self.control) as Arc<dyn RunControl>
    }
}

fn attempt_end(end: &RunEnd, cancel: &Cancel) -> AttemptEnd {
    match (end.reason, &end.error) {
        (EndReason::Aborted, _) => AttemptEnd::stopped(cancel.reason().unwrap_or(CancelReason::User), false),
        (EndReason::Failed, Some(error)) => {
            let stage = if error.emitted == Emitted::Nothing { FailureStage::Prompt } else { FailureStage::Answer };
            AttemptEnd::failed(stage, Arc::clone(error))
        }
        (EndReason::Failed, None) => {
            AttemptEnd::failed_with_text(FailureStage::Answer, &ID.into(), "the model's answer failed")
        }
        (EndReason::Done | EndReason::ToolsEnded | EndReason::Stopped | EndReason::CallsPending, _) => AttemptEnd::Good,
    }
}

fn has_failed(message: &Message) -> bool {
    message.as_assistant().is_some_and(|answer| matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted))
}

fn user(text: &str, images: &[Image], timestamp: i64) -> Message {
    let mut blocks = vec![Block::text(text)];
    blocks.extend(images.iter().cloned().map(Block::Image));
    UserMessage::new(Content::Blocks(blocks), timestamp).into()
}

/// Control of a run's attempts from outside.
struct MemoryControl {
    queues: MessageQueues,
    host: Host,
    cancel: Mutex<Cancel>,
    is_streaming: AtomicBool,
}

/// Resets [`RunControl::is_streaming`] when an attempt ends or is dropped.
struct Streaming(Arc<MemoryControl>);

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.is_streaming.store(false, Ordering::Relaxed);
    }
}

impl MemoryControl {
    fn new(queues: MessageQueues, host: Host) -> Self {
        Self { queues, host, cancel: Mutex::default(), is_streaming: AtomicBool::new(false) }
    }

    fn start(self: &Arc<Self>, cancel: &Cancel) -> Streaming {
        *locked(&self.cancel) = cancel.clone();
        self.is_streaming.store(true, Ordering::Relaxed);
        Streaming(Arc::clone(self))
    }
}

impl RunControl for MemoryControl {
    fn queue(&self, kind: QueueKind, text: String, images: Vec<Image>) -> Result<(), QueueRefusal> {
        self.queues.push(kind, user(&text, &images, self.host.now_ms()));
        Ok(())
    }

    fn take_queued(&self) -> Vec<PendingMessage> {
        let kinds = [QueueKind::Steering, QueueKind::FollowUp];
        let taken = kinds.into_iter().flat_map(|kind| self.queues.clear(kind).into_iter().map(move |m| (kind, m)));
        let pending = |(kind, queued): (QueueKind, pinch_agent_core::queue::QueuedMessage)| match &*queued.message {
            Message::User(user) => {
                let images = user.content.images().cloned().collect();
                Some(PendingMessage { kind, text: user.content.text(""), images })
            }
            _ => None,
        };
        taken.filter_map(pending).collect()
    }

    fn is_streaming(&self) -> bool {
        self.is_streaming.load(Ordering::Relaxed)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
