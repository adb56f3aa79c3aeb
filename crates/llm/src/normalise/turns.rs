//! Turns: how a conversation starts, and which roles may follow each other.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{calls, edit};
use crate::message::{AssistantMessage, Block, Content, Message, OtherMessage, StopReason, UserMessage};

/// The role of messages that are neither the user's nor the model's.
const DEVELOPER: &str = "developer";

/// Starts a conversation that has lost its beginning.
const BOOTSTRAP: &str = "(session bootstrap)";

/// Replaces an answer that consisted only of calls without results.
const CALLS_OMITTED: &str = "[tool calls omitted]";

/// Replaces an answer that broke off.
const BROKEN_OFF: &str = "[This answer failed before it was complete.]";

/// Returns whether the first turn is an answer.
pub fn begins_with_answer(messages: &[Arc<Message>]) -> bool {
    let first = messages.iter().find(|message| !matches!(***message, Message::System(_)));
    first.is_some_and(|message| matches!(**message, Message::Assistant(_)))
}

/// Prepends a user message to a conversation that starts with an answer.
pub fn user_first(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut messages = messages.to_vec();
    if begins_with_answer(&messages) {
        let at = messages.iter().position(|message| matches!(**message, Message::Assistant(_))).unwrap_or(0);
        // Timestamp 0, because equal histories must give equal requests, and it is older than everything else.
        let message = UserMessage::new(Content::Text(BOOTSTRAP.to_owned()), 0);
        messages.insert(at, Arc::new(Message::User(message)));
    }
    messages
}

/// Kinds of messages that are merged with the previous one of the same role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Answers.
    pub answers: bool,
    /// User messages.
    pub users: bool,
    /// Messages with the role `developer`.
    pub developers: bool,
}

/// Merges consecutive messages of the same role. Merged messages are extended in place, so that a long run takes linear time.
pub fn merge(messages: &[Arc<Message>], which: Merged) -> Vec<Arc<Message>> {
    let mut out: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    for message in messages {
        let fits = out.last().is_some_and(|before| match (&**before, &**message) {
            (Message::Assistant(_), Message::Assistant(_)) => which.answers,
            (Message::User(_), Message::User(_)) => which.users,
            (Message::Other(before), Message::Other(after)) => {
                which.developers && before.role() == DEVELOPER && after.role() == DEVELOPER
            }
            _ => false,
        });
        match out.pop_if(|_| fits) {
            Some(before) => out.push(Arc::new(merged(Arc::unwrap_or_clone(before), message))),
            None => out.push(Arc::clone(message)),
        }
    }
    out
}

/// Merges two messages of one role.
fn merged(before: Message, after: &Message) -> Message {
    match (before, after) {
        (Message::Assistant(before), Message::Assistant(after)) => Message::Assistant(merged_answer(before, after)),
        (Message::User(before), Message::User(after)) => Message::User(merged_user(before, after)),
        (Message::Other(before), Message::Other(after)) => Message::Other(merged_developer(before, after)),
        (before, _) => before,
    }
}

/// Merges both contents, with the stop reason of the later answer.
fn merged_answer(mut before: Arc<AssistantMessage>, after: &AssistantMessage) -> Arc<AssistantMessage> {
    let merged = Arc::make_mut(&mut before);
    merged.content.extend(after.content.iter().cloned());
    merged.stop_reason = after.stop_reason;
    if after.raw_stop_reason.is_some() {
        merged.raw_stop_reason.clone_from(&after.raw_stop_reason);
    }
    if after.error_message.is_some() {
        merged.error_message.clone_from(&after.error_message);
    }
    if !after.usage.is_zero() {
        merged.usage = after.usage;
    }
    before
}

/// Merges both contents; everything else is from the later message, including its timestamp if it has one.
fn merged_user(before: UserMessage, after: &UserMessage) -> UserMessage {
    let blocks = |content: Content| match content {
        Content::Text(text) => vec![Block::text(text)],
        Content::Blocks(blocks) => blocks,
    };
    let mut content = blocks(before.content);
    let mut merged = after.clone();
    content.extend(blocks(std::mem::take(&mut merged.content)));
    if after.timestamp == 0 {
        merged.timestamp = before.timestamp;
    }
    UserMessage { content: Content::Blocks(content), ..merged }
}

