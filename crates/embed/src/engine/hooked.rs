//! Hooks around a run: choosing its model, rejecting it, and being notified of its end.

use std::sync::Arc;

use tokio::time::Instant;

use super::resolve;
use crate::parts::Parts;
use crate::plugin::{AgentEnd, HookContext, RunHooks, RunVerdict};
use crate::run::payloads::Payload;
use crate::run::request::RunTrigger;
use crate::run::result::MetaError;
use crate::run::{FailureKind, RunErrorKind, RunRequest, RunResult};
use crate::runner::{BoxedRunResult, millis};
use crate::texts::Phrase;

/// Returns the hooks of a run.
pub(super) fn of_run(parts: &Parts, request: &RunRequest) -> RunHooks {
    let registered = &parts.registered;
    let hooks = plugin_hooks(parts, request);
    match request.trigger {
        // What such a run reads does not stay in the conversation.
        RunTrigger::Memory => hooks,
        _ => hooks.with_events(&registered.events, request.scope_key(), &parts.host),
    }
}

fn plugin_hooks(parts: &Parts, request: &RunRequest) -> RunHooks {
    let plugins = parts.registered.plugins.clone();
    let approvals = Arc::clone(&parts.registered.approvals);
    if plugins.is_empty() {
        return RunHooks::new(plugins, HookContext::default(), approvals);
    }
    let mut cx = HookContext::default();
    cx.run_id.clone_from(&request.run_id);
    cx.agent_id = request.agent(&parts.config.agents);
    cx.session_key.clone_from(&request.session_key);
    cx.session_id.clone_from(&request.session_id);
    cx.workspace = resolve::workspace(parts, request).ok().map(|workspace| workspace.dir);
    cx.channel.clone_from(&request.caller.channel);
    request.trigger.as_str().clone_into(&mut cx.trigger);
    RunHooks::new(plugins, cx, approvals)
}

/// Lets plugins choose another model for a request.
pub(super) async fn choose_model(parts: &Parts, hooks: &RunHooks, request: &mut RunRequest) {
    let choice = hooks.choose_model(&request.prompt).await;
    let usual = || resolve::candidates(parts, request).ok().and_then(|models| models.into_iter().next());
    match (choice.provider.0, choice.model.0) {
        (None, None) => {}
        (Some(provider), Some(model)) => (request.provider, request.model) = (Some(provider), Some(model)),
        // If only one of the two is set, the other keeps its value.
        (Some(provider), None) => {
            if let Some(usual) = usual() {
                (request.provider, request.model) = (Some(provider), Some(usual.id.to_string()));
            }
        }
        (None, Some(model)) => {
            let Some(usual) = usual() else { return };
            (request.provider, request.model) = (Some(usual.provider.to_string()), Some(model));
            if resolve::candidates(parts, request).is_err() {
                // The name includes its provider, or is an alias.
                request.provider = None;
            }
        }
    }
}

/// Returns the result of a run that plugins reject, or `None` if it may proceed.
pub(super) async fn rejected(
    parts: &Parts,
    hooks: &RunHooks,
    request: &RunRequest,
    provider: &str,
    model: &str,
) -> Option<RunResult> {
    let RunVerdict::Reject { reason, user_message } = hooks.verdict(&request.prompt, provider, model).await else {
        return None;
    };
    let texts = &parts.registered.texts;
    let text = user_message.filter(|text| !text.trim().is_empty());
    let text = text.unwrap_or_else(|| texts.get(Phrase::RunRejected).to_owned());
    let message = reason.unwrap_or_else(|| "a plugin rejected the run".to_owned());
    let mut result = RunResult { payloads: vec![Payload::error(text)], ..RunResult::default() };
    let meta = &mut result.meta;
    meta.error = Some(MetaError { kind: RunErrorKind::HookBlock, message, detail: None });
    meta.final_prompt.clone_from(&request.prompt);
    meta.agent.session_id.clone_from(&request.session_id);
    provider.clone_into(&mut meta.agent.provider);
    model.clone_into(&mut meta.agent.model);
    Some(result)
}

/// Notifies plugins of the end of a run, even if it is dropped.
pub(super) struct EndNotice {
    hooks: RunHooks,
    began: Instant,
    is_notified: bool,
}

impl EndNotice {
    pub(super) fn new(hooks: &RunHooks) -> Self {
        Self { hooks: hooks.clone(), began: Instant::now(), is_notified: false }
    }

    /// Records how the run ended.
    pub(super) fn ended(mut self, result: &BoxedRunResult) {
        let failure = match result {
            Ok(result) => result.failure().map(|failure| (failure.kind, failure.message)),
            Err(error) => Some((error.kind(), error.to_string())),
        };
        // An empty answer of a completed run is not a failure.
        let failure = failure.filter(|(kind, _)| *kind != FailureKind::Empty || result.is_err());
        let (outcome, error) = match failure {
            None => ("ok".to_owned(), None),
            Some((FailureKind::Cancelled, _)) => ("aborted".to_owned(), None),
            Some((kind, message)) => (kind.to_string(), Some(message)),
        };
        self.notify(outcome, error);
    }

    fn notify(&mut self, outcome: String, error: Option<String>) {
        self.is_notified = true;
        let duration_ms = millis(self.began.elapsed());
        let success = outcome == "ok";
        self.hooks.agent_end(0, |messages| AgentEnd {
            messages,
            success,
            error,
            duration_ms,
            attempt: None,
            is_final: true,
            outcome,
        });
    }
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        if !self.is_notified {
            self.notify("dropped".to_owned(), None);
        }
    }
}
