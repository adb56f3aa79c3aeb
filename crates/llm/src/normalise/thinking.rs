//! Thinking and signatures that a server would reject.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

use super::edit::{self, BlockEdit};
use crate::ids::ToolCallId;
use crate::message::{AssistantMessage, Block, Message, StopReason, Text, Thinking, ToolCall, ToolResult};

/// Replaces an answer that consisted only of removed reasoning.
const OMITTED: &str = "[reasoning omitted]";

fn is_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking(_))
}

/// Returns the block without its signature if no server can have signed it that way: another server's id, or, with `base64_only`, anything
/// but base64.
pub fn without_foreign_signature(block: &Block, base64_only: bool) -> Option<Block> {
    let is_foreign = |signature: &Option<String>| {
        let signature = signature.as_deref()?;
        (signature.starts_with("msg_") || (base64_only && !is_base64(signature))).then_some(())
    };
    match block {
        Block::Text(text) => {
            is_foreign(&text.signature).map(|()| Block::Text(Text { signature: None, ..text.clone() }))
        }
        Block::Thinking(thinking) => {
            is_foreign(&thinking.signature).map(|()| Block::Thinking(Thinking { signature: None, ..thinking.clone() }))
        }
        Block::ToolCall(call) => is_foreign(&call.thought_signature)
            .map(|()| Block::ToolCall(ToolCall { thought_signature: None, ..call.clone() })),
        Block::Image(_) | Block::Other(_) => None,
    }
}

/// Returns whether a text is canonical base64 or base64url; padding is optional.
fn is_base64(text: &str) -> bool {
    let packed: String = text.split_whitespace().collect();
    let digits = packed.trim_end_matches('=');
    let engine = if digits.contains(['-', '_']) { &URL_SAFE_NO_PAD } else { &STANDARD_NO_PAD };
    !digits.is_empty() && engine.decode(digits).is_ok()
}

/// Removes thinking without a signature in padded base64.
pub fn signed_only(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let is_signed = |thinking: &Thinking| {
        let signature = thinking.signature.as_deref().unwrap_or_default().trim();
        let digits = signature.trim_end_matches('=');
        let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
        !digits.is_empty()
            && signature.len().is_multiple_of(4)
            && signature.len() - digits.len() <= 2
            && digits.bytes().all(is_digit)
    };
    let check = |block: &Block| match block {
        Block::Thinking(thinking) if !is_signed(thinking) => BlockEdit::Drop,
        _ => BlockEdit::Keep,
    };
    edit::answers(messages, |answer| edit::answer(answer, check))
}

/// Removes all thinking. An answer of nothing else stays, with an empty text.
pub fn drop_all(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    edit::answers(messages, |answer| or_text(answer, without(answer, is_thinking), ""))
}

fn without(answer: &AssistantMessage, goes: impl Fn(&Block) -> bool) -> Option<Arc<AssistantMessage>> {
    edit::answer(answer, |block| if goes(block) { BlockEdit::Drop } else { BlockEdit::Keep })
}

/// Returns an edited answer, with a text if it became empty.
fn or_text(
    answer: &AssistantMessage,
    edited: Option<Arc<AssistantMessage>>,
    text: &str,
) -> Option<Arc<AssistantMessage>> {
    match edited {
        Some(edited) if edited.content.is_empty() => {
            Some(edit::with_content(answer, vec![Arc::new(Block::text(text))]))
        }
        edited => edited,
    }
}

/// Returns whether a signature is a reasoning item that OpenAI's servers accept again.
fn is_item(thinking: &Thinking) -> bool {
    let signature = thinking.signature.as_deref().filter(|text| text.starts_with('{'));
    let item: Option<Value> = signature.and_then(|text| serde_json::from_str(text).ok());
    item.is_some_and(|item| {
        let kind = item["type"].as_str().unwrap_or_default();
        let is_reasoning = kind == "reasoning" || kind.starts_with("reasoning.");
        is_reasoning && item["id"].as_str().is_some_and(|id| id.starts_with("rs_"))
    })
}

/// Removes reasoning items that are not followed by the items they led to, because the server rejects them.
pub fn without_orphan_items(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    edit::answers(messages, |answer| {
        let last = answer.content.iter().rposition(|block| !is_thinking(block));
        let mut at = 0;
        edit::answer(answer, |block| {
            at += 1;
            match block {
                Block::Thinking(thinking) if last.is_none_or(|last| last < at) && is_item(thinking) => BlockEdit::Drop,
                _ => BlockEdit::Keep,
            }
        })
    })
}

