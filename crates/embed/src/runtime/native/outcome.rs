//! Turns a session's events into the facts of an attempt.

use std::sync::Arc;

use pinch_agent_core::event::{AgentEvent, EndReason, RunEnd};
use pinch_agent_core::tool::{ToolEffect, ToolSet};
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::error::Emitted;
use pinch_llm::message::{Block, Message};
use pinch_stdx::cancel::{Cancel, CancelReason};

use crate::run::facts::Facts;
use crate::run::outcome::{AttemptEnd, AttemptOutcome, FailureStage};
use crate::run::tool_results::per_result_limit;

/// Observes one attempt.
pub(super) struct Watcher {
    tools: ToolSet,
    context_window: u64,
    facts: Facts,
    end: Option<RunEnd>,
    stopped_tool: bool,
}

impl Watcher {
    pub(super) fn new(tools: ToolSet, context_window: u64) -> Self {
        Self { tools, context_window, facts: Facts::default(), end: None, stopped_tool: false }
    }

    pub(super) fn observe(&mut self, event: &SessionEvent, cancel: &Cancel) {
        if let SessionEvent::Agent(AgentEvent::ToolEnd { output, .. }) = event {
            self.stopped_tool |= output.failed && cancel.reason().is_some();
        }
        if let SessionEvent::RunEnd { end, .. } = event {
            self.end = Some(end.clone());
        }
        let mutates =
            |name: &str| self.tools.reachable(name).is_some_and(|tool| tool.spec().effect != ToolEffect::Reads);
        self.facts.observe(event, mutates);
    }

    /// Returns the facts after the last event. `messages` is the current conversation.
    pub(super) fn finish(self, cancel: &Cancel, messages: &[Arc<Message>]) -> AttemptOutcome {
        let end = self.attempt_end(cancel);
        let limit = per_result_limit(self.context_window);
        let is_oversized = |message: &Arc<Message>| {
            matches!(&**message, Message::ToolResult(result)
                if result.content.iter().filter_map(Block::as_text).map(|text| text.chars().count()).sum::<usize>() > limit)
        };
        AttemptOutcome {
            oversized_tool_results: messages.iter().any(is_oversized),
            stopped_tool: self.stopped_tool,
            ..self.facts.into_outcome(end)
        }
    }

    fn attempt_end(&self, cancel: &Cancel) -> AttemptEnd {
        let Some(end) = &self.end else {
            // The session settled without a run: it was stopped while compacting.
            return AttemptEnd::stopped(
                cancel.reason().unwrap_or(CancelReason::User),
                self.facts.compactions.in_flight,
            );
        };
        match end.reason {
            EndReason::Aborted => {
                AttemptEnd::stopped(cancel.reason().unwrap_or(CancelReason::User), self.facts.compactions.in_flight)
            }
            EndReason::Failed => match &end.error {
                Some(error) => {
                    let stage =
                        if error.emitted == Emitted::Nothing { FailureStage::Prompt } else { FailureStage::Answer };
                    AttemptEnd::failed(stage, Arc::clone(error))
                }
                None => {
                    let text =
                        self.facts.last_assistant.as_ref().and_then(|a| a.error_message.clone()).unwrap_or_default();
                    let provider = self.facts.last_assistant.as_ref().map(|a| a.provider.clone());
                    let provider = provider.unwrap_or_else(|| "unknown".into());
                    AttemptEnd::failed_with_text(FailureStage::Answer, &provider, text)
                }
            },
            EndReason::Done | EndReason::ToolsEnded | EndReason::Stopped | EndReason::CallsPending => AttemptEnd::Good,
        }
    }
}
