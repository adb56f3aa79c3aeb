//! What to do next with one model: a pure decision. It sees what happened and says what to mark and what to do; the runner does it.
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

use self::state::Pending;
use super::outcome::{AttemptEnd, AttemptOutcome, AttemptPlan};
use super::result::{FailoverError, RunError, RunErrorKind};
pub use crate::config::agents::RunRetries;
use crate::profiles::ProfileId;
use crate::reason::FailoverReason;

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// Nothing yet.
    Start,
    /// An attempt ended.
    Attempt(&'a AttemptOutcome),
    /// The attempt was not made: there is no credential for it.
    NoCredential {
        /// Why not.
        message: &'a str,
    },
    /// A repair was tried.
    Repaired(&'a RepairOutcome),
    /// A wait is over.
    Waited,
    /// The run was stopped during a repair or a wait.
    Stopped(CancelReason),
}

/// What became of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepairOutcome {
    /// The conversation is shorter.
    Compacted,
    /// It is not.
    NotCompacted {
        /// Why not.
        why: String,
    },
    /// Tool results are shorter.
    Truncated {
        /// How many.
        count: usize,
    },
    /// None was too long after all.
    NotTruncated,
}

/// What to mark, and what to do.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Marks, in this order, before the action.
    pub marks: Vec<Mark>,
    /// The action.
    pub action: Action,
}

impl Decision {
    fn only(action: Action) -> Self {
        Self { marks: Vec::new(), action }
    }
}

/// Something to remember about a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It failed.
    Failure {
        /// Which.
        profile: ProfileId,
        /// Why.
        reason: FailoverReason,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// It works: next time it is tried first.
    Good {
        /// Which.
        profile: ProfileId,
    },
    /// It was used, and its failures are forgotten.
    Used {
        /// Which.
        profile: ProfileId,
    },
}

/// What to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Make an attempt.
    Attempt(AttemptPlan),
    /// Repair the conversation.
    Repair(Repair),
    /// Wait.
    Wait(Wait),
    /// The run is over: build its result from the last outcome.
    Finish(Finish),
    /// The next model.
    FailOver(FailoverError),
    /// The run fails.
    Fail(RunError),
}

/// How to repair the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Compact it.
    Compact {
        /// Why.
        trigger: CompactTrigger,
        /// How many tokens the provider says it has.
        observed_tokens: Option<u64>,
    },
    /// Shorten the tool results that are longer than one may be.
    TruncateToolResults,
}

/// Why the conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactTrigger {
    /// It is too long for the model.
    Overflow,
    /// It is long, and the model took too long.
    TimeoutRecovery,
}

impl CompactTrigger {
    /// The word used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::TimeoutRecovery => "timeout_recovery",
        }
    }
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wait {
    /// How long.
    pub delay: Duration,
    /// Which part of it may be added or taken away at random.
    pub jitter: f64,
    /// Why.
    pub reason: FailoverReason,
    /// What comes then.
    pub before: WaitFor,
}

impl Wait {
    /// The wait with its random part; `fraction` is between 0 and 1.
    pub fn jittered(&self, fraction: f64) -> Duration {
        self.delay.mul_f64((1.0 + self.jitter * (2.0 * fraction - 1.0)).max(0.0))
    }
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The same profile again.
    SameProfile {
        /// Which repetition this is, from 1.
        attempt: u32,
        /// Repetitions at most.
        max: u32,
    },
    /// The next profile.
    NextProfile,
    /// The next model.
    NextModel,
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// With what the last attempt said, be it a failure in words.
    Answer,
    /// Somebody stopped it; what was said so far is kept.
    Aborted,
    /// The wall clock of the attempt ran out before anything was said.
    TimedOut,
    /// The model ended without saying anything.
    Incomplete {
        /// A tool may have changed something: the user should look before trying again.
        verify: bool,
    },
    /// With a failure that has its own words.
    Error {
        /// What kind.
        kind: RunErrorKind,
        /// The failure, raw.
        message: String,
        /// What the user reads.
        text: String,
    },
}

impl Finish {
    /// What the user reads in place of an answer; `None` when the attempt speaks for itself.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Answer | Self::Aborted => None,
            Self::TimedOut => Some(
                "The request timed out before an answer was ready. Please try again, or raise \
                 agents.defaults.timeoutSeconds in the configuration.",
            ),
            Self::Incomplete { verify: false } => Some("The agent couldn't generate a response. Please try again."),
            Self::Incomplete { verify: true } => Some(
                "The agent couldn't generate a response. Tools that change things have run: please verify what was done \
                 before you try again.",
            ),
            Self::Error { text, .. } => Some(text),
        }
    }
}