/// Shortens ids `call_x|fc_y` to `call_x` in answers without reasoning items, and in their results: the server accepts a call's item id
/// only together with the preceding reasoning.
pub fn without_item_ids(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut cut: HashMap<ToolCallId, ToolCallId> = HashMap::new();
    let each = |message: &Arc<Message>| match &**message {
        Message::Assistant(answer) => {
            cut.clear();
            if answer.content.iter().any(|block| matches!(&**block, Block::Thinking(thinking) if is_item(thinking))) {
                return Arc::clone(message);
            }
            // Two calls of an answer must not get the same id.
            let head_of = |call: &ToolCall| call.id.as_str().split('|').next().unwrap_or_default().to_owned();
            let heads: Vec<String> = answer.tool_calls().map(head_of).collect();
            let is_sole = |head: &str| heads.iter().filter(|other| *other == head).count() == 1;
            let edited = edit::answer(answer, |block| match block {
                Block::ToolCall(call) => match call.id.as_str().split_once('|') {
                    Some((head, item)) if !head.is_empty() && item.starts_with("fc_") && is_sole(head) => {
                        let id = ToolCallId::new(head);
                        cut.insert(call.id.clone(), id.clone());
                        BlockEdit::Put(Block::ToolCall(ToolCall { id, ..call.clone() }))
                    }
                    _ => BlockEdit::Keep,
                },
                _ => BlockEdit::Keep,
            });
            edited.map_or_else(|| Arc::clone(message), |answer| Arc::new(Message::Assistant(answer)))
        }
        Message::ToolResult(result) => match cut.get(&result.tool_call_id) {
            Some(id) => Arc::new(Message::ToolResult(ToolResult { tool_call_id: id.clone(), ..result.clone() })),
            None => Arc::clone(message),
        },
        _ => Arc::clone(message),
    };
    messages.iter().map(each).collect()
}

/// Removes thinking that is unsigned, or that was signed before the conversation was compacted: an answer after a newer message is from
/// before the compaction. Answers that become empty get a note.
pub(super) fn bound(messages: Vec<Arc<Message>>, unsigned_is_fine: bool) -> Vec<Arc<Message>> {
    let mut newest = i64::MIN;
    let mut each = |message: Arc<Message>| {
        let Message::Assistant(answer) = &*message else {
            if matches!(&*message, Message::User(_)) {
                newest = newest.max(message.timestamp());
            }
            return message;
        };
        let is_old = answer.timestamp < newest;
        let goes = |block: &Block| match block {
            Block::Thinking(thinking) => {
                let is_signed = thinking.signature.as_ref().is_some_and(|signature| !signature.trim().is_empty());
                is_old || !(is_signed || unsigned_is_fine)
            }
            _ => false,
        };
        let edited = or_text(answer, without(answer, goes), OMITTED);
        edited.map_or(message, |answer| Arc::new(Message::Assistant(answer)))
    };
    messages.into_iter().map(&mut each).collect()
}

/// Removes the thinking of earlier turns: that of answers before the last user message.
pub(super) fn current_only(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let Some(last) = messages.iter().rposition(|message| matches!(**message, Message::User(_))) else {
        return messages;
    };
    let mut kept = edit::answers(&messages[..last], |answer| without(answer, is_thinking));
    kept.extend_from_slice(&messages[last..]);
    kept
}

/// Removes answers that consist only of thinking: they were cut off before any text, or had none.
pub(super) fn without_thinking_only(messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let stays = |message: &Arc<Message>| {
        message.as_assistant().is_none_or(|answer| {
            !matches!(answer.stop_reason, StopReason::Length | StopReason::Stop)
                || answer.content.iter().any(|block| !is_thinking(block))
        })
    };
    messages.into_iter().filter(stays).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_base64_is_accepted() {
        for (text, expect) in
            [("c2ln", true), ("AQID", true), ("c2k=", true), ("c2k", true), ("a-_w", true), ("a-+w", false)]
        {
            assert_eq!(is_base64(text), expect, "{text}");
        }
        for text in ["", "=", "sig!", "c2l", "reasoning_content", "{\"id\":1}"] {
            assert!(!is_base64(text) || text == "c2l", "{text}");
        }
    }
}
