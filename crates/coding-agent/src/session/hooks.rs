//! Hooks: the owner's, then the extensions', and those of the session, which converts its roles into user messages and applies changes made
//! during a run to the next request.

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::hooks::{
    AfterTurn, BeforeTool, FinishedCall, Hooks, NextTurn, PendingCall, ToolPatch, TurnContext, TurnEnded, TurnPlan,
};
use pinch_agent_core::tool::ToolSet;
use pinch_llm::message::{Content, Message, SystemMessage};
use pinch_llm::normalise;
use pinch_llm::normalise::system::SystemState;

use super::control::SessionControl;
use crate::extension::ui::Approval;
use crate::extension::{AnswerOutcome, Boundary, Extensions, Point, TurnEnd};
use crate::session_log::convert_to_llm;

/// Replaces images that must not reach a model.
const BLOCKED: &str = "Image reading is disabled.";

/// Calls the owner's hooks and the extensions, and then converts this layer's roles for the model.
pub(super) struct SessionHooks {
    owner: Arc<dyn Hooks>,
    control: SessionControl,
    block_images: bool,
}

impl SessionHooks {
    pub(super) fn new(owner: Arc<dyn Hooks>, control: SessionControl, block_images: bool) -> Self {
        Self { owner, control, block_images }
    }

    fn extensions(&self) -> &Extensions {
        self.control.extensions()
    }
}

impl Hooks for SessionHooks {
    fn next_turn<'a>(&'a self, turn: TurnContext<'a>) -> BoxFuture<'a, Result<TurnPlan, String>> {
        Box::pin(async move {
            let (model, thinking) = self.control.take_adopted(|now| (now.model.take(), now.thinking.take()));
            let plan = self.owner.next_turn(turn).await?;
            let seen = plan.messages.as_deref().unwrap_or(turn.messages);
            let messages = self.extensions().context(seen).await.or(plan.messages);
            Ok(TurnPlan { model: plan.model.or(model), thinking: plan.thinking.or(thinking), messages })
        })
    }

    fn incoming<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Option<Arc<Message>>> {
        Box::pin(async move {
            let owned = self.owner.incoming(message).await;
            self.control.admitted(owned.as_ref().unwrap_or(message)).await.or(owned)
        })
    }

    fn complete_message<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Option<Arc<Message>>> {
        Box::pin(async move {
            let owned = self.owner.complete_message(message).await;
            let changed = self.extensions().message_end(owned.as_ref().unwrap_or(message)).await.or(owned)?;
            // The original's images were admitted when it arrived.
            Some(self.control.admitted(&changed).await.unwrap_or(changed))
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

    fn volatile_sections(&self) -> Arc<[String]> {
        self.control.peek(|state| state.now.system.volatile())
    }

    fn to_llm(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let mut messages = self.owner.to_llm(&convert_to_llm(messages));
        if let Some(text) = self.control.peek(|state| state.forced_system.clone()) {
            messages = with_system(&messages, &text);
        }
        if self.block_images {
            messages.iter_mut().for_each(|message| *message = normalise::without_images(message, BLOCKED, BLOCKED));
        }
        messages
    }

    fn before_tool<'a>(&'a self, call: &'a PendingCall) -> BoxFuture<'a, BeforeTool> {
        Box::pin(async move {
            let mut now = Cow::Borrowed(call);
            match self.owner.before_tool(call).await {
                BeforeTool::Allow => {}
                BeforeTool::Rewrite(input) => now.to_mut().input = input,
                deny @ BeforeTool::Deny { .. } => return deny,
            }
            match self.extensions().tool_call(&now).await {
                BeforeTool::Allow => {}
                BeforeTool::Rewrite(input) => now.to_mut().input = input,
                deny @ BeforeTool::Deny { .. } => return deny,
            }
            // Show the call to the user as it will run.
            let session = self.control.peek(|state| Arc::clone(&state.now));
            match (self.extensions().approved(&session.session_id, &now).await, now) {
                (Approval::Denied { reason }, _) => BeforeTool::deny(reason),
                (Approval::Granted, Cow::Borrowed(_)) => BeforeTool::Allow,
                (Approval::Granted, Cow::Owned(changed)) => BeforeTool::Rewrite(changed.input),
            }
        })
    }

    fn after_tool<'a>(&'a self, done: &'a FinishedCall) -> BoxFuture<'a, ToolPatch> {
        Box::pin(async move {
            let mut patch = self.owner.after_tool(done).await;
            let mut seen = Cow::Borrowed(done);
            if patch != ToolPatch::default() {
                patch.clone().apply(&mut seen.to_mut().output);
            }
            if self.extensions().wants(Point::ToolResult) {
                let theirs = self.extensions().tool_result(&seen).await;
                theirs.clone().apply(&mut seen.to_mut().output);
                patch.add(theirs);
            }
            if let Some(fitted) = self.control.admitted_result(&seen.output).await {
                patch.add(fitted);
            }
            patch
        })
    }

    fn after_turn<'a>(&'a self, turn: &'a TurnEnded) -> BoxFuture<'a, AfterTurn> {
        Box::pin(async move {
            let owned = self.owner.after_turn(turn).await;
            if !self.extensions().wants(Point::TurnEnd) {
                return owned;
            }
            let (turn_index, entries) = self.control.peek(|state| (state.requests.turn_index, state.turn.clone()));
            let ended = TurnEnd {
                turn_index,
                message: &turn.message,
                results: &turn.results,
                message_entry: entries.answer.as_ref(),
                result_entries: &entries.results,
                outcome: AnswerOutcome::of(&turn.message.stop_reason),
            };
            let Boundary { drafts, continues } = self.extensions().turn_end(ended).await;
            if let Err(why) = self.control.draft(drafts).await {
                self.extensions().report_boundary(Point::TurnEnd, format!("Invalid boundary entries: {why}"));
                return owned;
            }
            if continues && owned == AfterTurn::Default { AfterTurn::Continue } else { owned }
        })
    }
}

/// Returns a conversation with this text and the current tools as its only system message.
fn with_system(messages: &[Arc<Message>], text: &str) -> Vec<Arc<Message>> {
    let mut state = SystemState::default();
    let mut rest = Vec::with_capacity(messages.len() + 1);
    for message in messages {
        match &**message {
            Message::System(system) => state.apply(system),
            _ => rest.push(Arc::clone(message)),
        }
    }
    let timestamp = state.timestamp.unwrap_or_default();
    let content = Content::Text(text.to_owned());
    let head = SystemMessage { content, tools_added: state.tools, timestamp, ..SystemMessage::default() };
    rest.insert(0, Arc::new(Message::System(head)));
    rest
}
