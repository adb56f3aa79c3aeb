use std::sync::Arc;

use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::message::{AssistantMessage, StopReason, Usage};
use pinch_stdx::cancel::CancelReason;

use super::*;
use crate::run::outcome::{AttemptStart, FailureStage, ToolRun};
use crate::run::request::Budget;

mod bookkeeping;
mod limits;

const OVERFLOW: &str = "prompt is too long: 210000 tokens > 200000 maximum";

fn terms(profiles: &[&str]) -> RunTerms {
    let slots = profiles.iter().map(|id| ProfileSlot { id: (*id).into(), usable: true }).collect();
    RunTerms { profiles: slots, window: 200_000, ..RunTerms::new("openai", "m") }
}

fn fails(stage: FailureStage, kind: LlmErrorKind, text: &str) -> AttemptOutcome {
    AttemptOutcome::new(AttemptEnd::Failed { stage, error: Arc::new(LlmError::new("openai".into(), kind, text)) })
}

fn answer(kind: LlmErrorKind) -> AttemptOutcome {
    fails(FailureStage::Answer, kind, "no")
}

fn prompt(kind: LlmErrorKind, text: &str) -> AttemptOutcome {
    fails(FailureStage::Prompt, kind, text)
}

fn overflows() -> AttemptOutcome {
    fails(FailureStage::Answer, LlmErrorKind::ContextOverflow, OVERFLOW)
}

/// A refusal of a request that alone exceeds the account's tokens per minute.
fn too_much() -> AttemptOutcome {
    let text = "413 Request too large on tokens per minute (TPM): Limit 6000, Requested 9218";
    fails(FailureStage::Answer, LlmErrorKind::RateLimit, text)
}

fn good() -> AttemptOutcome {
    AttemptOutcome { has_payload: true, ..AttemptOutcome::new(AttemptEnd::Good) }
}

fn times_out() -> AttemptOutcome {
    AttemptOutcome::new(AttemptEnd::TimedOut { during_compaction: false })
}

/// A report of the runner.
enum RunnerReport {
    Outcome(AttemptOutcome),
    Repair(RepairOutcome),
}
use RunnerReport::{Outcome, Repair as Fix};

/// Plays a script in which waits end immediately, and returns the decisions in short form.
fn play(state: &mut RunState, script: Vec<RunnerReport>) -> String {
    let mut words = Vec::new();
    let mut script = script.into_iter();
    let mut decision = decide(state, Observation::Start);
    loop {
        for mark in &decision.marks {
            words.push(match mark {
                Mark::Failure { profile, reason, .. } => format!("fail:{profile}:{}", reason.as_str()),
                Mark::Good { profile } => format!("good:{profile}"),
                Mark::Used { profile } => format!("used:{profile}"),
            });
        }
        let next = match &decision.action {
            Action::Attempt(plan) => {
                let profile = plan.profile.as_ref().map_or("-", ProfileId::as_str);
                let start = if plan.start == AttemptStart::Prompt { "!" } else { "" };
                words.push(format!("{profile}{start}/{}", plan.thinking));
                script.next()
            }
            Action::Repair(super::Repair::Compact { trigger, .. }) => {
                words.push(format!("compact:{}", trigger.as_str()));
                script.next()
            }
            Action::Repair(super::Repair::TruncateToolResults) => {
                words.push("truncate".into());
                script.next()
            }
            Action::Wait(wait) => {
                words.push(format!("wait:{}", wait.delay.as_millis()));
                decision = decide(state, Observation::Waited);
                continue;
            }
            Action::Finish(finish) => {
                words.push(match finish {
                    Finish::Error { kind, .. } => format!("error:{}", kind.as_str()),
                    other => format!("{other:?}"),
                });
                break;
            }
            Action::FailOver(error) => {
                words.push(format!("failover:{}:{:?}", error.reason.map_or("-", FailoverReason::as_str), error.status));
                break;
            }
            Action::Fail(error) => {
                words.push(format!("throw:{error}"));
                break;
            }
        };
        decision = match next {
            Some(Outcome(outcome)) => decide(state, Observation::Attempt(&outcome)),
            Some(Fix(repaired)) => decide(state, Observation::Repaired(&repaired)),
            None => break,
        };
    }
    words.join(" ")
}

