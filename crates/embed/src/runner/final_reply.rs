//! The additional attempt when a required answer is missing.

use std::sync::Arc;
use std::time::Duration;

use pinch_coding_agent::auth::RequestAuth;
use pinch_llm::model::Model;
use pinch_stdx::cancel::Deadline;
use tokio::time::Instant;

use super::budget::BudgetMeter;
use super::{RunEvent, Runner};
use crate::replies::scan::FinalTag;
use crate::replies::{ReplyOptions, directives};
use crate::run::decide::{Action, Finish, RunState};
use crate::run::outcome::{AttemptEnd, AttemptOutcome, AttemptStart, MissingAnswer};
use crate::run::payloads::last_words;
use crate::run::request::ReplyExpectation;
use crate::run::result::AttemptResult;
use crate::run::{AttemptPlan, RunError};
use crate::runtime::Attempts;

/// Time limit of the attempt, independent of the rest of the run's own.
const TIME_LIMIT: Duration = Duration::from_secs(60);

impl Runner<'_> {
    /// Returns whether a required answer is missing if the run ends now. A run that failed or was stopped reports that instead.
    pub(super) fn lacks_reply(&self, finish: &Finish) -> bool {
        let Some(last) = self.outcomes.last() else { return false };
        self.scope.request.reply == ReplyExpectation::Required
            && self.runtime.capabilities().resumable
            && matches!(finish, Finish::Answer | Finish::Incomplete { .. })
            && matches!(last.end, AttemptEnd::Good)
            && last.client_tool_calls.is_empty()
            && !last.yielded
            && last.missing_answer() != Some(MissingAnswer::CutOff)
            && !answers(last, self.replies.options())
            && !self.replies.sent().any()
    }

    /// Asks the model for the answer, without tools.
    pub(super) async fn final_reply(
        &mut self,
        attempts: &mut dyn Attempts,
        auth: Arc<dyn RequestAuth>,
        model: &Arc<Model>,
        state: &mut RunState,
    ) -> Result<Finish, RunError> {
        let budget = &state.terms.budget;
        let is_spent = BudgetMeter::new(state).is_exceeded()
            || budget.attempts.is_some_and(|most| state.n_attempts() >= most)
            || budget.deadline.is_some_and(|limit| state.elapsed >= limit);
        if is_spent {
            return Ok(self.incomplete());
        }
        let plan = AttemptPlan {
            number: state.n_attempts() + 1,
            profile: state.profile().cloned(),
            thinking: state.terms.thinking,
            start: AttemptStart::FinalReply,
        };
        // The attempt without an answer does not end the run.
        if let Some(report) = self.reports.last_mut() {
            report.result = AttemptResult::Error;
        }
        self.emitter.emit(RunEvent::Attempt(plan.clone())).await;
        let began = Instant::now();
        let cancel = self.stop.child_until(Deadline::after(TIME_LIMIT));
        let outcome = self.pull(attempts, model, &plan, auth, &cancel, &mut BudgetMeter::new(state)).await?;
        state.add_usage(&outcome);
        let finish = match &outcome.end {
            AttemptEnd::Aborted(_) if self.stop.reason().is_some() => Finish::Aborted,
            AttemptEnd::Failed { .. } => Finish::Answer,
            _ if answers(&outcome, self.replies.options()) => Finish::Answer,
            _ => self.incomplete(),
        };
        self.report(model, &plan, *outcome, &Action::Finish(finish.clone()), began).await;
        Ok(finish)
    }

    /// Returns the end of a run whose required answer is missing.
    fn incomplete(&self) -> Finish {
        Finish::Incomplete { verify: self.outcomes.iter().any(AttemptOutcome::has_mutated) }
    }
}

/// Returns whether an attempt ended with text or media for the user.
fn answers(outcome: &AttemptOutcome, options: &ReplyOptions) -> bool {
    outcome.last_assistant.as_ref().is_some_and(|answer| {
        directives::has_content(&last_words(answer, FinalTag::Optional, &options.texts), &options.directives)
    })
}
