//! Running a prompt until the session is idle again.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use pinch_agent_core::event::{AgentEvent, EndReason, RunEnd};
use pinch_llm::message::{Block, Content, Image, Message, StopReason};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::{Pulled, pulled};

use super::answering::{answer_queries, answering};
use super::boundary;
use super::changes::{CurrentSelection, adopt};
use super::compacting::{CompactionTask, Summariser};
use super::control::TurnEntries;
use super::emitter::{SessionEmitter, SessionItem};
use super::input::{Prompt, expanded, user_message};
use super::{AgentSession, SessionError};
use crate::compaction::{CompactError, CompactionReason};
use crate::event::SessionEvent;
use crate::extension::host::InputOutcome;
use crate::extension::{self, BeforeAgentStart, FoundCommand, Notification, Point};
use crate::prompt::PromptSections as SystemPrompt;
use crate::session_log::{SessionLog, roles};

mod after;

/// The events of one prompt, including retries and compactions. Poll it to the end, or drop it to stop everything.
///
/// An error is the last item: the log could not be written, or there are no credentials. Earlier events are in the log.
pub struct SessionRun<'a> {
    events: Pulled<'a, SessionItem>,
}

/// The input of a run.
pub(super) enum RunInput {
    /// The user's input: an extension's command, or a prompt.
    Prompt(Box<Prompt>),
    /// A message to send to the model.
    Message(Arc<Message>),
    /// A message to append only.
    Note(Arc<Message>),
    /// The current conversation.
    Nothing,
    /// Pending requests of extensions.
    Rest,
}

impl<'a> SessionRun<'a> {
    pub(super) fn new(session: &'a mut AgentSession, input: RunInput, cancel: Cancel) -> Self {
        let events = pulled(|items| async move {
            let _entered = session.control.enter(&cancel);
            let emitter = SessionEmitter::new(&items, session.control.clone());
            let mut running = PromptRun { session, emitter, cancel };
            if let Err(error) = running.drive(input).await {
                items.emit(Err(error)).await;
            }
        });
        Self { events }
    }
}

impl Stream for SessionRun<'_> {
    type Item = SessionItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SessionItem>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}

/// A running prompt.
struct PromptRun<'r> {
    session: &'r mut AgentSession,
    emitter: SessionEmitter<'r>,
    cancel: Cancel,
}

/// What follows a run.
enum Next {
    /// Send the current conversation again.
    Again,
    /// The session is idle.
    Settled,
}

