//! Spans of runs and attempts, and an event for each decision, with stable names and fields, for programs that observe an engine. They cost
//! nothing without a subscriber. Sessions and profiles are identified by hashes, because their names reveal who talks to an agent. See
//! `docs/observability.md`.

use pinch_llm::model::Model;
use tracing::Span;
use tracing::field::Empty;

use super::BoxedRunResult;
use crate::key;
use crate::run::result::{AttemptReport, AttemptResult};
use crate::run::{AttemptPlan, RunRequest};

/// Returns the span of a run, which includes its waits and attempts.
pub(crate) fn of_run(request: &RunRequest) -> Span {
    let session = || key::short_hash(request.session_key.as_deref().unwrap_or(&request.session_id));
    tracing::info_span!(
        "run",
        run_id = request.run_id.as_str(),
        session = session(),
        trigger = request.trigger.as_str(),
        queue_wait_ms = Empty,
        outcome = Empty,
    )
}

/// Records how long the current run has waited for its session and a slot of its lane.
pub(crate) fn record_wait(waited_ms: u64) {
    Span::current().record("queue_wait_ms", waited_ms);
}

/// Records how a run ended, in its span and as an event with what it took.
pub(crate) fn record_end(span: &Span, result: &BoxedRunResult) {
    let outcome = match result {
        Ok(result) => result.failure().map_or_else(|| "ok".to_owned(), |failure| failure.kind.to_string()),
        Err(error) => error.kind().to_string(),
    };
    span.record("outcome", outcome.as_str());
    let meta = match result {
        Ok(result) => Some(&result.meta),
        Err(error) => error.meta(),
    };
    let count = |effect: AttemptResult| {
        let attempts = meta.into_iter().flat_map(|meta| &meta.attempts);
        attempts.filter(|attempt| attempt.result == effect).count()
    };
    span.in_scope(|| {
        tracing::info!(
            outcome,
            attempts = meta.map_or(0, |meta| meta.attempts.len()),
            rotations = count(AttemptResult::RotateProfile),
            fallbacks = count(AttemptResult::FallbackModel),
            compactions = meta.map_or(0, |meta| meta.agent.compaction_count),
            duration_ms = meta.map_or(0, |meta| meta.duration_ms),
            "run ended"
        );
    });
}

/// Returns the span of an attempt, which includes its turns.
pub(super) fn attempt(n: usize, plan: &AttemptPlan, model: &Model) -> Span {
    let profile = || plan.profile.as_ref().map(|profile| key::short_hash(profile.as_str()));
    tracing::info_span!(
        "attempt",
        n,
        provider = model.provider.as_str(),
        model = model.id.as_str(),
        profile = profile(),
        outcome = Empty,
        decision = Empty,
    )
}

/// Records the outcome of the current attempt and the next step, as an event and in its span.
pub(super) fn decided(report: &AttemptReport) {
    let span = Span::current();
    span.record("outcome", report.outcome.as_str());
    span.record("decision", report.action.as_str());
    let AttemptReport { outcome, action, status, duration_ms, .. } = report;
    tracing::info!(outcome, decision = action, status, duration_ms, "attempt decided");
}
