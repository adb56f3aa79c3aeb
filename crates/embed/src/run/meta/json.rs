//! The JSON form of a run's metadata. Members without a value are omitted.

use pinch_llm::message::Usage;
use serde_json::{Map, Value, json};

use super::{
    AgentMeta, AttemptReport, AttemptResult, ContextBudget, PartialAnswer, RequestShaping, RunMeta, SystemPromptMeta,
    ToolReport,
};
use crate::profiles::ProfileId;
use crate::replies::ReasoningLevel;
use crate::replies::tool_notes::Verbose;
use crate::run::outcome::FailureStage;

impl RunMeta {
    /// Returns the JSON form. Long texts are moved, not copied.
    pub fn into_json(mut self) -> Value {
        let mut object = Map::new();
        object.insert("durationMs".into(), self.duration_ms.into());
        object.insert("aborted".into(), self.aborted.into());
        put(&mut object, "stopReason", self.stop_reason.as_deref());
        object.insert("agentMeta".into(), self.agent.to_json());
        if let Some(error) = &self.error {
            let mut failure = Map::new();
            failure.insert("kind".into(), error.kind.as_str().into());
            failure.insert("message".into(), error.message.as_str().into());
            put(&mut failure, "detail", error.detail.as_deref());
            object.insert("error".into(), Value::Object(failure));
        }
        if let Some(PartialAnswer { payloads, characters }) = self.partial {
            let delivered = json!({"complete": false, "payloads": payloads, "characters": characters});
            object.insert("delivered".into(), delivered);
        }
        put_list(
            &mut object,
            "pendingToolCalls",
            &self.pending_tool_calls,
            |call| json!({"id": call.id, "name": call.name, "arguments": call.arguments}),
        );
        put_list(&mut object, "attempts", &self.attempts, |attempt| {
            let mut entry = Map::new();
            entry.insert("provider".into(), json!(attempt.provider));
            entry.insert("model".into(), json!(attempt.model));
            put(&mut entry, "profileId", attempt.profile.as_ref().map(ProfileId::as_str));
            entry.insert("outcome".into(), json!(attempt.outcome));
            entry.insert("action".into(), json!(attempt.action));
            entry.insert("durationMs".into(), json!(attempt.duration_ms));
            Value::Object(entry)
        });
        put_list(
            &mut object,
            "tools",
            &self.tools,
            |tool| json!({"name": tool.name, "calls": tool.calls, "errors": tool.errors, "durationMs": tool.duration_ms}),
        );
        object.insert("executionTrace".into(), self.execution_trace());
        object.insert("requestShaping".into(), self.shaping.to_json());
        if self.stop_reason.is_some() {
            let mut completion = Map::new();
            put(&mut completion, "stopReason", self.stop_reason.as_deref());
            put(&mut completion, "finishReason", self.finish_reason.as_deref().or(self.stop_reason.as_deref()));
            object.insert("completion".into(), Value::Object(completion));
        }
        if !self.tools.is_empty() {
            object.insert("toolSummary".into(), self.tool_summary());
        }
        if let Some(prompt) = &self.system_prompt {
            object.insert("systemPromptReport".into(), prompt.to_json(&self.agent));
        }
        object.insert("finalPromptText".into(), std::mem::take(&mut self.final_prompt).into());
        if let Some(answer) = self.final_answer.take() {
            object.insert("finalAssistantVisibleText".into(), answer.visible().into());
            object.insert("finalAssistantRawText".into(), answer.raw().into());
        }
        object.insert("replayInvalid".into(), self.replay_invalid.into());
        object.insert("livenessState".into(), self.liveness.as_str().into());
        if self.timed_out {
            object.insert("timeoutPhase".into(), if self.attempts.is_empty() { "queue" } else { "provider" }.into());
            object.insert("providerStarted".into(), (!self.attempts.is_empty()).into());
            object.insert("modelFallbackStopReason".into(), "agent_run_terminal_timeout".into());
        }
        Value::Object(object)
    }

