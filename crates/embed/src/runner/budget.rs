//! The budget of a run within its attempts.

use pinch_agent_core::event::AgentEvent;
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::message::{Block, Usage};

use crate::run::decide::RunState;
use crate::run::request::Budget;

/// Adds up the tokens and the cost of a run while an attempt goes on. The default has no limits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BudgetMeter {
    budget: Budget,
    used: Usage,
}

impl BudgetMeter {
    /// Starts with what the run has used before this attempt.
    pub(super) fn new(state: &RunState) -> Self {
        Self { budget: state.terms.budget, used: *state.usage() }
    }

    /// Adds an event. Returns whether the attempt would go on beyond the budget: with tool calls or with another request. The answer that ends
    /// an attempt is always kept.
    pub(super) fn is_exceeded_by(&mut self, event: &SessionEvent) -> bool {
        if let SessionEvent::CompactionEnd { result: Some(made), .. } = event
            && let Some(usage) = &made.usage
        {
            self.used.add(usage);
        }
        let SessionEvent::Agent(event) = event else { return false };
        match event {
            AgentEvent::MessageEnd { message, .. } => {
                let Some(answer) = message.as_assistant() else { return false };
                self.used.add(&answer.usage);
                self.is_exceeded() && answer.content.iter().any(|block| matches!(**block, Block::ToolCall(_)))
            }
            AgentEvent::TurnStart => self.is_exceeded(),
            _ => false,
        }
    }

    /// Returns whether the run has used what it may use.
    pub(super) fn is_exceeded(&self) -> bool {
        self.budget.reached_tokens(&self.used).is_some() || self.budget.reached_cost(&self.used).is_some()
    }
}