impl PromptRun<'_> {
    async fn drive(&mut self, input: RunInput) -> Result<(), SessionError> {
        // Boxed, as is all that is rare or brief: the future of a run keeps room for everything else while an answer streams.
        let message = match input {
            RunInput::Prompt(prompt) => Box::pin(self.take_input(*prompt)).await?,
            RunInput::Note(message) => {
                Box::pin(self.keep(message)).await?;
                None
            }
            RunInput::Message(message) => Some(message),
            RunInput::Nothing => {
                self.answer(None).await?;
                None
            }
            RunInput::Rest => None,
        };
        if message.is_some() {
            self.answer(message).await?;
        }
        self.rest().await
    }

    /// Passes the user's input to the extensions. Returns the message for the model; `None` if an extension handled it.
    async fn take_input(&mut self, prompt: Prompt) -> Result<Option<Arc<Message>>, SessionError> {
        let control = self.session.control.clone();
        if !prompt.verbatim
            && let Some((found, args)) = control.find_command(&prompt.text)
        {
            Box::pin(self.command(&found, &args)).await?;
            return Ok(None);
        }
        let input = extension::Input { text: prompt.text, images: prompt.images, source: prompt.source, queue: None };
        let outcome = Box::pin(answering(&control, &self.session.log, control.extensions().input(input))).await;
        let InputOutcome::Pass(extension::Input { text, images, .. }) = outcome else { return Ok(None) };
        let text = if prompt.verbatim { text } else { expanded(&control.commands(), &text) };
        let mut message = user_message(text, images, self.session.host.now_ms());
        message.provenance = prompt.provenance.map(Arc::new);
        Ok(Some(Arc::new(Message::User(message))))
    }

    /// Runs an extension's command, meanwhile performing its requests.
    async fn command(&mut self, found: &FoundCommand, args: &str) -> Result<(), SessionError> {
        let (control, cancel) = (self.session.control.clone(), self.cancel.clone());
        control.share(|state| state.runs_command = true);
        let mut work = pin!(async {
            let _end = cancel.run(control.run_command(found, args)).await;
            control.share(|state| state.runs_command = false);
        });
        loop {
            tokio::select! {
                biased;
                () = &mut work => return Ok(()),
                () = control.has_requests() => {}
            }
            let mut doing = pin!(self.rest());
            let mut is_done = false;
            loop {
                tokio::select! {
                    biased;
                    done = &mut doing => break done?,
                    () = &mut work, if !is_done => is_done = true,
                }
            }
            if is_done {
                return Ok(());
            }
        }
    }

    /// Performs the requests of extensions until none is left.
    async fn rest(&mut self) -> Result<(), SessionError> {
        let control = self.session.control.clone();
        loop {
            self.take_changes().await?;
            answer_queries(&control, &self.session.log);
            while Box::pin(self.session.run_request(&self.emitter, &self.cancel)).await {}
            self.emitter.emit_failures().await;
            // A cancelled prompt does not start others.
            let next = control.share(|state| state.requests.take_prompt()).filter(|_| !self.cancel.is_cancelled());
            let Some(message) = next else { return Ok(()) };
            self.answer(Some(message)).await?;
        }
    }

    /// Calls the model, with a message or the current conversation, until the session is idle.
    async fn answer(&mut self, message: Option<Arc<Message>>) -> Result<(), SessionError> {
        self.session.control.share(|state| state.requests.is_busy = true);
        let done = self.ask_until_settled(message).await;
        self.session.control.share(|state| state.requests.is_busy = false);
        let Some(aborted) = done? else { return Ok(()) };
        let settled = SessionEvent::Settled { aborted };
        self.notify_and_emit(settled).await;
        Ok(())
    }

    /// Notifies the extensions, and then emits the event.
    async fn notify_and_emit(&self, event: SessionEvent) {
        self.emitter.control.notify_extensions(Notification::Event(&event), &self.session.log).await;
        self.emitter.emit(event).await;
    }

    /// Returns whether the last run was cancelled.
    async fn ask_until_settled(&mut self, message: Option<Arc<Message>>) -> Result<Option<bool>, SessionError> {
        if let (Some(_), Some(auth)) = (&message, &self.session.auth) {
            auth.check(&self.session.agent.model, &self.cancel).await?;
        }
        // A killed program may have left calls without results.
        if Box::pin(self.session.log.heal()).await? > 0 {
            self.session.reload();
        }
        self.take_changes().await?;
        let mut input = match message {
            Some(message) => Box::pin(self.begin(message)).await?,
            None => {
                Box::pin(self.omit_failed_answer()).await?;
                Vec::new()
            }
        };
        loop {
            let end = self.run_once(std::mem::take(&mut input)).await?;
            let is_aborted = end.reason == EndReason::Aborted;
            if let Next::Settled = Box::pin(self.after_run(end)).await? {
                self.take_changes().await?;
                if self.cancel.is_cancelled()
                    || !Box::pin(boundary::before_settle(self.session, &self.emitter, &self.cancel)).await?
                {
                    // Also if the delay before a retry was cancelled.
                    return Ok(Some(is_aborted || self.cancel.is_cancelled()));
                }
            }
        }
    }

    /// Returns the first messages of a prompt: changes to the system prompt, the message itself, and those waiting for it. Compacts first
    /// if that is overdue.
    async fn begin(&mut self, message: Arc<Message>) -> Result<Vec<Arc<Message>>, SessionError> {
        self.compact_when_due().await?;
        let (behind, forced) = self.before_start(&message).await;
        let forced = forced.map(|system| system.whole().into());
        self.session.control.share(|state| state.forced_system = forced);
        let said = self.session.agent.messages.iter().map(|message| &**message);
        let change = self.session.system.difference(said, self.session.host.now_ms());
        let change = change.map(|system| Arc::new(Message::System(system)));
        let waiting = self.session.control.take_next_prompt();
        Ok(change.into_iter().chain([message]).chain(waiting).chain(behind).collect())
    }

    /// Returns the messages that extensions add after a prompt, and the system prompt they set for it.
    async fn before_start(&self, message: &Message) -> (Vec<Arc<Message>>, Option<SystemPrompt>) {
        let control = &self.session.control;
        if !control.extensions().wants(Point::BeforeAgentStart) {
            return (Vec::new(), None);
        }
        let (content, message_type) = match message {
            Message::User(user) => (user.content.clone(), None),
            Message::Other(other) => {
                let message_type = other.raw.get("customType").and_then(|value| value.as_str()).map(str::to_owned);
                (roles::custom_content(other), message_type)
            }
            _ => return (Vec::new(), None),
        };
        let images = match &content {
            Content::Text(_) => Vec::new(),
            Content::Blocks(blocks) => blocks.iter().filter_map(image).collect(),
        };
        let system = self.session.system.clone();
        let start = BeforeAgentStart { prompt: content.text(""), images, system, message_type };
        let asking = control.extensions().before_start(start);
        let (messages, system) = answering(control, &self.session.log, asking).await;
        (messages.iter().map(|message| control.custom(message)).collect(), system)
    }

    /// Appends a message without calling the model.
    async fn keep(&mut self, message: Arc<Message>) -> Result<(), SessionError> {
        // A killed program may have left calls without results.
        self.session.log.heal().await?;
        self.take_changes().await?;
        self.emitter.record(message, &mut self.session.log).await?;
        self.session.reload();
        Ok(())
    }

    /// Runs the agent once. Every message is in the log before its end event is emitted.
    async fn run_once(&mut self, input: Vec<Arc<Message>>) -> Result<RunEnd, SessionError> {
        let mut selection = CurrentSelection::of(self.session);
        let mut summariser = Summariser::of(self.session);
        let AgentSession { agent, log, compaction, state, system, .. } = &mut *self.session;
        let (emitter, queues) = (&self.emitter, agent.queues());
        let (mut revision, mut n_waiting) = (queues.revision(), emitter.control.n_waiting());
        let (mut moved, mut is_other, mut n_turns) = (false, false, 0);
        emitter.control.share(|state| state.drafted = None);
        // Both waits span many events: setting them up for each would cost more than most events.
        let mut queued = pin!(queues.changed_since(revision));
        let mut asked = pin!(emitter.control.has_work());
        let mut run = agent.run(input, self.cancel.clone())?;
        let end = loop {
            let event = tokio::select! {
                biased;
                event = run.next() => match event {
                    Some(event) => Some(event),
                    // A run always emits its end; one that does not had nothing to continue from.
                    None => return Err(pinch_agent_core::ContinueError::Empty.into()),
                },
                // Show a message queued while a tool is running immediately.
                () = &mut queued => {
                    (revision, n_waiting) = (queues.revision(), emitter.control.n_waiting());
                    queued.set(queues.changed_since(revision));
                    emitter.emit_queues().await;
                    None
                }
                () = &mut asked => {
                    asked.set(emitter.control.has_work());
                    None
                }
            };
            moved |= emitter.control.take_drafts(log, emitter).await?;
            if selection.take_in(log, emitter, false).await? {
                summariser.follow(&selection, compaction);
                emitter.control.adopt(selection.take_pending());
            }
            // Answer queries after applying changes, so that they see them.
            answer_queries(&emitter.control, log);
            let event = match event {
                Some(AgentEvent::AgentEnd(end)) => break end,
                Some(event) => event,
                None => continue,
            };
            let delivers = matches!(&event, AgentEvent::MessageStart(m) if matches!(**m, Message::User(_)))
                && n_waiting != emitter.control.n_waiting();
            if delivers || revision != queues.revision() {
                (revision, n_waiting) = (queues.revision(), emitter.control.n_waiting());
                queued.set(queues.changed_since(revision));
                emitter.emit_queues().await;
            }
            if let AgentEvent::TurnStart = event {
                let turn_index = n_turns;
                n_turns += 1;
                emitter.control.share(|state| {
                    state.requests.turn_index = turn_index;
                    state.turn = TurnEntries::default();
                });
                let notification = Notification::TurnStart { turn_index, timestamp: emitter.control.now_ms() };
                emitter.control.notify_extensions(notification, log).await;
            }
            match event {
                AgentEvent::MessageEnd { ref message, .. } => {
                    let id = log.append(roles::entry_of(message)).await?;
                    emitter.control.record_entry(message, id);
                    moved |= emitter.emit_conflicts(log).await;
                    let is_good = message.as_assistant().is_some_and(|answer| {
                        !answer.stop_reason.is_failure() && answer.stop_reason != StopReason::Length
                    });
                    emitter.emit(SessionEvent::Agent(event)).await;
                    if is_good {
                        let attempt = std::mem::take(state).attempt;
                        if attempt > 0 {
                            let end = SessionEvent::RetryEnd { success: true, attempt, final_error: None };
                            emitter.emit(end).await;
                        }
                    }
                }
                AgentEvent::TurnEnd { continues, .. } => {
                    log.sync().await?;
                    emitter.emit(SessionEvent::Agent(event)).await;
                    let follows = continues || !queues.is_empty();
                    if follows && !self.cancel.is_cancelled() && summariser.is_due(log) {
                        let wanted = CompactionTask::automatic(CompactionReason::Threshold, false);
                        compact(emitter, &summariser, log, wanted, &self.cancel).await?;
                        moved = true;
                    }
                    if std::mem::take(&mut moved) {
                        is_other = true;
                        run.replace_messages(log.context().messages);
                    }
                }
                other => {
                    let event = SessionEvent::Agent(other);
                    emitter.control.notify_extensions(Notification::Event(&event), log).await;
                    emitter.emit(event).await;
                }
            }
        };
        drop(run);
        emitter.control.take_adopted(|rest| adopt(agent, rest));
        if let Some(changed) = selection.into_system() {
            *system = changed;
        }
        if is_other {
            // Changes during the last turn have not reached the agent.
            self.session.reload();
        }
        Ok(end)
    }

    /// Applies changes requested from outside while the agent is idle.
    async fn take_changes(&mut self) -> Result<(), SessionError> {
        let mut selection = CurrentSelection::of(self.session);
        if selection.take_in(&mut self.session.log, &self.emitter, true).await? {
            adopt(&mut self.session.agent, &mut selection.take_pending());
            if let Some(changed) = selection.into_system() {
                self.session.system = changed;
            }
            self.session.reload();
        }
        Ok(())
    }

    /// Notifies the extensions that a run ended, performs their requests, and emits the event.
    async fn emit_end(&mut self, event: SessionEvent) -> Result<(), SessionError> {
        let revision = self.session.agent.queues().revision();
        self.emitter.control.notify_extensions(Notification::Event(&event), &self.session.log).await;
        self.take_changes().await?;
        if revision != self.session.agent.queues().revision() {
            self.emitter.emit_queues().await;
        }
        self.emitter.emit(event).await;
        Ok(())
    }

    async fn compact_when_due(&mut self) -> Result<(), SessionError> {
        if Summariser::of(self.session).is_due(&self.session.log) {
            self.compact(CompactionReason::Threshold, false).await?;
        }
        Ok(())
    }

    /// Compacts and emits its events. Returns whether it succeeded. A failure is emitted, not returned: the conversation continues
    /// unchanged.
    async fn compact(&mut self, reason: CompactionReason, will_retry: bool) -> Result<bool, SessionError> {
        let summariser = Summariser::of(self.session);
        let wanted = CompactionTask::automatic(reason, will_retry);
        let compacted = compact(&self.emitter, &summariser, &mut self.session.log, wanted, &self.cancel).await?;
        self.session.reload();
        Ok(compacted)
    }
}

/// Compacts and emits its events. Returns whether it succeeded.
async fn compact(
    emitter: &SessionEmitter<'_>,
    summariser: &Summariser,
    log: &mut SessionLog,
    wanted: CompactionTask<'_>,
    cancel: &Cancel,
) -> Result<bool, SessionError> {
    // Boxed: it is rare, and much larger than the surrounding future.
    match Box::pin(summariser.compact(log, wanted, emitter, cancel)).await {
        Ok(_) => Ok(true),
        Err(CompactError::Store(error)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}

fn image(block: &Block) -> Option<Image> {
    match block {
        Block::Image(image) => Some(image.clone()),
        _ => None,
    }
}
