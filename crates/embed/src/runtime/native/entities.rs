//! HTML entities in the arguments of tool calls.

use std::sync::Arc;

use pinch_llm::message::{Block, Message};
use pinch_tools::web::html::decode_entities;
use serde_json::Value;

/// Returns an answer with the texts in its tool calls decoded; `None` if they contain no entities.
pub(super) fn decoded(message: &Message) -> Option<Arc<Message>> {
    let answer = message.as_assistant()?;
    let mut changed = None;
    for (at, block) in answer.content.iter().enumerate() {
        let Block::ToolCall(call) = &**block else { continue };
        let arguments = Value::Object(call.arguments.clone());
        if !arguments.to_string().contains('&') {
            continue;
        }
        let Value::Object(decoded) = decoded_value(arguments) else { continue };
        if decoded != call.arguments {
            let mut call = call.clone();
            call.arguments = decoded;
            let changed = changed.get_or_insert_with(|| Arc::clone(answer));
            Arc::make_mut(changed).content[at] = Arc::new(Block::ToolCall(call));
        }
    }
    changed.map(|answer| Arc::new(Message::Assistant(answer)))
}

fn decoded_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(decode_entities(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(decoded_value).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, decoded_value(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_decoded_wherever_they_are() {
        let arguments = json!({"a": "x &lt; y", "b": [{"c": "&quot;"}, 1], "d": true});
        assert_eq!(decoded_value(arguments), json!({"a": "x < y", "b": [{"c": "\""}, 1], "d": true}));
    }
}