fn merged_developer(before: OtherMessage, after: &OtherMessage) -> OtherMessage {
    let blocks = |content: Option<Value>| match content {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    let mut before = before.raw;
    let mut raw = after.raw.clone();
    if let (None, Some(timestamp)) = (raw.get("timestamp"), before.get("timestamp")) {
        raw.insert("timestamp".to_owned(), timestamp.clone());
    }
    let mut content = blocks(before.get_mut("content").map(Value::take));
    content.extend(blocks(raw.get_mut("content").map(Value::take)));
    raw.insert("content".to_owned(), content.into());
    OtherMessage { raw }
}

/// Removes calls that are followed by a user message instead of their results. Results inside that message are considered.
pub fn without_dangling(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let each = |(at, message): (usize, &Arc<Message>)| {
        let (Message::Assistant(answer), Some(Message::User(user))) =
            (&**message, messages.get(at + 1).map(|next| &**next))
        else {
            return Arc::clone(message);
        };
        let answered = answered_inside(user);
        let edited = edit::answer(answer, |block| {
            let id = match block {
                Block::ToolCall(call) => Some(call.id.as_str()),
                Block::Other(raw) if calls::is_call(&raw.raw) => Some(raw.raw["id"].as_str().unwrap_or_default()),
                _ => None,
            };
            if id.is_some_and(|id| !answered.contains(id)) { edit::BlockEdit::Drop } else { edit::BlockEdit::Keep }
        });
        match edited {
            None => Arc::clone(message),
            Some(edited) if edited.content.is_empty() => {
                let text = Arc::new(Block::text(CALLS_OMITTED));
                Arc::new(Message::Assistant(edit::with_content(answer, vec![text])))
            }
            Some(edited) => Arc::new(Message::Assistant(edited)),
        }
    };
    messages.iter().enumerate().map(each).collect()
}

/// Returns the calls for which a user message contains results, as other programs write them.
fn answered_inside(user: &UserMessage) -> HashSet<&str> {
    let blocks = match &user.content {
        Content::Text(_) => &[][..],
        Content::Blocks(blocks) => blocks,
    };
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Other(raw) if matches!(raw.raw["type"].as_str(), Some("toolResult" | "tool_result")) => {
                ["toolUseId", "tool_use_id", "toolCallId"].iter().find_map(|name| raw.raw[*name].as_str())
            }
            _ => None,
        })
        .collect()
}

/// Removes failed answers. If the user saw part of one and replied to it, a note replaces it.
pub(super) fn without_failed(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    // Backwards: whether the next non-system message is from the user.
    let mut is_answered = false;
    let mut answered: Vec<bool> = Vec::with_capacity(messages.len());
    for message in messages.iter().rev() {
        answered.push(is_answered);
        match &**message {
            Message::System(_) => {}
            other => is_answered = matches!(other, Message::User(_)),
        }
    }
    answered.reverse();
    let each = |(message, is_answered): (Arc<Message>, bool)| {
        let Some(answer) = message.as_assistant().filter(|answer| answer.stop_reason.is_failure()) else {
            return Some(message);
        };
        let has_text = answer.content.iter().any(|block| block.as_text().is_some_and(|text| !text.trim().is_empty()));
        (has_text && is_answered).then(|| {
            let mut note = AssistantMessage::clone(answer);
            note.content = vec![Arc::new(Block::text(BROKEN_OFF))];
            (note.stop_reason, note.error_message) = (StopReason::Stop, None);
            Arc::new(Message::Assistant(Arc::new(note)))
        })
    };
    messages.into_iter().zip(answered).filter_map(each).collect()
}

/// Removes answers without text and calls, because a server would see two consecutive user messages.
pub(super) fn without_silent(mut messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let says = |block: &Arc<Block>| match &**block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::ToolCall(_) => true,
        Block::Thinking(_) | Block::Image(_) | Block::Other(_) => false,
    };
    messages.retain(|message| message.as_assistant().is_none_or(|answer| answer.content.iter().any(says)));
    messages
}

/// Removes answers at the end, which a server would take for the start of the next answer.
pub(super) fn without_prefill(mut messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    while messages.last().is_some_and(|message| matches!(**message, Message::Assistant(_))) {
        messages.pop();
    }
    messages
}

/// Removes copies of messages that were delivered outside the conversation.
pub(super) fn without_mirrors(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let is_mirror = |message: &Arc<Message>| {
        message.as_assistant().is_some_and(|answer| {
            answer.model == "delivery-mirror" && matches!(answer.provider.as_str(), "openclaw" | "pinch")
        })
    };
    messages.iter().filter(|message| !is_mirror(message)).cloned().collect()
}
