//! The terms under which a model is tried.

use std::sync::Arc;

use pinch_llm::model::{Model, thinking};

use crate::parts::Parts;
use crate::run::decide::{ProfileSlot, RunTerms};
use crate::run::failover::Candidate;
use crate::run::request::ProfileSource;
use crate::run::scope::RunScope;
use crate::runtime::Capabilities;

/// The terms for one model of a run.
pub(super) fn of(
    parts: &Parts,
    scope: &RunScope,
    runtime: Capabilities,
    model: &Arc<Model>,
    candidate: &Candidate,
) -> RunTerms {
    let request = &scope.request;
    let choice = request.auth_profile.as_ref();
    let order = parts.profiles.order(&model.provider, choice.map(|choice| &choice.id));
    let locked = choice.is_some_and(|choice| choice.source == ProfileSource::User && order.contains(&choice.id));
    let ids = match choice {
        Some(choice) if locked => vec![choice.id.clone()],
        _ if runtime.profiles => order,
        // A runtime with credentials of its own is asked once.
        _ => Vec::new(),
    };
    let mut terms = RunTerms::new(model.provider.clone(), model.id.clone());
    terms.window = model.context_window;
    terms.profiles =
        ids.into_iter().map(|id| ProfileSlot { usable: parts.profiles.is_usable(&id, model), id }).collect();
    terms.locked = locked;
    terms.has_fallbacks = !candidate.is_last;
    terms.allow_cooldown_probe = request.allow_cooldown_probe || candidate.allow_cooldown_probe;
    terms.cooldown_reason = parts.profiles.cooldown_reason(&model.provider);
    terms.thinking = thinking::clamp(model, request.think_level.unwrap_or_default());
    terms.retries = parts.config.agents.defaults.run_retries;
    terms.transient_retries = parts.settings.recovery.turn.max_retries;
    terms.budget = request.budget;
    terms.can_compact = runtime.compaction;
    terms.can_resume = runtime.resumable;
    terms.larger_window_follows = candidate.larger_window_follows;
    terms
}
