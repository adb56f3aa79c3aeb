//! Loop detection as hooks of the tool loop.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use pinch_agent_core::Hooks;
use pinch_agent_core::hooks::{AfterTurn, BeforeTool, FinishedCall, PendingCall, ToolPatch, TurnEnded};
use pinch_llm::message::{AssistantMessage, Block, Message, ToolCall};
use serde_json::{Value, json};

use super::config::LoopConfig;
use super::detect::{CallHistory, Detector, LoopFinding, LoopLevel};
use super::fingerprint::CallEnd;

/// Detects loops in the calls of one session. Keep it for the lifetime of the session, because calls of several runs are compared.
///
/// A critical finding blocks all calls of the message. The next critical finding of the same run ends the run.
#[derive(Debug, Default)]
pub struct LoopGuard {
    config: LoopConfig,
    state: Mutex<GuardState>,
}

#[derive(Debug, Default)]
struct GuardState {
    run: Option<String>,
    history: CallHistory,
    /// Findings for the calls of the current message.
    batch: VecDeque<(String, LoopFinding)>,
    seen: Option<Arc<AssistantMessage>>,
    blocked_by: Option<LoopFinding>,
    n_blocked_batches: usize,
}

impl LoopGuard {
    /// Creates a guard with an empty history.
    pub fn new(config: LoopConfig) -> Self {
        Self { config, state: Mutex::default() }
    }

    /// Starts a run: from here on, only its calls and those without a run are considered.
    pub fn begin_run(&self, run: impl Into<String>) {
        let mut state = self.state();
        state.run = Some(run.into());
        state.n_blocked_batches = 0;
    }

    /// Records that the session was compacted.
    pub fn compacted(&self) {
        self.state().history.compacted();
    }

    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns why a call must not run and whether the run should end, if it is blocked.
    fn gate(&self, call: &PendingCall) -> Option<(String, bool)> {
        let mut state = self.state();
        if state.seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &call.message)) {
            state.look_at(&self.config, &call.message, &call.batch);
        }
        let finding = state.blocked_by.clone()?;
        Some((finding.message, state.n_blocked_batches > 1))
    }
}

impl GuardState {
    /// Checks all calls of a message, as they run, and records those that will run.
    fn look_at(&mut self, config: &LoopConfig, message: &Arc<AssistantMessage>, calls: &[ToolCall]) {
        self.seen = Some(Arc::clone(message));
        self.batch.clear();
        self.blocked_by = None;
        let run = self.run.clone();
        for call in calls {
            let (id, tool) = (call.id.as_str(), call.name.as_str());
            let params = &Value::Object(call.arguments.clone());
            if let Some(finding) = self.history.detect(config, tool, params, run.as_deref()) {
                tracing::warn!(tool, detector = finding.detector.name(), count = finding.count, "{}", finding.message);
                if finding.level == LoopLevel::Critical && self.blocked_by.is_none() {
                    self.blocked_by = Some(finding.clone());
                }
                self.batch.push_back((id.to_owned(), finding));
            }
            self.history.record(config, id, tool, params, run.as_deref());
        }
        self.n_blocked_batches += usize::from(self.blocked_by.is_some());
    }

    fn warning(&self, id: &str) -> Option<&LoopFinding> {
        let found = self.batch.iter().find(|(call, _)| call == id).map(|(_, finding)| finding);
        found.filter(|finding| finding.level == LoopLevel::Warning)
    }
}

/// Returns the details of the result of a call that was blocked.
fn blocked() -> Value {
    json!({"status": "blocked", "deniedReason": "tool-loop"})
}

fn text_of(content: &[Block]) -> String {
    content.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
}

impl Hooks for LoopGuard {
    fn before_tool<'a>(&'a self, call: &'a PendingCall) -> BoxFuture<'a, BeforeTool> {
        Box::pin(async move {
            match self.gate(call) {
                Some((reason, end_run)) => BeforeTool::Deny { reason, end_run, details: Some(blocked()) },
                None => BeforeTool::Allow,
            }
        })
    }

    fn after_tool<'a>(&'a self, done: &'a FinishedCall) -> BoxFuture<'a, ToolPatch> {
        Box::pin(async move {
            let mut state = self.state();
            let id = done.call.id.to_string();
            let text = text_of(&done.output.content);
            let details = done.output.details.clone().unwrap_or_default();
            let outcome = match done.output.failed && details.as_object().is_none_or(serde_json::Map::is_empty) {
                true => CallEnd::Error(&text),
                false => CallEnd::Result { text: &text, details: &details },
            };
            state.history.record_outcome(&id, outcome);
            let content = state.warning(&id).map(|finding| finding.append_to(&done.output.content));
            ToolPatch { content, structured: done.output.structured.clone(), ..ToolPatch::default() }
        })
    }

    /// Records calls that no other hook sees because their tool does not exist or their arguments are invalid.
    fn after_turn<'a>(&'a self, turn: &'a TurnEnded) -> BoxFuture<'a, AfterTurn> {
        Box::pin(async move {
            let mut state = self.state();
            if state.seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &turn.message)) {
                state.look_at(&self.config, &turn.message, &turn.calls);
            }
            for result in &turn.results {
                if let Message::ToolResult(result) = &**result {
                    let text = text_of(&result.content);
                    let outcome = match &result.details {
                        Some(details) if *details == blocked() => CallEnd::Result { text: &text, details },
                        _ => CallEnd::Error(&text),
                    };
                    state.history.record_outcome(result.tool_call_id.as_str(), outcome);
                }
            }
            let is_unknown =
                state.blocked_by.as_ref().is_some_and(|found| found.detector == Detector::UnknownToolRepeat);
            if is_unknown && state.n_blocked_batches > 1 { AfterTurn::Stop } else { AfterTurn::Default }
        })
    }
}

#[cfg(test)]
mod tests;
