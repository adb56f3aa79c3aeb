//! Properties of every run, whatever its terms and observations are.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::message::{AssistantMessage, StopReason, Usage};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::CancelReason;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::run::outcome::{AttemptStart, FailureStage, MissingAnswer, ToolRun};
use crate::run::request::Budget;

/// A possible report of the runner; only the part that the decision asks for is used.
#[derive(Clone, Debug)]
struct PossibleReport {
    outcome: AttemptOutcome,
    has_credential: bool,
    repaired: RepairOutcome,
    /// The run is stopped before the step ends.
    stop: Option<CancelReason>,
    takes: Duration,
    /// Bit mask of the profiles that other runs leave usable.
    usable: u8,
}

const KINDS: [LlmErrorKind; 14] = [
    LlmErrorKind::Aborted,
    LlmErrorKind::Connect,
    LlmErrorKind::Timeout,
    LlmErrorKind::StreamCut,
    LlmErrorKind::RateLimit,
    LlmErrorKind::Overloaded,
    LlmErrorKind::Server,
    LlmErrorKind::Billing,
    LlmErrorKind::Auth,
    LlmErrorKind::ModelNotFound,
    LlmErrorKind::ContextOverflow,
    LlmErrorKind::InvalidRequest,
    LlmErrorKind::ContentFiltered,
    LlmErrorKind::Protocol,
];

/// Texts with different classifications.
const TEXTS: [&str; 12] = [
    "",
    "no",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Summarization failed: prompt is too long",
    "Unsupported value. Supported values are: 'low', 'medium', 'high'.",
    "Supported values are: 'minimal'.",
    "roles must alternate between user and assistant",
    "image exceeds 5 MB maximum",
    "messages.1.content.0: image dimensions exceed max allowed size: 8000 pixels",
    "insufficient credits",
    "Too many tokens per minute",
    "Overloaded",
];

const REASONS: [CancelReason; 5] =
    [CancelReason::User, CancelReason::Deadline, CancelReason::Yield, CancelReason::Superseded, CancelReason::Shutdown];

fn any_error() -> impl Strategy<Value = Arc<LlmError>> {
    let status = select(vec![None, None, Some(400_u16), Some(402), Some(413), Some(429), Some(500), Some(529)]);
    let wait = select(vec![None, None, Some(0_u64), Some(5), Some(60), Some(61), Some(4_000)]);
    (select(&KINDS), select(&TEXTS), status, wait).prop_map(|(kind, text, status, wait)| {
        let mut error = LlmError::new("openai".into(), kind, text);
        error.status = status.and_then(|status| StatusCode::from_u16(status).ok());
        error.retry_after = wait.map(Duration::from_secs);
        Arc::new(error)
    })
}

fn any_end() -> impl Strategy<Value = AttemptEnd> {
    let stage = select(vec![FailureStage::Prompt, FailureStage::Answer]);
    prop_oneof![
        1 => Just(AttemptEnd::Good),
        12 => (stage, any_error()).prop_map(|(stage, error)| AttemptEnd::failed(stage, error)),
        1 => select(&REASONS).prop_map(AttemptEnd::Aborted),
        3 => any::<bool>().prop_map(|during_compaction| AttemptEnd::TimedOut { during_compaction }),
    ]
}

fn any_outcome() -> impl Strategy<Value = AttemptOutcome> {
    let stop = select(vec![None, Some(StopReason::Stop), Some(StopReason::ToolUse), Some(StopReason::Error)]);
    (any_end(), stop, 0_u64..150_000, 0_u32..3, any::<[bool; 3]>()).prop_map(
        |(end, stop, input, compactions, flags)| {
            let usage = Usage { input, total_tokens: input, ..Usage::default() };
            let message = |stop_reason| {
                let mut message = AssistantMessage::pending("a".into(), "openai".into(), "m".into(), 0);
                message.stop_reason = stop_reason;
                Arc::new(message)
            };
            let tool = ToolRun { name: "write".into(), mutates: true, failed: false, duration_ms: 0 };
            AttemptOutcome {
                last_assistant: stop.map(message),
                usage,
                last_call_usage: Some(usage),
                compactions: compactions.saturating_sub(1),
                has_payload: flags[0],
                oversized_tool_results: flags[1],
                tools: if flags[2] { vec![tool] } else { Vec::new() },
                ..AttemptOutcome::new(end)
            }
        },
    )
}

