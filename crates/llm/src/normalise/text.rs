//! Blank texts, broken images, and the origin of messages.

use std::sync::Arc;

use super::edit::{self, BlockEdit};
use crate::message::{AssistantMessage, Block, Content, Image, Message, StopReason, UserMessage};
use crate::model::transcript::TranscriptRules;

use super::thinking;

/// Label in notes that replace images of a history.
const LABEL: &str = "session:history";

/// The first line of a message that another session sent.
const INTER_SESSION: &str = "[Inter-session message]";

/// Replaces a user message without content.
const BLANK: &str = "(empty message)";

/// Cleans the content of every message: broken images become notes, and, if the rules say so, blank texts and answers without content are
/// removed.
pub fn clean(messages: &[Arc<Message>], rules: &TranscriptRules) -> Vec<Arc<Message>> {
    let each = |message: &Arc<Message>| match &**message {
        Message::User(_) | Message::ToolResult(_) => {
            Some(edit::given(message, checked_image).unwrap_or_else(|| Arc::clone(message)))
        }
        Message::Assistant(answer) if rules.clean_content && answer.stop_reason != StopReason::Error => {
            clean_answer(message, answer, rules)
        }
        _ => Some(Arc::clone(message)),
    };
    messages.iter().filter_map(each).collect()
}

fn clean_answer(message: &Arc<Message>, answer: &AssistantMessage, rules: &TranscriptRules) -> Option<Arc<Message>> {
    if rules.keep_signatures {
        return Some(Arc::clone(message));
    }
    let edited = edit::answer(answer, |block| match block {
        Block::Text(text) if text.text.trim().is_empty() => BlockEdit::Drop,
        block => {
            thinking::without_foreign_signature(block, rules.base64_signatures).map_or(BlockEdit::Keep, BlockEdit::Put)
        }
    });
    match edited {
        None if answer.content.is_empty() => None,
        None => Some(Arc::clone(message)),
        Some(edited) if edited.content.is_empty() => None,
        Some(edited) => Some(Arc::new(Message::Assistant(edited))),
    }
}

/// Replaces an image without data with a note, and corrects a wrong type.
fn checked_image(block: &Block) -> BlockEdit {
    let Block::Image(image) = block else { return BlockEdit::Keep };
    if image.data.trim().is_empty() {
        return BlockEdit::Put(Block::text(format!("[{LABEL}] omitted empty image payload")));
    }
    let known = [("/9j/", "image/jpeg"), ("iVBOR", "image/png"), ("R0lGOD", "image/gif")];
    match known.iter().find(|(head, _)| image.data.starts_with(head)) {
        Some((_, mime_type)) if image.mime_type != *mime_type => {
            BlockEdit::Put(Block::Image(Image { mime_type: (*mime_type).to_owned(), ..image.clone() }))
        }
        _ => BlockEdit::Keep,
    }
}

/// Marks messages sent by another session, so that the model does not mistake them for the user's own.
pub fn mark_inter_session(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    messages.iter().map(|message| marked(message).unwrap_or_else(|| Arc::clone(message))).collect()
}

fn marked(message: &Message) -> Option<Arc<Message>> {
    let Message::User(user) = message else { return None };
    let provenance = user.provenance.as_ref().filter(|provenance| provenance.is_inter_session())?;
    let first = match &user.content {
        Content::Text(text) => text.as_str(),
        Content::Blocks(blocks) => blocks.iter().find_map(Block::as_text).unwrap_or_default(),
    };
    if first.starts_with(INTER_SESSION) {
        return None;
    }
    let mut mark = INTER_SESSION.to_owned();
    let named = [
        ("sourceSession", &provenance.source_session_key),
        ("sourceChannel", &provenance.source_channel),
        ("sourceTool", &provenance.source_tool),
    ];
    for (name, value) in named {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            mark.push_str(&format!(" {name}={value}"));
        }
    }
    let content = match &user.content {
        Content::Text(text) => Content::Text(format!("{mark}\n{text}")),
        Content::Blocks(blocks) => {
            let mut blocks = blocks.clone();
            match blocks.iter_mut().find_map(|block| if let Block::Text(text) = block { Some(text) } else { None }) {
                Some(text) => text.text = format!("{mark}\n{}", text.text),
                None => blocks.insert(0, Block::text(mark)),
            }
            Content::Blocks(blocks)
        }
    };
    // The mark now tells the model as well.
    Some(Arc::new(Message::User(UserMessage::new(content, user.timestamp))))
}

/// Replaces user messages that have neither text nor image with a note.
pub(super) fn without_blanks(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let is_blank = |user: &UserMessage| match &user.content {
        Content::Text(text) => text.trim().is_empty(),
        Content::Blocks(blocks) => {
            blocks.iter().all(|block| block.as_text().is_some_and(|text| text.trim().is_empty()))
        }
    };
    let each = |message: Arc<Message>| match &*message {
        Message::User(user) if is_blank(user) => edit::user_with(&message, Content::Text(BLANK.to_owned())),
        _ => message,
    };
    messages.into_iter().map(each).collect()
}