#[track_caller]
fn check(terms: RunTerms, script: Vec<RunnerReport>, expected: &str) {
    assert_eq!(play(&mut RunState::new(terms), script), expected);
}

#[test]
fn a_request_beyond_the_token_rate_is_not_repeated() {
    check(terms(&["p1", "p2"]), vec![Outcome(too_much())], "p1!/off Answer");
    let with_fallbacks = RunTerms { has_fallbacks: true, ..terms(&["p1", "p2"]) };
    check(with_fallbacks, vec![Outcome(too_much())], "p1!/off failover:rate_limit:Some(429)");
}

#[test]
fn every_failure_class_rotates_and_only_credential_failures_are_marked() {
    use LlmErrorKind as K;
    let rows = [
        (K::RateLimit, "fail:p1:rate_limit p2/off"),
        (K::Auth, "fail:p1:auth p2/off"),
        (K::Billing, "fail:p1:billing p2/off"),
        (K::Overloaded, "fail:p1:overloaded wait:250 p2/off"),
        (K::ModelNotFound, "fail:p1:model_not_found p2/off"),
        (K::Server, "p2/off"),
        (K::Connect, "p2/off"),
        (K::Timeout, "p2/off"),
        (K::StreamCut, "p2/off"),
        (K::ContentFiltered, "Answer"),
    ];
    for (kind, expected) in rows {
        check(terms(&["p1", "p2"]), vec![Outcome(answer(kind))], &format!("p1!/off {expected}"));
    }
}

#[test]
fn the_last_profile_waits_and_retries() {
    use LlmErrorKind as K;
    let script = |kind: K| (0..4).map(|_| Outcome(answer(kind))).collect::<Vec<_>>();
    check(terms(&["p1"]), script(K::Server), "p1!/off wait:2000 p1/off wait:4000 p1/off wait:8000 p1/off Answer");
    let mut with_fallbacks = terms(&["p1"]);
    with_fallbacks.has_fallbacks = true;
    check(with_fallbacks.clone(), script(K::ServerFault), "p1!/off wait:2000 p1/off failover:server_error:Some(500)");
    check(with_fallbacks.clone(), script(K::Server), "p1!/off wait:2000 p1/off failover:timeout:Some(408)");
    check(with_fallbacks.clone(), script(K::RateLimit), "p1!/off fail:p1:rate_limit failover:rate_limit:Some(429)");
    check(with_fallbacks, script(K::Auth), "p1!/off fail:p1:auth failover:auth:Some(401)");
    check(terms(&["p1"]), script(K::Billing), "p1!/off fail:p1:billing Answer");
    check(terms(&[]), vec![Outcome(good())], "-!/off Answer");
}

/// A rate limit whose provider asks for a delay.
fn asked(seconds: u64) -> RunnerReport {
    let mut error = LlmError::new("openai".into(), LlmErrorKind::RateLimit, "429");
    error.retry_after = Some(Duration::from_secs(seconds));
    Outcome(AttemptOutcome::new(AttemptEnd::Failed { stage: FailureStage::Answer, error: Arc::new(error) }))
}

#[test]
fn delays_requested_by_a_provider_are_honoured_up_to_a_limit() {
    check(
        terms(&["p1"]),
        vec![asked(5), Outcome(good())],
        "p1!/off fail:p1:rate_limit wait:5000 p1/off good:p1 used:p1 Answer",
    );
    check(terms(&["p1"]), vec![asked(61)], "p1!/off fail:p1:rate_limit Answer");
}

