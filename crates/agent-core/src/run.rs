//! One run: from a prompt to the last answer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::Stream;
use pinch_llm::error::LlmError;
use pinch_llm::message::{AssistantMessage, Message, StopReason, SystemMessage, ToolCall};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::{Emitter, Pulled, pulled};

use crate::agent::{Agent, ContinueError};
use crate::declare::Declared;
use crate::event::{AgentEvent, EndReason, RunEnd};
use crate::hooks::{AfterTurn, TurnEnded};
use crate::queue::{QueueKind, UndeliveredMessage};

mod grace;
mod spans;
mod route;
mod call;
mod batch;
mod failed;
mod response;
mod turn;

use grace::Grace;

/// The events of one run; see [`crate::event`] for their order. Pull it to the end, or drop it to stop everything.
pub struct Run<'a> {
    events: Pulled<'a, AgentEvent>,
    replacement: ReplacementHistory,
}

/// A conversation that replaces the agent's own before the next request.
type ReplacementHistory = Arc<Mutex<Option<Vec<Arc<Message>>>>>;

/// A message about to be added to the conversation.
#[derive(Debug)]
pub(crate) struct IncomingMessage {
    message: Arc<Message>,
    /// Its hold on the queue: if the run ends before the message is added, it stays in the queue.
    held: Option<UndeliveredMessage>,
}

impl From<Arc<Message>> for IncomingMessage {
    fn from(message: Arc<Message>) -> Self {
        Self { message, held: None }
    }
}

impl Agent {
    /// Starts a run with new messages, or continues the conversation if `input` is empty. Nothing happens until the run is polled.
    ///
    /// A conversation that ends with an answer is continued with queued messages.
    ///
    /// # Errors
    /// Returns an error if there is nothing to continue from.
    pub fn run(&mut self, input: Vec<Arc<Message>>, cancel: Cancel) -> Result<Run<'_>, ContinueError> {
        let mut pending: Vec<IncomingMessage> = input.into_iter().map(IncomingMessage::from).collect();
        let mut skip_first_poll = false;
        if pending.is_empty() {
            match self.messages.iter().rev().find(|message| !matches!(***message, Message::System(_))) {
                None => return Err(ContinueError::Empty),
                Some(last) if matches!(**last, Message::Assistant(_)) => {
                    pending = self.drain(QueueKind::Steering);
                    skip_first_poll = !pending.is_empty();
                    if pending.is_empty() {
                        pending = self.drain(QueueKind::FollowUp);
                    }
                    if pending.is_empty() {
                        return Err(ContinueError::Role { role: last.role().to_owned() });
                    }
                }
                Some(_) => {}
            }
        }
        Ok(Run::new(self, pending, skip_first_poll, cancel))
    }

    pub(crate) fn drain(&self, kind: QueueKind) -> Vec<IncomingMessage> {
        let pending = |held: UndeliveredMessage| Some(IncomingMessage { message: held.message()?, held: Some(held) });
        self.queues().hold(kind).into_iter().filter_map(pending).collect()
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        agent: &'a mut Agent,
        pending: Vec<IncomingMessage>,
        skip_first_poll: bool,
        cancel: Cancel,
    ) -> Self {
        let replacement = ReplacementHistory::default();
        let theirs = Arc::clone(&replacement);
        let events = pulled(|emitter| async move {
            let mut run = RunDriver {
                declared: Declared::replay(&agent.messages),
                agent,
                emitter: &emitter,
                cancel: &cancel,
                grace: Grace::new(cancel.clone()),
                new: Vec::new(),
                replacement: theirs,
            };
            run.drive(pending, skip_first_poll).await;
        });
        Self { events, replacement }
    }

    /// Replaces the agent's conversation from the next request on, as compaction between two turns does. Call it between two events, while
    /// the loop is not running.
    pub fn replace_messages(&self, messages: Vec<Arc<Message>>) {
        *self.replacement.lock().unwrap_or_else(PoisonError::into_inner) = Some(messages);
    }
}

impl Stream for Run<'_> {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}

/// An active run.
struct RunDriver<'r> {
    agent: &'r mut Agent,
    emitter: &'r Emitter<AgentEvent>,
    cancel: &'r Cancel,
    grace: Grace,
    declared: Declared,
    /// Messages added by this run.
    new: Vec<Arc<Message>>,
    replacement: ReplacementHistory,
}

/// Outcome of a turn.
struct FinishedTurn {
    message: Arc<AssistantMessage>,
    error: Option<Arc<LlmError>>,
    calls: Arc<[ToolCall]>,
    results: Vec<Arc<Message>>,
    /// Whether the model must see the results.
    wants_answer: bool,
    /// Whether all tools asked the run to end.
    tools_ended: bool,
    /// Calls that the caller has to run.
    pending_calls: Vec<ToolCall>,
}

