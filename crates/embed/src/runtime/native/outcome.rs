//! From a session's events to the facts of an attempt.

use std::sync::Arc;

use pinch_agent_core::event::{AgentEvent, EndReason, RunEnd};
use pinch_agent_core::tool::{ToolEffect, ToolOutput, ToolSet};
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::error::Emitted;
use pinch_llm::event::StreamEvent;
use pinch_llm::message::{AssistantMessage, Message, Usage, block};
use pinch_stdx::cancel::{Cancel, CancelReason};

use super::repair::per_result_limit;
use crate::run::outcome::{AttemptEnd, AttemptOutcome, FailureStage, ToolFailure, ToolRun};

/// Characters of a tool's error that an outcome keeps.
const MAX_ERROR: usize = 2_000;

/// Follows one attempt.
pub(super) struct Watcher {
    tools: ToolSet,
    context_window: u64,
    ran: Vec<ToolRun>,
    last_tool_error: Option<ToolFailure>,
    usage: Usage,
    last_call_usage: Option<Usage>,
    last_assistant: Option<Arc<AssistantMessage>>,
    compactions: u32,
    emitted: Emitted,
    is_compacting: bool,
    end: Option<RunEnd>,
}

impl Watcher {
    pub(super) fn new(tools: ToolSet, context_window: u64) -> Self {
        Self {
            tools,
            context_window,
            ran: Vec::new(),
            last_tool_error: None,
            usage: Usage::default(),
            last_call_usage: None,
            last_assistant: None,
            compactions: 0,
            emitted: Emitted::Nothing,
            is_compacting: false,
            end: None,
        }
    }

    pub(super) fn see(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::Agent(event) => self.see_agent(event),
            SessionEvent::RunEnd { end, .. } => self.end = Some(end.clone()),
            SessionEvent::CompactionStart { .. } => self.is_compacting = true,
            SessionEvent::CompactionEnd { result, .. } => {
                self.is_compacting = false;
                self.compactions += u32::from(result.is_some());
            }
            _ => {}
        }
    }

    fn see_agent(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::MessageStart(message) if message.as_assistant().is_some() => self.show(Emitted::Started),
            AgentEvent::MessageUpdate(StreamEvent::Delta { text, .. }) if !text.is_empty() => {
                self.show(Emitted::Content);
            }
            AgentEvent::MessageEnd { message, .. } => {
                if let Some(answer) = message.as_assistant() {
                    self.usage.add(&answer.usage);
                    if !answer.usage.is_zero() {
                        self.last_call_usage = Some(answer.usage);
                    }
                    self.last_assistant = Some(Arc::clone(answer));
                }
            }
            AgentEvent::ToolEnd { start, output, duration_ms } => {
                let mutates = self.tools.get(&start.name).is_some_and(|tool| tool.spec().effect != ToolEffect::Reads);
                self.ran.push(ToolRun {
                    name: start.name.clone(),
                    mutates,
                    failed: output.failed,
                    duration_ms: duration_ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0),
                });
                self.last_tool_error = output.failed.then(|| failure(&start.name, output, mutates));
            }
            _ => {}
        }
    }

    /// What was shown only grows.
    fn show(&mut self, now: Emitted) {
        if self.emitted != Emitted::Content {
            self.emitted = now;
        }
    }

    /// The facts, after the last event. `messages` is the conversation as it stands.
    pub(super) fn finish(self, cancel: &Cancel, messages: &[Arc<Message>]) -> AttemptOutcome {
        let end = self.attempt_end(cancel);
        let has_payload = self.last_assistant.as_ref().is_some_and(|answer| !answer.text("").trim().is_empty());
        let limit = per_result_limit(self.context_window);
        let is_oversized = |message: &Arc<Message>| {
            matches!(&**message, Message::ToolResult(result)
                if block::join_text(&result.content, "").chars().count() > limit)
        };
        AttemptOutcome {
            last_assistant: self.last_assistant,
            usage: self.usage,
            last_call_usage: self.last_call_usage,
            tools: self.ran,
            last_tool_error: self.last_tool_error,
            compactions: self.compactions,
            emitted: self.emitted,
            has_payload,
            oversized_tool_results: messages.iter().any(is_oversized),
            ..AttemptOutcome::new(end)
        }
    }

    fn attempt_end(&self, cancel: &Cancel) -> AttemptEnd {
        let Some(end) = &self.end else {
            // The session settled without a run: it was stopped while it compacted.
            return AttemptEnd::stopped(cancel.reason().unwrap_or(CancelReason::User), self.is_compacting);
        };
        match end.why {
            EndReason::Aborted => {
                AttemptEnd::stopped(cancel.reason().unwrap_or(CancelReason::User), self.is_compacting)
            }
            EndReason::Failed => match &end.error {
                Some(error) => {
                    let stage =
                        if error.emitted == Emitted::Nothing { FailureStage::Prompt } else { FailureStage::Answer };
                    AttemptEnd::failed(stage, Arc::clone(error))
                }
                None => {
                    let text = self.last_assistant.as_ref().and_then(|a| a.error_message.clone()).unwrap_or_default();
                    let provider = self.last_assistant.as_ref().map(|a| a.provider.clone());
                    let provider = provider.unwrap_or_else(|| "unknown".into());
                    AttemptEnd::failed_with_text(FailureStage::Answer, &provider, text)
                }
            },
            EndReason::Done | EndReason::ToolsEnded | EndReason::Stopped => AttemptEnd::Good,
        }
    }
}

fn failure(name: &str, output: &ToolOutput, mutates: bool) -> ToolFailure {
    let text: String = block::join_text(&output.content, "\n").chars().take(MAX_ERROR).collect();
    ToolFailure { name: name.to_owned(), meta: None, error: (!text.is_empty()).then_some(text), mutates }
}
