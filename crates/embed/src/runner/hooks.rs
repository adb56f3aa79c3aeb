//! Plugin notifications about attempts.

use std::sync::Arc;

use pinch_coding_agent::auth::RequestAuth;
use pinch_llm::model::Model;
use pinch_stdx::cancel::Cancel;
use tokio::time::Instant;

use super::budget::BudgetMeter;
use super::finish::outcome_id;
use super::{Runner, millis};
use crate::plugin::{AgentEnd, LlmOutput};
use crate::run::outcome::AttemptEnd;
use crate::run::{AttemptOutcome, AttemptPlan, FailureKind, RunError};
use crate::runtime::Attempts;

impl Runner<'_> {
    /// Drives an attempt to its end and notifies plugins of its outcome.
    pub(super) async fn pull(
        &mut self,
        attempts: &mut dyn Attempts,
        model: &Model,
        plan: &AttemptPlan,
        auth: Arc<dyn RequestAuth>,
        cancel: &Cancel,
        meter: &mut BudgetMeter,
    ) -> Result<Box<AttemptOutcome>, RunError> {
        let hooks = self.scope.hooks.clone();
        let (since, n_texts, began) = (hooks.n_added(), self.replies.assistant_texts().len(), Instant::now());
        let done = self.drive(attempts, plan, auth, cancel, meter).await;
        if let Ok(outcome) = &done {
            hooks.llm_output(|| LlmOutput {
                provider: model.provider.to_string(),
                model: model.id.to_string(),
                assistant_texts: self.replies.assistant_texts().get(n_texts..).unwrap_or_default().to_vec(),
                last_assistant: outcome.last_assistant.clone(),
                usage: outcome.usage,
            });
        }
        hooks.agent_end(since, |messages| AgentEnd {
            messages,
            success: matches!(&done, Ok(outcome) if matches!(outcome.end, AttemptEnd::Good)),
            error: match &done {
                Ok(outcome) => outcome.error().map(|error| error.text.clone()),
                Err(error) => Some(error.to_string()),
            },
            duration_ms: millis(began.elapsed()),
            attempt: Some(plan.number),
            is_final: false,
            outcome: done.as_ref().map_or_else(error_id, |outcome| outcome_id(outcome)),
        });
        done
    }

    /// Notifies plugins of a model's first attempt whose runtime could not be opened.
    pub(super) fn first_attempt_failed_to_begin(&self, error: &RunError, began: Instant) {
        let hooks = &self.scope.hooks;
        hooks.agent_end(hooks.n_added(), |messages| AgentEnd {
            messages,
            success: false,
            error: Some(error.to_string()),
            duration_ms: millis(began.elapsed()),
            attempt: Some(1),
            is_final: false,
            outcome: error_id(error),
        });
    }
}

/// Returns the outcome of an attempt that an error ended, as an identifier.
fn error_id(error: &RunError) -> String {
    match error.kind() {
        FailureKind::Cancelled => "aborted".to_owned(),
        kind => kind.to_string(),
    }
}