fn any_repaired() -> impl Strategy<Value = RepairOutcome> {
    prop_oneof![
        3 => Just(RepairOutcome::Compacted),
        1 => Just(RepairOutcome::NotCompacted { reason: "no".into() }),
        1 => Just(RepairOutcome::Truncated { count: 1 }),
        1 => Just(RepairOutcome::NotTruncated),
    ]
}

fn any_step() -> impl Strategy<Value = PossibleReport> {
    let stop = prop_oneof![24 => Just(None), 1 => select(&REASONS).prop_map(Some)];
    (any_outcome(), prop::bool::weighted(0.9), any_repaired(), stop, 0_u64..20_000, any::<u8>()).prop_map(
        |(outcome, has_credential, repaired, stop, takes, usable)| {
            let takes = Duration::from_millis(takes);
            PossibleReport { outcome, has_credential, repaired, stop, takes, usable }
        },
    )
}

fn any_terms() -> impl Strategy<Value = RunTerms> {
    let budget = (
        prop::option::weighted(0.2, 1_u32..6),
        prop::option::weighted(0.2, 1_u64..1_000_000),
        prop::option::weighted(0.2, 1_u64..200),
    );
    let retries = select(vec![
        RunRetries::default(),
        RunRetries { base: 1, per_profile: 0, min: 1, max: 3 },
        RunRetries { base: 2, per_profile: 2, min: 1, max: 160 },
    ]);
    let transient = prop_oneof![
        (0_u32..5).prop_map(|n| TransientRetries { rate_limits: n, others: n, ..TransientRetries::default() }),
        Just(TransientRetries::same_profile_first()),
    ];
    let limits = (retries, transient, select(vec![0_u32, 3, u32::MAX]), budget);
    let reason = prop::option::of(select(&FailoverReason::ALL));
    let profiles = (0_usize..=4, any::<u8>(), reason);
    (profiles, limits, any::<[bool; 8]>()).prop_map(
        |((n_profiles, usable, reason), (retries, transient, compactions, budget), flags)| {
            let slot = |n: usize| ProfileSlot { id: format!("p{n}").as_str().into(), usable: usable & (1 << n) != 0 };
            let (attempts, tokens, seconds) = budget;
            RunTerms {
                window: 200_000,
                profiles: (0..n_profiles).map(slot).collect(),
                locked: flags[0] && n_profiles == 1,
                has_fallbacks: flags[1],
                allow_cooldown_probe: flags[2],
                is_probe: flags[7],
                cooldown_reason: reason,
                start: if flags[3] { AttemptStart::Prompt } else { AttemptStart::Resume },
                retries,
                transient,
                overflow_compactions: compactions,
                budget: Budget { attempts, tokens, deadline: seconds.map(Duration::from_secs), cost_usd: None },
                can_compact: flags[4],
                logs_prompt: flags[5],
                larger_window_follows: flags[1] && flags[6],
                ..RunTerms::new("openai", "m")
            }
        },
    )
}

/// The last planned attempt, and what has happened since.
#[derive(Debug)]
struct Before {
    profile: Option<ProfileId>,
    thinking: ThinkingLevel,
    /// Whether its conversation or circumstances have changed: a wait, a repair, or a compaction by the session itself.
    has_changed: bool,
    /// What its model produced instead of an answer.
    missing: Option<MissingAnswer>,
}

/// Observations about a run.
#[derive(Debug, Default)]
struct Record {
    before: Option<Before>,
    n_attempts: u32,
    /// Total over all attempts made.
    tokens: u64,
    compactions: u32,
    /// Number of repairs requested: for overflows, for timeouts, and of tool results.
    repairs: [u32; 3],
    /// Number of attempts that asked a model to go on after an empty answer.
    n_asked: u32,
    is_over: bool,
}

/// Returns the position of a profile in the order.
fn position(terms: &RunTerms, profile: Option<&ProfileId>) -> Option<usize> {
    terms.profiles.iter().position(|slot| Some(&slot.id) == profile)
}

