//! Decides which model to try next, as a pure function over the list of candidates: from the outcome of a candidate to the next one, or to
//! the error that ends the run.
//!
//! ```
//! use pinch_embed::models::ModelRef;
//! use pinch_embed::run::failover::{CandidateObservation, FailoverState, NextCandidate, ProbeThrottle, ProviderHealth, next_candidate};
//!
//! let mut state = FailoverState::new(vec![ModelRef::new("openai", "a"), ModelRef::new("openai", "b")]);
//! let mut throttle = ProbeThrottle::default();
//! let healthy = |_: &ModelRef| ProviderHealth::Usable;
//! let next = next_candidate(&mut state, CandidateObservation::Start, &mut throttle, 0, healthy);
//! assert!(matches!(next, NextCandidate::Run(candidate) if candidate.model.model == "a" && !candidate.is_last));
//! ```

use std::sync::Arc;

mod probe;

pub use probe::ProbeThrottle;

use super::result::{FailoverError, RunError};
use crate::models::ModelRef;
use crate::reason::FailoverReason;

/// The progress of a run over several models.
#[derive(Clone, Debug)]
pub struct FailoverState {
    candidates: Vec<ModelRef>,
    /// Context windows of the candidates in tokens, by position; 0: unknown.
    windows: Vec<u64>,
    /// After an overflow, only models with a larger window than this are tried.
    min_window: u64,
    /// Index of the current candidate.
    at: usize,
    attempts: Vec<CandidateAttempt>,
    /// Providers whose only probe failed for a lasting reason.
    probed: Vec<String>,
    is_probing: bool,
    /// Whether the user chose the profile of the first candidate, which is then tried even in cooldown.
    is_locked: bool,
    last_error: Option<RunError>,
    /// Index of the attempt that ended with `last_error`; candidates may have been skipped after it.
    last_failed: Option<usize>,
}

impl FailoverState {
    /// Creates the state before the first candidate.
    pub fn new(candidates: Vec<ModelRef>) -> Self {
        Self {
            candidates,
            windows: Vec::new(),
            min_window: 0,
            at: 0,
            attempts: Vec::new(),
            probed: Vec::new(),
            is_probing: false,
            is_locked: false,
            last_error: None,
            last_failed: None,
        }
    }

    /// Sets whether the user chose the profile of the first candidate, which is then tried even in cooldown.
    #[must_use]
    pub fn locked(mut self, is_locked: bool) -> Self {
        self.is_locked = is_locked;
        self
    }

    /// Sets the context windows of the candidates, in their order; 0: unknown. Without them an overflow ends the run.
    #[must_use]
    pub fn windows(mut self, windows: Vec<u64>) -> Self {
        self.windows = windows;
        self
    }

    /// Adds candidates that were skipped before the first one.
    #[must_use]
    pub fn skipped(mut self, attempts: Vec<CandidateAttempt>) -> Self {
        self.attempts = attempts;
        self
    }

    fn window(&self, at: usize) -> u64 {
        self.windows.get(at).copied().unwrap_or(0)
    }

    /// Returns whether a candidate after this one has a larger window.
    fn larger_window_follows(&self, at: usize) -> bool {
        let window = self.window(at);
        window > 0 && (at + 1..self.candidates.len()).any(|later| self.window(later) > window)
    }

    /// Returns the candidates that failed or were skipped.
    pub fn attempts(&self) -> &[CandidateAttempt] {
        &self.attempts
    }
}

/// A candidate that failed or was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CandidateAttempt {
    /// The model.
    pub model: ModelRef,
    /// The error message.
    pub error: String,
    /// The class of the failure.
    pub reason: FailoverReason,
    /// HTTP status.
    pub status: Option<u16>,
    /// The provider's code.
    pub code: Option<String>,
    /// Duration in milliseconds; 0 if it was skipped.
    pub duration_ms: u64,
}

impl CandidateAttempt {
    /// Creates the entry of a configured model that does not exist.
    pub(crate) fn unknown(model: ModelRef, error: &RunError) -> Self {
        let reason = FailoverReason::ModelNotFound;
        Self { model, error: error.to_string(), reason, status: reason.status(), code: None, duration_ms: 0 }
    }
}

