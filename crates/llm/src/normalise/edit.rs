//! Editing messages without copying unchanged ones.

use std::sync::Arc;

use crate::message::{AssistantMessage, Block, Content, Message, ToolResult, UserMessage};

/// The edit of a block.
pub(super) enum BlockEdit {
    /// Keep it.
    Keep,
    /// Remove it.
    Drop,
    /// Replace it with this block.
    Put(Block),
}

/// Returns the answer with its blocks edited, or `None` if all of them stay.
pub(super) fn answer(
    message: &AssistantMessage,
    mut edit: impl FnMut(&Block) -> BlockEdit,
) -> Option<Arc<AssistantMessage>> {
    let mut changed: Option<Vec<Arc<Block>>> = None;
    for (at, block) in message.content.iter().enumerate() {
        let edited = edit(block);
        if !matches!(edited, BlockEdit::Keep) {
            changed.get_or_insert_with(|| message.content[..at].to_vec());
        }
        let Some(blocks) = &mut changed else { continue };
        match edited {
            BlockEdit::Keep => blocks.push(Arc::clone(block)),
            BlockEdit::Drop => {}
            BlockEdit::Put(block) => blocks.push(Arc::new(block)),
        }
    }
    changed.map(|content| with_content(message, content))
}

/// Returns the answer with other content.
pub(super) fn with_content(message: &AssistantMessage, content: Vec<Arc<Block>>) -> Arc<AssistantMessage> {
    Arc::new(AssistantMessage { content, ..message.clone() })
}

/// Returns a user message or a tool result with its blocks edited, or `None` if all of them stay.
pub(super) fn given(message: &Message, mut edit: impl FnMut(&Block) -> BlockEdit) -> Option<Arc<Message>> {
    match message {
        Message::User(UserMessage { content: Content::Blocks(blocks), .. }) => {
            let content = Content::Blocks(edited(blocks, &mut edit)?);
            Some(user_with(message, content))
        }
        Message::ToolResult(result) => {
            let content = edited(&result.content, &mut edit)?;
            Some(Arc::new(Message::ToolResult(ToolResult { content, ..result.clone() })))
        }
        _ => None,
    }
}

/// Returns a user message with other content; any other message stays unchanged.
pub(super) fn user_with(message: &Message, content: Content) -> Arc<Message> {
    Arc::new(match message {
        Message::User(user) => Message::User(UserMessage { content, ..user.clone() }),
        other => other.clone(),
    })
}

fn edited(blocks: &[Block], edit: &mut impl FnMut(&Block) -> BlockEdit) -> Option<Vec<Block>> {
    let edits: Vec<BlockEdit> = blocks.iter().map(edit).collect();
    if edits.iter().all(|edit| matches!(edit, BlockEdit::Keep)) {
        return None;
    }
    let put = |(block, edit): (&Block, BlockEdit)| match edit {
        BlockEdit::Keep => Some(block.clone()),
        BlockEdit::Drop => None,
        BlockEdit::Put(block) => Some(block),
    };
    Some(blocks.iter().zip(edits).filter_map(put).collect())
}

/// Edits every answer and removes those that become empty.
pub(super) fn answers(
    messages: &[Arc<Message>],
    mut edit: impl FnMut(&AssistantMessage) -> Option<Arc<AssistantMessage>>,
) -> Vec<Arc<Message>> {
    let each = |message: &Arc<Message>| match message.as_assistant().and_then(|answer| edit(answer)) {
        None => Some(Arc::clone(message)),
        Some(answer) if answer.content.is_empty() => None,
        Some(answer) => Some(Arc::new(Message::Assistant(answer))),
    };
    messages.iter().filter_map(each).collect()
}
