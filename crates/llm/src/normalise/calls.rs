//! Tool calls that are incomplete, or that no server accepts.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::edit::{self, BlockEdit};
use crate::message::{Block, Message, RawBlock, ToolCall};

/// Types of tool calls in the sessions of other programs.
const TYPES: &[&str] = &["toolCall", "toolUse", "functionCall", "tool_use", "tool_call", "function_call"];
const MAX_NAME: usize = 64;

/// The tool that starts a sub-agent.
const SPAWN: &str = "sessions_spawn";

/// Replaces the content of an attachment, which need not be sent again.
const REDACTED: &str = "__OPENCLAW_REDACTED__";

/// Returns whether a block of an unknown type is another program's tool call, or an incomplete one.
pub(super) fn is_call(raw: &Value) -> bool {
    raw["type"].as_str().is_some_and(|kind| TYPES.contains(&kind))
}

/// Removes calls without id, arguments or a valid name, and answers that become empty. Names are trimmed.
pub fn without_malformed(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    edit::answers(messages, |answer| edit::answer(answer, checked))
}

/// Converts calls of other programs to our own, because wire formats do not send unknown blocks.
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
            Some(name) => match (without_attachments(name, &call.arguments), name == call.name) {
                (None, true) => BlockEdit::Keep,
                (arguments, _) => BlockEdit::Put(Block::ToolCall(ToolCall {
                    name: name.to_owned(),
                    arguments: arguments.unwrap_or_else(|| call.arguments.clone()),
                    ..call.clone()
                })),
            },
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

/// Returns the arguments of a call that starts a sub-agent, without the contents of attached files, or `None` if there are none.
fn without_attachments(name: &str, arguments: &Map<String, Value>) -> Option<Map<String, Value>> {
    let has_content = |file: &Value| file["content"].as_str().is_some_and(|content| content != REDACTED);
    let files = arguments.get("attachments").filter(|_| name == SPAWN)?.as_array()?;
    if !files.iter().any(has_content) {
        return None;
    }
    let mut arguments = arguments.clone();
    let files = arguments.get_mut("attachments").and_then(Value::as_array_mut);
    files.into_iter().flatten().filter(|file| has_content(file)).for_each(|file| file["content"] = REDACTED.into());
    Some(arguments)
}

/// Returns the trimmed name if it can be the name of a tool.
fn valid_name(name: &str) -> Option<&str> {
    let name = name.trim();
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (!name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_valid)).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attachments_of_a_spawn_are_sent_once() {
        let answer = json!({"role": "assistant", "stopReason": "toolUse", "content": [
            {"type": "toolCall", "id": "a", "name": "sessions_spawn", "arguments": {"task": "t", "attachments": [{"name": "n", "content": "long"}]}},
            {"type": "toolCall", "id": "b", "name": "write", "arguments": {"attachments": [{"content": "long"}]}}]});
        let messages = [Arc::new(Message::from_value(&answer).unwrap())];
        let once = without_malformed(&messages);
        let contents: Vec<&Value> = once[0]
            .as_assistant()
            .unwrap()
            .tool_calls()
            .map(|call| &call.arguments["attachments"][0]["content"])
            .collect();
        assert_eq!(contents, [&json!(REDACTED), &json!("long")]);
        assert!(Arc::ptr_eq(&without_malformed(&once)[0], &once[0]));
    }
}
