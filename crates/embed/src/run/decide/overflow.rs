//! The conversation is too long: compact it, then shorten tool results, then give up.

use pinch_llm::error::LlmError;
use pinch_llm::error::overflow::{is_compaction_failure, is_likely_overflow_text, observed_tokens};

use super::state::{NextStep, RunState};
use super::{Action, CompactTrigger, Decision, Finish, Repair, RepairOutcome};
use crate::reason::{Classified, FailoverReason, classify};
use crate::run::outcome::AttemptOutcome;
use crate::run::result::{FailoverError, RunErrorKind};
use crate::texts::Phrase;

/// Returns whether a failure means that the conversation is too long.
pub(super) fn is_overflow(error: &LlmError) -> bool {
    match classify(error) {
        Classified::ContextOverflow => true,
        // Only an unclassified failure without a status may be an overflow.
        Classified::None | Classified::Reason(FailoverReason::Unknown) => {
            error.status.is_none() && is_likely_overflow_text(&error.text)
        }
        Classified::Reason(_) => false,
    }
}

/// Returns the first step against an overflow.
pub(super) fn begin(state: &mut RunState, outcome: &AttemptOutcome, error: &LlmError) -> Decision {
    state.overflow.text.clone_from(&error.text);
    state.overflow.oversized_tool_results = outcome.oversized_tool_results;
    if is_compaction_failure(&error.text) || !state.terms.can_compact {
        return truncate(state);
    }
    if state.overflow.n_compactions >= state.terms.overflow_compactions {
        return truncate(state);
    }
    state.overflow.n_compactions += 1;
    if outcome.compactions > 0 {
        // The session has just compacted automatically; compacting again would summarise the summary.
        return Decision::only(state.attempt());
    }
    state.pending = NextStep::Overflow;
    let compact = Repair::Compact { trigger: CompactTrigger::Overflow, observed_tokens: observed_tokens(&error.text) };
    state.within_budget(Vec::new(), Action::Repair(compact))
}

/// Returns the next step after a repair.
pub(super) fn after_repair(state: &mut RunState, repaired: &RepairOutcome) -> Decision {
    match repaired {
        RepairOutcome::Compacted => {
            state.count_compaction();
            Decision::only(state.attempt())
        }
        RepairOutcome::NotCompacted { reason } => {
            state.overflow.not_compacted = Some(reason.clone());
            truncate(state)
        }
        RepairOutcome::Truncated { .. } => Decision::only(state.attempt()),
        RepairOutcome::NotTruncated => give_up(state),
    }
}

fn truncate(state: &mut RunState) -> Decision {
    if state.overflow.truncation_tried || !state.overflow.oversized_tool_results {
        return give_up(state);
    }
    state.overflow.truncation_tried = true;
    state.pending = NextStep::Overflow;
    state.within_budget(Vec::new(), Action::Repair(Repair::TruncateToolResults))
}

fn give_up(state: &RunState) -> Decision {
    let message = state.overflow.text.clone();
    if state.terms.larger_window_follows {
        return Decision::only(Action::FailOver(FailoverError {
            message,
            provider: state.terms.provider.to_string(),
            model: state.terms.model.to_string(),
            profile: state.profile().cloned(),
            is_overflow: true,
            ..FailoverError::default()
        }));
    }
    let kind = match is_compaction_failure(&message) {
        true => RunErrorKind::CompactionFailure,
        false => RunErrorKind::ContextOverflow,
    };
    Decision::only(Action::Finish(Finish::Error {
        kind,
        message,
        text: state.terms.texts.get(Phrase::ContextOverflow).to_owned(),
    }))
}
