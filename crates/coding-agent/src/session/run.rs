//! A prompt from its message to the point where nothing goes on by itself.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Stream, StreamExt};
use pinch_agent_core::event::{AgentEvent, EndReason, RunEnd};
use pinch_llm::message::{Message, StopReason};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::{Pulled, pulled};

use super::changes::{Standing, adopt};
use super::compacting::{Summariser, Wanted};
use super::tell::{SessionItem, Tell};
use super::{AgentSession, SessionError, SessionView};
use crate::compaction::{self, CompactError, CompactionReason};
use crate::event::SessionEvent;
use crate::recovery::{Failure, Recovery, TurnRetry, recover};
use crate::session_log::{SessionLog, roles};

/// What a session says when compaction did not make a conversation short enough, as pi words it.
const STILL_TOO_LONG: &str = "Context overflow recovery failed after one compact-and-retry attempt. \
     Try reducing context or switching to a larger-context model.";

/// The events of one prompt, retries and compactions included. Pull it to its end, or drop it to stop everything.
///
/// An error is the last item: the log could not be written, or nobody has credentials. What had been told before is in the log.
pub struct SessionRun<'a> {
    events: Pulled<'a, SessionItem>,
}

/// What a run begins with.
pub(super) enum Input {
    /// A message that is to be answered.
    Message(Arc<Message>),
    /// A message that is only kept.
    Note(Arc<Message>),
    /// The conversation as it stands.
    Nothing,
}

