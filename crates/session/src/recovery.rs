//! Decisions after a failed answer, as pure functions.
//!
//! A [`RecoveryPlan`] states everything that may be retried on the caller's behalf. A session executes it; an embedding runner passes
//! [`RecoveryPlan::report`], which disables all retries, and decides on its own. Stacking retries would multiply their delays.

pub mod transport;

use std::time::Duration;

use pinch_llm::error::overflow::is_context_overflow;
use pinch_llm::error::retry::{self, RetryLimits};
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::message::{AssistantMessage, StopReason};

/// Everything that may be retried on the caller's behalf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryPlan {
    /// Silent retries of requests that failed before any event.
    pub transport: TransportRetry,
    /// Retries of failed turns, reported as events.
    pub turn: TurnRetry,
    /// What to do if the conversation is too long.
    pub overflow: OverflowRecovery,
}

/// Silent retries of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportRetry {
    /// Maximum number of retries.
    pub max_retries: u32,
    /// Longest delay a provider may request; zero = unlimited.
    pub max_delay: Duration,
}

/// Retries of failed turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnRetry {
    /// Maximum number of retries.
    pub max_retries: u32,
    /// Delay before the first retry; doubles with each further one.
    pub base_delay: Duration,
    /// Longest delay computed from `base_delay`.
    pub max_delay: Duration,
    /// Longest delay a provider may request; zero = unlimited.
    pub max_asked_delay: Duration,
}

/// What to do if the conversation is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverflowRecovery {
    /// Report the failure.
    Off,
    /// Compact the conversation and retry the prompt once.
    CompactOnce,
}

impl Default for RecoveryPlan {
    /// Returns pi's defaults: no silent retries, three turn retries after 2, 4 and 8 seconds, one compaction.
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self {
            transport: TransportRetry { max_retries: 0, max_delay: minute },
            turn: TurnRetry {
                max_retries: 3,
                base_delay: Duration::from_secs(2),
                max_delay: minute,
                max_asked_delay: minute,
            },
            overflow: OverflowRecovery::CompactOnce,
        }
    }
}

impl RecoveryPlan {
    /// Disables all retries; failures are reported to the caller.
    pub fn report() -> Self {
        let mut plan = Self::default();
        plan.turn.max_retries = 0;
        plan.overflow = OverflowRecovery::Off;
        plan
    }
}

/// What was tried since the last successful answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryState {
    /// Number of turn retries so far.
    pub attempt: u32,
    /// Whether the conversation was compacted because it was too long.
    pub compacted: bool,
}

impl RecoveryState {
    /// Resets the state after a successful answer.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }
}

/// A failed answer.
#[derive(Clone, Copy, Debug)]
pub struct FailedAnswer<'a> {
    /// The answer.
    pub message: &'a AssistantMessage,
    /// The typed error, if known.
    pub error: Option<&'a LlmError>,
    /// Context window of the current model; 0 = unknown.
    pub context_window: u64,
    /// Whether the answer came from the current model.
    pub same_model: bool,
    /// Maximum tokens of the answer; 0 = unknown.
    pub output_limit: u64,
}

impl FailedAnswer<'_> {
    /// Returns whether the answer was truncated before its limit because the window was too full.
    pub fn is_cut_short(&self) -> bool {
        let output = self.message.usage.output;
        self.message.stop_reason == StopReason::Length && self.output_limit > 0 && output < self.output_limit
    }
}

/// What to do after a failed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing: a retry would not help, or the plan does not allow one.
    Done,
    /// Retry after a delay.
    Retry {
        /// Number of the retry.
        attempt: u32,
        /// The delay to announce.
        nominal: Duration,
        /// Minimum delay requested by the provider.
        at_least: Duration,
    },
    /// Compact, then retry.
    Compact,
    /// The answer was truncated because the window was too full: drop it, compact if possible, then retry.
    CompactForOutput,
    /// Compaction was tried and did not help.
    StillTooLong,
    /// The retries are exhausted, or the provider requested too long a delay.
    GiveUp {
        /// Number of retries made.
        attempt: u32,
        /// The last error message.
        final_error: String,
    },
}

/// Returns whether an answer failed because the conversation is too long for its model. A typed error takes precedence over the message.
pub fn is_overflow(failure: &FailedAnswer<'_>) -> bool {
    let window = (failure.context_window > 0).then_some(failure.context_window);
    match failure.error {
        Some(error) if error.kind == LlmErrorKind::ContextOverflow => true,
        Some(error) if error.status.is_some() => false,
        _ => is_context_overflow(failure.message, window),
    }
}

/// Decides what to do after the last answer of a run and updates `state`.
pub fn recover(state: &mut RecoveryState, failure: &FailedAnswer<'_>, plan: &RecoveryPlan) -> Recovery {
    let message = failure.message;
    if message.stop_reason == StopReason::Aborted {
        return Recovery::Done;
    }
    if failure.same_model && is_overflow(failure) {
        return match plan.overflow {
            OverflowRecovery::Off => Recovery::Done,
            OverflowRecovery::CompactOnce if state.compacted => Recovery::StillTooLong,
            OverflowRecovery::CompactOnce => {
                state.compacted = true;
                Recovery::Compact
            }
        };
    }
    // An answer truncated twice is accepted.
    if failure.same_model
        && failure.is_cut_short()
        && !state.compacted
        && plan.overflow == OverflowRecovery::CompactOnce
    {
        state.compacted = true;
        return Recovery::CompactForOutput;
    }
    match plan.turn.retry(&mut state.attempt, message, failure.error) {
        Some(RetryDecision::After { attempt, nominal, at_least }) => Recovery::Retry { attempt, nominal, at_least },
        Some(RetryDecision::GiveUp { attempt, final_error }) => Recovery::GiveUp { attempt, final_error },
        None => Recovery::Done,
    }
}

