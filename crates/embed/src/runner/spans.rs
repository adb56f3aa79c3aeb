//! What programs that observe an engine see of runs and attempts: spans and one event with stable names and fields. They cost nothing without a
//! subscriber. Sessions and profiles are named by hashes, as they tell who talks to an agent. `docs/observability.md` lists them.

use pinch_llm::model::Model;
use tracing::Span;
use tracing::field::Empty;

use crate::key;
use crate::run::result::AttemptReport;
use crate::run::{AttemptPlan, RunError, RunRequest, RunResult};

/// A run, with its waits and all its attempts.
pub(crate) fn of_run(request: &RunRequest) -> Span {
    let session = || key::short_hash(request.session_key.as_deref().unwrap_or(&request.session_id));
    tracing::info_span!(
        "run",
        run_id = request.run_id.as_str(),
        session = session(),
        trigger = request.trigger.as_str(),
        outcome = Empty,
    )
}

/// How a run ended.
pub(crate) fn record_end(span: &Span, result: &Result<RunResult, RunError>) {
    let outcome = match result {
        Ok(result) => result.failure().map_or_else(|| "ok".to_owned(), |failure| failure.kind.to_string()),
        Err(error) => error.kind().to_string(),
    };
    span.record("outcome", outcome);
}

/// An attempt, with its turns.
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

/// How the attempt that is under way ended, and what follows: as an event, and in its span.
pub(super) fn decided(report: &AttemptReport) {
    let span = Span::current();
    span.record("outcome", report.outcome.as_str());
    span.record("decision", report.action.as_str());
    let AttemptReport { outcome, action, status, duration_ms, .. } = report;
    tracing::info!(outcome, decision = action, status, duration_ms, "attempt decided");
}