impl<'a> SessionRun<'a> {
    pub(super) fn new(session: &'a mut AgentSession, input: Input, cancel: Cancel) -> Self {
        let events = pulled(|giver| async move {
            let _entered = session.control.enter(&cancel);
            let tell = Tell::new(&giver, session.control.clone());
            let mut running = Running { session, tell, cancel };
            if let Err(error) = running.drive(input).await {
                giver.give(Err(error)).await;
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

/// A prompt under way.
struct Running<'r> {
    session: &'r mut AgentSession,
    tell: Tell<'r>,
    cancel: Cancel,
}

/// What follows a run.
enum Next {
    /// The conversation is asked again as it stands.
    Again,
    /// Nothing goes on by itself.
    Settled,
}

impl Running<'_> {
    async fn drive(&mut self, input: Input) -> Result<(), SessionError> {
        if let (Input::Message(_), Some(auth)) = (&input, &self.session.auth) {
            auth.check(&self.session.agent.model, &self.cancel).await?;
        }
        // A program that was killed may have left calls without results.
        if self.session.log.heal().await? > 0 {
            self.session.reload();
        }
        self.take_changes().await?;
        let mut input = match input {
            Input::Message(message) => self.begin(message).await?,
            Input::Note(message) => return self.note(message).await,
            Input::Nothing => {
                self.omit_failed_answer().await?;
                Vec::new()
            }
        };
        loop {
            let end = self.run_once(std::mem::take(&mut input)).await?;
            let aborted = end.why == EndReason::Aborted;
            if let Next::Settled = self.after_run(end).await? {
                self.take_changes().await?;
                self.tell.give(SessionEvent::Settled { aborted }).await;
                return Ok(());
            }
        }
    }

    /// The messages a prompt begins with: what changed in the system prompt, the message itself, and those that waited for it. Compacts first
    /// when that is overdue.
    async fn begin(&mut self, message: Arc<Message>) -> Result<Vec<Arc<Message>>, SessionError> {
        self.compact_when_due().await?;
        let said = self.session.agent.messages.iter().map(|message| &**message);
        let change = self.session.system.difference(said, self.session.host.now_ms());
        let change = change.map(|system| Arc::new(Message::System(system)));
        let behind = self.session.control.take_next_prompt();
        Ok(change.into_iter().chain([message]).chain(behind).collect())
    }

    /// Keeps a message that nobody is asked to answer.
    async fn note(&mut self, message: Arc<Message>) -> Result<(), SessionError> {
        self.tell.give(SessionEvent::Agent(AgentEvent::MessageStart(Arc::clone(&message)))).await;
        self.session.log.append(roles::entry_of(&message)).await?;
        self.session.reload();
        self.tell.give(SessionEvent::Agent(AgentEvent::MessageEnd { message, error: None, queued: None })).await;
        Ok(())
    }

    /// One run of the agent. Every message is in the log before its end is told.
    async fn run_once(&mut self, input: Vec<Arc<Message>>) -> Result<RunEnd, SessionError> {
        let mut standing = Standing::of(self.session);
        let mut summariser = Summariser::of(self.session);
        let AgentSession { agent, log, compaction, state, system, .. } = &mut *self.session;
        let (tell, queues) = (&self.tell, agent.queues());
        let (mut revision, mut n_waiting) = (queues.revision(), tell.control.n_waiting());
        let mut moved = false;
        let mut run = agent.run(input, self.cancel.clone())?;
        let end = loop {
            let event = tokio::select! {
                biased;
                event = run.next() => match event {
                    Some(event) => Some(event),
                    // A run always ends with its end; one that does not has nothing to continue from.
                    None => return Err(pinch_agent_core::CannotContinue::Empty.into()),
                },
                // A message that is queued while a tool works is shown at once.
                () = queues.changed_since(revision) => {
                    (revision, n_waiting) = (queues.revision(), tell.control.n_waiting());
                    tell.queues().await;
                    None
                }
                () = tell.control.has_changes() => None,
            };
            if standing.take_in(log, tell, false).await? {
                summariser.follow(&standing, compaction);
                tell.control.adopt(standing.take_news());
            }
            tell.control.show(&SessionView::of_log(log, &standing.model, standing.thinking));
            let event = match event {
                Some(AgentEvent::AgentEnd(end)) => break end,
                Some(event) => event,
                None => continue,
            };
            let delivers = matches!(&event, AgentEvent::MessageStart(m) if matches!(**m, Message::User(_)))
                && n_waiting != tell.control.n_waiting();
            if delivers || revision != queues.revision() {
                (revision, n_waiting) = (queues.revision(), tell.control.n_waiting());
                tell.queues().await;
            }
            match event {
                AgentEvent::MessageEnd { ref message, .. } => {
                    log.append(roles::entry_of(message)).await?;
                    moved |= tell.conflicts(log).await;
                    let is_good = message.as_assistant().is_some_and(|answer| {
                        !answer.stop_reason.is_failure() && answer.stop_reason != StopReason::Length
                    });
                    tell.give(SessionEvent::Agent(event)).await;
                    if is_good {
                        let attempt = std::mem::take(state).attempt;
                        if attempt > 0 {
                            let end = SessionEvent::RetryEnd { success: true, attempt, final_error: None };
                            tell.give(end).await;
                        }
                    }
                }
                AgentEvent::TurnEnd { goes_on, .. } => {
                    log.sync().await?;
                    tell.give(SessionEvent::Agent(event)).await;
                    let follows = goes_on || !queues.is_empty();
                    if follows && !self.cancel.is_cancelled() && summariser.is_due(&log.context().messages) {
                        let wanted = Wanted::by_itself(CompactionReason::Threshold, false);
                        compact(tell, &summariser, log, wanted, &self.cancel).await?;
                        moved = true;
                    }
                    if std::mem::take(&mut moved) {
                        run.replace_messages(log.context().messages);
                    }
                }
                other => tell.give(SessionEvent::Agent(other)).await,
            }
        };
        drop(run);
        tell.control.take_adopted(|rest| adopt(agent, rest));
        if let Some(changed) = standing.into_system() {
            *system = changed;
        }
        Ok(end)
    }

    /// Makes the changes that were asked for from outside while the agent is at rest.
    async fn take_changes(&mut self) -> Result<(), SessionError> {
        let mut standing = Standing::of(self.session);
        if standing.take_in(&mut self.session.log, &self.tell, true).await? {
            adopt(&mut self.session.agent, &mut standing.take_news());
            if let Some(changed) = standing.into_system() {
                self.session.system = changed;
            }
            self.session.reload();
        }
        Ok(())
    }

    /// Decides what follows a run, and does it.
    async fn after_run(&mut self, end: RunEnd) -> Result<Next, SessionError> {
        let answer = end.messages.iter().rev().find_map(|message| message.as_assistant().cloned());
        let plan = self.session.plan_now();
        let model = &self.session.agent.model;
        let recovery = answer.as_ref().map_or(Recovery::Done, |message| {
            let failure = Failure {
                message,
                error: end.error.as_deref(),
                context_window: model.context_window,
                same_model: message.provider == model.provider && message.model == model.id,
                output_limit: self.session.agent.options.max_tokens.unwrap_or(model.max_tokens),
            };
            recover(&mut self.session.state, &failure, &plan)
        });
        let will_retry = matches!(recovery, Recovery::Again { .. });
        let aborted = end.why == EndReason::Aborted;
        let error_message = answer.as_ref().and_then(|answer| answer.error_message.clone()).unwrap_or_default();
        let is_failure = answer.as_ref().is_some_and(|answer| answer.stop_reason.is_failure());
        self.tell.give(SessionEvent::RunEnd { end, will_retry }).await;
        match recovery {
            Recovery::Again { attempt, nominal, at_least } => {
                self.wait_for_retry(attempt, nominal, at_least, error_message).await
            }
            Recovery::Compact => {
                if is_failure {
                    self.omit_failed_answer().await?;
                }
                let compacted = self.compact(CompactionReason::Overflow, true).await?;
                // An answer that came although the window was full is not asked for again.
                Ok(if compacted && is_failure { Next::Again } else { Next::Settled })
            }
            Recovery::CompactForOutput => {
                self.omit_last_answer().await?;
                let settings = self.session.compaction.for_model(&self.session.agent.model);
                let can = compaction::prepare_log(&self.session.log, &settings).is_ok();
                let compacted = can && self.compact(CompactionReason::Overflow, true).await?;
                Ok(if compacted { Next::Again } else { Next::Settled })
            }
            Recovery::StillTooLong => {
                let reason = CompactionReason::Overflow;
                let error_message = Some(STILL_TOO_LONG.to_owned());
                let end = SessionEvent::CompactionEnd {
                    reason,
                    result: None,
                    aborted: false,
                    will_retry: false,
                    error_message,
                };
                self.tell.give(end).await;
                Ok(Next::Settled)
            }
            Recovery::GiveUp { attempt, final_error } => {
                let final_error = Some(final_error);
                self.tell.give(SessionEvent::RetryEnd { success: false, attempt, final_error }).await;
                self.compact_when_due().await?;
                Ok(Next::Settled)
            }
            Recovery::Done if aborted => Ok(Next::Settled),
            Recovery::Done => {
                self.compact_when_due().await?;
                let waits = !self.session.agent.queues().is_empty() && !self.cancel.is_cancelled();
                Ok(if waits && !is_failure { Next::Again } else { Next::Settled })
            }
        }
    }

    async fn wait_for_retry(
        &mut self,
        attempt: u32,
        nominal: Duration,
        at_least: Duration,
        error_message: String,
    ) -> Result<Next, SessionError> {
        let wait = self.session.control.new_wait(&self.cancel);
        let start = SessionEvent::RetryStart {
            attempt,
            max_attempts: self.session.plan_now().turn.max_retries,
            delay_ms: u64::try_from(nominal.as_millis()).unwrap_or(u64::MAX),
            error_message,
        };
        self.tell.give(start).await;
        self.omit_failed_answer().await?;
        let pause = TurnRetry::wait(nominal, at_least, self.session.host.ids().fraction());
        let waited = wait.run(tokio::time::sleep(pause));
        if self.session.control.showing(&self.session.view(), waited).await.is_err() {
            self.session.state.attempt = 0;
            let final_error = Some("Retry cancelled".to_owned());
            self.tell.give(SessionEvent::RetryEnd { success: false, attempt, final_error }).await;
            return Ok(Next::Settled);
        }
        Ok(Next::Again)
    }

    async fn omit_failed_answer(&mut self) -> Result<(), SessionError> {
        if let Some(id) = self.session.omit_failed_answer().await? {
            self.tell.entry_appended(&self.session.log, &id).await;
        }
        Ok(())
    }

    /// Leaves an answer out of the context although it is no failure.
    async fn omit_last_answer(&mut self) -> Result<(), SessionError> {
        if let Some(id) = self.session.omit_last(|_| true).await? {
            self.tell.entry_appended(&self.session.log, &id).await;
        }
        Ok(())
    }

    async fn compact_when_due(&mut self) -> Result<(), SessionError> {
        if Summariser::of(self.session).is_due(&self.session.agent.messages) {
            self.compact(CompactionReason::Threshold, false).await?;
        }
        Ok(())
    }

    /// Compacts and says so; true when it worked. A failure is told, not returned: the conversation goes on as it is.
    async fn compact(&mut self, reason: CompactionReason, will_retry: bool) -> Result<bool, SessionError> {
        let summariser = Summariser::of(self.session);
        let wanted = Wanted::by_itself(reason, will_retry);
        let compacted = compact(&self.tell, &summariser, &mut self.session.log, wanted, &self.cancel).await?;
        self.session.reload();
        Ok(compacted)
    }
}

/// Compacts and says so; true when it worked.
async fn compact(
    tell: &Tell<'_>,
    summariser: &Summariser,
    log: &mut SessionLog,
    wanted: Wanted<'_>,
    cancel: &Cancel,
) -> Result<bool, SessionError> {
    match summariser.compact(log, wanted, tell, cancel).await {
        Ok(_) => Ok(true),
        Err(CompactError::Store(error)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}
