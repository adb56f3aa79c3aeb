//! Folding events into the message so far.

use std::sync::Arc;

use pinch_stdx::json::partial::PartialJson;

use super::{BlockKind, StreamEvent};
use crate::ids::{ApiId, ModelId, ProviderId};
use crate::message::block::{Block, Text, Thinking, ToolCall};
use crate::message::{AssistantMessage, StopReason};

/// Collects events into the message so far. Each event costs time proportional to its size; only [`Fold::message`] is proportional to the
/// whole message.
#[derive(Debug)]
pub struct Fold {
    base: Arc<AssistantMessage>,
    blocks: Vec<FoldedBlock>,
    ended: bool,
}

#[derive(Debug)]
enum FoldedBlock {
    Text(String),
    Thinking { text: String, redacted: bool },
    Call { call: Box<ToolCall>, json: PartialJson },
    Done(Arc<Block>),
}

impl Default for Fold {
    fn default() -> Self {
        Self::new()
    }
}

impl Fold {
    /// Creates an empty fold.
    pub fn new() -> Self {
        let empty = AssistantMessage::pending(ApiId::new(""), ProviderId::new(""), ModelId::new(""), 0);
        Self { base: Arc::new(empty), blocks: Vec::new(), ended: false }
    }

    /// Applies an event. Events for blocks that were never started are ignored.
    pub fn push(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Start(message) => self.base = Arc::clone(message),
            StreamEvent::BlockStart { kind, .. } => self.blocks.push(match kind {
                BlockKind::Text | BlockKind::Commentary => FoldedBlock::Text(String::new()),
                BlockKind::Thinking { redacted } => FoldedBlock::Thinking { text: String::new(), redacted: *redacted },
                BlockKind::ToolCall { id, name } => FoldedBlock::Call {
                    call: Box::new(ToolCall::new(id.clone(), name.clone(), serde_json::Map::new())),
                    json: PartialJson::new(),
                },
            }),
            StreamEvent::Delta { index, text } => match self.blocks.get_mut(*index) {
                Some(FoldedBlock::Text(so_far) | FoldedBlock::Thinking { text: so_far, .. }) => so_far.push_str(text),
                Some(FoldedBlock::Call { json, .. }) => json.push(text),
                Some(FoldedBlock::Done(_)) | None => {}
            },
            StreamEvent::BlockEnd { index, block } => {
                if let Some(slot) = self.blocks.get_mut(*index) {
                    *slot = FoldedBlock::Done(Arc::clone(block));
                }
            }
            StreamEvent::Usage(usage) => Arc::make_mut(&mut self.base).usage = **usage,
            StreamEvent::End(finished) => {
                self.base = Arc::clone(&finished.message);
                self.blocks = finished.message.content.iter().cloned().map(FoldedBlock::Done).collect();
                self.ended = true;
            }
        }
    }

    /// Returns the message so far. Its stop reason is `Pending` until the end.
    pub fn message(&self) -> Arc<AssistantMessage> {
        if self.ended {
            return Arc::clone(&self.base);
        }
        let mut message = (*self.base).clone();
        message.content = (0..self.blocks.len()).filter_map(|index| self.block(index)).collect();
        message.stop_reason = StopReason::Pending;
        Arc::new(message)
    }

    /// Returns one block so far, e.g. to show the arguments of a call that is still arriving.
    pub fn block(&self, index: usize) -> Option<Arc<Block>> {
        Some(match self.blocks.get(index)? {
            FoldedBlock::Done(block) => Arc::clone(block),
            FoldedBlock::Text(text) => Arc::new(Block::Text(Text { text: text.clone(), signature: None })),
            FoldedBlock::Thinking { text, redacted } => {
                Arc::new(Block::Thinking(Thinking { thinking: text.clone(), signature: None, redacted: *redacted }))
            }
            FoldedBlock::Call { call, json } => {
                let mut call = (**call).clone();
                call.arguments = json.object();
                Arc::new(Block::ToolCall(call))
            }
        })
    }
}
