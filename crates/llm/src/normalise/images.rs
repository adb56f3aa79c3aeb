//! Images for models that cannot see, or must not: a note in their place.

use std::sync::Arc;

use crate::message::{Block, Content, Message, ToolResult, UserMessage};
use crate::model::Model;

const USER_NOTE: &str = "(image omitted: model does not support images)";
const TOOL_NOTE: &str = "(tool image omitted: model does not support images)";

/// The message as a model can take it: unchanged for models that see.
pub(super) fn without(message: Arc<Message>, target: &Model) -> Arc<Message> {
    if target.images { message } else { without_images(&message, USER_NOTE, TOOL_NOTE) }
}

/// The message with one note in the place of each run of images, one for what users say and one for what tools found. A message that has no image
/// is the same as before.
pub fn without_images(message: &Arc<Message>, user_note: &str, tool_note: &str) -> Arc<Message> {
    match &**message {
        Message::User(UserMessage { content: Content::Blocks(blocks), timestamp }) if has_image(blocks) => {
            let content = Content::Blocks(replaced(blocks, user_note));
            Arc::new(Message::User(UserMessage { content, timestamp: *timestamp }))
        }
        Message::ToolResult(result) if has_image(&result.content) => {
            let content = replaced(&result.content, tool_note);
            Arc::new(Message::ToolResult(ToolResult { content, ..result.clone() }))
        }
        _ => Arc::clone(message),
    }
}

fn has_image(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| matches!(block, Block::Image(_)))
}

/// Puts one note in the place of each run of images.
fn replaced(blocks: &[Block], note: &str) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Image(_) if out.last().and_then(Block::as_text) == Some(note) => {}
            Block::Image(_) => out.push(Block::text(note)),
            other => out.push(other.clone()),
        }
    }
    out
}