    fn execution_trace(&self) -> Value {
        let model = |attempt: &AttemptReport| (attempt.provider.clone(), attempt.model.clone());
        let winner = self.attempts.last().filter(|attempt| attempt.result == AttemptResult::Success).map(model);
        let mut trace = Map::new();
        if let Some((provider, model)) = &winner {
            trace.insert("winnerProvider".into(), provider.as_str().into());
            trace.insert("winnerModel".into(), model.as_str().into());
        }
        put_list(&mut trace, "attempts", &self.attempts, |attempt| {
            let mut entry = Map::new();
            entry.insert("provider".into(), attempt.provider.as_str().into());
            entry.insert("model".into(), attempt.model.as_str().into());
            entry.insert("result".into(), attempt.result.as_str().into());
            let is_failure = !matches!(attempt.outcome.as_str(), "ok" | "aborted" | "timeout");
            put(&mut entry, "reason", is_failure.then_some(attempt.outcome.as_str()));
            let stage = attempt.stage.map(|stage| match stage {
                FailureStage::Prompt => "prompt",
                FailureStage::Answer => "assistant",
            });
            put(&mut entry, "stage", stage);
            entry.insert("elapsedMs".into(), attempt.duration_ms.into());
            if let Some(status) = attempt.status {
                entry.insert("status".into(), status.into());
            }
            Value::Object(entry)
        });
        let has_fallen_back = self.attempts.first().map(model) != self.attempts.last().map(model);
        let has_left_out = !self.agent.failed_candidates.is_empty();
        trace.insert("fallbackUsed".into(), (has_fallen_back || has_left_out).into());
        trace.insert("runner".into(), "embedded".into());
        Value::Object(trace)
    }

    fn tool_summary(&self) -> Value {
        let sum = |of: fn(&ToolReport) -> u64| self.tools.iter().map(of).sum::<u64>();
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut summary = json!({
            "calls": sum(|tool| tool.calls.into()),
            "tools": names,
            "failures": sum(|tool| tool.errors.into()),
            "totalToolTimeMs": sum(|tool| tool.duration_ms),
        });
        if let Some(tool) = &self.unresolved_tool {
            summary["unresolvedError"] = json!({"toolName": tool});
        }
        summary
    }
}

impl SystemPromptMeta {
    fn to_json(&self, agent: &AgentMeta) -> Value {
        let mut object = Map::new();
        if let Value::Object(report) = self.report.to_json() {
            object.extend(report);
        }
        object.insert("sessionId".into(), json!(agent.session_id));
        put(&mut object, "sessionKey", self.session_key.as_deref());
        object.insert("provider".into(), json!(agent.provider));
        object.insert("model".into(), json!(agent.model));
        object.insert("workspaceDir".into(), json!(self.workspace.display().to_string()));
        if let Some(turn) = &self.turn {
            let turn = json!({
                "promptChars": turn.prompt,
                "runtimeContextChars": turn.runtime_context,
                "modelOnlyPromptChars": turn.model_only,
            });
            object.insert("currentTurn".into(), turn);
        }
        Value::Object(object)
    }
}

impl RequestShaping {
    fn to_json(self) -> Value {
        let reasoning = match self.reasoning {
            ReasoningLevel::Off => "off",
            ReasoningLevel::On => "on",
            ReasoningLevel::Stream => "stream",
        };
        let verbose = match self.verbose {
            Verbose::Off => "off",
            Verbose::On => "on",
            Verbose::Full => "full",
        };
        json!({
            "thinking": self.thinking.as_str(),
            "reasoning": reasoning,
            "verbose": verbose,
            "blockStreaming": self.block_streaming,
            "fallbackEligible": self.has_fallbacks,
        })
    }
}

impl AgentMeta {
    /// Returns the number of tokens in the last call's request, cached or not.
    pub fn prompt_tokens(&self) -> Option<u64> {
        let usage = self.last_call_usage.as_ref()?;
        Some(usage.input + usage.cache_read + usage.cache_write).filter(|tokens| *tokens > 0)
    }

    fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("sessionId".into(), json!(self.session_id));
        object.insert("provider".into(), json!(self.provider));
        object.insert("model".into(), json!(self.model));
        // The sums are for billing; the total describes the context, so it is taken from the last call.
        let total = self.last_call_usage.as_ref().unwrap_or(&self.usage).context_tokens();
        if let Some(usage) = usage_json(&self.usage, Some(total)) {
            object.insert("usage".into(), usage);
        }
        if let Some(usage) = self.last_call_usage.as_ref().and_then(|usage| usage_json(usage, None)) {
            object.insert("lastCallUsage".into(), usage);
        }
        if let Some(tokens) = self.prompt_tokens() {
            object.insert("promptTokens".into(), tokens.into());
        }
        if self.compaction_count > 0 {
            object.insert("compactionCount".into(), self.compaction_count.into());
        }
        put(&mut object, "agentHarnessId", Some(self.runtime.as_str()).filter(|id| !id.is_empty()));
        if self.assistant_turns > 0 {
            object.insert("assistantTurns".into(), self.assistant_turns.into());
        }
        if let Some(budget) = self.budget {
            object.insert("contextTokens".into(), budget.window.into());
            object.insert("contextTokensSource".into(), budget.source.as_str().into());
            object.insert("contextBudgetStatus".into(), budget.to_json());
        }
        if self.usage.cost.total > 0.0 {
            object.insert("costUsd".into(), self.usage.cost.total.into());
        }
        if let Some(receipt) = &self.receipt {
            let (provider, model) = &receipt.requested;
            object.insert(
                "terminalReceipt".into(),
                json!({
                    "runId": receipt.run_id,
                    "sessionId": self.session_id,
                    "turnId": receipt.turn_id,
                    "requested": {"provider": provider, "model": model},
                    "effective": {"provider": self.provider, "model": self.model},
                    "successfulToolNames": receipt.successful_tools,
                    "rerouted": (provider, model) != (&self.provider, &self.model),
                }),
            );
        }
        put_list(&mut object, "fallbackAttempts", &self.failed_candidates, |failed| {
            json!({
                "provider": failed.provider,
                "model": failed.model,
                "error": failed.error,
                "reason": failed.reason.as_str(),
                "code": failed.code,
            })
        });
        Value::Object(object)
    }
}

/// Returns the non-zero members; `None` if all are zero.
fn usage_json(usage: &Usage, total: Option<u64>) -> Option<Value> {
    let mut object = Map::new();
    for (name, tokens) in [
        ("input", usage.input),
        ("output", usage.output),
        ("cacheRead", usage.cache_read),
        ("cacheWrite", usage.cache_write),
        ("total", total.unwrap_or_else(|| usage.context_tokens())),
    ] {
        if tokens > 0 {
            object.insert(name.into(), tokens.into());
        }
    }
    (!usage.is_zero()).then_some(Value::Object(object))
}

pub(in crate::run) fn put(object: &mut Map<String, Value>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        object.insert(name.into(), value.into());
    }
}

pub(in crate::run) fn put_list<T>(object: &mut Map<String, Value>, name: &str, list: &[T], each: impl Fn(&T) -> Value) {
    if !list.is_empty() {
        object.insert(name.into(), list.iter().map(each).collect());
    }
}

impl ContextBudget {
    fn to_json(self) -> Value {
        let room = self.window.saturating_sub(self.effective_reserve);
        let overflow = self.overflow();
        json!({
            "route": if overflow > 0 { "compact_only" } else { "fits" },
            "shouldCompact": overflow > 0,
            "estimatedPromptTokens": self.prompt_tokens,
            "contextTokenBudget": self.window,
            "promptBudgetBeforeReserve": self.window,
            "reserveTokens": self.reserve,
            "effectiveReserveTokens": self.effective_reserve,
            "remainingPromptBudgetTokens": room.saturating_sub(self.prompt_tokens),
            "overflowTokens": overflow,
        })
    }
}
