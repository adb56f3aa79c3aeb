//! Replaces images with notes for models that cannot or must not see them.

use std::sync::Arc;

use crate::message::{Block, Content, Message, ToolResult, UserMessage};
use crate::model::Model;
use crate::model::limits::ImageCounts;

const USER_NOTE: &str = "(image omitted: model does not support images)";
const TOOL_NOTE: &str = "(tool image omitted: model does not support images)";

const TOO_MANY_IN_MESSAGE: &str = "(image omitted: more images in a message than the model takes)";
const TOO_MANY_IN_REQUEST: &str = "(image omitted: more images in a conversation than the model takes)";

/// Limits images to the number that a model accepts: the first ones of a message, and the newest of the conversation. A note replaces each
/// run of others.
pub(super) fn limited(messages: &mut [Arc<Message>], counts: ImageCounts) {
    if counts == ImageCounts::default() {
        return;
    }
    let mut left = counts.per_request.unwrap_or(usize::MAX);
    for message in messages.iter_mut().rev() {
        let n_images = blocks_of(message).map_or(0, n_images);
        if n_images == 0 {
            continue;
        }
        let n_kept = n_images.min(counts.per_message.unwrap_or(usize::MAX));
        // In the oldest message with room left, the last images are the newest.
        let n_gone = n_kept.saturating_sub(left);
        left -= n_kept - n_gone;
        if n_kept < n_images {
            *message = with_blocks(message, |blocks| replaced_where(blocks, TOO_MANY_IN_MESSAGE, |at| at >= n_kept));
        }
        if n_gone > 0 {
            *message = with_blocks(message, |blocks| replaced_where(blocks, TOO_MANY_IN_REQUEST, |at| at < n_gone));
        }
    }
}

fn blocks_of(message: &Message) -> Option<&[Block]> {
    match message {
        Message::User(UserMessage { content: Content::Blocks(blocks), .. }) => Some(blocks),
        Message::ToolResult(result) => Some(&result.content),
        _ => None,
    }
}

fn n_images(blocks: &[Block]) -> usize {
    blocks.iter().filter(|block| matches!(block, Block::Image(_))).count()
}

fn with_blocks(message: &Arc<Message>, change: impl FnOnce(&[Block]) -> Vec<Block>) -> Arc<Message> {
    match &**message {
        Message::User(user @ UserMessage { content: Content::Blocks(blocks), .. }) => {
            let content = Content::Blocks(change(blocks));
            Arc::new(Message::User(UserMessage { content, ..user.clone() }))
        }
        Message::ToolResult(result) => {
            Arc::new(Message::ToolResult(ToolResult { content: change(&result.content), ..result.clone() }))
        }
        _ => Arc::clone(message),
    }
}

/// Returns the message as a model accepts it: unchanged for models with vision.
pub(super) fn without(message: Arc<Message>, target: &Model) -> Arc<Message> {
    if target.images { message } else { without_images(&message, USER_NOTE, TOOL_NOTE) }
}

/// Replaces each run of images in the message with a note, one text for user messages and one for tool results. A message without images is
/// returned unchanged.
pub fn without_images(message: &Arc<Message>, user_note: &str, tool_note: &str) -> Arc<Message> {
    match &**message {
        Message::User(user @ UserMessage { content: Content::Blocks(blocks), .. }) if has_image(blocks) => {
            let content = Content::Blocks(replaced(blocks, user_note));
            Arc::new(Message::User(UserMessage { content, ..user.clone() }))
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

/// Replaces each run of images with a note.
fn replaced(blocks: &[Block], note: &str) -> Vec<Block> {
    replaced_where(blocks, note, |_| true)
}

/// Replaces each run of images for whose index `goes` returns true with a note.
fn replaced_where(blocks: &[Block], note: &str, goes: impl Fn(usize) -> bool) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::with_capacity(blocks.len());
    let mut at = 0;
    for block in blocks {
        let is_image = matches!(block, Block::Image(_));
        at += usize::from(is_image);
        match is_image && goes(at - 1) {
            true if out.last().and_then(Block::as_text) == Some(note) => {}
            true => out.push(Block::text(note)),
            false => out.push(block.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Image;

    fn message(n_images: usize) -> Arc<Message> {
        let image = |n: usize| Block::Image(Image { data: n.to_string(), mime_type: "image/png".into() });
        let blocks = std::iter::once(Block::text("t")).chain((0..n_images).map(image)).collect();
        Arc::new(Message::User(UserMessage::new(Content::Blocks(blocks), 0)))
    }

    /// Renders the result: `i` an image, `m` and `r` the two notes, `t` the text.
    #[track_caller]
    fn check(given: &[usize], per_message: Option<usize>, per_request: Option<usize>, expected: &[&str]) {
        let mut messages: Vec<_> = given.iter().map(|n| message(*n)).collect();
        limited(&mut messages, ImageCounts { per_message, per_request });
        let word = |block: &Block| match block.as_text() {
            None => 'i',
            Some(TOO_MANY_IN_MESSAGE) => 'm',
            Some(TOO_MANY_IN_REQUEST) => 'r',
            Some(_) => 't',
        };
        let left: Vec<String> =
            messages.iter().map(|message| blocks_of(message).unwrap().iter().map(word).collect()).collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn the_newest_images_of_a_request_and_the_first_of_a_message_stay() {
        check(&[2, 0, 3], None, None, &["tii", "t", "tiii"]);
        check(&[2, 0, 3], Some(2), None, &["tii", "t", "tiim"]);
        check(&[2, 0, 3], None, Some(4), &["tri", "t", "tiii"]);
        check(&[2, 1, 3], None, Some(3), &["tr", "tr", "tiii"]);
        check(&[4], Some(3), Some(1), &["trim"]);
    }

    #[test]
    fn images_of_results_are_limited_and_replaced_too() {
        let image = || Block::Image(Image { data: "d".into(), mime_type: "image/png".into() });
        let call = crate::message::ToolCall::new("c", "read", Default::default());
        let mut result = ToolResult::text(&call, "t", false, 0);
        result.content.extend([image(), image(), image()]);
        let result = Arc::new(Message::ToolResult(result));
        let texts = |message: &Arc<Message>| -> Vec<String> {
            blocks_of(message).unwrap().iter().map(|block| block.as_text().unwrap_or("image").to_owned()).collect()
        };
        let mut messages = [Arc::clone(&result)];
        limited(&mut messages, ImageCounts { per_message: Some(2), per_request: None });
        assert_eq!(texts(&messages[0]), ["t", "image", "image", TOO_MANY_IN_MESSAGE]);
        assert_eq!(texts(&without_images(&result, "user", "tool")), ["t", "tool"]);
        assert_eq!(texts(&without_images(&message(2), "user", "tool")), ["t", "user"]);
    }

    #[test]
    fn messages_without_surplus_images_are_shared() {
        let (none, two) = (message(0), message(2));
        assert!(Arc::ptr_eq(&without_images(&none, "", ""), &none));
        let call = crate::message::ToolCall::new("c", "read", Default::default());
        let result = Arc::new(Message::ToolResult(ToolResult::text(&call, "t", false, 0)));
        assert!(Arc::ptr_eq(&without_images(&result, "", ""), &result));
        let mut messages = [Arc::clone(&two)];
        limited(&mut messages, ImageCounts { per_message: Some(2), per_request: Some(2) });
        assert!(Arc::ptr_eq(&messages[0], &two));
    }
}
