//! Texts of messages and entries, for searching without layout.

use pinch_llm::message::{Block, Content, Message};
use serde_json::Value;

/// Calls back with every text in a JSON value.
pub(super) fn in_value(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(values) => values.iter().for_each(|value| in_value(value, each)),
        Value::Object(values) => values.values().for_each(|value| in_value(value, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn in_block(block: &Block, each: &mut dyn FnMut(&str)) {
    match block {
        Block::Text(text) => each(&text.text),
        Block::Thinking(thinking) => each(&thinking.thinking),
        Block::ToolCall(call) => {
            each(&call.name);
            call.arguments.values().for_each(|value| in_value(value, each));
        }
        _ => {}
    }
}

/// Calls back with every text of a message that may be shown.
pub(super) fn in_message(message: &Message, each: &mut dyn FnMut(&str)) {
    match message {
        Message::User(user) => match &user.content {
            Content::Text(text) => each(text),
            Content::Blocks(blocks) => blocks.iter().for_each(|block| in_block(block, each)),
        },
        Message::Assistant(answer) => {
            answer.content.iter().for_each(|block| in_block(block, each));
            if let Some(error) = &answer.error_message {
                each(error);
            }
        }
        Message::ToolResult(result) => {
            result.content.iter().for_each(|block| in_block(block, each));
            if let Some(details) = &result.details {
                in_value(details, each);
            }
        }
        Message::System(_) => {}
        Message::Other(other) => other.raw.values().for_each(|value| in_value(value, each)),
    }
}
