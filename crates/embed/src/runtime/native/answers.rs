//! What happens to an answer before it is stored.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::hooks::{AfterTurn, BeforeTool, FinishedCall, Hooks, PendingCall, ToolPatch, TurnEnded};
use pinch_llm::message::Message;
use pinch_tools::loops::LoopGuard;

use super::entities;
use crate::replies::reasoning::promoted;

/// Stores tagged reasoning as thinking, decodes arguments, and detects loops of calls.
pub(super) struct AnswerHooks {
    loops: Arc<LoopGuard>,
    /// Whether texts in arguments may contain HTML entities.
    decodes: bool,
}

impl AnswerHooks {
    pub(super) fn new(loops: Arc<LoopGuard>, decodes: bool) -> Self {
        Self { loops, decodes }
    }
}

impl Hooks for AnswerHooks {
    fn complete_message<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Option<Arc<Message>>> {
        let shown = promoted(message);
        let decoded = if self.decodes { entities::decoded(shown.as_ref().unwrap_or(message)) } else { None };
        Box::pin(std::future::ready(decoded.or(shown)))
    }

    fn before_tool<'a>(&'a self, call: &'a PendingCall) -> BoxFuture<'a, BeforeTool> {
        self.loops.before_tool(call)
    }

    fn after_tool<'a>(&'a self, done: &'a FinishedCall) -> BoxFuture<'a, ToolPatch> {
        self.loops.after_tool(done)
    }

    fn after_turn<'a>(&'a self, turn: &'a TurnEnded) -> BoxFuture<'a, AfterTurn> {
        self.loops.after_turn(turn)
    }
}
