//! Skills whose command calls a tool. The call takes the place of a model's: it passes through policy, hooks and approvals, and stays in the
//! conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream;
use pinch_llm::event::{BlockKind, EventStream, Finished, StreamEvent};
use pinch_llm::message::block::join_text;
use pinch_llm::message::{AssistantMessage, Block, Message, StopReason, ToolCall};
use pinch_llm::provider::Provider;
use pinch_llm::request::Request;
use pinch_stdx::cancel::Cancel;
use serde_json::{Map, json};

use crate::skills::SkillCall;

/// The answer if a tool returns no text.
const DONE: &str = "Done.";

/// Answers the first request with the call of a tool and the second one with its result. A model answers all others, as after a message
/// that arrived meanwhile.
pub(super) struct SkillCallProvider {
    call: SkillCall,
    model: Arc<dyn Provider>,
    n_requests: AtomicUsize,
}

impl SkillCallProvider {
    pub(super) fn new(call: SkillCall, model: Arc<dyn Provider>) -> Self {
        Self { call, model, n_requests: AtomicUsize::new(0) }
    }

    fn tool_call(&self, request: &Request) -> Block {
        let SkillCall { tool, command, skill, arguments } = &self.call;
        let input = json!({"command": arguments, "commandName": command, "skillName": skill});
        let input: Map<_, _> = input.as_object().cloned().unwrap_or_default();
        Block::ToolCall(ToolCall::new(format!("call_{}", request.host.now_ms()), tool, input))
    }
}

impl Provider for SkillCallProvider {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        let result = request.messages.last().and_then(|message| match &**message {
            Message::ToolResult(result) => Some(join_text(&result.content, "\n")),
            _ => None,
        });
        match (self.n_requests.fetch_add(1, Ordering::Relaxed), result) {
            (0, _) => answer(&request, self.tool_call(&request), StopReason::ToolUse),
            (1, Some(text)) => {
                let text = if text.trim().is_empty() { DONE.to_owned() } else { text };
                answer(&request, Block::text(text), StopReason::Stop)
            }
            _ => self.model.stream(request, cancel),
        }
    }

    fn close_session(&self, session_id: &str) {
        self.model.close_session(session_id);
    }
}

/// Returns the events of an answer with one block.
fn answer(request: &Request, block: Block, reason: StopReason) -> EventStream {
    let (model, now) = (&request.model, request.host.now_ms());
    let mut message = AssistantMessage::pending(model.api.clone(), model.provider.clone(), model.id.clone(), now);
    let start = StreamEvent::Start(Arc::new(message.clone()));
    let block = Arc::new(block);
    let (kind, text) = match &*block {
        Block::ToolCall(call) => {
            let kind = BlockKind::ToolCall { id: call.id.clone(), name: call.name.clone() };
            (kind, serde_json::Value::Object(call.arguments.clone()).to_string())
        }
        block => (BlockKind::Text, block.as_text().unwrap_or_default().to_owned()),
    };
    message.content.push(Arc::clone(&block));
    message.stop_reason = reason;
    let events = [
        start,
        StreamEvent::BlockStart { index: 0, kind },
        StreamEvent::Delta { index: 0, text: text.into() },
        StreamEvent::BlockEnd { index: 0, block },
        StreamEvent::End(Finished { message: Arc::new(message), error: None }),
    ];
    EventStream::new(model, now, stream::iter(events))
}
