//! The owner's hooks, with the conversion of this layer's roles behind them.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::hooks::{
    AfterTurn, BeforeTool, FinishedCall, Hooks, PendingCall, ToolPatch, TurnEnded, TurnPlan, TurnSeen,
};
use pinch_agent_core::tool::ToolSet;
use pinch_llm::message::Message;

/// Asks the owner's hooks, and then turns this layer's roles into what a model reads.
pub(super) struct SessionHooks {
    owner: Arc<dyn Hooks>,
}

impl SessionHooks {
    pub(super) fn new(owner: Arc<dyn Hooks>) -> Self {
        Self { owner }
    }
}

impl Hooks for SessionHooks {
    fn next_turn<'a>(&'a self, turn: TurnSeen<'a>) -> BoxFuture<'a, Result<TurnPlan, String>> {
        self.owner.next_turn(turn)
    }

    fn tools(&self) -> Option<ToolSet> {
        self.owner.tools()
    }

    fn to_llm(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        self.owner.to_llm(&super::to_llm(messages))
    }

    fn before_tool<'a>(&'a self, call: &'a PendingCall) -> BoxFuture<'a, BeforeTool> {
        self.owner.before_tool(call)
    }

    fn after_tool<'a>(&'a self, done: &'a FinishedCall) -> BoxFuture<'a, ToolPatch> {
        self.owner.after_tool(done)
    }

    fn after_turn<'a>(&'a self, turn: &'a TurnEnded) -> BoxFuture<'a, AfterTurn> {
        self.owner.after_turn(turn)
    }
}
