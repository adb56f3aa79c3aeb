//! The server's side: events to lines.

use std::sync::Arc;

use futures::{Stream, StreamExt};
use pinch_llm::event::{BlockKind, EventStream, Finished, Fold, StreamEvent};
use pinch_llm::message::{AssistantMessage, Block, Message};
use serde_json::{Map, Value, json};

use super::failure;

/// Returns the lines of an answer, each followed by a blank line, so that readers of server-sent events understand them, too.
///
/// Lines are created on demand; dropping the stream drops the answer.
pub fn lines(events: EventStream) -> impl Stream<Item = String> + Send + 'static {
    let mut writer = LineWriter::new();
    events.map(move |event| writer.line(&event))
}

/// Writes the events of one answer in order.
///
/// It tracks what the client can rebuild, and writes in full only what would differ otherwise.
#[derive(Debug, Default)]
pub struct LineWriter {
    fold: Fold,
    /// Event names for each block.
    names: Vec<&'static str>,
}

impl LineWriter {
    /// Creates a writer before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the line for the next event.
    pub fn line(&mut self, event: &StreamEvent) -> String {
        let encoded = match event {
            StreamEvent::Start(message) => json!({"type": "start", "message": head(message)}),
            StreamEvent::BlockStart { index, kind } => self.block_start(*index, kind),
            StreamEvent::Delta { index, text } => {
                json!({"type": format!("{}_delta", self.name(*index)), "contentIndex": index, "delta": text})
            }
            StreamEvent::BlockEnd { index, block } => self.block_end(*index, block),
            StreamEvent::Usage(usage) => json!({"type": "usage", "usage": usage}),
            StreamEvent::End(finished) => self.end(finished),
        };
        self.fold.push(event);
        format!("data: {encoded}\n\n")
    }

    fn name(&self, index: usize) -> &'static str {
        self.names.get(index).copied().unwrap_or("text")
    }

    fn block_start(&mut self, index: usize, kind: &BlockKind) -> Value {
        let (name, encoded) = match kind {
            BlockKind::Text | BlockKind::Commentary => ("text", json!({"type": "text_start", "contentIndex": index})),
            BlockKind::Thinking { redacted: false } => {
                ("thinking", json!({"type": "thinking_start", "contentIndex": index}))
            }
            BlockKind::Thinking { redacted: true } => {
                ("thinking", json!({"type": "thinking_start", "contentIndex": index, "redacted": true}))
            }
            BlockKind::ToolCall { id, name } => (
                "toolcall",
                json!({"type": "toolcall_start", "contentIndex": index, "id": id.as_str(), "toolName": name}),
            ),
        };
        self.names.push(name);
        encoded
    }

    fn block_end(&self, index: usize, block: &Arc<Block>) -> Value {
        let mut encoded = json!({"type": format!("{}_end", self.name(index)), "contentIndex": index});
        if let Some(signature) = signature_of(block) {
            encoded["contentSignature"] = signature.into();
        }
        if rebuilt(&self.fold, index, signature_of(block)).as_ref() != Some(&**block) {
            encoded["block"] = json!(**block);
        }
        encoded
    }

    fn end(&self, finished: &Finished) -> Value {
        let message = &finished.message;
        let reason = message.stop_reason.as_str();
        let mut encoded = match message.stop_reason.is_failure() {
            false => json!({"type": "done", "reason": reason, "usage": message.usage}),
            true => json!({
                "type": "error", "reason": reason, "errorMessage": message.error_message, "usage": message.usage,
            }),
        };
        let mut head = head(message);
        if self.fold.message().content != message.content {
            head.insert("content".into(), message.content.iter().map(|block| json!(**block)).collect());
        }
        encoded["message"] = head.into();
        if let Some(error) = &finished.error {
            encoded["error"] = failure::write(error);
        }
        encoded
    }
}

/// Serializes a message without its content.
fn head(message: &Arc<AssistantMessage>) -> Map<String, Value> {
    let mut empty = (**message).clone();
    empty.content.clear();
    let mut head = match Message::Assistant(Arc::new(empty)).to_value() {
        Value::Object(head) => head,
        _ => Map::new(),
    };
    head.shift_remove("content");
    head
}

fn signature_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text(text) => text.signature.as_deref(),
        Block::Thinking(thinking) => thinking.signature.as_deref(),
        Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
    }
}

/// Rebuilds a block from its deltas and signature.
pub(super) fn rebuilt(fold: &Fold, index: usize, signature: Option<&str>) -> Option<Block> {
    let mut block = Arc::unwrap_or_clone(fold.block(index)?);
    match &mut block {
        Block::Text(text) => text.signature = signature.map(str::to_owned),
        Block::Thinking(thinking) => thinking.signature = signature.map(str::to_owned),
        Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => {}
    }
    Some(block)
}
