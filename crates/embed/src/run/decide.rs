//! Decides the next step with one model, as a pure function: from an observation to the marks and the action that the runner carries out.
//!
//! ```
//! use pinch_embed::run::decide::{Action, RunState, RunTerms, Observation, decide};
//!
//! let mut state = RunState::new(RunTerms::new("openai", "gpt-5"));
//! assert!(matches!(decide(&mut state, Observation::Start).action, Action::Attempt(plan) if plan.number == 1));
//! ```

use std::time::Duration;

use pinch_stdx::cancel::CancelReason;

pub mod state;
pub mod thinking;
mod overflow;
mod failure;

pub use state::{ProfileSlot, RunState, RunTerms};

use self::state::NextStep;
use super::outcome::{AttemptEnd, AttemptOutcome, AttemptPlan};
use super::result::{FailoverError, RunError, RunErrorKind};
pub use crate::config::agents::RunRetries;
pub use crate::config::preset::TransientRetries;
use crate::profiles::ProfileId;
use crate::reason::FailoverReason;
use crate::texts::{Phrase, TextTable};

/// What the runner observed.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// The model is about to be tried.
    Start,
    /// An attempt ended.
    Attempt(&'a AttemptOutcome),
    /// The attempt was not made for lack of a credential.
    NoCredential {
        /// The message about the missing credential.
        message: &'a str,
    },
    /// A repair has ended.
    Repaired(&'a RepairOutcome),
    /// A wait is over.
    Waited,
    /// The run was stopped during a repair or a wait.
    Stopped(CancelReason),
}

/// The outcome of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepairOutcome {
    /// The conversation was compacted.
    Compacted,
    /// The conversation could not be compacted.
    NotCompacted {
        /// The reason, for people.
        reason: String,
    },
    /// Tool results were truncated.
    Truncated {
        /// Number of truncated results.
        count: usize,
    },
    /// No tool result was too long.
    NotTruncated,
}

/// The marks to record and the action to take.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Marks to record before the action, in order.
    pub marks: Vec<Mark>,
    /// The action to take.
    pub action: Action,
}

impl Decision {
    fn only(action: Action) -> Self {
        Self { marks: Vec::new(), action }
    }
}

/// An outcome to record for a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The profile failed.
    Failure {
        /// The profile.
        profile: ProfileId,
        /// Reason for the failure.
        reason: FailoverReason,
        /// Delay that the provider asks for.
        retry_after: Option<Duration>,
    },
    /// The profile works, and is tried first next time.
    Good {
        /// The profile.
        profile: ProfileId,
    },
    /// The profile was used, and its failures are reset.
    Used {
        /// The profile.
        profile: ProfileId,
    },
}

/// The runner's next step.
#[derive(Clone, Debug)]
pub enum Action {
    /// Make an attempt.
    Attempt(AttemptPlan),
    /// Repair the conversation.
    Repair(Repair),
    /// Wait before the next step.
    Wait(Wait),
    /// The run is over: build its result from the last outcome.
    Finish(Finish),
    /// Continue with the next model.
    FailOver(FailoverError),
    /// End the run with an error.
    Fail(RunError),
}

/// How to repair the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Compact it.
    Compact {
        /// Reason for the compaction.
        trigger: CompactTrigger,
        /// The length reported by the provider, in tokens.
        observed_tokens: Option<u64>,
    },
    /// Truncate the tool results that are longer than allowed.
    TruncateToolResults,
}

/// Why the conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactTrigger {
    /// It is too long for the model.
    Overflow,
    /// It is long, and the request timed out.
    TimeoutRecovery,
}

impl CompactTrigger {
    /// Returns the identifier used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::TimeoutRecovery => "timeout_recovery",
        }
    }
}

/// A wait between two attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// Duration of the wait.
    pub delay: Duration,
    /// Fraction of `delay` by which it may be randomly lengthened or shortened.
    pub jitter: f64,
    /// Maximum duration including jitter.
    pub longest: Duration,
    /// Reason for the wait.
    pub reason: FailoverReason,
    /// What follows the wait.
    pub before: WaitFor,
}

impl Wait {
    /// Returns the duration with jitter; `fraction` is a random number between 0 and 1.
    pub fn jittered(&self, fraction: f64) -> Duration {
        self.delay.mul_f64((1.0 + self.jitter * (2.0 * fraction - 1.0)).max(0.0)).min(self.longest.max(self.delay))
    }
}

/// What follows a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The same profile again.
    SameProfile {
        /// Number of the retry, starting at 1.
        attempt: u32,
        /// The maximum number of retries.
        max: u32,
    },
    /// The next profile.
    NextProfile,
    /// Continue with the next model.
    NextModel,
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// With the last attempt's answer or its failure text.
    Answer,
    /// It was stopped; the partial answer is kept.
    Aborted,
    /// The time limit of the attempt passed before any answer.
    TimedOut,
    /// The model stopped without an answer.
    Incomplete {
        /// Whether a tool may have changed something that the user should check before trying again.
        verify: bool,
    },
    /// With a failure that has its own message.
    Error {
        /// The kind of failure.
        kind: RunErrorKind,
        /// The original error text.
        message: String,
        /// The message for the user.
        text: String,
    },
}