/// Above this part of the window a timeout is taken for the fault of a long conversation.
const LONG_CONVERSATION: f64 = 0.65;

/// Compactions because of timeouts.
const MAX_TIMEOUT_COMPACTIONS: u32 = 2;

/// Decides what to do next. `state` is brought up to date, as if the decision were carried out.
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
            state.take_in(outcome);
            after_attempt(state, outcome)
        }
        Observation::Repaired(repaired) => match std::mem::replace(&mut state.pending, Pending::Attempt) {
            Pending::TimedOut { has_payload } => match repaired {
                RepairOutcome::Compacted => {
                    state.count_compaction();
                    Decision::only(state.attempt())
                }
                RepairOutcome::NotCompacted { .. } | RepairOutcome::Truncated { .. } | RepairOutcome::NotTruncated => {
                    failure::timed_out(state, has_payload)
                }
            },
            Pending::Attempt | Pending::FailOver(_) | Pending::Overflow => overflow::after_repair(state, repaired),
        },
        Observation::Stopped(reason) => Decision::only(after_stop(state, reason, false)),
        Observation::Waited => match std::mem::replace(&mut state.pending, Pending::Attempt) {
            Pending::FailOver(error) => Decision::only(Action::FailOver(*error)),
            Pending::Attempt | Pending::TimedOut { .. } | Pending::Overflow => Decision::only(state.attempt()),
        },
    }
}

/// The end of a run that was stopped as a whole while an attempt or a repair was under way.
fn after_stop(state: &RunState, reason: CancelReason, has_payload: bool) -> Action {
    match reason {
        // The deadline of the budget is one of the limits that can have stopped it.
        CancelReason::Deadline => state.over_budget().unwrap_or(Action::Finish(match has_payload {
            true => Finish::Answer,
            false => Finish::TimedOut,
        })),
        _ => Action::Finish(Finish::Aborted),
    }
}

fn after_attempt(state: &mut RunState, outcome: &AttemptOutcome) -> Decision {
    if let (Some(reason), false) = (state.stopped, matches!(outcome.end, AttemptEnd::Good)) {
        return Decision::only(after_stop(state, reason, outcome.has_payload));
    }
    match &outcome.end {
        AttemptEnd::Aborted(_) => Decision::only(Action::Finish(Finish::Aborted)),
        AttemptEnd::TimedOut { during_compaction: true } => {
            Decision::only(Action::Finish(if outcome.has_payload { Finish::Answer } else { Finish::TimedOut }))
        }
        AttemptEnd::TimedOut { .. } => {
            let may_compact = state.terms.can_compact && state.timeout_compactions < MAX_TIMEOUT_COMPACTIONS;
            if may_compact && is_long(state, outcome) {
                state.timeout_compactions += 1;
                state.pending = Pending::TimedOut { has_payload: outcome.has_payload };
                let compact = Repair::Compact { trigger: CompactTrigger::TimeoutRecovery, observed_tokens: None };
                return state.within_budget(Vec::new(), Action::Repair(compact));
            }
            failure::timed_out(state, outcome.has_payload)
        }
        AttemptEnd::Failed { error, .. } if overflow::is_overflow(error) => overflow::begin(state, outcome, error),
        AttemptEnd::Failed { stage, error } => failure::failed(state, *stage, error),
        AttemptEnd::Good if failure::is_incomplete(outcome) => {
            Decision::only(Action::Finish(Finish::Incomplete { verify: outcome.has_mutated() }))
        }
        AttemptEnd::Good => {
            let marks = (state.profile().cloned())
                .map(|profile| vec![Mark::Good { profile: profile.clone() }, Mark::Used { profile }]);
            Decision { marks: marks.unwrap_or_default(), action: Action::Finish(Finish::Answer) }
        }
    }
}

/// Whether the last request filled most of the window.
fn is_long(state: &RunState, outcome: &AttemptOutcome) -> bool {
    let Some(usage) = &outcome.last_call_usage else { return false };
    let tokens = usage.input + usage.cache_read + usage.cache_write;
    state.terms.window > 0 && tokens as f64 / state.terms.window as f64 > LONG_CONVERSATION
}

#[cfg(test)]
mod tests;
