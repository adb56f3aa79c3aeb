//! What a run remembers over attempts, repairs and models.

use super::*;

fn start_of(state: &mut RunState) -> AttemptStart {
    match decide(state, Observation::Start).action {
        Action::Attempt(plan) => plan.start,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_prompt_is_logged_once_whatever_the_runtimes_log() {
    let logging = |logs_prompt| RunTerms { logs_prompt, ..terms(&["p1"]) };
    let untried = RunState::new(logging(true));
    assert_eq!(start_of(&mut untried.next_model(logging(true))), AttemptStart::Prompt, "no attempt was made");
    let mut silent = RunState::new(logging(false));
    start_of(&mut silent);
    let mut second = silent.next_model(logging(true));
    assert_eq!(start_of(&mut second), AttemptStart::Prompt, "the first runtime logs nothing");
    let mut third = second.next_model(logging(false));
    assert_eq!(start_of(&mut third), AttemptStart::Prompt, "a runtime without a log needs the prompt");
    assert_eq!(start_of(&mut third.next_model(logging(true))), AttemptStart::Resume, "the second one logged it");
}

#[test]
fn usage_of_attempts_and_repairs_is_added_up_over_models() {
    let usage = |input| Usage { input, ..Usage::default() };
    let mut state = RunState::new(terms(&["p1"]));
    decide(&mut state, Observation::Start);
    state.add_usage(&AttemptOutcome { usage: usage(5), last_call_usage: Some(usage(3)), ..good() });
    state.add_repair_usage(&usage(7));
    let next = state.next_model(terms(&["q1"]));
    for state in [&state, &next] {
        assert_eq!((state.usage().input, state.last_call_usage().map(|last| last.input)), (12, Some(3)));
    }
}

#[test]
fn profiles_that_another_run_used_up_are_not_tried() {
    let mut state = RunState::new(terms(&["p1", "p2", "p3"]));
    decide(&mut state, Observation::Start);
    state.refresh_profiles(|profile| profile.as_str() != "p2");
    let Action::Attempt(plan) = decide(&mut state, Observation::Attempt(&answer(LlmErrorKind::Auth))).action else {
        panic!("no attempt");
    };
    assert_eq!(plan.profile, Some("p3".into()));
}

#[test]
fn the_reason_why_nothing_was_compacted_is_kept() {
    let mut state = RunState::new(terms(&["p1"]));
    decide(&mut state, Observation::Start);
    assert_eq!(state.not_compacted(), None);
    decide(&mut state, Observation::Attempt(&overflows()));
    decide(&mut state, Observation::Repaired(&RepairOutcome::NotCompacted { reason: "too short".into() }));
    assert_eq!(state.not_compacted(), Some("too short"));
}

#[test]
fn a_refused_login_is_renewed_once() {
    let with_status = |status: u16| {
        let mut error = LlmError::new("openai".into(), LlmErrorKind::Auth, "no");
        error.status = status.try_into().ok();
        AttemptOutcome::new(AttemptEnd::Failed { stage: FailureStage::Answer, error: Arc::new(error) })
    };
    let refused = with_status(401);
    let mut state = RunState::new(terms(&["p1", "p2"]));
    decide(&mut state, Observation::Start);
    assert!(state.may_renew_login(&refused));
    assert!(!state.may_renew_login(&with_status(403)) && !state.may_renew_login(&good()));
    state.stopped = Some(CancelReason::User);
    assert!(!state.may_renew_login(&refused), "the run was stopped");
    state.stopped = None;
    state.renewed_login(true);
    assert!(!state.may_renew_login(&refused), "it was renewed already");
    let profile = |decision: Decision| match decision.action {
        Action::Attempt(plan) => plan.profile.map(|profile| profile.as_str().to_owned()),
        other => panic!("{other:?}"),
    };
    assert_eq!(profile(decide(&mut state, Observation::Attempt(&refused))).as_deref(), Some("p1"));
    assert_eq!(profile(decide(&mut state, Observation::Attempt(&refused))).as_deref(), Some("p2"));
}
