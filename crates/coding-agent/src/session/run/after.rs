//! What happens after a run: nothing, a retry, or a compaction first.

use std::time::Duration;

use pinch_agent_core::event::{EndReason, RunEnd};

use super::super::SessionError;
use super::super::answering::answering;
use super::{Next, PromptRun};
use crate::compaction::CompactionReason;
use crate::event::SessionEvent;
use crate::recovery::{FailedAnswer, Recovery, TurnRetry, recover};

/// The error if the conversation is still too long after a compaction, in pi's words.
const STILL_TOO_LONG: &str = "Context overflow recovery failed after one compact-and-retry attempt. \
     Try reducing context or switching to a larger-context model.";

impl PromptRun<'_> {
    /// Decides what follows a run, and performs it.
    pub(super) async fn after_run(&mut self, end: RunEnd) -> Result<Next, SessionError> {
        let answer = end.messages.iter().rev().find_map(|message| message.as_assistant().cloned());
        let plan = self.session.plan_now();
        let model = &self.session.agent.model;
        let recovery = answer.as_ref().map_or(Recovery::Done, |message| {
            let failure = FailedAnswer {
                message,
                error: end.error.as_deref(),
                context_window: model.context_window,
                same_model: message.provider == model.provider && message.model == model.id,
                output_limit: self.session.agent.options.max_tokens.unwrap_or(model.max_tokens),
            };
            recover(&mut self.session.state, &failure, &plan)
        });
        let will_retry = matches!(recovery, Recovery::Retry { .. });
        let aborted = end.reason == EndReason::Aborted;
        let error_message = answer.as_ref().and_then(|answer| answer.error_message.clone()).unwrap_or_default();
        let is_failure = answer.as_ref().is_some_and(|answer| answer.stop_reason.is_failure());
        self.emit_end(SessionEvent::RunEnd { end, will_retry }).await?;
        match recovery {
            Recovery::Retry { attempt, nominal, at_least } => {
                self.wait_for_retry(attempt, nominal, at_least, error_message).await
            }
            Recovery::Compact => {
                if is_failure {
                    self.omit_failed_answer().await?;
                }
                let compacted = self.compact(CompactionReason::Overflow, true).await?;
                // An answer that arrived although the window was full is not retried.
                Ok(if compacted && is_failure { Next::Again } else { Next::Settled })
            }
            Recovery::CompactForOutput => {
                self.omit_last_answer().await?;
                let compacted = self.compact(CompactionReason::Overflow, true).await?;
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
                self.emitter.emit(end).await;
                Ok(Next::Settled)
            }
            Recovery::GiveUp { attempt, final_error } => {
                let final_error = Some(final_error);
                self.emitter.emit(SessionEvent::RetryEnd { success: false, attempt, final_error }).await;
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
        self.emitter.emit(start).await;
        self.omit_failed_answer().await?;
        let pause = TurnRetry::wait(nominal, at_least, self.session.host.ids().fraction());
        let waited = wait.run(tokio::time::sleep(pause));
        if answering(&self.session.control, &self.session.log, waited).await.is_err() {
            self.session.state.attempt = 0;
            let final_error = Some("Retry cancelled".to_owned());
            self.emitter.emit(SessionEvent::RetryEnd { success: false, attempt, final_error }).await;
            return Ok(Next::Settled);
        }
        Ok(Next::Again)
    }

    /// Removes a failed answer from the context.
    pub(super) async fn omit_failed_answer(&mut self) -> Result<(), SessionError> {
        if let Some(id) = self.session.omit_failed_answer().await? {
            self.emitter.entry_appended(&self.session.log, &id).await;
        }
        Ok(())
    }

    /// Removes an answer from the context although it did not fail.
    async fn omit_last_answer(&mut self) -> Result<(), SessionError> {
        if let Some(id) = self.session.omit_last(|_| true).await? {
            self.emitter.entry_appended(&self.session.log, &id).await;
        }
        Ok(())
    }
}