/// Whether to retry a failed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Retry after a delay.
    After {
        /// Number of the retry.
        attempt: u32,
        /// The delay to announce.
        nominal: Duration,
        /// Minimum delay requested by the provider.
        at_least: Duration,
    },
    /// A retry might help, but the retries are exhausted, or the provider requested too long a delay.
    GiveUp {
        /// Number of retries made.
        attempt: u32,
        /// The last error message.
        final_error: String,
    },
}

impl TurnRetry {
    /// Decides whether to retry a failed answer. Returns `None` if a retry cannot help or is disabled. `attempt` counts the retries so far
    /// and is updated. Overflows are not detected: call [`is_overflow`] first.
    pub fn retry(
        &self,
        attempt: &mut u32,
        message: &AssistantMessage,
        error: Option<&LlmError>,
    ) -> Option<RetryDecision> {
        let text = message.error_message.as_deref().unwrap_or_default();
        let retryable = message.stop_reason == StopReason::Error
            && error.map_or_else(|| retry::text_is_retryable(text), LlmError::retryable);
        if !retryable || self.max_retries == 0 {
            return None;
        }
        let limits = RetryLimits { max_retries: u32::MAX, max_delay: self.max_asked_delay };
        if let Some(final_error) = error.and_then(|error| retry::too_long_text(error, &limits)) {
            return Some(RetryDecision::GiveUp { attempt: std::mem::take(attempt), final_error });
        }
        if *attempt >= self.max_retries {
            *attempt = 0;
            return Some(RetryDecision::GiveUp { attempt: self.max_retries, final_error: text.to_owned() });
        }
        *attempt += 1;
        let doubled = self.base_delay.saturating_mul(1_u32.checked_shl(*attempt - 1).unwrap_or(u32::MAX));
        let at_least = error.and_then(|error| error.retry_after).unwrap_or_default();
        Some(RetryDecision::After { attempt: *attempt, nominal: doubled.min(self.max_delay), at_least })
    }

    /// Returns the actual delay: the nominal one plus up to a tenth, so that clients do not retry in lockstep, but at least what the
    /// provider requested. `chance` is between 0 and 1.
    pub fn wait(nominal: Duration, at_least: Duration, chance: f64) -> Duration {
        nominal.max(at_least) + nominal.mul_f64(chance * 0.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinch_llm::ids::{ApiId, ModelId, ProviderId};

    fn failed(text: &str) -> AssistantMessage {
        let mut message = AssistantMessage::pending(ApiId::new("a"), ProviderId::new("p"), ModelId::new("m"), 0);
        message.stop_reason = StopReason::Error;
        message.error_message = Some(text.into());
        message
    }

    fn decide(state: &mut RecoveryState, message: &AssistantMessage, error: Option<&LlmError>) -> Recovery {
        let failure = FailedAnswer { message, error, context_window: 1000, same_model: true, output_limit: 100 };
        recover(state, &failure, &RecoveryPlan::default())
    }

    #[test]
    fn delays_double_until_retries_are_exhausted() {
        let mut state = RecoveryState::default();
        let message = failed("529 overloaded");
        for (attempt, secs) in [(1, 2), (2, 4), (3, 8)] {
            let again = Recovery::Retry { attempt, nominal: Duration::from_secs(secs), at_least: Duration::ZERO };
            assert_eq!(decide(&mut state, &message, None), again);
        }
        let over = Recovery::GiveUp { attempt: 3, final_error: "529 overloaded".into() };
        assert_eq!(decide(&mut state, &message, None), over);
    }

    #[test]
    fn permanent_failures_are_not_retried() {
        let mut state = RecoveryState::default();
        assert_eq!(decide(&mut state, &failed("401 bad key"), None), Recovery::Done);
        let message = failed("503");
        let failure =
            FailedAnswer { message: &message, error: None, context_window: 0, same_model: true, output_limit: 0 };
        assert_eq!(recover(&mut state, &failure, &RecoveryPlan::report()), Recovery::Done);
    }

    #[test]
    fn an_overflow_is_compacted_once() {
        let mut state = RecoveryState::default();
        let message = failed("prompt is too long: 9 tokens > 5 maximum");
        assert_eq!(decide(&mut state, &message, None), Recovery::Compact);
        assert_eq!(decide(&mut state, &message, None), Recovery::StillTooLong);
        state.succeeded();
        assert_eq!(decide(&mut state, &message, None), Recovery::Compact);
    }

    #[test]
    fn a_truncated_answer_is_retried_once_with_more_room() {
        let mut state = RecoveryState::default();
        let mut message = failed("");
        message.error_message = None;
        message.stop_reason = StopReason::Length;
        message.usage.output = 99;
        assert_eq!(decide(&mut state, &message, None), Recovery::CompactForOutput);
        assert_eq!(decide(&mut state, &message, None), Recovery::Done);
        message.usage.output = 100;
        assert_eq!(decide(&mut RecoveryState::default(), &message, None), Recovery::Done);
    }

    #[test]
    fn too_long_a_requested_delay_ends_the_retries() {
        let mut state = RecoveryState::default();
        let mut error = LlmError::new(ProviderId::new("p"), LlmErrorKind::RateLimit, "429 slow down");
        error.retry_after = Some(Duration::from_secs(3600));
        let done = decide(&mut state, &failed("429 slow down"), Some(&error));
        assert!(matches!(&done, Recovery::GiveUp { final_error, .. } if final_error.contains("3600s")), "{done:?}");
        error.retry_after = Some(Duration::from_secs(20));
        let done = decide(&mut state, &failed("429 slow down"), Some(&error));
        assert!(matches!(done, Recovery::Retry { at_least, .. } if at_least == Duration::from_secs(20)));
    }
}
