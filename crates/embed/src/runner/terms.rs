//! The terms under which a model is tried.

use std::sync::Arc;

use pinch_llm::model::{Model, thinking};

use crate::config::Preset;
use crate::models::window::Window;
use crate::parts::Parts;
use crate::profiles::ProfileId;
use crate::profiles::order::Selection;
use crate::run::RunError;
use crate::run::decide::{ProfileSlot, RunTerms, TransientRetries};
use crate::run::failover::Candidate;
use crate::run::request::{ReplyExpectation, RunTrigger};
use crate::run::scope::RunScope;
use crate::runtime::Capabilities;

/// Returns the terms for one model of a run.
///
/// # Errors
/// If the user chose a profile that is not in the provider's order.
pub(super) fn of(
    parts: &Parts,
    scope: &RunScope,
    runtime: Capabilities,
    model: &Arc<Model>,
    candidate: &Candidate,
) -> Result<RunTerms, RunError> {
    let request = &scope.request;
    let selection = match runtime.profiles {
        true => parts
            .profiles
            .select(model, request.auth_profile.as_ref())
            .map_err(|error| RunError::Config(error.to_string()))?,
        // A runtime with its own credentials gets one attempt.
        false => Selection::default(),
    };
    let slot = |id: ProfileId| ProfileSlot { usable: parts.profiles.is_usable(&id, model), id };
    let mut terms = RunTerms::new(model.provider.clone(), model.id.clone());
    terms.window = model.context_window;
    terms.profiles = selection.ids.into_iter().map(slot).collect();
    terms.locked = selection.locked;
    terms.has_fallbacks = !candidate.is_last;
    terms.allow_cooldown_probe = request.allow_cooldown_probe;
    terms.is_probe = candidate.allow_cooldown_probe;
    terms.cooldown_reason = parts.profiles.cooldown_reason(model);
    terms.thinking = thinking::clamp(model, request.think_level.unwrap_or_default());
    let agents = &parts.config.agents;
    let own = agents.get(&scope.agent_id).and_then(|agent| agent.run_retries);
    terms.retries = own.unwrap_or(agents.defaults.run_retries);
    let n = parts.settings.recovery.turn.max_retries;
    terms.transient = match parts.config.preset {
        Preset::V2026_2 => TransientRetries { rate_limits: n, others: n, ..TransientRetries::default() },
        _ if n > 0 => parts.config.defaults.retries,
        _ => parts.config.defaults.retries.at_most(0),
    };
    terms.budget = request.budget;
    terms.can_compact = runtime.compaction;
    terms.logs_prompt = runtime.logs_prompt;
    terms.can_ask_again = runtime.resumable;
    terms.reply_required = request.reply == ReplyExpectation::Required && runtime.resumable;
    terms.may_say_nothing =
        !terms.reply_required && matches!(request.trigger, RunTrigger::Heartbeat | RunTrigger::Memory);
    terms.texts = parts.registered.texts.clone();
    terms.larger_window_follows = candidate.larger_window_follows;
    Ok(terms)
}

/// Returns the window of a model and the source of its size. The model's own window may already be limited.
pub(super) fn window(parts: &Parts, model: &Model) -> Window {
    let (provider, id) = (&model.provider, model.id.as_str());
    let own = parts.registry.find(provider, id).map_or(model.context_window, |own| own.context_window);
    let configured = parts.config.models.window(provider, id);
    Window::resolve(configured, Some(own), parts.config.agents.defaults.context_tokens)
}
