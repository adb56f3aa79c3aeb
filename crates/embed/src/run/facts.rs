//! Facts about a run (tokens, answers, tools, compactions), accumulated from the events of its session.
//!
//! Both an attempt's outcome and a run's result are made from [`Facts`]: from the events of one attempt, and from those of all.

use std::sync::Arc;

use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::tool::ToolOutput;
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::error::Emitted;
use pinch_llm::event::StreamEvent;
use pinch_llm::message::{AssistantMessage, Usage, block};

use super::outcome::{AttemptEnd, AttemptOutcome, ClientToolCall, ToolFailure, ToolRun};
use crate::replies::is_mirror;

/// Maximum length of a tool's error text, in characters.
const MAX_ERROR: usize = 2_000;

/// Facts accumulated from events.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Token usage of all calls.
    pub usage: Usage,
    /// Token usage of the last call that reported any.
    pub last_call_usage: Option<Usage>,
    /// Number of answers, finished or not.
    pub n_answers: u32,
    /// The last answer.
    pub last_assistant: Option<Arc<AssistantMessage>>,
    /// Tool runs, in order.
    pub tools: Vec<ToolRun>,
    /// The failure of the last tool, if it failed.
    pub last_tool_error: Option<ToolFailure>,
    /// Compactions.
    pub compactions: CompactionFacts,
    /// What the user may have seen.
    pub emitted: Emitted,
    /// Calls of client tools that ended the run.
    pub client_tool_calls: Vec<ClientToolCall>,
}

/// Compactions of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionFacts {
    /// Whether a compaction is in progress.
    pub in_flight: bool,
    /// Number of retries after a compaction that have not ended yet.
    pub pending_retries: u32,
    /// Number of compactions that produced a summary.
    pub count: u32,
    /// Tokens after the last compaction.
    pub last_tokens_after: Option<u64>,
}

impl CompactionFacts {
    /// Returns whether the run continues because of a compaction.
    pub fn is_compacting(&self) -> bool {
        self.in_flight || self.pending_retries > 0
    }
}

impl Facts {
    /// Adds an event. `mutates` returns whether a tool may have side effects.
    pub fn observe(&mut self, event: &SessionEvent, mutates: impl Fn(&str) -> bool) {
        match event {
            SessionEvent::Agent(event) => self.observe_agent(event, mutates),
            SessionEvent::RunEnd { end, .. } => {
                self.run_ended();
                self.client_tool_calls = end.pending_calls.iter().map(ClientToolCall::new).collect();
            }
            SessionEvent::CompactionStart { .. } => self.compactions.in_flight = true,
            SessionEvent::CompactionEnd { result, will_retry, .. } => {
                self.compactions.in_flight = false;
                if let Some(result) = result {
                    self.compactions.count += 1;
                    self.compactions.last_tokens_after = Some(result.estimated_tokens_after);
                }
                self.compactions.pending_retries += u32::from(*will_retry);
            }
            _ => {}
        }
    }

    /// Returns the outcome of an attempt from its events and how it ended. Oversized tool results and turns that yielded are not in events;
    /// the runtime sets these fields itself.
    pub fn into_outcome(self, end: AttemptEnd) -> AttemptOutcome {
        let has_payload = self.last_assistant.as_ref().is_some_and(|answer| {
            answer.content.iter().filter_map(|block| block.as_text()).any(|text| !text.trim().is_empty())
        });
        AttemptOutcome {
            last_assistant: self.last_assistant,
            usage: self.usage,
            last_call_usage: self.last_call_usage,
            n_answers: self.n_answers,
            tools: self.tools,
            last_tool_error: self.last_tool_error,
            compactions: self.compactions.count,
            emitted: self.emitted,
            has_payload,
            client_tool_calls: self.client_tool_calls,
            ..AttemptOutcome::new(end)
        }
    }

    fn observe_agent(&mut self, event: &AgentEvent, mutates: impl Fn(&str) -> bool) {
        match event {
            AgentEvent::MessageStart(message) if message.as_assistant().is_some() => self.show(Emitted::Started),
            AgentEvent::MessageUpdate(StreamEvent::Delta { text, .. }) if !text.is_empty() => {
                self.show(Emitted::Content);
            }
            AgentEvent::MessageEnd { message, .. } => {
                if let Some(answer) = message.as_assistant().filter(|answer| !is_mirror(answer)) {
                    self.add_answer(answer);
                }
            }
            AgentEvent::ToolEnd { start, output, duration_ms } => {
                let mutates = mutates(&start.name);
                self.tools.push(ToolRun {
                    name: start.name.clone(),
                    mutates,
                    failed: output.failed,
                    duration_ms: duration_ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0),
                });
                self.last_tool_error = output.failed.then(|| tool_failure(&start.name, output, mutates));
            }
            AgentEvent::AgentEnd(_) => self.run_ended(),
            _ => {}
        }
    }

    fn add_answer(&mut self, answer: &Arc<AssistantMessage>) {
        if !answer.usage.is_zero() {
            let mut usage = answer.usage;
            usage.total_tokens = usage.context_tokens();
            self.usage.add(&usage);
            self.last_call_usage = Some(usage);
        }
        self.n_answers += 1;
        self.last_assistant = Some(Arc::clone(answer));
    }

    fn run_ended(&mut self) {
        self.compactions.pending_retries = self.compactions.pending_retries.saturating_sub(1);
    }

    /// Records what was shown; content outweighs everything else.
    fn show(&mut self, now: Emitted) {
        if self.emitted != Emitted::Content {
            self.emitted = now;
        }
    }
}

fn tool_failure(name: &str, output: &ToolOutput, mutates: bool) -> ToolFailure {
    let text: String = block::join_text(&output.content, "\n").chars().take(MAX_ERROR).collect();
    ToolFailure { name: name.to_owned(), meta: None, error: (!text.is_empty()).then_some(text), mutates }
}
