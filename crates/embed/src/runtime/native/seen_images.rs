//! Leaves out images that the model has answered long ago.

use std::sync::Arc;

use pinch_llm::message::{Block, Content, Message};

/// Number of answered turns whose images are kept, for questions about them.
const KEPT_TURNS: usize = 3;
/// What the model sees instead of an image.
const NOTE: &str = "[An image of an earlier turn was here; it is no longer attached.]";

/// Replaces the images in messages of the user by notes, except in the current turn and in the last answered ones. Sending them with every
/// request costs more than sending the rest of the conversation once more.
pub(super) fn leave_out(messages: &mut [Arc<Message>]) {
    let is_end = |message: &Message| {
        message
            .as_assistant()
            .is_some_and(|answer| !answer.stop_reason.is_failure() && answer.tool_calls().next().is_none())
    };
    let mut ends = messages.iter().enumerate().rev().filter(|(_, message)| is_end(message));
    let Some((end, _)) = ends.nth(KEPT_TURNS) else { return };
    for message in &mut messages[..end] {
        let Message::User(user) = &**message else { continue };
        let Content::Blocks(blocks) = &user.content else { continue };
        if !blocks.iter().any(is_image) {
            continue;
        }
        let mut user = user.clone();
        let note = |block: &Block| if is_image(block) { Block::text(NOTE) } else { block.clone() };
        user.content = Content::Blocks(blocks.iter().map(note).collect());
        *message = Arc::new(Message::User(user));
    }
}

fn is_image(block: &Block) -> bool {
    matches!(block, Block::Image(_))
}

#[cfg(test)]
mod tests {
    use pinch_llm::message::{Image, UserMessage};
    use serde_json::json;

    use super::*;

    #[test]
    fn images_of_the_last_turns_are_kept() {
        let asked = |n: usize| {
            let image = Image { data: "AAAA".to_owned(), mime_type: "image/png".to_owned() };
            let content = Content::Blocks(vec![Block::text(format!("question {n}")), Block::Image(image)]);
            Arc::new(Message::User(UserMessage::new(content, 0)))
        };
        let record = json!({
            "role": "assistant", "content": [{"type": "text", "text": "answer"}], "api": "a", "provider": "p", "model": "m", "stopReason": "stop",
            "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}, "timestamp": 0
        });
        let answered = || Arc::new(Message::from_value(&record).unwrap());
        let mut messages: Vec<Arc<Message>> = (0..6).flat_map(|n| [asked(n), answered()]).chain([asked(6)]).collect();
        leave_out(&mut messages);
        let has_image = |message: &Arc<Message>| match &**message {
            Message::User(user) => Some(user.content.images().count() > 0),
            _ => None,
        };
        let kept: Vec<bool> = messages.iter().filter_map(has_image).collect();
        assert_eq!(kept, [false, false, false, true, true, true, true]);
    }
}
