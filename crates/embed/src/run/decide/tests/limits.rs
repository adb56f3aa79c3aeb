//! The exact limits of retries and of what belongs to a failure.

use pinch_llm::message::{Block, Thinking};

use super::*;
use crate::run::outcome::ClientToolCall;

/// Decides about one attempt that failed at this time of the run.
fn after(terms: RunTerms, elapsed: Duration, outcome: &AttemptOutcome) -> Action {
    let mut state = RunState::new(terms);
    decide(&mut state, Observation::Start);
    state.elapsed = elapsed;
    decide(&mut state, Observation::Attempt(outcome)).action
}

#[test]
fn a_provider_may_ask_for_exactly_the_longest_delay() {
    check(terms(&["p1"]), vec![asked(60)], "p1!/off fail:p1:rate_limit wait:60000 p1/off");
}

#[test]
fn a_shorter_delay_than_our_own_counts_only_between_profiles() {
    check(terms(&["p1"]), vec![asked(1)], "p1!/off fail:p1:rate_limit wait:1000 p1/off");
    let patient = RunTerms { transient: TransientRetries::same_profile_first(), ..terms(&["p1"]) };
    check(patient, vec![asked(1), asked(1)], "p1!/off wait:1000 p1/off wait:2000 p1/off");
}

#[test]
fn a_retry_must_begin_before_the_deadline() {
    let budget = Budget { deadline: Some(Duration::from_secs(10)), ..Budget::default() };
    let limited = RunTerms { budget, ..terms(&["p1"]) };
    let fault = answer(LlmErrorKind::ServerFault);
    let waits = |millis| matches!(after(limited.clone(), Duration::from_millis(millis), &fault), Action::Wait(_));
    assert!(waits(7_999) && !waits(8_000) && !waits(8_001), "the first delay is 2 s");
    let over = after(RunTerms { profiles: terms(&["p1", "p2"]).profiles, ..limited }, Duration::from_secs(10), &fault);
    assert!(matches!(over, Action::Finish(Finish::Error { kind: RunErrorKind::Budget, .. })), "{over:?}");
}

#[test]
fn an_image_that_is_too_large_ends_the_run_at_either_stage() {
    let dimensions = "messages.1.content.0: image dimensions exceed max allowed size: 8000 pixels";
    for stage in [FailureStage::Answer, FailureStage::Prompt] {
        let fails = fails(stage, LlmErrorKind::Auth, dimensions);
        let action = after(terms(&["p1", "p2"]), Duration::ZERO, &fails);
        assert!(!matches!(action, Action::Attempt(_)), "{stage:?}: {action:?}");
    }
    let bytes = fails(FailureStage::Answer, LlmErrorKind::Auth, "image exceeds 5 MB maximum");
    let action = after(terms(&["p1", "p2"]), Duration::ZERO, &bytes);
    assert!(!matches!(action, Action::Attempt(_)), "{action:?}");
}

#[test]
fn a_failover_names_the_model_and_the_profile() {
    let with_fallbacks = RunTerms { has_fallbacks: true, ..terms(&["p1"]) };
    let Action::FailOver(error) = after(with_fallbacks, Duration::ZERO, &answer(LlmErrorKind::Auth)) else {
        panic!("no failover");
    };
    assert_eq!((error.provider.as_str(), error.model.as_str()), ("openai", "m"));
    assert_eq!(error.profile, Some("p1".into()));
}

#[test]
fn an_attempt_that_ends_in_a_tool_call_is_complete_if_something_explains_it() {
    let mut message = AssistantMessage::pending("a".into(), "openai".into(), "m".into(), 0);
    message.stop_reason = StopReason::ToolUse;
    let silent = AttemptOutcome { last_assistant: Some(Arc::new(message)), ..AttemptOutcome::new(AttemptEnd::Good) };
    let finish = |outcome: &AttemptOutcome| match after(terms(&["p1"]), Duration::ZERO, outcome) {
        Action::Finish(finish) => finish,
        other => panic!("{other:?}"),
    };
    assert_eq!(finish(&silent), Finish::Incomplete { verify: false });
    let call = ClientToolCall { id: "c1".into(), name: "theirs".into(), params: serde_json::json!({}) };
    assert_eq!(finish(&AttemptOutcome { client_tool_calls: vec![call], ..silent.clone() }), Finish::Answer);
    assert_eq!(finish(&AttemptOutcome { yielded: true, ..silent.clone() }), Finish::Answer);
    assert_eq!(finish(&AttemptOutcome { has_payload: true, ..silent }), Finish::Answer);
}

