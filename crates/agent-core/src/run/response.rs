//! One answer of the model, pulled from its stream into the conversation.

use std::collections::HashSet;
use std::sync::Arc;

use futures::StreamExt;
use pinch_llm::error::LlmError;
use pinch_llm::event::{Finished, StreamEvent};
use pinch_llm::ids::ToolCallId;
use pinch_llm::message::{AssistantMessage, Block, Message};
use pinch_llm::request::Request;
use tokio::time::Instant;

use super::RunDriver;
use crate::event::AgentEvent;

/// An answer, and the error if it failed.
pub(super) type TurnResponse = (Arc<AssistantMessage>, Option<Arc<LlmError>>);

impl RunDriver<'_> {
    /// Calls the model and forwards its answer, event by event.
    pub(super) async fn respond(&mut self, request: Box<Request>) -> TurnResponse {
        let began = Instant::now();
        let mut stream = self.agent.provider.stream(*request, self.cancel.clone());
        let mut started = false;
        while let Some(event) = stream.next().await {
            match event {
                StreamEvent::Start(message) => {
                    started = true;
                    self.emit(AgentEvent::MessageStart(Arc::new(Message::Assistant(message)))).await;
                }
                StreamEvent::End(mut finished) => {
                    drop(stream);
                    let message = Arc::make_mut(&mut finished.message);
                    message.thinking_level = Some(self.agent.thinking);
                    message.duration_ms = i64::try_from(began.elapsed().as_millis()).ok();
                    make_ids_unique(message);
                    return self.finish_answer(finished, started).await;
                }
                other if started => self.emit(AgentEvent::MessageUpdate(other)).await,
                _ => {}
            }
        }
        // An EventStream always ends with an End; a foreign provider that violates this gets an answer that says so.
        let text = "Stream ended without a final event".to_owned();
        let finished = super::failed::local_answer(self.agent, pinch_llm::message::StopReason::Error, text);
        self.finish_answer(finished, started).await
    }

    /// Emits an answer that was not streamed.
    pub(super) async fn emit_complete(&mut self, finished: Finished) -> TurnResponse {
        self.finish_answer(finished, false).await
    }

    async fn finish_answer(&mut self, finished: Finished, started: bool) -> TurnResponse {
        let Finished { message, error } = finished;
        let whole = Arc::new(Message::Assistant(Arc::clone(&message)));
        if !started {
            self.emit(AgentEvent::MessageStart(Arc::clone(&whole))).await;
        }
        let whole = self.append(whole).await;
        let message = whole.as_assistant().map_or(message, Arc::clone);
        self.emit(AgentEvent::MessageEnd { message: whole, error: error.clone(), queued: None }).await;
        (message, error)
    }
}

/// Makes call ids unique within a message, so that results can be distinguished: later duplicates get `_2`, `_3`, ….
fn make_ids_unique(message: &mut AssistantMessage) {
    let mut seen: HashSet<ToolCallId> = HashSet::new();
    for block in &mut message.content {
        let Some(call) = block.as_tool_call() else { continue };
        if seen.insert(call.id.clone()) {
            continue;
        }
        let fresh = (2..).map(|n| ToolCallId::from(format!("{}_{n}", call.id))).find(|id| !seen.contains(id));
        if let (Some(fresh), Block::ToolCall(call)) = (fresh, Arc::make_mut(block)) {
            call.id = fresh.clone();
            seen.insert(fresh);
        }
    }
}