#[test]
fn the_same_profile_may_be_retried_before_another() {
    let mut patient = terms(&["p1", "p2"]);
    patient.transient = TransientRetries::same_profile_first();
    let limited = || Outcome(answer(LlmErrorKind::RateLimit));
    let waits: Vec<String> =
        [1, 2, 4, 8, 16, 30, 30, 30, 30].iter().map(|s| format!("wait:{} p1/off", s * 1000)).collect();
    let limits = (0..10).map(|_| limited()).chain([Outcome(good())]).collect();
    let expected = format!("p1!/off {} fail:p1:rate_limit p2/off good:p2 used:p2 Answer", waits.join(" "));
    check(patient.clone(), limits, &expected);
    let spent = vec![Outcome(answer(LlmErrorKind::Quota)), Outcome(good())];
    check(patient.clone(), spent, "p1!/off fail:p1:rate_limit p2/off good:p2 used:p2 Answer");
    let rejected = vec![Outcome(answer(LlmErrorKind::Auth)), Outcome(good())];
    check(patient.clone(), rejected, "p1!/off fail:p1:auth p2/off good:p2 used:p2 Answer");
    let mut alone = patient.clone();
    alone.profiles.truncate(1);
    check(alone, vec![asked(300), Outcome(good())], "p1!/off wait:300000 p1/off good:p1 used:p1 Answer");
    patient.has_fallbacks = true;
    check(patient, vec![asked(300), Outcome(good())], "p1!/off fail:p1:rate_limit p2/off good:p2 used:p2 Answer");
}

#[test]
fn retries_after_failures_must_begin_within_their_window() {
    let mut patient = terms(&["p1"]);
    patient.transient = TransientRetries::same_profile_first();
    let mut state = RunState::new(patient);
    decide(&mut state, Observation::Start);
    let fault = answer(LlmErrorKind::ServerFault);
    let waits = |state: &mut RunState, at: u64| {
        state.elapsed = Duration::from_secs(at);
        let decision = decide(state, Observation::Attempt(&fault));
        let is_wait = matches!(decision.action, Action::Wait(_));
        decide(state, Observation::Waited);
        is_wait
    };
    assert!(waits(&mut state, 100) && waits(&mut state, 188), "1 s after 100, then 2 s until 190");
    assert!(!waits(&mut state, 188), "4 s would end after 190");
    let mut state = RunState::new(state.terms);
    decide(&mut state, Observation::Start);
    assert!(waits(&mut state, 0));
    let mut answered = fault.clone();
    answered.last_call_usage = Some(Usage::default());
    state.elapsed = Duration::from_secs(500);
    let decision = decide(&mut state, Observation::Attempt(&answered));
    assert!(matches!(decision.action, Action::Wait(_)), "a completed answer restarts the window");
}

#[test]
fn a_locked_profile_is_used_in_cooldown_and_never_rotated() {
    let mut locked = terms(&["p1"]);
    locked.locked = true;
    locked.profiles[0].usable = false;
    locked.transient = locked.transient.at_most(0);
    check(locked, vec![Outcome(answer(LlmErrorKind::RateLimit))], "p1!/off fail:p1:rate_limit Answer");
}

#[test]
fn profiles_in_cooldown_are_skipped() {
    let mut some = terms(&["p1", "p2", "p3"]);
    some.profiles[0].usable = false;
    some.profiles[2].usable = false;
    check(some.clone(), vec![Outcome(answer(LlmErrorKind::Auth))], "p2!/off fail:p2:auth Answer");
    some.profiles[1].usable = false;
    let text = "throw:No available auth profile for openai (all in cooldown or unavailable).";
    check(some.clone(), vec![], text);
    some.allow_cooldown_probe = true;
    some.cooldown_reason = Some(FailoverReason::RateLimit);
    check(some.clone(), vec![Outcome(good())], "p1!/off good:p1 used:p1 Answer");
    some.cooldown_reason = Some(FailoverReason::Billing);
    check(some.clone(), vec![], text);
    some.has_fallbacks = true;
    check(some.clone(), vec![], "failover:billing:Some(402)");
    some.is_probe = true;
    check(some, vec![Outcome(good())], "p1!/off good:p1 used:p1 Answer");
}