/// Repeats the steps until the run ends.
fn play(terms: RunTerms, steps: &[PossibleReport]) -> Result<(), TestCaseError> {
    let bound = terms.retries.bound(terms.profiles.len());
    // Between two attempts there are at most two repairs and a wait; an attempt without credentials leads to the next profile.
    let most_decisions = (bound as usize + terms.profiles.len() + 1) * 5;
    let mut state = RunState::new(terms);
    let mut seen = Record::default();
    let mut usable: Vec<bool> = state.terms.profiles.iter().map(|slot| slot.usable).collect();
    let mut decision = decide(&mut state, Observation::Start);
    check_marks(&decision, None, None)?;
    for step in steps.iter().cycle().take(most_decisions) {
        let action = decision.action;
        if let Action::Attempt(plan) = &action {
            check_attempt(&state, &seen, plan, &usable)?;
        }
        state.elapsed += step.takes;
        let (next, is_stopped) = match &action {
            Action::Attempt(plan) => {
                let profile = plan.profile.clone();
                seen.before = Some(Before { profile, thinking: plan.thinking, has_changed: false, missing: None });
                if step.has_credential {
                    seen.n_asked += u32::from(plan.start == AttemptStart::Continue);
                    seen.n_attempts += 1;
                    state.stopped = step.stop;
                    for (n, slot) in state.terms.profiles.iter_mut().enumerate() {
                        slot.usable = step.usable & (1 << n) != 0;
                    }
                    usable = state.terms.profiles.iter().map(|slot| slot.usable).collect();
                    seen.tokens += step.outcome.usage.input;
                    seen.compactions += step.outcome.compactions;
                    let is_good = matches!(step.outcome.end, AttemptEnd::Good);
                    let is_stopped =
                        matches!(step.outcome.end, AttemptEnd::Aborted(_)) || (step.stop.is_some() && !is_good);
                    seen.before.as_mut().into_iter().for_each(|b| {
                        b.has_changed = step.outcome.compactions > 0;
                        b.missing = step.outcome.missing_answer().filter(|_| is_good);
                    });
                    let next = decide(&mut state, Observation::Attempt(&step.outcome));
                    check_marks(&next, plan.profile.as_ref(), Some(&step.outcome))?;
                    (next, is_stopped)
                } else {
                    usable = state.terms.profiles.iter().map(|slot| slot.usable).collect();
                    let next = decide(&mut state, Observation::NoCredential { message: "no key" });
                    check_marks(&next, None, None)?;
                    (next, false)
                }
            }
            Action::Repair(repair) => {
                prop_assert!(
                    state.terms.can_compact || *repair == Repair::TruncateToolResults,
                    "a conversation that cannot be compacted is"
                );
                let is_compaction = matches!(repair, Repair::Compact { .. });
                seen.repairs[match repair {
                    Repair::Compact { trigger: CompactTrigger::Overflow, .. } => 0,
                    Repair::Compact { trigger: CompactTrigger::TimeoutRecovery, .. } => 1,
                    Repair::TruncateToolResults => 2,
                }] += 1;
                let repaired = match (&step.repaired, is_compaction) {
                    (RepairOutcome::Truncated { .. } | RepairOutcome::NotTruncated, true) => RepairOutcome::Compacted,
                    (RepairOutcome::Compacted | RepairOutcome::NotCompacted { .. }, false) => {
                        RepairOutcome::Truncated { count: 1 }
                    }
                    (repaired, _) => repaired.clone(),
                };
                let has_changed = matches!(repaired, RepairOutcome::Compacted | RepairOutcome::Truncated { .. });
                let report = step.stop.map_or(Observation::Repaired(&repaired), Observation::Stopped);
                seen.compactions += u32::from(step.stop.is_none() && repaired == RepairOutcome::Compacted);
                seen.before.as_mut().into_iter().for_each(|before| before.has_changed |= has_changed);
                let next = decide(&mut state, report);
                check_marks(&next, None, None)?;
                (next, step.stop.is_some())
            }
            Action::Wait(wait) => {
                check_wait(&state.terms, wait)?;
                seen.before.as_mut().into_iter().for_each(|before| before.has_changed = true);
                let next = decide(&mut state, step.stop.map_or(Observation::Waited, Observation::Stopped));
                check_marks(&next, None, None)?;
                (next, step.stop.is_some())
            }
            Action::FailOver(error) => {
                prop_assert!(state.terms.has_fallbacks, "there is no other model");
                prop_assert!(!error.is_overflow || state.terms.larger_window_follows, "no larger window follows");
                seen.is_over = true;
                break;
            }
            Action::Finish(_) | Action::Fail(_) => {
                seen.is_over = true;
                break;
            }
        };
        if is_stopped {
            prop_assert!(next.marks.is_empty(), "a stopped run marks {:?}", next.marks);
            prop_assert!(matches!(next.action, Action::Finish(_)), "a stopped run continues with {:?}", next.action);
        }
        decision = next;
    }
    prop_assert!(seen.is_over, "the run does not end");
    prop_assert!(seen.n_attempts <= bound, "{} attempts of {bound}", seen.n_attempts);
    let [overflows, timeouts, truncations] = seen.repairs;
    prop_assert!(seen.n_asked <= 3, "a model is asked {} times", seen.n_asked);
    prop_assert!(overflows <= state.terms.overflow_compactions && timeouts <= 2 && truncations <= 1, "{:?}", seen);
    prop_assert_eq!(state.n_attempts(), seen.n_attempts);
    prop_assert_eq!(state.usage().input, seen.tokens);
    prop_assert_eq!(state.n_compactions(), seen.compactions);
    Ok(())
}

