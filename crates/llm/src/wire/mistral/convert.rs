//! Messages in Mistral's format.

use pinch_stdx::json::write;
use serde_json::{Value, json};

use crate::message::{AssistantMessage, Block, Content, Image, ToolCall, ToolResult, UserMessage};
use crate::wire::tool_output::{images, output_text};

/// Encodes a user message; returns `None` if it is empty.
pub(super) fn user(message: &UserMessage) -> Option<Value> {
    let content: Value = match &message.content {
        Content::Text(text) if text.trim().is_empty() => return None,
        Content::Text(text) => text.as_str().into(),
        Content::Blocks(blocks) => {
            let part = |block: &Block| match block {
                Block::Text(text) => (!text.text.trim().is_empty()).then(|| text_part(&text.text)),
                Block::Image(image) => Some(image_part(image)),
                Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
            };
            let parts: Vec<Value> = blocks.iter().filter_map(part).collect();
            if parts.is_empty() {
                return None;
            }
            parts.into()
        }
    };
    Some(json!({"role": "user", "content": content}))
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image_part(image: &Image) -> Value {
    json!({"type": "image_url", "image_url": format!("data:{};base64,{}", image.mime_type, image.data)})
}

/// Encodes an assistant message; returns `None` if it is empty.
pub(super) fn assistant(message: &AssistantMessage) -> Option<Value> {
    let part = |text: &str, made: fn(&str) -> Value| (!text.trim().is_empty()).then(|| made(text));
    let parts = message.content.iter().filter_map(|block| match &**block {
        Block::Text(text) => part(&text.text, text_part),
        Block::Thinking(thinking) => {
            part(&thinking.thinking, |text| json!({"type": "thinking", "thinking": [text_part(text)]}))
        }
        Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => None,
    });
    let parts: Vec<Value> = parts.collect();
    let calls: Vec<Value> = message.tool_calls().map(tool_call).collect();
    let mut encoded = json!({"role": "assistant"});
    if parts.is_empty() && calls.is_empty() {
        return None;
    }
    if !parts.is_empty() {
        encoded["content"] = parts.into();
    }
    if !calls.is_empty() {
        encoded["tool_calls"] = calls.into();
    }
    Some(encoded)
}

fn tool_call(call: &ToolCall) -> Value {
    let arguments = write::to_string(&call.arguments).unwrap_or_else(|_| "{}".into());
    json!({"id": call.id.as_str(), "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

/// Encodes a tool result. No member marks a failed call, so the text does.
pub(super) fn tool_result(result: &ToolResult) -> Value {
    let text = output_text(result);
    let text = text.trim();
    let text = if result.is_error { format!("[tool error] {text}") } else { text.to_owned() };
    let parts: Vec<Value> = std::iter::once(text_part(&text)).chain(images(result).map(image_part)).collect();
    json!({
        "role": "tool",
        "tool_call_id": result.tool_call_id.as_str(),
        "name": result.tool_name,
        "content": parts,
    })
}
