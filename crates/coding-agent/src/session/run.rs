//! A prompt from its message to the point where nothing goes on by itself.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{Either, select};
use futures::{Stream, StreamExt};
use pinch_agent_core::event::{AgentEvent, EndReason, RunEnd};
use pinch_llm::message::Message;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::{Giver, Pulled, pulled};

use super::compacting::Summariser;
use super::{AgentSession, SessionControl, SessionError, SessionItem};
use crate::compaction::{CompactError, Compacted, CompactionReason, CompactionSettings};
use crate::entry::{EntryBody, EntryId};
use crate::event::SessionEvent;
use crate::recovery::{Failure, Recovery, recover};
use crate::session_log::SessionLog;

/// What a session says when compaction did not make a conversation short enough, as pi words it.
const STILL_TOO_LONG: &str = "Context overflow recovery failed after one compact-and-retry attempt. \
     Try reducing context or switching to a larger-context model.";

/// The events of one prompt, retries and compactions included. Pull it to its end, or drop it to stop everything.
///
/// An error is the last item: the log could not be written. What had been told before is in the log.
pub struct SessionRun<'a> {
    events: Pulled<'a, SessionItem>,
}

impl<'a> SessionRun<'a> {
    pub(super) fn new(session: &'a mut AgentSession, message: Option<Message>, cancel: Cancel) -> Self {
        let events = pulled(|giver| async move {
            let _entered = session.control.enter(&cancel);
            let tell = Tell { giver: &giver, control: session.control.clone() };
            let mut running = Running { session, tell, cancel };
            if let Err(error) = running.drive(message).await {
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

/// Gives events to the reader.
struct Tell<'r> {
    giver: &'r Giver<SessionItem>,
    control: SessionControl,
}

impl Tell<'_> {
    async fn give(&self, event: SessionEvent) {
        self.giver.give(Ok(event)).await;
    }

    async fn queues(&self) {
        let (steering, follow_up) = self.control.waiting();
        self.give(SessionEvent::QueueUpdate { steering, follow_up }).await;
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
    async fn drive(&mut self, message: Option<Message>) -> Result<(), SessionError> {
        let mut input = self.begin(message).await?;
        loop {
            let end = self.run_once(std::mem::take(&mut input)).await?;
            let aborted = end.why == EndReason::Aborted;
            if let Next::Settled = self.after_run(end).await? {
                self.tell.give(SessionEvent::Settled { aborted }).await;
                return Ok(());
            }
        }
    }

    /// The messages a prompt begins with: what changed in the system prompt, and the user's own. Compacts first when that is overdue.
    async fn begin(&mut self, message: Option<Message>) -> Result<Vec<Arc<Message>>, SessionError> {
        // A program that was killed may have left calls without results.
        if self.session.log.heal().await? > 0 {
            self.session.reload();
        }
        let Some(message) = message else {
            self.omit_failed_answer().await?;
            return Ok(Vec::new());
        };
        self.compact_when_due().await?;
        let said = self.session.agent.messages.iter().map(|message| &**message);
        let change = self.session.system.difference(said, self.session.host.now_ms());
        let change = change.map(|system| Arc::new(Message::System(system)));
        Ok(change.into_iter().chain([Arc::new(message)]).collect())
    }

    /// One run of the agent. Every message is in the log before its end is told.
    async fn run_once(&mut self, input: Vec<Arc<Message>>) -> Result<RunEnd, SessionError> {
        let AgentSession { agent, log, compaction, state, .. } = &mut *self.session;
        let (tell, queues) = (&self.tell, agent.queues());
        let summariser = Summariser::of(agent);
        let (mut revision, mut n_waiting) = (queues.revision(), n_waiting(&tell.control));
        let mut run = agent.run(input, self.cancel.clone())?;
        loop {
            let mut next = run.next();
            let event = match futures::poll!(&mut next) {
                Poll::Ready(event) => event,
                // A message that is queued while a tool works is shown at once.
                Poll::Pending => match select(next, std::pin::pin!(queues.changed_since(revision))).await {
                    Either::Left((event, _)) => event,
                    Either::Right(_) => {
                        (revision, n_waiting) = (queues.revision(), self::n_waiting(&tell.control));
                        tell.queues().await;
                        continue;
                    }
                },
            };
            let Some(event) = event else { break };
            let delivers = matches!(&event, AgentEvent::MessageStart(m) if matches!(**m, Message::User(_)))
                && n_waiting != self::n_waiting(&tell.control);
            if delivers || revision != queues.revision() {
                (revision, n_waiting) = (queues.revision(), self::n_waiting(&tell.control));
                tell.queues().await;
            }
            match event {
                AgentEvent::AgentEnd(end) => return Ok(end),
                AgentEvent::MessageEnd { ref message, .. } => {
                    log.append(EntryBody::Message(Arc::clone(message))).await?;
                    let is_good = message.as_assistant().is_some_and(|answer| !answer.stop_reason.is_failure());
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
                    if goes_on && !self.cancel.is_cancelled() {
                        let messages = log.context().messages;
                        if summariser.is_due(&messages, compaction) {
                            let reason = CompactionReason::Threshold;
                            compact(tell, &summariser, log, compaction, reason, &self.cancel).await?;
                            run.replace_messages(log.context().messages);
                        }
                    }
                }
                other => tell.give(SessionEvent::Agent(other)).await,
            }
        }
        // A run always ends with its end; one that does not has nothing to continue from.
        Err(pinch_agent_core::CannotContinue::Empty.into())
    }

    /// Decides what follows a run, and does it.
    async fn after_run(&mut self, end: RunEnd) -> Result<Next, SessionError> {
        let answer = end.messages.iter().rev().find_map(|message| message.as_assistant().cloned());
        let model = &self.session.agent.model;
        let recovery = answer.as_ref().map_or(Recovery::Done, |message| {
            let failure = Failure {
                message,
                error: end.error.as_deref(),
                context_window: model.context_window,
                same_model: message.provider == model.provider && message.model == model.id,
            };
            recover(&mut self.session.state, &failure, &self.session.plan)
        });
        let will_retry = matches!(recovery, Recovery::Again { .. } | Recovery::Compact);
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
                let compacted = self.compact(CompactionReason::Overflow).await?;
                // An answer that came although the window was full is not asked for again.
                Ok(if compacted && is_failure { Next::Again } else { Next::Settled })
            }
            Recovery::StillTooLong => {
                let reason = CompactionReason::Overflow;
                self.tell.give(compaction_end(reason, None, false, false, Some(STILL_TOO_LONG.into()))).await;
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
        self.omit_failed_answer().await?;
        let wait = self.session.control.new_wait(&self.cancel);
        let start = SessionEvent::RetryStart {
            attempt,
            max_attempts: self.session.plan.turn.max_retries,
            delay_ms: u64::try_from(nominal.as_millis()).unwrap_or(u64::MAX),
            error_message,
        };
        self.tell.give(start).await;
        // Up to a tenth of jitter, so that many clients do not come back at the same moment.
        let jitter = nominal.mul_f64(self.session.host.ids().fraction() * 0.1);
        if wait.run(tokio::time::sleep(nominal.max(at_least) + jitter)).await.is_err() {
            self.session.state.attempt = 0;
            let final_error = Some("Retry cancelled".to_owned());
            self.tell.give(SessionEvent::RetryEnd { success: false, attempt, final_error }).await;
            return Ok(Next::Settled);
        }
        Ok(Next::Again)
    }

    async fn omit_failed_answer(&mut self) -> Result<(), SessionError> {
        if let Some(id) = self.session.omit_failed_answer().await? {
            self.entry_appended(&id).await;
        }
        Ok(())
    }

    async fn entry_appended(&self, id: &EntryId) {
        if let Some(entry) = self.session.log.entry(id) {
            self.tell.give(SessionEvent::EntryAppended(Box::new((*entry).clone()))).await;
        }
    }

    async fn compact_when_due(&mut self) -> Result<(), SessionError> {
        let summariser = Summariser::of(&self.session.agent);
        if summariser.is_due(&self.session.agent.messages, &self.session.compaction) {
            self.compact(CompactionReason::Threshold).await?;
        }
        Ok(())
    }

    /// Compacts and says so; true when it worked. A failure is told, not returned: the conversation goes on as it is.
    async fn compact(&mut self, reason: CompactionReason) -> Result<bool, SessionError> {
        let AgentSession { agent, log, compaction, .. } = &mut *self.session;
        let summariser = Summariser::of(agent);
        let compacted = compact(&self.tell, &summariser, log, compaction, reason, &self.cancel).await?;
        agent.messages = log.context().messages;
        Ok(compacted)
    }
}

async fn compact(
    tell: &Tell<'_>,
    summariser: &Summariser,
    log: &mut SessionLog,
    settings: &CompactionSettings,
    reason: CompactionReason,
    cancel: &Cancel,
) -> Result<bool, SessionError> {
    let is_overflow = reason == CompactionReason::Overflow;
    tell.give(SessionEvent::CompactionStart { reason }).await;
    let (end, compacted) = match summariser.compact(log, settings, reason, None, cancel).await {
        Ok(done) => (compaction_end(reason, Some(done), false, is_overflow, None), true),
        Err(CompactError::Store(error)) => return Err(error.into()),
        Err(CompactError::Cancelled) => (compaction_end(reason, None, true, false, None), false),
        Err(CompactError::AlreadyCompacted | CompactError::NothingToCompact) => {
            let text = is_overflow.then(|| "Nothing left to compact".to_owned());
            (compaction_end(reason, None, false, false, text), false)
        }
        Err(error) => {
            let what = if is_overflow { "Context overflow recovery failed" } else { "Auto-compaction failed" };
            (compaction_end(reason, None, false, false, Some(format!("{what}: {error}"))), false)
        }
    };
    tell.give(end).await;
    Ok(compacted)
}

fn compaction_end(
    reason: CompactionReason,
    result: Option<Compacted>,
    aborted: bool,
    will_retry: bool,
    error_message: Option<String>,
) -> SessionEvent {
    SessionEvent::CompactionEnd { reason, result: result.map(Box::new), aborted, will_retry, error_message }
}

fn n_waiting(control: &SessionControl) -> usize {
    let (steering, follow_up) = control.waiting();
    steering.len() + follow_up.len()
}
