//! Tool calls that were never complete, or that no server accepts.

use std::sync::Arc;

use serde_json::Value;

use super::edit::{self, BlockEdit};
use crate::message::{Block, Message, RawBlock, ToolCall};

/// The types that tool calls have in the sessions of other programs.
const TYPES: &[&str] = &["toolCall", "toolUse", "functionCall", "tool_use", "tool_call", "function_call"];
const MAX_NAME: usize = 64;

/// Whether a block of an unknown type is a tool call of another program, or one that was not complete.
pub(super) fn is_call(raw: &Value) -> bool {
    raw["type"].as_str().is_some_and(|kind| TYPES.contains(&kind))
}

/// Removes calls without id, arguments or a valid name. An answer of which nothing is left goes, too. Names are trimmed.
pub fn without_malformed(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    edit::answers(messages, |answer| edit::answer(answer, checked))
}

/// Calls as other programs write them become calls of ours: no wire format sends a block that it does not know.
pub(super) fn adopted(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let adopt = |block: &Block| {
        let Block::Other(RawBlock { raw }) = block else { return BlockEdit::Keep };
        let input = ["input", "arguments"].iter().find_map(|name| raw[*name].as_object());
        match (raw["id"].as_str(), raw["name"].as_str(), input) {
            (Some(id), Some(name), Some(input)) if is_call(raw) => {
                BlockEdit::Put(Block::ToolCall(ToolCall::new(id, name, input.clone())))
            }
            _ => BlockEdit::Keep,
        }
    };
    edit::answers(messages, |answer| edit::answer(answer, adopt))
}

fn checked(block: &Block) -> BlockEdit {
    match block {
        Block::ToolCall(call) => match valid_name(&call.name) {
            _ if call.id.as_str().trim().is_empty() => BlockEdit::Drop,
            None => BlockEdit::Drop,
            Some(name) if name == call.name => BlockEdit::Keep,
            Some(name) => BlockEdit::Put(Block::ToolCall(ToolCall { name: name.to_owned(), ..call.clone() })),
        },
        Block::Other(RawBlock { raw }) if is_call(raw) => {
            let has_input =
                ["input", "arguments"].iter().any(|name| raw.get(*name).is_some_and(|input| !input.is_null()));
            let has_id = raw["id"].as_str().is_some_and(|id| !id.trim().is_empty());
            let name = raw["name"].as_str().unwrap_or_default();
            match valid_name(name) {
                Some(valid) if has_input && has_id && valid == name => BlockEdit::Keep,
                Some(valid) if has_input && has_id => {
                    let mut raw = raw.clone();
                    raw["name"] = valid.into();
                    BlockEdit::Put(Block::Other(RawBlock { raw }))
                }
                _ => BlockEdit::Drop,
            }
        }
        _ => BlockEdit::Keep,
    }
}

/// The name without white space around it, if it can be the name of a tool.
fn valid_name(name: &str) -> Option<&str> {
    let name = name.trim();
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (!name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_valid)).then_some(name)
}
