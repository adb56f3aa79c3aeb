//! Failures other than an overflow: try the next profile, retry, change the thinking level, try the next model, or end.

use std::time::Duration;

use pinch_llm::error::rejection::{
    exceeds_token_rate, image_dimension, image_size_mb, is_image_size, is_role_ordering,
};
use pinch_llm::error::{LlmError, LlmErrorKind};

use super::state::{NextStep, RunState};
use super::{Action, Decision, Finish, Mark, Wait, WaitFor, thinking};
use crate::reason::{FailoverReason, reason_of};
use crate::run::error_text::{image_size_text, unexplained};
use crate::run::outcome::{AttemptOutcome, FailureStage, MissingAnswer};
use crate::run::result::{FailoverError, RunError, RunErrorKind};
use crate::texts::Phrase;

/// The longest delay that a provider may ask for.
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(60);

/// Decides what follows a failure of the provider.
pub(super) fn failed(state: &mut RunState, stage: FailureStage, error: &LlmError) -> Decision {
    if image_dimension(&error.text).is_some() || (stage == FailureStage::Answer && is_image_size(&error.text)) {
        return end(state, stage, error, Vec::new());
    }
    if stage == FailureStage::Prompt {
        if is_role_ordering(&error.text) {
            return Decision::only(role_ordering(state, error));
        }
        if is_image_size(&error.text) {
            return Decision::only(image_size(state, error));
        }
    } else if let Some(level) = thinking::next_level(&error.text, &state.tried_thinking) {
        return retry_thinking(state, level, Vec::new());
    }
    let Some(reason) = reason_of(error).filter(|reason| is_worth_another(*reason)) else {
        return match thinking::next_level(&error.text, &state.tried_thinking) {
            Some(level) => retry_thinking(state, level, Vec::new()),
            None => end(state, stage, error, Vec::new()),
        };
    };
    // Neither time nor another key makes the request smaller.
    if reason == FailoverReason::RateLimit && exceeds_token_rate(&error.text) {
        return match state.terms.has_fallbacks {
            true => Decision::only(Action::FailOver(failover_error(state, Some(reason), error))),
            false => end(state, stage, error, Vec::new()),
        };
    }
    if state.take_renewed_login() {
        return Decision::only(state.attempt());
    }
    if state.terms.transient.before_rotation
        && let Some(wait) = same_profile_wait(state, reason, error)
    {
        state.pending = NextStep::Attempt;
        return state.within_budget(Vec::new(), wait);
    }
    let marks: Vec<Mark> = match marks_profile(reason) {
        true => state.mark_failure(reason, error.retry_after).into_iter().collect(),
        false => Vec::new(),
    };
    // A request that timed out would also time out with any other key of the same provider.
    let may_rotate = stage == FailureStage::Answer || reason != FailoverReason::Timeout;
    if may_rotate && state.advance() {
        return match overload_wait(state, reason, NextStep::Attempt) {
            Some(wait) => state.within_budget(marks, wait),
            None => Decision { marks, action: state.attempt() },
        };
    }
    if !state.terms.transient.before_rotation
        && let Some(wait) = same_profile_wait(state, reason, error)
    {
        state.pending = NextStep::Attempt;
        return state.within_budget(marks, wait);
    }
    if let Some(level) = thinking::next_level(&error.text, &state.tried_thinking) {
        return retry_thinking(state, level, marks);
    }
    if state.terms.has_fallbacks {
        let failure = failover_error(state, Some(reason), error);
        return match overload_wait(state, reason, NextStep::FailOver(Box::new(failure.clone()))) {
            Some(wait) => state.within_budget(marks, wait),
            None => Decision { marks, action: Action::FailOver(failure) },
        };
    }
    end(state, stage, error, marks)
}

/// Decides what follows an attempt that exceeded its time limit. This is never charged to the profile: a slow model must not affect others.
pub(super) fn timed_out(state: &mut RunState, has_answer: bool) -> Decision {
    if state.advance() {
        return Decision::only(state.attempt());
    }
    if state.terms.has_fallbacks {
        return Decision::only(Action::FailOver(FailoverError {
            message: Phrase::Timeout.english().into(),
            reason: Some(FailoverReason::Timeout),
            status: FailoverReason::Timeout.status(),
            ..about(state)
        }));
    }
    Decision::only(Action::Finish(if has_answer { Finish::Answer } else { Finish::TimedOut }))
}