#[test]
fn an_overflow_is_compacted_three_times_then_truncated_once_then_fails() {
    let mut big = overflows();
    big.oversized_tool_results = true;
    let not = || Fix(RepairOutcome::NotCompacted { reason: "nothing to compact".into() });
    let c = "compact:overflow";
    check(
        terms(&["p1"]),
        vec![Outcome(overflows()), Fix(RepairOutcome::Compacted), Outcome(good())],
        &format!("p1!/off {c} p1/off good:p1 used:p1 Answer"),
    );
    let thrice = (0..4).flat_map(|_| [Outcome(overflows()), Fix(RepairOutcome::Compacted)]).collect();
    check(terms(&["p1"]), thrice, &format!("p1!/off {c} p1/off {c} p1/off {c} p1/off error:context_overflow"));
    check(
        terms(&["p1"]),
        vec![Outcome(big.clone()), not(), Fix(RepairOutcome::Truncated { count: 1 }), Outcome(big), not()],
        &format!("p1!/off {c} truncate p1/off {c} error:context_overflow"),
    );
    check(terms(&["p1", "p2"]), vec![Outcome(overflows()), not()], &format!("p1!/off {c} error:context_overflow"));
    let itself = AttemptOutcome { compactions: 1, ..overflows() };
    check(terms(&["p1"]), vec![Outcome(itself), Outcome(good())], "p1!/off p1/off good:p1 used:p1 Answer");
}

#[test]
fn thinking_is_lowered_to_a_supported_level() {
    let says = |levels: &str| {
        Outcome(fails(FailureStage::Answer, LlmErrorKind::InvalidRequest, &format!("Supported values are: {levels}.")))
    };
    check(
        terms(&["p1"]),
        vec![says("'low', 'high'"), says("'low', 'high'"), Outcome(good())],
        "p1!/off p1/low p1/high good:p1 used:p1 Answer",
    );
}

#[test]
fn failures_at_the_prompt_stage_rotate_only_for_credentials() {
    use LlmErrorKind as K;
    let mut fallbacks = terms(&["p1", "p2"]);
    fallbacks.has_fallbacks = true;
    let rows = [
        (K::Protocol, "weird", "throw:weird"),
        (K::InvalidRequest, "roles must alternate", "error:role_ordering"),
        (K::InvalidRequest, "image exceeds 5 MB maximum", "error:image_size"),
        (K::Auth, "no", "fail:p1:auth p2/off"),
    ];
    for (kind, text, expected) in rows {
        check(fallbacks.clone(), vec![Outcome(prompt(kind, text))], &format!("p1!/off {expected}"));
    }
    fallbacks.transient = fallbacks.transient.at_most(0);
    let slow = vec![Outcome(prompt(K::Timeout, "deadline exceeded"))];
    check(fallbacks, slow, "p1!/off failover:timeout:Some(408)");
}

#[test]
fn timeouts_rotate_without_a_mark_and_compact_long_conversations() {
    check(terms(&["p1", "p2"]), vec![Outcome(times_out()), Outcome(good())], "p1!/off p2/off good:p2 used:p2 Answer");
    check(terms(&["p1"]), vec![Outcome(times_out())], "p1!/off TimedOut");
    let usage = Usage { input: 140_000, ..Usage::default() };
    let long = || Outcome(AttemptOutcome { last_call_usage: Some(usage), ..times_out() });
    let done = || Fix(RepairOutcome::Compacted);
    let c = "compact:timeout_recovery";
    check(
        terms(&["p1"]),
        vec![long(), done(), long(), done(), long()],
        &format!("p1!/off {c} p1/off {c} p1/off TimedOut"),
    );
    let not = Fix(RepairOutcome::NotCompacted { reason: "no".into() });
    check(terms(&["p1", "p2"]), vec![long(), not], &format!("p1!/off {c} p2/off"));
    let in_compaction =
        AttemptOutcome { has_payload: true, ..AttemptOutcome::new(AttemptEnd::TimedOut { during_compaction: true }) };
    check(terms(&["p1", "p2"]), vec![Outcome(in_compaction)], "p1!/off Answer");
}

