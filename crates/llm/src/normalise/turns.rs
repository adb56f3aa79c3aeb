//! Turns: who begins a conversation, and who may speak twice in a row.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{calls, edit};
use crate::message::{AssistantMessage, Block, Content, Message, OtherMessage, StopReason, UserMessage};

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

/// Merges consecutive messages of the same role.
pub fn merge(messages: &[Arc<Message>], which: Merged) -> Vec<Arc<Message>> {
    let mut out: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    for message in messages {
        let merged = out.last().and_then(|before| match (&**before, &**message) {
            (Message::Assistant(before), Message::Assistant(after)) if which.answers => {
                Some(Message::Assistant(merged_answer(before, after)))
            }
            (Message::User(before), Message::User(after)) if which.users => {
                Some(Message::User(merged_user(before, after)))
            }
            (Message::Other(before), Message::Other(after)) if which.developers => {
                merged_developer(before, after).map(Message::Other)
            }
            _ => None,
        });
        match merged {
            Some(merged) => {
                out.pop();
                out.push(Arc::new(merged));
            }
            None => out.push(Arc::clone(message)),
        }
    }
    out
}

/// Both contents, with the end of the later answer.
fn merged_answer(before: &AssistantMessage, after: &AssistantMessage) -> Arc<AssistantMessage> {
    let content = before.content.iter().chain(&after.content).cloned().collect();
    let mut merged = AssistantMessage { content, ..before.clone() };
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
    Arc::new(merged)
}

/// Both contents; the rest is that of the later message, and its time if it has one.
fn merged_user(before: &UserMessage, after: &UserMessage) -> UserMessage {
    let blocks = |content: &Content| match content {
        Content::Text(text) => vec![Block::text(text.as_str())],
        Content::Blocks(blocks) => blocks.clone(),
    };
    let mut content = blocks(&before.content);
    content.extend(blocks(&after.content));
    let timestamp = if after.timestamp == 0 { before.timestamp } else { after.timestamp };
    UserMessage { content: Content::Blocks(content), timestamp, ..after.clone() }
}

fn merged_developer(before: &OtherMessage, after: &OtherMessage) -> Option<OtherMessage> {
    if before.role() != "developer" || after.role() != "developer" {
        return None;
    }
    let blocks = |message: &OtherMessage| match message.raw.get("content") {
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    let mut raw = after.raw.clone();
    if let (None, Some(timestamp)) = (raw.get("timestamp"), before.raw.get("timestamp")) {
        raw.insert("timestamp".to_owned(), timestamp.clone());
    }
    raw.insert("content".to_owned(), [blocks(before), blocks(after)].concat().into());
    Some(OtherMessage { raw })
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
    let answered: Vec<bool> = (0..messages.len())
        .map(|at| {
            let next = messages[at + 1..].iter().find(|message| !matches!(***message, Message::System(_)));
            next.is_some_and(|message| matches!(**message, Message::User(_)))
        })
        .collect();
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