fn check_attempt(state: &RunState, seen: &Record, plan: &AttemptPlan, usable: &[bool]) -> Result<(), TestCaseError> {
    let terms = &state.terms;
    prop_assert_eq!(plan.number, seen.n_attempts + 1);
    let is_first = seen.n_attempts == 0 || !terms.logs_prompt;
    let asks_again = plan.start == AttemptStart::Continue;
    if asks_again {
        let missing = seen.before.as_ref().and_then(|before| before.missing);
        prop_assert!(matches!(missing, Some(MissingAnswer::Nothing | MissingAnswer::OnlyReasoning)), "{:?}", missing);
    } else {
        prop_assert_eq!(plan.start, if is_first { terms.start } else { AttemptStart::Resume });
    }
    prop_assert!(terms.budget.attempts.is_none_or(|limit| seen.n_attempts < limit));
    prop_assert!(terms.budget.tokens.is_none_or(|limit| seen.tokens < limit));
    prop_assert!(terms.budget.deadline.is_none_or(|limit| state.elapsed < limit));
    let at = position(terms, plan.profile.as_ref());
    prop_assert_eq!(at.is_none(), terms.profiles.is_empty());
    let Some(before) = &seen.before else {
        let is_usable = at.is_none_or(|at| usable[at]);
        prop_assert!(
            is_usable || terms.locked || terms.allow_cooldown_probe || terms.is_probe,
            "a profile in cooldown is used"
        );
        return Ok(());
    };
    if before.profile == plan.profile {
        prop_assert!(
            asks_again || before.has_changed || before.thinking != plan.thinking,
            "the same attempt twice: {:?}",
            plan
        );
    } else {
        prop_assert!(position(terms, before.profile.as_ref()) < at, "an earlier profile is used again");
        prop_assert!(at.is_some_and(|at| usable[at]), "a profile in cooldown is used");
        prop_assert!(!terms.locked, "a locked profile is rotated");
    }
    Ok(())
}

/// Checks the marks after an attempt with `profile`; after anything else there must be none.
fn check_marks(
    decision: &Decision,
    profile: Option<&ProfileId>,
    outcome: Option<&AttemptOutcome>,
) -> Result<(), TestCaseError> {
    let is_good = outcome.is_some_and(|outcome| matches!(outcome.end, AttemptEnd::Good));
    for mark in &decision.marks {
        let (marked, praises) = match mark {
            Mark::Failure { profile, reason, .. } => {
                let is_charged = !matches!(reason, FailoverReason::Timeout | FailoverReason::ServerError);
                prop_assert!(is_charged, "{:?} is charged to the credentials", reason);
                (profile, false)
            }
            Mark::Good { profile } | Mark::Used { profile } => (profile, true),
        };
        prop_assert_eq!(Some(marked), profile, "a profile other than the current one is marked");
        prop_assert_eq!(praises, is_good);
    }
    Ok(())
}

fn check_wait(terms: &RunTerms, wait: &Wait) -> Result<(), TestCaseError> {
    let waits_long = terms.transient.waits_long && !terms.has_fallbacks;
    prop_assert!(waits_long || wait.delay <= Duration::from_secs(60), "{:?}", wait);
    match wait.before {
        WaitFor::SameProfile { attempt, max } => {
            prop_assert!(
                (1..=max).contains(&attempt) && max <= terms.transient.rate_limits.max(terms.transient.others),
                "{:?}",
                wait
            );
        }
        WaitFor::NextProfile => prop_assert!(terms.profiles.len() > 1),
        WaitFor::NextModel => prop_assert!(terms.has_fallbacks),
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_run_ends_within_its_bounds_and_counts_each_attempt_once(
        terms in any_terms(),
        steps in prop::collection::vec(any_step(), 1..12),
    ) {
        play(terms, &steps)?;
    }
}