#[test]
fn an_abort_by_the_user_marks_nothing() {
    let aborted = AttemptOutcome::new(AttemptEnd::Aborted(CancelReason::User));
    check(terms(&["p1", "p2"]), vec![Outcome(aborted)], "p1!/off Aborted");
}

#[test]
fn an_attempt_that_ends_in_a_tool_call_is_incomplete() {
    let mut message = AssistantMessage::pending("a".into(), "openai".into(), "m".into(), 0);
    message.stop_reason = StopReason::ToolUse;
    let tool = ToolRun { name: "write".into(), mutates: true, failed: false, duration_ms: 0 };
    let silent = AttemptOutcome {
        last_assistant: Some(Arc::new(message)),
        tools: vec![tool],
        ..AttemptOutcome::new(AttemptEnd::Good)
    };
    check(terms(&["p1"]), vec![Outcome(silent)], "p1!/off Incomplete { verify: true }");
}

#[test]
fn attempts_and_budgets_are_bounded() {
    let overflow_for_ever = || (0..40).map(|_| Outcome(AttemptOutcome { compactions: 1, ..overflows() })).collect();
    let mut unbounded = terms(&["p1"]);
    unbounded.overflow_compactions = u32::MAX;
    let mut state = RunState::new(unbounded);
    assert!(play(&mut state, overflow_for_ever()).ends_with("error:retry_limit"));
    assert_eq!(state.n_attempts(), 32);
    let mut budget = terms(&["p1", "p2"]);
    budget.budget.attempts = Some(1);
    check(budget, vec![Outcome(answer(LlmErrorKind::Auth))], "p1!/off fail:p1:auth error:budget");
    let mut tokens = terms(&["p1", "p2"]);
    tokens.budget.tokens = Some(10);
    let spent = AttemptOutcome { usage: Usage { input: 11, ..Usage::default() }, ..overflows() };
    check(tokens, vec![Outcome(spent)], "p1!/off error:budget");
    for (n, expected) in [(0, 32), (1, 32), (2, 40), (10, 104), (99, 160)] {
        assert_eq!(RunRetries::default().bound(n), expected, "{n}");
    }
}

#[test]
fn a_missing_credential_fails_the_profile_not_the_run() {
    let mut state = RunState::new(terms(&["p1", "p2"]));
    decide(&mut state, Observation::Start);
    let next = decide(&mut state, Observation::NoCredential { message: "no key" });
    assert!(matches!(next.action, Action::Attempt(plan) if plan.profile == Some("p2".into())
        && plan.start == AttemptStart::Prompt));
    let last = decide(&mut state, Observation::NoCredential { message: "no key" });
    assert!(matches!(last.action, Action::Fail(error) if error.to_string() == "no key"));
}

#[test]
fn the_next_model_resumes_from_the_log() {
    let mut state = RunState::new(terms(&["p1"]));
    decide(&mut state, Observation::Start);
    let mut next = state.next_model(terms(&["q1"]));
    assert!(
        matches!(decide(&mut next, Observation::Start).action, Action::Attempt(plan) if plan.start == AttemptStart::Resume)
    );
}