/// Outcome of a candidate.
#[derive(Clone, Copy, Debug)]
pub enum CandidateObservation<'a> {
    /// No candidate has been tried yet.
    Start,
    /// The candidate failed.
    Failed {
        /// The error it ended with.
        error: &'a RunError,
        /// Duration in milliseconds.
        duration_ms: u64,
    },
}

/// The health of a provider's profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderHealth {
    /// At least one can be used, or the provider needs none.
    Usable,
    /// All are in cooldown.
    CoolingDown {
        /// When the first can be used again, in milliseconds since the epoch.
        until: i64,
        /// Why they are in cooldown.
        reason: Option<FailoverReason>,
    },
}

/// The decision about the next candidate.
#[derive(Clone, Debug)]
pub enum NextCandidate {
    /// Try this candidate.
    Run(Candidate),
    /// End the run with this error.
    Fail(RunError),
}

/// A candidate to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The model.
    pub model: ModelRef,
    /// Whether one attempt may be made even if all profiles are in cooldown.
    pub allow_cooldown_probe: bool,
    /// Whether this is the last candidate.
    pub is_last: bool,
    /// Whether a later candidate has a larger context window.
    pub larger_window_follows: bool,
}

/// Decides which model is next. Only a [`RunError::Failover`] leads to the next candidate, because other errors do not depend on the model.
/// After an overflow only candidates with a larger context window are tried. `now` is in milliseconds since the epoch.
pub fn next_candidate(
    state: &mut FailoverState,
    seen: CandidateObservation<'_>,
    throttle: &mut ProbeThrottle,
    now: i64,
    health: impl Fn(&ModelRef) -> ProviderHealth,
) -> NextCandidate {
    if let CandidateObservation::Failed { error, duration_ms } = seen {
        if let Some(end) = record_failure(state, error, duration_ms) {
            return NextCandidate::Fail(end);
        }
        state.at += 1;
    }
    while let Some(model) = state.candidates.get(state.at).cloned() {
        if state.min_window > 0 && state.window(state.at) <= state.min_window {
            state.at += 1;
            continue;
        }
        let is_alone = state.candidates.len() == 1;
        let admission = match health(&model) {
            ProviderHealth::Usable => Admission::Run,
            // A profile chosen by the user is always tried.
            ProviderHealth::CoolingDown { .. } if state.at == 0 && state.is_locked => Admission::Run,
            ProviderHealth::CoolingDown { until, reason } => {
                let reason = reason.unwrap_or(FailoverReason::Unknown);
                let may_probe = if is_alone {
                    // Nobody but the provider knows when credit was added.
                    reason == FailoverReason::Billing && throttle.take(model.provider.as_str(), now)
                } else if state.at == 0 {
                    may_probe_first(throttle, &model, reason, until, now)
                } else {
                    may_try_sibling(state, &model, reason)
                };
                match may_probe {
                    true => Admission::Probe,
                    // Without an alternative, the runner reports the cooldown itself.
                    false if is_alone => Admission::Run,
                    false => Admission::Skip(reason),
                }
            }
        };
        match admission {
            Admission::Skip(reason) => {
                state.attempts.push(CandidateAttempt {
                    error: format!("Provider {} is in cooldown (all profiles unavailable)", model.provider),
                    reason,
                    status: reason.status(),
                    code: None,
                    duration_ms: 0,
                    model,
                });
                state.at += 1;
            }
            Admission::Run | Admission::Probe => {
                state.is_probing = matches!(admission, Admission::Probe);
                return NextCandidate::Run(Candidate {
                    model,
                    allow_cooldown_probe: state.is_probing,
                    is_last: state.at + 1 == state.candidates.len(),
                    larger_window_follows: state.larger_window_follows(state.at),
                });
            }
        }
    }
    NextCandidate::Fail(exhausted(state))
}

enum Admission {
    Run,
    Probe,
    Skip(FailoverReason),
}

