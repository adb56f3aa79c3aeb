//! Turns: who begins a conversation, and who may speak twice in a row.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{calls, edit};
use crate::message::{AssistantMessage, Block, Content, Message, OtherMessage, StopReason, UserMessage};

/// The role of messages that are not the user's and not the model's.
const DEVELOPER: &str = "developer";

/// Begins a conversation that has lost its beginning.
const BOOTSTRAP: &str = "(session bootstrap)";

/// Stands for an answer of which only calls without results were left.
const CALLS_OMITTED: &str = "[tool calls omitted]";

/// Stands for an answer that broke off.
const BROKEN_OFF: &str = "[This answer failed before it was complete.]";

/// Whether the first turn is an answer.
pub fn begins_with_answer(messages: &[Arc<Message>]) -> bool {
    let first = messages.iter().find(|message| !matches!(***message, Message::System(_)));
    first.is_some_and(|message| matches!(**message, Message::Assistant(_)))
}

/// The conversation with a user message in front if it begins with an answer.
pub fn user_first(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut messages = messages.to_vec();
    if begins_with_answer(&messages) {
        let at = messages.iter().position(|message| matches!(**message, Message::Assistant(_))).unwrap_or(0);
        // Without a time: equal histories give equal requests, and it is older than everything else.
        let message = UserMessage::new(Content::Text(BOOTSTRAP.to_owned()), 0);
        messages.insert(at, Arc::new(Message::User(message)));
    }
    messages
}

/// Which messages are merged with the one before when both have the same role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Answers.
    pub answers: bool,
    /// User messages.
    pub users: bool,
    /// Messages of role `developer`.
    pub developers: bool,
}

/// Merges consecutive messages of the same role. What has been merged is extended in place, so that a long run of messages costs its length.
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

/// Two messages of one role as one.
fn merged(before: Message, after: &Message) -> Message {
    match (before, after) {
        (Message::Assistant(before), Message::Assistant(after)) => Message::Assistant(merged_answer(before, after)),
        (Message::User(before), Message::User(after)) => Message::User(merged_user(before, after)),
        (Message::Other(before), Message::Other(after)) => Message::Other(merged_developer(before, after)),
        (before, _) => before,
    }
}

/// Both contents, with the end of the later answer.
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

/// Both contents; the rest is that of the later message, and its time if it has one.
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

/// Removes calls that a user message follows instead of their results. Results inside of that message count.
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

/// The calls that a user message has results of, as other programs write them.
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

/// Removes answers that failed. In place of one that the user saw a part of, and then answered, stands a note.
pub(super) fn without_failed(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    // From the end: whether the next message that is not the system's is a user's.
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

/// Removes answers that say nothing: without text and without calls. A server would see two messages of the user there.
pub(super) fn without_silent(mut messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let says = |block: &Arc<Block>| match &**block {
        Block::Text(text) => !text.text.trim().is_empty(),
        Block::ToolCall(_) => true,
        Block::Thinking(_) | Block::Image(_) | Block::Other(_) => false,
    };
    messages.retain(|message| message.as_assistant().is_none_or(|answer| answer.content.iter().any(says)));
    messages
}

/// Removes answers at the end, which a server would take for the beginning of the next one.
pub(super) fn without_prefill(mut messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    while messages.last().is_some_and(|message| matches!(**message, Message::Assistant(_))) {
        messages.pop();
    }
    messages
}

/// Removes copies of messages that were delivered outside of the conversation.
pub(super) fn without_mirrors(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let is_mirror = |message: &Arc<Message>| {
        message.as_assistant().is_some_and(|answer| {
            answer.model == "delivery-mirror" && matches!(answer.provider.as_str(), "openclaw" | "pinch")
        })
    };
    messages.iter().filter(|message| !is_mirror(message)).cloned().collect()
}