/// Decides what follows an attempt without an answer, once the model was asked to go on. The next model continues from the log, but not after
/// a tool that changes things: a runtime that keeps no log would repeat it.
pub(super) fn without_answer(state: &mut RunState, outcome: &AttemptOutcome) -> Decision {
    let verify = state.has_mutated;
    let is_empty = matches!(outcome.missing_answer(), Some(MissingAnswer::Nothing | MissingAnswer::OnlyReasoning));
    if !is_empty || verify || !state.terms.has_fallbacks || state.stopped.is_some() {
        return Decision::only(Action::Finish(Finish::Incomplete { verify }));
    }
    state.ask_next_model();
    Decision::only(Action::FailOver(FailoverError {
        message: Phrase::NoAnswer.english().into(),
        reason: Some(FailoverReason::EmptyResponse),
        code: Some("incomplete_result".into()),
        ..about(state)
    }))
}

/// Decides what follows if the current profile has no credential.
pub(super) fn no_credential(state: &mut RunState, message: &str) -> Decision {
    state.attempt_not_made();
    if state.advance() {
        return Decision::only(state.attempt());
    }
    let failure = refusal(state, message.to_owned(), FailoverReason::Auth);
    Decision::only(fail_before_attempt(state, failure))
}

/// Decides what follows if all profiles are in cooldown.
pub(super) fn no_profile(state: &RunState) -> Decision {
    let message = format!("No available auth profile for {} (all in cooldown or unavailable).", state.terms.provider);
    let reason = state.terms.cooldown_reason.unwrap_or(FailoverReason::Unknown);
    let resting_profiles = Some(state.terms.profiles.len());
    let failure = FailoverError { resting_profiles, ..refusal(state, message, reason) };
    Decision::only(fail_before_attempt(state, failure))
}

fn refusal(state: &RunState, message: String, reason: FailoverReason) -> FailoverError {
    FailoverError { message, reason: Some(reason), status: reason.status(), ..about(state) }
}

fn fail_before_attempt(state: &RunState, failure: FailoverError) -> Action {
    if state.terms.has_fallbacks { Action::FailOver(failure) } else { Action::Fail(failure.into()) }
}

/// Ends with a failure: within an answer it is shown, otherwise the run itself fails.
fn end(state: &RunState, stage: FailureStage, error: &LlmError, marks: Vec<Mark>) -> Decision {
    let action = match stage {
        FailureStage::Answer => Action::Finish(Finish::Answer),
        FailureStage::Prompt => Action::Fail(RunError::from(failover_error(state, reason_of(error), error))),
    };
    Decision { marks, action }
}

fn retry_thinking(state: &mut RunState, level: pinch_llm::thinking::ThinkingLevel, marks: Vec<Mark>) -> Decision {
    state.thinking = level;
    Decision { marks, action: state.attempt() }
}

/// Returns whether another profile or model may help. A failure of unknown class may be caused by the request itself.
fn is_worth_another(reason: FailoverReason) -> bool {
    !matches!(reason, FailoverReason::Unknown | FailoverReason::NoErrorDetails | FailoverReason::EmptyResponse)
}

/// Returns whether a failure is recorded for the profile. It is not to blame for slow or broken servers.
fn marks_profile(reason: FailoverReason) -> bool {
    !matches!(reason, FailoverReason::Timeout | FailoverReason::ServerError)
}