/// Returns whether the first candidate may be tried in cooldown: the cooldown is nearly over, and there was no recent probe.
fn may_probe_first(
    throttle: &mut ProbeThrottle,
    model: &ModelRef,
    reason: FailoverReason,
    until: i64,
    now: i64,
) -> bool {
    let is_void = matches!(reason, FailoverReason::Auth | FailoverReason::AuthPermanent);
    !is_void && probe::is_near(until, now) && throttle.take(model.provider.as_str(), now)
}

/// Returns whether a later candidate may be tried while its provider is in cooldown: another model of the provider may still work.
fn may_try_sibling(state: &FailoverState, model: &ModelRef, reason: FailoverReason) -> bool {
    use FailoverReason::{Overloaded, RateLimit, Unknown};
    matches!(reason, RateLimit | Overloaded | Unknown)
        && !state.probed.iter().any(|provider| provider == model.provider.as_str())
}

/// Records a failure; returns the error if it ends the run.
fn record_failure(state: &mut FailoverState, error: &RunError, duration_ms: u64) -> Option<RunError> {
    let RunError::Failover(failure) = error else { return Some(error.clone()) };
    if failure.is_overflow {
        if !state.larger_window_follows(state.at) {
            return Some(error.clone());
        }
        state.min_window = state.window(state.at);
    }
    let model = state.candidates.get(state.at)?.clone();
    let reason = failure.reason.unwrap_or(FailoverReason::Unknown);
    let is_last = state.at + 1 >= state.candidates.len();
    if is_last && reason == FailoverReason::Unknown {
        return Some(error.clone());
    }
    if state.is_probing && !is_about_the_model(reason) {
        state.probed.push(model.provider.as_str().to_owned());
    }
    state.last_failed = Some(state.attempts.len());
    state.attempts.push(CandidateAttempt {
        model,
        error: failure.message.clone(),
        reason,
        status: failure.status,
        code: failure.code.clone(),
        duration_ms,
    });
    state.last_error = Some(error.clone());
    None
}

/// Returns whether a failure is unrelated to the provider's load, so that another of its models may also be probed.
fn is_about_the_model(reason: FailoverReason) -> bool {
    use FailoverReason::{Auth, AuthPermanent, Format, ModelNotFound, SessionExpired};
    matches!(reason, Auth | AuthPermanent | Format | ModelNotFound | SessionExpired)
}