#[test]
fn jitter_spreads_a_wait_around_its_delay_up_to_the_longest() {
    let wait = |jitter: f64, longest: u64| Wait {
        delay: Duration::from_secs(10),
        jitter,
        longest: Duration::from_secs(longest),
        reason: FailoverReason::RateLimit,
        before: WaitFor::NextProfile,
    };
    for (jitter, longest, fraction, expected) in [
        (0.2, 60, 0.0, 8.0),
        (0.2, 60, 0.25, 9.0),
        (0.2, 60, 0.5, 10.0),
        (0.2, 60, 0.75, 11.0),
        (0.2, 60, 1.0, 12.0),
        (0.2, 11, 1.0, 11.0),
        // The delay itself is never cut.
        (0.2, 5, 1.0, 10.0),
        (0.0, 60, 0.9, 10.0),
        (3.0, 60, 0.0, 0.0),
    ] {
        let seconds = wait(jitter, longest).jittered(fraction).as_secs_f64();
        assert!((seconds - expected).abs() < 1e-6, "{jitter} {longest} {fraction}: {seconds}");
    }
}

#[test]
fn each_end_without_an_answer_has_its_text() {
    let texts = TextTable::default();
    let error = Finish::Error { kind: RunErrorKind::Budget, message: "raw".into(), text: "for people".into() };
    for (finish, expected) in [
        (Finish::Answer, None),
        (Finish::Aborted, None),
        (Finish::TimedOut, Some(texts.get(Phrase::TimedOut))),
        (Finish::Incomplete { verify: false }, Some(texts.get(Phrase::NoAnswer))),
        (Finish::Incomplete { verify: true }, Some(texts.get(Phrase::NoAnswerVerify))),
        (error, Some("for people")),
    ] {
        assert_eq!(finish.text(&texts), expected, "{finish:?}");
    }
}

#[test]
fn a_deadline_ends_a_run_as_timed_out_unless_there_is_an_answer() {
    for (reason, has_payload, expected) in [
        (CancelReason::Deadline, false, Finish::TimedOut),
        (CancelReason::Deadline, true, Finish::Answer),
        (CancelReason::User, true, Finish::Aborted),
    ] {
        let mut state = RunState::new(terms(&["p1"]));
        decide(&mut state, Observation::Start);
        state.stopped = Some(reason);
        let outcome = AttemptOutcome { has_payload, ..AttemptOutcome::new(AttemptEnd::Aborted(reason)) };
        let decision = decide(&mut state, Observation::Attempt(&outcome));
        match decision.action {
            Action::Finish(finish) => assert_eq!(finish, expected, "{reason:?} {has_payload}"),
            other => panic!("{reason:?} {has_payload}: {other:?}"),
        }
    }
    let mut state =
        RunState::new(RunTerms { budget: Budget { attempts: Some(1), ..Budget::default() }, ..terms(&["p1"]) });
    decide(&mut state, Observation::Start);
    let action = decide(&mut state, Observation::Stopped(CancelReason::Deadline)).action;
    assert!(matches!(action, Action::Finish(Finish::Error { kind: RunErrorKind::Budget, .. })), "{action:?}");
}

#[test]
fn a_timeout_of_a_request_that_fills_most_of_the_window_compacts() {
    for (window, usage, compacts) in [
        (200_000, (131_000, 0, 0), true),
        (200_000, (130_000, 0, 0), false),
        (200_000, (50_000, 50_000, 31_000), true),
        (200_000, (100_000, 1, 1), false),
        (0, (131_000, 0, 0), false),
    ] {
        let (input, cache_read, cache_write) = usage;
        let mut state = RunState::new(RunTerms { window, ..terms(&["p1", "p2"]) });
        decide(&mut state, Observation::Start);
        let last_call_usage = Some(Usage { input, cache_read, cache_write, ..Usage::default() });
        let action =
            decide(&mut state, Observation::Attempt(&AttemptOutcome { last_call_usage, ..times_out() })).action;
        assert_eq!(matches!(action, Action::Repair(_)), compacts, "{window} {usage:?}: {action:?}");
    }
}