impl RunDriver<'_> {
    /// The loop. Keep it short enough for one page.
    async fn drive(&mut self, mut pending: Vec<IncomingMessage>, skip_first_poll: bool) {
        self.agent.error_message = None;
        self.emit(AgentEvent::AgentStart).await;
        let mut first = true;
        let mut broken = None;
        let mut pending_calls = Vec::new();
        let reason = loop {
            self.emit(AgentEvent::TurnStart).await;
            self.adopt_replacement();
            self.announce(&mut pending);
            self.take_in(std::mem::take(&mut pending)).await;
            if first && !skip_first_poll {
                let steering = self.poll(QueueKind::Steering);
                self.take_in(steering).await;
            }
            let turn = self.turn(first, broken.take()).await;
            first = false;
            let ended = TurnEnded {
                message: Arc::clone(&turn.message),
                calls: Arc::clone(&turn.calls),
                results: turn.results.clone(),
            };
            let hooks = Arc::clone(&self.agent.hooks);
            let after = self.grace.run(hooks.after_turn(&ended)).await.unwrap_or_default();
            self.agent.error_message.clone_from(&turn.message.error_message);
            let failed = turn.message.stop_reason.is_failure();
            let may_continue = !failed && after != AfterTurn::Stop && turn.pending_calls.is_empty();
            let continues = may_continue && (turn.wants_answer || after == AfterTurn::Continue);
            self.emit(AgentEvent::TurnEnd { message: Arc::clone(&turn.message), results: turn.results, continues })
                .await;
            if failed {
                let aborted = turn.message.stop_reason == StopReason::Aborted;
                break (if aborted { EndReason::Aborted } else { EndReason::Failed }, turn.error);
            }
            if !turn.pending_calls.is_empty() {
                pending_calls = turn.pending_calls;
                break (EndReason::CallsPending, None);
            }
            if after == AfterTurn::Stop {
                break (EndReason::Stopped, None);
            }
            pending = self.poll(QueueKind::Steering);
            if !continues && pending.is_empty() {
                pending = self.poll(QueueKind::FollowUp);
                if pending.is_empty() {
                    break (if turn.tools_ended { EndReason::ToolsEnded } else { EndReason::Done }, None);
                }
            }
            broken = self.prepare_next(&ended, &mut pending).await.err();
        };
        let messages = std::mem::take(&mut self.new);
        self.emit(AgentEvent::AgentEnd(RunEnd { messages, reason: reason.0, error: reason.1, pending_calls })).await;
    }

    /// Calls the hook between two turns. Steering that arrives meanwhile is still added, unless this turn already has some: one at a time
    /// means one per turn.
    async fn prepare_next(&mut self, ended: &TurnEnded, pending: &mut Vec<IncomingMessage>) -> Result<(), String> {
        let hooks = Arc::clone(&self.agent.hooks);
        let Ok(next) = self.cancel.run(hooks.between_turns(ended)).await else { return Ok(()) };
        let next = next?;
        if let Some(model) = next.model {
            self.agent.model = model;
        }
        if let Some(thinking) = next.thinking {
            self.agent.thinking = thinking;
        }
        if pending.is_empty() {
            *pending = self.poll(QueueKind::Steering);
        }
        pending.extend(next.messages.into_iter().map(IncomingMessage::from));
        Ok(())
    }

    async fn emit(&self, event: AgentEvent) {
        self.emitter.emit(event).await;
    }

    /// Polls a queue; a cancelled run takes nothing.
    fn poll(&self, kind: QueueKind) -> Vec<IncomingMessage> {
        if self.cancel.is_cancelled() { Vec::new() } else { self.agent.drain(kind) }
    }

    fn adopt_replacement(&mut self) {
        let replacement = self.replacement.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(messages) = replacement {
            self.declared = Declared::replay(&messages);
            self.agent.messages = messages;
        }
    }

    /// Declares changes of the prompt and of the tools: in a pending system message if there is one, or in a new one before the first other
    /// message.
    fn announce(&mut self, pending: &mut Vec<IncomingMessage>) {
        if let Some(tools) = self.agent.hooks.tools() {
            self.agent.tools = tools;
        }
        let place = pending.iter().position(|p| matches!(*p.message, Message::System(_)));
        let waiting = match place.map(|at| &*pending[at].message) {
            Some(Message::System(system)) => Some(system.clone()),
            _ => self.agent.hooks.system(&self.agent.messages),
        };
        let difference = self.declared.difference(&self.agent.tools);
        if waiting.is_none() && difference.is_none() {
            return;
        }
        let mut system = waiting.unwrap_or_else(|| SystemMessage {
            content: pinch_llm::message::Content::Text(String::new()),
            timestamp: self.agent.host.now_ms(),
            ..SystemMessage::default()
        });
        if let Some(difference) = difference {
            difference.write_to(&mut system);
        }
        let message = Arc::new(Message::System(system));
        match place {
            Some(at) => pending[at].message = message,
            None => pending.insert(0, IncomingMessage::from(message)),
        }
    }

    async fn take_in(&mut self, pending: Vec<IncomingMessage>) {
        let hooks = Arc::clone(&self.agent.hooks);
        for IncomingMessage { message, held } in pending {
            let message = replaced(hooks.incoming(&message).await, message);
            self.emit(AgentEvent::MessageStart(Arc::clone(&message))).await;
            let message = self.append(message).await;
            let queued = held.and_then(UndeliveredMessage::delivered);
            self.emit(AgentEvent::MessageEnd { message, error: None, queued }).await;
        }
    }

    /// Appends a message to the conversation, after the hooks have seen it, and returns the appended message.
    async fn append(&mut self, message: Arc<Message>) -> Arc<Message> {
        let hooks = Arc::clone(&self.agent.hooks);
        let message = replaced(hooks.complete_message(&message).await, message);
        self.declared.apply(&message);
        self.agent.messages.push(Arc::clone(&message));
        self.new.push(Arc::clone(&message));
        message
    }
}

/// Returns the hook's replacement of a message, if it has the same role.
fn replaced(by: Option<Arc<Message>>, message: Arc<Message>) -> Arc<Message> {
    by.filter(|other| other.role() == message.role()).unwrap_or(message)
}
