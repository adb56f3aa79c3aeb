//! The owner's hooks, with what the session adds: its roles become messages of the user, and changes made during a run reach the next request.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::hooks::{
    AfterTurn, BeforeTool, FinishedCall, Hooks, NextTurn, PendingCall, ToolPatch, TurnEnded, TurnPlan, TurnSeen,
};
use pinch_agent_core::tool::ToolSet;
use pinch_llm::message::{Message, SystemMessage};

use super::control::SessionControl;
use crate::session_log::convert_to_llm;

/// Asks the owner's hooks, and then turns this layer's roles into what a model reads.
pub(super) struct SessionHooks {
    owner: Arc<dyn Hooks>,
    control: SessionControl,
}

impl SessionHooks {
    pub(super) fn new(owner: Arc<dyn Hooks>, control: SessionControl) -> Self {
        Self { owner, control }
    }
}

impl Hooks for SessionHooks {
    fn next_turn<'a>(&'a self, turn: TurnSeen<'a>) -> BoxFuture<'a, Result<TurnPlan, String>> {
        Box::pin(async move {
            let (model, thinking) = self.control.take_adopted(|now| (now.model.take(), now.thinking.take()));
            let plan = self.owner.next_turn(turn).await?;
            Ok(TurnPlan { model: plan.model.or(model), thinking: plan.thinking.or(thinking), ..plan })
        })
    }

    fn between_turns<'a>(&'a self, turn: &'a TurnEnded) -> BoxFuture<'a, Result<NextTurn, String>> {
        self.owner.between_turns(turn)
    }

    fn tools(&self) -> Option<ToolSet> {
        let adopted = self.control.take_adopted(|now| now.tools.take());
        self.owner.tools().or(adopted)
    }

    fn system(&self, messages: &[Arc<Message>]) -> Option<SystemMessage> {
        let adopted = self.control.take_adopted(|now| now.system.take());
        self.owner
            .system(messages)
            .or_else(|| adopted?.difference(messages.iter().map(|message| &**message), self.control.now_ms()))
    }

    fn to_llm(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        self.owner.to_llm(&convert_to_llm(messages))
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