/// An answer without text, which stopped for this reason after this much reasoning.
fn empty(stop: StopReason, reasoning: Option<&str>) -> AttemptOutcome {
    let mut message = AssistantMessage::pending("a".into(), "openai".into(), "m".into(), 0);
    message.stop_reason = stop;
    let thinking = reasoning.map(|text| Thinking { thinking: text.into(), ..Thinking::default() });
    message.content.extend(thinking.map(|thinking| Arc::new(Block::Thinking(thinking))));
    AttemptOutcome { last_assistant: Some(Arc::new(message)), ..AttemptOutcome::new(AttemptEnd::Good) }
}

#[test]
fn a_model_without_an_answer_is_asked_to_go_on() {
    let nothing = || Outcome(empty(StopReason::Stop, None));
    let thought = || Outcome(empty(StopReason::Stop, Some("hm")));
    let given_up = "Incomplete { verify: false }";
    let shown = "good:p1 used:p1 Answer";
    check(terms(&["p1"]), vec![nothing(), nothing()], &format!("p1!/off p1/off {given_up}"));
    check(terms(&["p1"]), vec![nothing(), Outcome(good())], &format!("p1!/off p1/off {shown}"));
    check(terms(&["p1"]), vec![thought(), thought(), thought()], &format!("p1!/off p1/off p1/off {given_up}"));
    check(terms(&["p1"]), vec![Outcome(empty(StopReason::Length, None))], &format!("p1!/off {given_up}"));
    let unable = RunTerms { can_ask_again: false, ..terms(&["p1"]) };
    check(unable, vec![nothing()], &format!("p1!/off {given_up}"));
    let silent = RunTerms { may_say_nothing: true, ..terms(&["p1"]) };
    check(silent, vec![nothing()], &format!("p1!/off {shown}"));
    // The final request for a required answer replaces the last of these, but only with the last model.
    let mut required = RunTerms { reply_required: true, ..terms(&["p1"]) };
    check(required.clone(), vec![nothing()], &format!("p1!/off {given_up}"));
    check(required.clone(), vec![thought(), thought()], &format!("p1!/off p1/off {given_up}"));
    required.has_fallbacks = true;
    check(required, vec![nothing(), nothing()], "p1!/off p1/off failover:empty_response:None");
}

#[test]
fn the_next_model_goes_on_from_an_empty_answer_unless_a_tool_changed_something() {
    let with_fallbacks = || RunTerms { has_fallbacks: true, can_ask_again: false, ..terms(&["p1"]) };
    let mut state = RunState::new(with_fallbacks());
    decide(&mut state, Observation::Start);
    let end = decide(&mut state, Observation::Attempt(&empty(StopReason::Stop, None))).action;
    assert!(matches!(end, Action::FailOver(_)), "{end:?}");
    let mut next = state.next_model(terms(&["q1"]));
    let Action::Attempt(plan) = decide(&mut next, Observation::Start).action else { panic!("no attempt") };
    assert_eq!(plan.start, AttemptStart::Continue);
    let mut state = RunState::new(with_fallbacks());
    decide(&mut state, Observation::Start);
    let tool = ToolRun { name: "write".into(), mutates: true, failed: false, duration_ms: 0 };
    let mutated = AttemptOutcome { tools: vec![tool], ..empty(StopReason::Stop, None) };
    state.add_usage(&mutated);
    let end = decide(&mut state, Observation::Attempt(&mutated)).action;
    assert!(matches!(end, Action::Finish(Finish::Incomplete { verify: true })), "{end:?}");
}