fn exhausted(state: &FailoverState) -> RunError {
    if state.attempts.len() <= 1
        && let Some(error) = &state.last_error
    {
        return error.clone();
    }
    // The error describes the model that was asked, not one that was skipped after it.
    let asked = state.last_failed.and_then(|at| state.attempts.get(at));
    let Some(last) = asked.or(state.attempts.last()) else { return RunError::Config("no model is configured".into()) };
    let each =
        |attempt: &CandidateAttempt| format!("{}: {} ({})", attempt.model, attempt.error, attempt.reason.as_str());
    let summary = state.attempts.iter().map(each).collect::<Vec<_>>().join(" | ");
    let source = match &state.last_error {
        Some(RunError::Failover(error)) => error.source.clone(),
        _ => None,
    };
    RunError::from(FailoverError {
        message: format!("All models failed ({}): {summary}", state.attempts.len()),
        reason: Some(last.reason),
        provider: last.model.provider.to_string(),
        model: last.model.model.to_string(),
        status: last.status,
        code: last.code.clone(),
        source: source.map(|source| Arc::clone(&source)),
        ..FailoverError::default()
    })
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use pinch_llm::error::{LlmError, LlmErrorKind};

    use super::*;

    const MINUTE: i64 = 60_000;

    fn fails(reason: FailoverReason) -> RunError {
        FailoverError { message: "no".into(), reason: Some(reason), ..FailoverError::default() }.into()
    }

    /// Plays a script of failures and returns a short description of what was tried. `!` marks a probe.
    fn play(models: &[&str], health: impl Fn(&ModelRef) -> ProviderHealth, script: &[RunError]) -> String {
        let candidates = models.iter().map(|text| ModelRef::parse(text, "x").unwrap()).collect();
        let mut state = FailoverState::new(candidates);
        let mut throttle = ProbeThrottle::default();
        let mut words = Vec::new();
        let mut next = next_candidate(&mut state, CandidateObservation::Start, &mut throttle, 0, &health);
        let mut script = script.iter();
        loop {
            match next {
                NextCandidate::Run(candidate) => {
                    let probe = if candidate.allow_cooldown_probe { "!" } else { "" };
                    words.push(format!("{}{probe}", candidate.model));
                    let Some(error) = script.next() else { break };
                    let seen = CandidateObservation::Failed { error, duration_ms: 1 };
                    next = next_candidate(&mut state, seen, &mut throttle, 0, &health);
                }
                NextCandidate::Fail(error) => {
                    words.push(format!("[{error}]"));
                    break;
                }
            }
        }
        words.join(" ")
    }

    #[test]
    fn failover_errors_lead_to_the_next_candidate_and_others_do_not() {
        use FailoverReason::{Auth, RateLimit, Unknown};
        let usable = |_: &ModelRef| ProviderHealth::Usable;
        let two = ["a/1", "b/2"];
        let rows: Vec<(Vec<RunError>, &str)> = vec![
            (vec![], "a/1"),
            (vec![fails(Auth)], "a/1 b/2"),
            (
                vec![fails(RateLimit), fails(Auth)],
                "a/1 b/2 [All models failed (2): a/1: no (rate_limit) | b/2: no (auth)]",
            ),
            (vec![fails(Unknown)], "a/1 b/2"),
            (vec![fails(Auth), fails(Unknown)], "a/1 b/2 [no]"),
            (vec![RunError::Busy("locked".into())], "a/1 [locked]"),
            (
                vec![FailoverError { message: "long".into(), is_overflow: true, ..FailoverError::default() }.into()],
                "a/1 [long]",
            ),
        ];
        for (script, expected) in rows {
            assert_eq!(play(&two, usable, &script), expected);
        }
        assert_eq!(play(&["a/1"], usable, &[fails(RateLimit)]), "a/1 [no]");
    }

    #[test]
    fn the_error_describes_the_last_model_that_was_asked() {
        let models = ["a/1", "b/2"].map(|text| ModelRef::parse(text, "x").unwrap());
        let mut state = FailoverState::new(models.to_vec());
        let mut throttle = ProbeThrottle::default();
        let health = |model: &ModelRef| match model.provider.as_str() {
            "b" => ProviderHealth::CoolingDown { until: 10 * MINUTE, reason: Some(FailoverReason::Auth) },
            _ => ProviderHealth::Usable,
        };
        next_candidate(&mut state, CandidateObservation::Start, &mut throttle, 0, health);
        let error = fails(FailoverReason::Billing);
        let seen = CandidateObservation::Failed { error: &error, duration_ms: 1 };
        let NextCandidate::Fail(RunError::Failover(end)) = next_candidate(&mut state, seen, &mut throttle, 0, health)
        else {
            panic!("no error");
        };
        assert_eq!((end.provider.as_str(), end.model.as_str(), end.reason), ("a", "1", Some(FailoverReason::Billing)));
        assert!(end.message.contains("b/2: Provider b is in cooldown"), "{end}");
    }

    #[test]
    fn an_overflow_leads_only_to_a_larger_window() {
        let overflow: RunError =
            FailoverError { message: "long".into(), is_overflow: true, ..FailoverError::default() }.into();
        let play = |windows: &[u64]| {
            let models = ["a/1", "b/2", "c/3"].map(|text| ModelRef::parse(text, "x").unwrap());
            let mut state = FailoverState::new(models.to_vec()).windows(windows.to_vec());
            let mut throttle = ProbeThrottle::default();
            let usable = |_: &ModelRef| ProviderHealth::Usable;
            let first = next_candidate(&mut state, CandidateObservation::Start, &mut throttle, 0, usable);
            assert!(matches!(first, NextCandidate::Run(_)));
            let seen = CandidateObservation::Failed { error: &overflow, duration_ms: 1 };
            match next_candidate(&mut state, seen, &mut throttle, 0, usable) {
                NextCandidate::Run(candidate) => candidate.model.to_string(),
                NextCandidate::Fail(error) => format!("[{error}]"),
            }
        };
        assert_eq!(play(&[100, 100, 200]), "c/3");
        assert_eq!(play(&[100, 50, 100]), "[long]");
        assert_eq!(play(&[0, 50, 100]), "[long]", "an unknown window may be the largest");
        let models = ["a/1", "b/2"].map(|text| ModelRef::parse(text, "x").unwrap()).to_vec();
        let follows = |windows| FailoverState::new(models.clone()).windows(windows).larger_window_follows(0);
        assert_eq!([vec![0, 100], vec![100, 100], vec![100, 101]].map(follows), [false, false, true]);
    }

    #[test]
    fn a_profile_chosen_by_the_user_is_tried_in_cooldown() {
        let models = ["a/1", "b/2"].map(|text| ModelRef::parse(text, "x").unwrap());
        let resting =
            |_: &ModelRef| ProviderHealth::CoolingDown { until: 10 * MINUTE, reason: Some(FailoverReason::RateLimit) };
        for (is_locked, expected, n_skipped) in [(true, "a/1", 0), (false, "b/2", 1)] {
            let mut state = FailoverState::new(models.to_vec()).locked(is_locked);
            let mut throttle = ProbeThrottle::default();
            let next = next_candidate(&mut state, CandidateObservation::Start, &mut throttle, 0, resting);
            let NextCandidate::Run(candidate) = next else { panic!("no candidate") };
            assert_eq!((candidate.model.to_string().as_str(), candidate.allow_cooldown_probe), (expected, !is_locked));
            assert_eq!(state.attempts().len(), n_skipped);
        }
    }

    #[test]
    fn the_last_error_of_the_provider_is_the_source_of_the_end() {
        let models = ["a/1", "b/2"].map(|text| ModelRef::parse(text, "x").unwrap());
        let mut state = FailoverState::new(models.to_vec());
        let mut throttle = ProbeThrottle::default();
        let usable = |_: &ModelRef| ProviderHealth::Usable;
        let source = LlmError::new("b".into(), LlmErrorKind::Auth, "no");
        let mut error = FailoverError { reason: Some(FailoverReason::Auth), ..FailoverError::default() };
        error.source = Some(Arc::new(source));
        let error = RunError::from(error);
        let mut next = next_candidate(&mut state, CandidateObservation::Start, &mut throttle, 0, usable);
        for _ in 0..2 {
            let seen = CandidateObservation::Failed { error: &error, duration_ms: 1 };
            next = next_candidate(&mut state, seen, &mut throttle, 0, usable);
        }
        let NextCandidate::Fail(RunError::Failover(end)) = next else { panic!("no error") };
        assert_eq!(end.source.as_deref().map(|source| source.text.as_str()), Some("no"));
    }

    #[test]
    fn providers_in_cooldown_are_skipped_unless_a_probe_may_help() {
        use FailoverReason::{Auth, Billing, RateLimit};
        let resting = |minutes: i64, reason| {
            move |model: &ModelRef| match model.provider.as_str() {
                "a" => ProviderHealth::CoolingDown { until: minutes * MINUTE, reason },
                _ => ProviderHealth::Usable,
            }
        };
        let rows = [
            (10, Some(RateLimit), "b/2"),
            (1, Some(RateLimit), "a/1!"),
            (1, Some(Billing), "a/1!"),
            (1, Some(Auth), "b/2"),
            (1, None, "a/1!"),
        ];
        for (minutes, reason, expected) in rows {
            assert_eq!(play(&["a/1", "b/2"], resting(minutes, reason), &[]), expected);
        }
        assert_eq!(play(&["a/1"], resting(10, Some(RateLimit)), &[]), "a/1");
        assert_eq!(play(&["a/1"], resting(300, Some(Billing)), &[]), "a/1!");
        // Another model of the provider may still work, but there is only one such probe under load.
        let siblings = ["a/1", "a/2", "a/3", "b/4"];
        assert_eq!(play(&siblings, resting(10, Some(RateLimit)), &[fails(RateLimit)]), "a/2! b/4");
        assert_eq!(play(&siblings, resting(10, Some(RateLimit)), &[fails(Auth)]), "a/2! a/3!");
        assert_eq!(play(&siblings, resting(10, Some(Billing)), &[]), "b/4");
    }
}
