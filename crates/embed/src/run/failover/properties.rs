//! Properties of every choice of models, whatever their windows and the health of their providers.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// How a candidate fails.
#[derive(Clone, Debug)]
enum Failure {
    /// A failure that another model may avoid.
    Failover { reason: Option<FailoverReason>, is_overflow: bool },
    /// A failure unrelated to the model.
    Other,
}

impl Failure {
    fn error(&self) -> RunError {
        match *self {
            Self::Failover { reason, is_overflow } => {
                FailoverError { message: "no".into(), reason, is_overflow, ..FailoverError::default() }.into()
            }
            Self::Other => RunError::Busy("the session is locked".into()),
        }
    }
}

fn any_reason() -> impl Strategy<Value = Option<FailoverReason>> {
    prop::option::of(select(&FailoverReason::ALL))
}

fn any_failure() -> impl Strategy<Value = Failure> {
    prop_oneof![
        8 => (any_reason(), prop::bool::weighted(0.3))
            .prop_map(|(reason, is_overflow)| Failure::Failover { reason, is_overflow }),
        1 => Just(Failure::Other),
    ]
}

fn any_health() -> impl Strategy<Value = ProviderHealth> {
    prop_oneof![
        Just(ProviderHealth::Usable),
        (0_i64..1_200_000, any_reason()).prop_map(|(until, reason)| ProviderHealth::CoolingDown { until, reason }),
    ]
}

/// Candidates: the provider of each, its window, the provider's health, and how the candidate fails.
fn any_candidates() -> impl Strategy<Value = Vec<(&'static str, u64, ProviderHealth, Failure)>> {
    let provider = select(vec!["a", "b", "c"]);
    let window = select(vec![0_u64, 100, 200, 200, 400]);
    prop::collection::vec((provider, window, any_health(), any_failure()), 0..6)
}

proptest! {
    #[test]
    fn candidates_are_tried_once_in_order_and_an_overflow_leads_to_a_larger_window(
        rows in any_candidates(),
        is_locked: bool,
    ) {
        let models: Vec<ModelRef> =
            rows.iter().enumerate().map(|(n, (provider, ..))| ModelRef::new(provider, &format!("m{n}"))).collect();
        let place = |model: &ModelRef| models.iter().position(|other| other == model).unwrap();
        let windows: Vec<u64> = rows.iter().map(|row| row.1).collect();
        let mut state = FailoverState::new(models.clone()).windows(windows.clone()).locked(is_locked);
        let mut throttle = ProbeThrottle::default();
        let health = |model: &ModelRef| rows[place(model)].2;
        let mut next = next_candidate(&mut state, CandidateObservation::Start, &mut throttle, 0, health);
        let mut last = None;
        let mut min_window = 0;
        while let NextCandidate::Run(candidate) = next {
            let at = place(&candidate.model);
            prop_assert!(last.is_none_or(|last| last < at), "{} after {last:?}", at);
            prop_assert!(min_window == 0 || windows[at] > min_window, "an overflow leads to a model without a larger window");
            prop_assert_eq!(candidate.is_last, at + 1 == models.len());
            let follows = windows[at] > 0 && windows[at + 1..].iter().any(|window| *window > windows[at]);
            prop_assert_eq!(candidate.larger_window_follows, follows);
            let is_resting = matches!(health(&candidate.model), ProviderHealth::CoolingDown { .. });
            prop_assert!(is_resting || !candidate.allow_cooldown_probe, "a usable provider is probed");
            let is_excused = candidate.allow_cooldown_probe || models.len() == 1 || (at == 0 && is_locked);
            prop_assert!(!is_resting || is_excused, "a provider in cooldown is used");

            let failure = &rows[at].3;
            let error = failure.error();
            let seen = CandidateObservation::Failed { error: &error, duration_ms: 1 };
            next = next_candidate(&mut state, seen, &mut throttle, 0, health);
            let ends = match failure {
                Failure::Other => true,
                Failure::Failover { is_overflow, .. } => *is_overflow && !follows,
            };
            prop_assert!(!ends || matches!(next, NextCandidate::Fail(_)), "{:?} leads to {:?}", failure, next);
            if matches!(failure, Failure::Failover { is_overflow: true, .. }) {
                min_window = windows[at];
            }
            last = Some(at);
        }
        prop_assert!(state.attempts().len() <= models.len(), "{:?}", state.attempts());
    }
}
