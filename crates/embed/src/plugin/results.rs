//! Lets plugins change tool results before they enter a conversation.

use std::sync::Arc;

use pinch_coding_agent::extension::{Extension, ExtensionCx, HandlerFuture, MessageAction, Point, Points};
use pinch_llm::message::Message;

use super::guard::guarded_now;
use super::registry::PluginSet;

/// An extension of a session that asks the plugins of its engine.
pub(crate) struct ResultHooks(pub(crate) PluginSet);

impl Extension for ResultHooks {
    fn name(&self) -> &str {
        "tool-result-hooks"
    }

    fn points(&self) -> Points {
        Points::of([Point::MessageEnd])
    }

    fn message_end<'a>(&'a self, message: &'a Arc<Message>, _: &'a ExtensionCx) -> HandlerFuture<'a, MessageAction> {
        Box::pin(async move {
            let Message::ToolResult(result) = &**message else { return Ok(MessageAction::Keep) };
            let mut changed = None;
            for one in self.0.iter() {
                let now = changed.as_ref().unwrap_or(result);
                let answer = guarded_now("tool_result_persist", &one.name, || one.plugin.tool_result_persist(now));
                changed = answer.flatten().or(changed);
            }
            let Some(mut changed) = changed else { return Ok(MessageAction::Keep) };
            // A result must keep the id of its call.
            changed.tool_call_id.clone_from(&result.tool_call_id);
            changed.tool_name.clone_from(&result.tool_name);
            Ok(MessageAction::Replace(Arc::new(Message::ToolResult(changed))))
        })
    }
}