/// Retries the same profile after a wait, as long as that is the best option.
fn same_profile_wait(state: &mut RunState, reason: FailoverReason, error: &LlmError) -> Option<Action> {
    use FailoverReason::{Overloaded, RateLimit, ServerError, Timeout};
    if !matches!(reason, RateLimit | Overloaded | Timeout | ServerError) {
        return None;
    }
    let terms = &state.terms;
    let policy = terms.transient;
    let max = match (terms.has_fallbacks && !policy.before_rotation, reason) {
        (true, RateLimit) => 0,
        (true, _) => policy.others.min(1),
        (false, RateLimit) => policy.rate_limits,
        (false, _) => policy.others,
    };
    // An exhausted quota does not recover soon.
    let is_spent = policy.before_rotation && error.kind == LlmErrorKind::Quota;
    let asks_long = error.retry_after.is_some_and(|asked| asked > LONGEST_ASKED_WAIT);
    let waits_long = policy.waits_long && !terms.has_fallbacks;
    if is_spent || state.same_profile_retries >= max || (asks_long && !waits_long) {
        return None;
    }
    let own = policy.first_delay.saturating_mul(1 << state.same_profile_retries.min(10)).min(policy.max_delay);
    let delay = match error.retry_after {
        Some(asked) if policy.before_rotation => asked.max(own),
        asked => asked.unwrap_or(own),
    };
    if terms.budget.deadline.is_some_and(|deadline| state.elapsed + delay >= deadline) {
        return None;
    }
    let since = *state.failing_since.get_or_insert(state.elapsed);
    let window = policy.window.filter(|_| reason != RateLimit);
    if window.is_some_and(|window| state.elapsed.saturating_sub(since) + delay > window) {
        return None;
    }
    state.same_profile_retries += 1;
    let jitter = if error.retry_after.is_some() { 0.0 } else { policy.jitter };
    Some(Action::Wait(Wait {
        delay,
        jitter,
        longest: policy.max_delay,
        reason,
        before: WaitFor::SameProfile { attempt: state.same_profile_retries, max },
    }))
}

/// Waits briefly before another profile of an overloaded provider is tried.
fn overload_wait(state: &mut RunState, reason: FailoverReason, then: NextStep) -> Option<Action> {
    if reason != FailoverReason::Overloaded {
        return None;
    }
    let delay = Duration::from_millis((250 << state.overloads.min(3)).min(1500));
    state.overloads += 1;
    let before = match then {
        NextStep::FailOver(_) => WaitFor::NextModel,
        NextStep::Attempt | NextStep::TimedOut { .. } | NextStep::Overflow => WaitFor::NextProfile,
    };
    state.pending = then;
    Some(Action::Wait(Wait { delay, jitter: 0.2, longest: Duration::MAX, reason, before }))
}

fn about(state: &RunState) -> FailoverError {
    FailoverError {
        provider: state.terms.provider.to_string(),
        model: state.terms.model.to_string(),
        profile: state.profile().cloned(),
        ..FailoverError::default()
    }
}

fn failover_error(state: &RunState, reason: Option<FailoverReason>, error: &LlmError) -> FailoverError {
    let message = match error.text.trim() {
        "" => unexplained(reason).english(),
        text => text,
    };
    FailoverError {
        message: message.to_owned(),
        reason,
        status: error.status.map(|status| status.as_u16()).or_else(|| reason?.status()),
        code: error.code.clone(),
        is_overflow: super::overflow::is_overflow(error),
        retry_after: error.retry_after,
        source: Some(std::sync::Arc::new(error.clone())),
        ..about(state)
    }
}

/// Returns whether an attempt ended in a tool call or an error and left nothing to show.
pub(super) fn is_incomplete(outcome: &AttemptOutcome) -> bool {
    use pinch_llm::message::StopReason;
    let stop = outcome.last_assistant.as_ref().map(|message| message.stop_reason);
    !outcome.has_payload
        && outcome.client_tool_calls.is_empty()
        && !outcome.yielded
        && outcome.last_tool_error.is_none()
        && matches!(stop, Some(StopReason::ToolUse | StopReason::Error))
}

fn role_ordering(state: &RunState, error: &LlmError) -> Action {
    Action::Finish(Finish::Error {
        kind: RunErrorKind::RoleOrdering,
        message: error.text.clone(),
        text: state.terms.texts.get(Phrase::RoleOrdering).to_owned(),
    })
}

fn image_size(state: &RunState, error: &LlmError) -> Action {
    Action::Finish(Finish::Error {
        kind: RunErrorKind::ImageSize,
        message: error.text.clone(),
        text: image_size_text(image_size_mb(&error.text), &state.terms.texts),
    })
}
