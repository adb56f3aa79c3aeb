//! What happens after a failed answer, as pure decisions.
//!
//! A [`RecoveryPlan`] states everything that may be retried for the caller of a run. A session executes it; an embedding runner passes
//! [`RecoveryPlan::report`], under which nothing is repeated, and decides alone. Retries stacked on retries would multiply their waits.

pub mod transport;

use std::time::Duration;

use pinch_llm::error::overflow::is_context_overflow;
use pinch_llm::error::retry::{self, RetryLimits};
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::message::{AssistantMessage, StopReason};

/// Everything that may be retried for the caller of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryPlan {
    /// Silent repetition of requests that failed before any event.
    pub transport: TransportRetry,
    /// Repetition of failed turns, with events.
    pub turn: TurnRetry,
    /// What happens when the conversation is too long.
    pub overflow: OverflowRecovery,
}

/// Silent repetition of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportRetry {
    /// Repetitions at most.
    pub max_retries: u32,
    /// The longest wait a provider may ask for; zero = any.
    pub max_delay: Duration,
}

/// Repetition of failed turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnRetry {
    /// Repetitions at most.
    pub max_retries: u32,
    /// The first wait; each further one is twice as long.
    pub base_delay: Duration,
    /// The longest wait of our own.
    pub max_delay: Duration,
    /// The longest wait a provider may ask for; zero = any.
    pub max_asked_delay: Duration,
}

/// What happens when the conversation is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverflowRecovery {
    /// Nothing.
    Off,
    /// The conversation is compacted and the prompt tried once more.
    CompactOnce,
}

impl Default for RecoveryPlan {
    /// pi's defaults: no silent repetition, three turns after 2, 4 and 8 seconds, one compaction.
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
    /// Nothing is repeated; what happened goes up.
    pub fn report() -> Self {
        let mut plan = Self::default();
        plan.turn.max_retries = 0;
        plan.overflow = OverflowRecovery::Off;
        plan
    }
}

/// What was tried since the last good answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryState {
    /// Repetitions of the turn.
    pub attempt: u32,
    /// The conversation was compacted because it was too long.
    pub compacted: bool,
}

impl RecoveryState {
    /// A good answer came: everything may be tried again.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }
}

/// A failed answer.
#[derive(Clone, Copy, Debug)]
pub struct FailedAnswer<'a> {
    /// The answer.
    pub message: &'a AssistantMessage,
    /// The typed failure, when it is known.
    pub error: Option<&'a LlmError>,
    /// The context window of the model now in use; 0 = unknown.
    pub context_window: u64,
    /// Whether the answer came from the model now in use.
    pub same_model: bool,
    /// Tokens the answer might have had; 0 = unknown.
    pub output_limit: u64,
}

impl FailedAnswer<'_> {
    /// Whether the answer was cut although it was shorter than it might have been: the window was too full for it.
    pub fn is_cut_short(&self) -> bool {
        let output = self.message.usage.output;
        self.message.stop_reason == StopReason::Length && self.output_limit > 0 && output < self.output_limit
    }
}

/// What to do about a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing: a retry would not help, or the plan says so.
    Done,
    /// Ask again after a while.
    Again {
        /// Which repetition this is.
        attempt: u32,
        /// The wait as it is announced.
        nominal: Duration,
        /// What a provider asked for at least.
        at_least: Duration,
    },
    /// Compact, then ask again.
    Compact,
    /// The answer was cut because the window was too full: leave it out, compact if there is anything to compact, and ask again then.
    CompactForOutput,
    /// Compacting has been tried and did not help.
    StillTooLong,
    /// Repetitions are used up, or the provider asks for too long a wait.
    GiveUp {
        /// How many repetitions there were.
        attempt: u32,
        /// The last failure in words.
        final_error: String,
    },
}

/// Whether an answer says that the conversation is too long for its model. The typed failure decides where there is one.
pub fn is_overflow(failure: &FailedAnswer<'_>) -> bool {
    let window = (failure.context_window > 0).then_some(failure.context_window);
    match failure.error {
        Some(error) if error.kind == LlmErrorKind::ContextOverflow => true,
        Some(error) if error.status.is_some() => false,
        _ => is_context_overflow(failure.message, window),
    }
}

