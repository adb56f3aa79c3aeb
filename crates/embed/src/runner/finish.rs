//! From outcomes to the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinch_llm::model::Model;

use super::{Runner, millis};
use crate::delivery::Lifecycle;
use crate::reason::reason_of;
use crate::run::decide::{Action, Finish, RunState};
use crate::run::outcome::{AttemptEnd, AttemptOutcome};
use crate::run::payloads::{Payload, PayloadInput, build_payloads};
use crate::run::result::{AgentMeta, MetaError, PartialAnswer, PendingToolCall, RunMeta, ToolReport};
use crate::run::{RunError, RunResult};

impl Runner<'_> {
    /// Builds the result of a run that came to an end.
    pub(super) fn finish(&mut self, finish: &Finish, state: &RunState, model: &Arc<Model>) -> RunResult {
        let last = self.outcomes.last();
        let mut result = RunResult { payloads: self.payloads(finish, last), meta: RunMeta::default() };
        let meta = &mut result.meta;
        meta.duration_ms = millis(self.began.elapsed());
        meta.aborted = last.is_some_and(AttemptOutcome::is_aborted) || *finish == Finish::Aborted;
        let answer = last.and_then(|outcome| outcome.last_assistant.as_ref());
        meta.stop_reason = answer.map(|answer| answer.stop_reason.as_str().to_owned());
        meta.agent = self.agent_meta(state, model);
        if let Finish::Error { kind, message, .. } = finish {
            meta.error = Some(MetaError { kind: *kind, message: message.clone() });
        }
        if let Some(call) = last.and_then(|outcome| outcome.client_tool_call.as_ref()) {
            meta.stop_reason = Some("tool_calls".to_owned());
            let arguments = call.params.to_string();
            meta.pending_tool_calls = vec![PendingToolCall { id: call.id.clone(), name: call.name.clone(), arguments }];
        }
        let said: Vec<&Payload> = result.payloads.iter().filter(|payload| !payload.is_error).collect();
        if !said.is_empty() && last.is_some_and(|outcome| !matches!(outcome.end, AttemptEnd::Good)) {
            let characters = said.iter().map(|payload| payload.reply.text.chars().count()).sum();
            meta.partial = Some(PartialAnswer { payloads: said.len(), characters });
        }
        meta.attempts.clone_from(&self.reports);
        meta.tools = tool_reports(&self.outcomes);
        result
    }

    fn agent_meta(&self, state: &RunState, model: &Arc<Model>) -> AgentMeta {
        let answer = self.outcomes.iter().rev().find_map(|outcome| outcome.last_assistant.as_ref());
        let mut agent = AgentMeta::default();
        agent.session_id.clone_from(&self.scope.request.session_id);
        agent.provider = answer.map_or_else(|| model.provider.to_string(), |answer| answer.provider.to_string());
        agent.model = answer.map_or_else(|| model.id.to_string(), |answer| answer.model.to_string());
        agent.usage = *state.usage();
        agent.last_call_usage = state.last_call_usage().copied();
        agent.compaction_count = state.n_compactions();
        agent
    }

    /// The answer and what goes with it, as the reply stages saw them.
    fn build_payloads(&self, last: Option<&AttemptOutcome>) -> Vec<Payload> {
        let request = &self.scope.request;
        let input = PayloadInput {
            assistant_texts: self.replies.assistant_texts(),
            spans: self.replies.assistant_spans(),
            tool_metas: self.replies.tool_metas(),
            last_assistant: last.and_then(|outcome| outcome.last_assistant.as_deref()),
            last_tool_error: self.replies.last_tool_error(),
            verbose: request.verbose_level,
            reasoning: request.reasoning_level,
            ..PayloadInput::default()
        };
        build_payloads(&input)
    }

    fn payloads(&self, finish: &Finish, last: Option<&AttemptOutcome>) -> Vec<Payload> {
        let instead = |text| vec![Payload::error(text)];
        match finish {
            Finish::Error { text, .. } => instead(text.as_str()),
            _ => {
                // A run that was stopped after a failure is stopped: the failure would have been mended.
                let is_old_news = |outcome: &&AttemptOutcome| *finish == Finish::Aborted && !outcome.is_aborted();
                let built = self.build_payloads(last.filter(|outcome| !is_old_news(outcome)));
                finish.text().filter(|_| built.is_empty()).map_or(built, instead)
            }
        }
    }
}

fn tool_reports(outcomes: &[AttemptOutcome]) -> Vec<ToolReport> {
    let mut tools: BTreeMap<&str, ToolReport> = BTreeMap::new();
    for run in outcomes.iter().flat_map(|outcome| &outcome.tools) {
        let report = tools.entry(&run.name).or_insert_with(|| ToolReport {
            name: run.name.clone(),
            calls: 0,
            errors: 0,
            duration_ms: 0,
        });
        report.calls += 1;
        report.errors += u32::from(run.failed);
        report.duration_ms += run.duration_ms;
    }
    tools.into_values().collect()
}

/// The one terminal event of a run.
pub(crate) fn terminal_event(result: &Result<RunResult, RunError>, ended_at_ms: i64) -> Lifecycle {
    let failed = |error: &dyn ToString| Lifecycle::Error { ended_at_ms, error: error.to_string() };
    match result {
        Err(error) => failed(error),
        Ok(result) if result.has_failed() => {
            let error = result.payloads.iter().find(|payload| payload.is_error);
            failed(&error.map_or("the run failed", |payload| &payload.reply.text))
        }
        Ok(RunResult { meta, .. }) => {
            Lifecycle::End { ended_at_ms, aborted: meta.aborted, stop_reason: meta.stop_reason.clone() }
        }
    }
}

/// How an attempt ended, in a word.
pub(super) fn outcome_word(outcome: &AttemptOutcome) -> String {
    match &outcome.end {
        AttemptEnd::Good => "ok".to_owned(),
        AttemptEnd::Aborted(_) => "aborted".to_owned(),
        AttemptEnd::TimedOut { .. } => "timeout".to_owned(),
        AttemptEnd::Failed { error, .. } => {
            if error.kind == pinch_llm::error::LlmErrorKind::ContextOverflow {
                return "context_overflow".to_owned();
            }
            reason_of(error).map_or_else(|| "error".to_owned(), |reason| reason.to_string())
        }
    }
}

/// What was decided, in a word.
pub(super) fn action_word(action: &Action) -> &'static str {
    match action {
        Action::Attempt(_) => "attempt",
        Action::Repair(_) => "repair",
        Action::Wait(_) => "wait",
        Action::Finish(_) => "finish",
        Action::FailOver(_) => "failover",
        Action::Fail(_) => "fail",
    }
}
