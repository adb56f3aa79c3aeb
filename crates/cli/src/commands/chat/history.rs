//! Stored answers as they were displayed: without tags, directives and silent replies.

use std::sync::Arc;

use pinch_embed::llm::message::{AssistantMessage, Block, Message};
use pinch_embed::replies::directives::DirectiveRules;
use pinch_embed::replies::partial::PartialText;
use pinch_embed::replies::scan::FinalTag;
use pinch_embed::replies::tokens::is_silent;
use pinch_embed::replies::user_text::visible_text;
use pinch_embed::texts::TextTable;

/// Returns the last messages as they were displayed.
pub(super) fn shown(messages: &[Arc<Message>], limit: usize) -> Vec<Arc<Message>> {
    messages[messages.len().saturating_sub(limit)..].iter().map(shown_message).collect()
}

fn shown_message(message: &Arc<Message>) -> Arc<Message> {
    let Message::Assistant(answer) = &**message else { return Arc::clone(message) };
    let mut answer = AssistantMessage::clone(answer);
    for block in &mut answer.content {
        if let Block::Text(text) = &**block {
            let visible = visible_text(std::slice::from_ref(block), FinalTag::Optional, &TextTable::default());
            let shown = if is_silent(&visible) { String::new() } else { without_directives(&visible) };
            if shown != text.text {
                *block = Arc::new(Block::text(shown));
            }
        }
    }
    Arc::new(Message::Assistant(Arc::new(answer)))
}

/// Returns a text as it was displayed when it arrived.
fn without_directives(text: &str) -> String {
    let mut partial = PartialText::new(DirectiveRules::default());
    let mut shown = String::new();
    for growth in partial.push(text).into_iter().chain(partial.settle()) {
        shown.truncate(shown.floor_char_boundary(growth.at));
        shown.push_str(&growth.restored);
        shown.push_str(&growth.delta);
    }
    shown
}

#[cfg(test)]
mod tests {
    use pinch_embed::llm::ids::{ApiId, ModelId, ProviderId};

    use super::*;

    #[test]
    fn stored_answers_are_shown_as_they_were_when_they_arrived() {
        assert_eq!(without_directives("[[reply_to_current]] Hello\nthere"), "Hello\nthere");
        let (api, provider, model) = (ApiId::new("a"), ProviderId::new("p"), ModelId::new("m"));
        let mut answer = AssistantMessage::pending(api, provider, model, 0);
        answer.content = vec![Arc::new(Block::text("<think>hm</think>Hi")), Arc::new(Block::text("NO_REPLY"))];
        let messages = [Arc::new(Message::Assistant(Arc::new(answer)))];
        let [message] = &shown(&messages, 5)[..] else { panic!("one message") };
        let Message::Assistant(answer) = &**message else { panic!("an answer") };
        assert_eq!(answer.text("|"), "Hi|");
        assert!(shown(&messages, 0).is_empty());
    }
}