/// Decides what to do about the last answer of a run. `state` is brought up to date.
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
    // An answer that is cut a second time is taken as it is.
    if failure.same_model
        && failure.is_cut_short()
        && !state.compacted
        && plan.overflow == OverflowRecovery::CompactOnce
    {
        state.compacted = true;
        return Recovery::CompactForOutput;
    }
    match plan.turn.again(&mut state.attempt, message, failure.error) {
        Some(Again::After { attempt, nominal, at_least }) => Recovery::Again { attempt, nominal, at_least },
        Some(Again::GiveUp { attempt, final_error }) => Recovery::GiveUp { attempt, final_error },
        None => Recovery::Done,
    }
}

/// Whether a failed answer is retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// Yes, after a while.
    After {
        /// Which repetition this is.
        attempt: u32,
        /// The wait as it is announced.
        nominal: Duration,
        /// What a provider asked for at least.
        at_least: Duration,
    },
    /// It might help, but repetitions are used up, or the provider asks for too long a wait.
    GiveUp {
        /// How many repetitions there were.
        attempt: u32,
        /// The last failure in words.
        final_error: String,
    },
}

impl TurnRetry {
    /// Decides whether a failed answer is retried; `None` when another try cannot help, or none is wanted. `attempt` counts the
    /// repetitions so far and is brought up to date. An overflow is not looked for: ask [`is_overflow`] first.
    pub fn again(&self, attempt: &mut u32, message: &AssistantMessage, error: Option<&LlmError>) -> Option<Again> {
        let text = message.error_message.as_deref().unwrap_or_default();
        let retryable = message.stop_reason == StopReason::Error
            && error.map_or_else(|| retry::text_is_retryable(text), LlmError::retryable);
        if !retryable || self.max_retries == 0 {
            return None;
        }
        let limits = RetryLimits { max_retries: u32::MAX, max_delay: self.max_asked_delay };
        if let Some(final_error) = error.and_then(|error| retry::too_long_text(error, &limits)) {
            return Some(Again::GiveUp { attempt: std::mem::take(attempt), final_error });
        }
        if *attempt >= self.max_retries {
            *attempt = 0;
            return Some(Again::GiveUp { attempt: self.max_retries, final_error: text.to_owned() });
        }
        *attempt += 1;
        let doubled = self.base_delay.saturating_mul(1_u32.checked_shl(*attempt - 1).unwrap_or(u32::MAX));
        let at_least = error.and_then(|error| error.retry_after).unwrap_or_default();
        Some(Again::After { attempt: *attempt, nominal: doubled.min(self.max_delay), at_least })
    }

    /// How long to wait in fact: the nominal time and up to a tenth more, so that many clients do not come back at the same moment, but never
    /// less than a provider asked for. `chance` is between 0 and 1.
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
    fn waits_double_until_they_are_used_up() {
        let mut state = RecoveryState::default();
        let message = failed("529 overloaded");
        for (attempt, secs) in [(1, 2), (2, 4), (3, 8)] {
            let again = Recovery::Again { attempt, nominal: Duration::from_secs(secs), at_least: Duration::ZERO };
            assert_eq!(decide(&mut state, &message, None), again);
        }
        let over = Recovery::GiveUp { attempt: 3, final_error: "529 overloaded".into() };
        assert_eq!(decide(&mut state, &message, None), over);
    }

    #[test]
    fn what_cannot_be_mended_is_left() {
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
    fn a_cut_answer_is_asked_for_once_more_with_more_room() {
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
    fn a_provider_that_asks_for_too_long_ends_it() {
        let mut state = RecoveryState::default();
        let mut error = LlmError::new(ProviderId::new("p"), LlmErrorKind::RateLimit, "429 slow down");
        error.retry_after = Some(Duration::from_secs(3600));
        let done = decide(&mut state, &failed("429 slow down"), Some(&error));
        assert!(matches!(&done, Recovery::GiveUp { final_error, .. } if final_error.contains("3600s")), "{done:?}");
        error.retry_after = Some(Duration::from_secs(20));
        let done = decide(&mut state, &failed("429 slow down"), Some(&error));
        assert!(matches!(done, Recovery::Again { at_least, .. } if at_least == Duration::from_secs(20)));
    }
}
