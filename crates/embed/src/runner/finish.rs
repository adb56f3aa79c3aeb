//! Builds the result of a run from its outcomes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pinch_llm::model::{Model, thinking};

use super::{BoxedRunResult, Runner, millis, terms};
use crate::delivery::Lifecycle;
use crate::reason::reason_of;
use crate::replies::piece::ReplySpan;
use crate::replies::tool_notes::VerboseNow;
use crate::run::decide::{Action, Finish, RunState, Wait, WaitFor};
use crate::run::failover::CandidateAttempt;
use crate::run::meta::SystemPromptMeta;
use crate::run::outcome::{AttemptEnd, AttemptOutcome, AttemptPlan, ClientToolCall};
use crate::run::payloads::{Payload, PayloadInput, build_payloads};
use crate::run::request::ReplyExpectation;
use crate::run::result::{
    AgentMeta, AttemptResult, ContextBudget, FailedCandidate, FinalAnswer, Liveness, Messaging, MetaError,
    PartialAnswer, PendingToolCall, RequestShaping, RunErrorKind, RunMeta, TerminalReceipt, ToolReport,
};
use crate::run::{FailureKind, RunResult};
use crate::texts::TextTable;

impl Runner<'_> {
    /// Builds the result of a run that has ended.
    pub(super) fn finish(&mut self, finish: &Finish, state: &RunState, model: &Arc<Model>) -> RunResult {
        let texts = self.replies.take_assistant_texts();
        let last = self.outcomes.last();
        let mut result = RunResult { payloads: self.payloads(finish, last, texts), ..RunResult::default() };
        let sent = self.replies.sent();
        result.messaging = Messaging {
            texts: sent.texts().to_vec(),
            media_urls: sent.media_urls().to_vec(),
            targets: sent.targets().to_vec(),
        };
        result.successful_cron_adds = self.replies.cron_adds();
        result.meta = self.meta(state, model);
        let meta = &mut result.meta;
        meta.timed_out = last.is_some_and(|outcome| matches!(outcome.end, AttemptEnd::TimedOut { .. }))
            || *finish == Finish::TimedOut;
        let is_over_budget = matches!(finish, Finish::Error { kind: RunErrorKind::Budget, .. }) && !meta.timed_out;
        meta.aborted = last.is_some_and(AttemptOutcome::is_aborted) && !is_over_budget || *finish == Finish::Aborted;
        let answer = last.and_then(|outcome| outcome.last_assistant.as_ref());
        meta.stop_reason = answer.map(|answer| answer.stop_reason.as_str().to_owned());
        meta.finish_reason = answer.and_then(|answer| answer.raw_stop_reason.clone());
        meta.final_answer =
            answer.map(|answer| FinalAnswer::new(Arc::clone(answer), self.replies.options().texts.clone()));
        meta.error = error_of(finish, state);
        let calls = last.map_or(&[][..], |outcome| &outcome.client_tool_calls);
        if !calls.is_empty() {
            meta.stop_reason = Some("tool_calls".to_owned());
            let pending = |call: &ClientToolCall| PendingToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.params.to_string(),
            };
            meta.pending_tool_calls = calls.iter().map(pending).collect();
        }
        let answers: Vec<&Payload> = result.payloads.iter().filter(|payload| !payload.is_error).collect();
        if !answers.is_empty() && last.is_some_and(|outcome| !matches!(outcome.end, AttemptEnd::Good)) {
            let characters = answers.iter().map(|payload| payload.reply.text.chars().count()).sum();
            meta.partial = Some(PartialAnswer { payloads: answers.len(), characters });
        }
        let is_empty = matches!(finish, Finish::Incomplete { .. });
        meta.liveness = match &meta.error {
            Some(error) if matches!(error.kind, RunErrorKind::ContextOverflow | RunErrorKind::CompactionFailure) => {
                Liveness::Blocked
            }
            _ if is_empty => Liveness::Abandoned,
            _ if meta.aborted || meta.timed_out => Liveness::Paused,
            _ => Liveness::Working,
        };
        meta.replay_invalid |= meta.aborted || meta.timed_out || is_empty;
        result
    }

    /// Returns the metadata that does not depend on how the run ends.
    pub(super) fn meta(&self, state: &RunState, model: &Arc<Model>) -> RunMeta {
        let mut meta = RunMeta { duration_ms: millis(self.began.elapsed()), ..RunMeta::default() };
        meta.final_prompt.clone_from(&self.scope.request.prompt);
        meta.system_prompt = self.scope.prompt.report().map(|report| SystemPromptMeta {
            report,
            session_key: self.scope.request.session_key.clone(),
            workspace: self.scope.workspace.clone(),
            turn: self.scope.hooks.turn_sizes(),
        });
        meta.agent = self.agent_meta(state, model);
        meta.replay_invalid = self.outcomes.iter().any(|outcome| !outcome.tools.is_empty());
        meta.shaping = self.shaping(model);
        meta.attempts.clone_from(&self.reports);
        meta.tools = tool_reports(&self.outcomes);
        meta.unresolved_tool = self.replies.last_tool_error().map(|error| error.tool_name.clone());
        meta
    }

    fn shaping(&self, model: &Model) -> RequestShaping {
        let request = &self.scope.request;
        RequestShaping {
            thinking: thinking::clamp(model, request.think_level.unwrap_or_default()),
            reasoning: request.reasoning_level,
            verbose: request.verbose_level,
            block_streaming: self.replies.options().block_streaming,
            has_fallbacks: self.has_fallbacks,
        }
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
        agent.assistant_turns = self.outcomes.iter().map(|outcome| outcome.n_answers).sum();
        self.runtime.id().clone_into(&mut agent.runtime);
        agent.failed_candidates.clone_from(&self.failed_candidates);
        agent.budget = agent.last_call_usage.filter(|_| model.context_window > 0).map(|usage| ContextBudget {
            prompt_tokens: usage.context_tokens(),
            window: model.context_window,
            source: terms::window(self.parts, model).source,
            reserve: self.scope.compaction.unlimited(model).reserve_tokens,
            effective_reserve: self.scope.compaction.for_model(model).reserve_tokens.min(model.context_window),
        });
        agent.receipt = answer.map(|answer| {
            let requested = self.requested.as_ref();
            let or_used = |name: Option<String>, used: &str| name.unwrap_or_else(|| used.to_owned());
            let provider = or_used(requested.map(|model| model.provider.to_string()), &agent.provider);
            let name = or_used(requested.map(|model| model.model.to_string()), &agent.model);
            TerminalReceipt {
                run_id: self.scope.request.run_id.clone(),
                turn_id: answer.response_id.clone(),
                requested: (provider, name),
                successful_tools: self.successful_tools(),
            }
        });
        agent
    }

    fn successful_tools(&self) -> Vec<String> {
        let tools = self.outcomes.iter().flat_map(|outcome| &outcome.tools).filter(|tool| !tool.failed);
        tools.map(|tool| tool.name.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Builds the answer and its metadata from the reply stages.
    fn build_payloads(&self, last: Option<&AttemptOutcome>, texts: Vec<(String, ReplySpan)>) -> Vec<Payload> {
        let request = &self.scope.request;
        // A tool that the time limit stopped did not fail.
        let is_stopped =
            |outcome: &AttemptOutcome| outcome.stopped_tool && matches!(outcome.end, AttemptEnd::TimedOut { .. });
        let options = self.replies.options();
        let input = PayloadInput {
            tool_metas: self.replies.tool_metas(),
            last_assistant: last.and_then(|outcome| outcome.last_assistant.as_deref()),
            last_tool_error: self.replies.last_tool_error().filter(|_| !last.is_some_and(is_stopped)),
            verbose: request.verbose_now.as_ref().map_or(request.verbose_level, VerboseNow::level),
            reasoning: self.replies.reasoning_level(),
            tool_format: options.tool_result_format,
            suppress_tool_warnings: request.suppress_tool_error_warnings,
            suppress_tool_errors: options.suppress_tool_errors,
            enforce_final_tag: self.replies.enforces_final_tag(),
            sent_texts: self.replies.sent().texts(),
            current_message: options.current_message.as_deref(),
            reply_to: options.reply_to,
            directives: Some(&options.directives),
            texts: Some(&options.texts),
            ..PayloadInput::default()
        };
        build_payloads(&input, texts.into_iter().map(|(text, span)| (text, Some(span))).collect())
    }

    fn payloads(
        &self,
        finish: &Finish,
        last: Option<&AttemptOutcome>,
        texts: Vec<(String, ReplySpan)>,
    ) -> Vec<Payload> {
        let mut payloads = match finish {
            Finish::Error { text, .. } => vec![Payload::error(text.as_str())],
            _ => {
                // A failure before a stop is not reported: another attempt would have followed.
                let is_old_news = |outcome: &&AttemptOutcome| *finish == Finish::Aborted && !outcome.is_aborted();
                let mut built = self.build_payloads(last.filter(|outcome| !is_old_news(outcome)), texts);
                // Text before a tool call is not an answer: its absence is reported after a timeout, unless a failure explains it, and if an
                // answer is required.
                let is_required = self.scope.request.reply == ReplyExpectation::Required;
                let is_owed = match finish {
                    Finish::Incomplete { .. } => is_required,
                    finish => *finish == Finish::TimedOut && last.is_none_or(|outcome| outcome.error().is_none()),
                };
                built.extend(
                    finish
                        .text(&self.parts.registered.texts)
                        .filter(|_| built.is_empty() || is_owed)
                        .map(Payload::error),
                );
                built
            }
        };
        payloads.iter_mut().for_each(|payload| self.replies.put_prefix(&mut payload.reply.text));
        payloads
    }
}

/// Returns the failure that a run ends with.
fn error_of(finish: &Finish, state: &RunState) -> Option<MetaError> {
    let (kind, message) = match finish {
        Finish::Error { kind, message, .. } => (*kind, message.clone()),
        Finish::TimedOut => (RunErrorKind::IncompleteTurn, "the time limit of the run was reached".to_owned()),
        Finish::Incomplete { .. } => (RunErrorKind::IncompleteTurn, "the model stopped without an answer".to_owned()),
        Finish::Answer | Finish::Aborted => return None,
    };
    let is_overflow = matches!(kind, RunErrorKind::ContextOverflow | RunErrorKind::CompactionFailure);
    let detail = state.not_compacted().filter(|_| is_overflow).map(str::to_owned);
    Some(MetaError { kind, message, detail })
}

pub(super) fn failed_candidate(attempt: &CandidateAttempt) -> FailedCandidate {
    FailedCandidate {
        provider: attempt.model.provider.to_string(),
        model: attempt.model.model.to_string(),
        error: attempt.error.clone(),
        reason: attempt.reason,
        code: attempt.code.clone(),
    }
}

/// Returns the effect of an attempt on the run.
pub(super) fn attempt_result(outcome: &AttemptOutcome, action: &Action, plan: &AttemptPlan) -> AttemptResult {
    match (action, &outcome.end) {
        (Action::Finish(Finish::Incomplete { .. }), AttemptEnd::Good) => AttemptResult::SurfaceError,
        (Action::Finish(_), AttemptEnd::Good) => AttemptResult::Success,
        (Action::Finish(_), AttemptEnd::TimedOut { .. }) => AttemptResult::Timeout,
        (Action::Finish(_), AttemptEnd::Aborted(_)) => AttemptResult::Aborted,
        (Action::Finish(_), AttemptEnd::Failed { .. }) => AttemptResult::SurfaceError,
        (Action::Attempt(next), _) if next.profile != plan.profile => AttemptResult::RotateProfile,
        (Action::Attempt(_) | Action::Wait(Wait { before: WaitFor::SameProfile { .. }, .. }), _) => {
            AttemptResult::SameModelTransient
        }
        (Action::Wait(Wait { before: WaitFor::NextProfile, .. }), _) => AttemptResult::RotateProfile,
        (Action::Wait(Wait { before: WaitFor::NextModel, .. }) | Action::FailOver(_), _) => {
            AttemptResult::FallbackModel
        }
        (Action::Fail(_), _) => AttemptResult::CandidateFailed,
        (Action::Repair(_), _) => AttemptResult::Error,
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

/// Returns the terminal event of a run.
pub(crate) fn terminal_event(result: &BoxedRunResult, ended_at_ms: i64, texts: &TextTable) -> Lifecycle {
    match result {
        Err(error) => Lifecycle::Error { ended_at_ms, error: error.text_for_user(texts) },
        Ok(result) => match result.failure() {
            Some(failure) if failure.kind != FailureKind::Cancelled => {
                Lifecycle::Error { ended_at_ms, error: failure.message }
            }
            _ => {
                let meta = &result.meta;
                Lifecycle::End { ended_at_ms, aborted: meta.aborted, stop_reason: meta.stop_reason.clone() }
            }
        },
    }
}

/// Returns the outcome of an attempt as an identifier.
pub(super) fn outcome_id(outcome: &AttemptOutcome) -> String {
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

/// Returns the decision as an identifier.
pub(super) fn action_id(action: &Action) -> &'static str {
    match action {
        Action::Attempt(_) => "attempt",
        Action::Repair(_) => "repair",
        Action::Wait(_) => "wait",
        Action::Finish(_) => "finish",
        Action::FailOver(_) => "failover",
        Action::Fail(_) => "fail",
    }
}