impl Finish {
    /// Returns the message for the user in place of an answer; `None` if the attempt's own answer or failure is shown.
    pub fn text<'a>(&'a self, texts: &'a TextTable) -> Option<&'a str> {
        match self {
            Self::Answer | Self::Aborted => None,
            Self::TimedOut => Some(texts.get(Phrase::TimedOut)),
            Self::Incomplete { verify: false } => Some(texts.get(Phrase::NoAnswer)),
            Self::Incomplete { verify: true } => Some(texts.get(Phrase::NoAnswerVerify)),
            Self::Error { text, .. } => Some(text),
        }
    }
}

/// Above this fraction of the window, a timeout is attributed to the length of the conversation.
const LONG_CONVERSATION: f64 = 0.65;

/// Maximum number of compactions after timeouts.
const MAX_TIMEOUT_COMPACTIONS: u32 = 2;

/// Decides the next step. `state` is updated as if the decision had been carried out.
pub fn decide(state: &mut RunState, seen: Observation<'_>) -> Decision {
    match seen {
        Observation::Start => {
            if state.take_first() {
                Decision::only(state.attempt())
            } else {
                failure::no_profile(state)
            }
        }
        Observation::NoCredential { message } => failure::no_credential(state, message),
        Observation::Attempt(outcome) => {
            state.add_usage(outcome);
            after_attempt(state, outcome)
        }
        Observation::Repaired(repaired) => match std::mem::replace(&mut state.pending, NextStep::Attempt) {
            NextStep::TimedOut { has_answer } => match repaired {
                RepairOutcome::Compacted => {
                    state.count_compaction();
                    Decision::only(state.attempt())
                }
                RepairOutcome::NotCompacted { .. } | RepairOutcome::Truncated { .. } | RepairOutcome::NotTruncated => {
                    failure::timed_out(state, has_answer)
                }
            },
            NextStep::Attempt | NextStep::FailOver(_) | NextStep::Overflow => overflow::after_repair(state, repaired),
        },
        Observation::Stopped(reason) => Decision::only(after_stop(state, reason, false)),
        Observation::Waited => match std::mem::replace(&mut state.pending, NextStep::Attempt) {
            NextStep::FailOver(error) => Decision::only(Action::FailOver(*error)),
            NextStep::Attempt | NextStep::TimedOut { .. } | NextStep::Overflow => Decision::only(state.attempt()),
        },
    }
}

/// Ends a run that was stopped during an attempt or a repair.
fn after_stop(state: &RunState, reason: CancelReason, has_answer: bool) -> Action {
    match reason {
        // The run may have been stopped by the deadline of its budget.
        CancelReason::Deadline => state.over_budget().unwrap_or(Action::Finish(match has_answer {
            true => Finish::Answer,
            false => Finish::TimedOut,
        })),
        _ => Action::Finish(Finish::Aborted),
    }
}

fn after_attempt(state: &mut RunState, outcome: &AttemptOutcome) -> Decision {
    if let (Some(reason), false) = (state.stopped, matches!(outcome.end, AttemptEnd::Good)) {
        return Decision::only(after_stop(state, reason, outcome.has_answer()));
    }
    match &outcome.end {
        // The runner stops an attempt that exceeds the budget.
        AttemptEnd::Aborted(CancelReason::Yield) => {
            Decision::only(state.over_budget().unwrap_or(Action::Finish(Finish::Aborted)))
        }
        AttemptEnd::Aborted(_) => Decision::only(Action::Finish(Finish::Aborted)),
        AttemptEnd::TimedOut { during_compaction: true } => {
            Decision::only(Action::Finish(if outcome.has_answer() { Finish::Answer } else { Finish::TimedOut }))
        }
        AttemptEnd::TimedOut { .. } => {
            let may_compact = state.terms.can_compact && state.timeout_compactions < MAX_TIMEOUT_COMPACTIONS;
            if may_compact && is_long(state, outcome) {
                state.timeout_compactions += 1;
                state.pending = NextStep::TimedOut { has_answer: outcome.has_answer() };
                let compact = Repair::Compact { trigger: CompactTrigger::TimeoutRecovery, observed_tokens: None };
                return state.within_budget(Vec::new(), Action::Repair(compact));
            }
            failure::timed_out(state, outcome.has_answer())
        }
        AttemptEnd::Failed { error, .. } if overflow::is_overflow(error) => overflow::begin(state, outcome, error),
        AttemptEnd::Failed { stage, error } => failure::failed(state, *stage, error),
        AttemptEnd::Good if outcome.missing_answer().is_some_and(|missing| state.may_ask_again(missing)) => {
            Decision::only(state.attempt())
        }
        AttemptEnd::Good
            if failure::is_incomplete(outcome)
                || (!state.terms.may_say_nothing && outcome.missing_answer().is_some()) =>
        {
            failure::without_answer(state, outcome)
        }
        AttemptEnd::Good => {
            let marks = (state.profile().cloned())
                .map(|profile| vec![Mark::Good { profile: profile.clone() }, Mark::Used { profile }]);
            Decision { marks: marks.unwrap_or_default(), action: Action::Finish(Finish::Answer) }
        }
    }
}

/// Returns whether the last request filled most of the window.
fn is_long(state: &RunState, outcome: &AttemptOutcome) -> bool {
    let Some(usage) = &outcome.last_call_usage else { return false };
    let tokens = usage.input + usage.cache_read + usage.cache_write;
    state.terms.window > 0 && tokens as f64 / state.terms.window as f64 > LONG_CONVERSATION
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod properties;
