//! Messages in Anthropic's format.

use serde_json::{Value, json};

use super::names::sent_name;
use super::scrub::scrub;
use crate::message::{AssistantMessage, Block, Content, Image, Message, ToolCall, ToolResult, UserMessage};
use crate::wire::tool_output::{SEE_IMAGE, images, output_text};

/// Options for encoding messages.
#[derive(Clone, Copy)]
pub(super) struct AnthropicEncoding {
    /// Whether to use a subscription's tool names.
    pub(super) subscription: bool,
    /// Treatment of thinking without a signature.
    pub(super) unsigned: Unsigned,
}

/// Treatment of thinking without a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsigned {
    /// Send it as thinking: the server checks no signatures.
    Thinking,
    /// Send it as text: requests without thinking are not checked. pi does so for all requests, and recorded cases require it where
    /// thinking is disabled (`request/anthropic/history`).
    Text,
    /// Omit it: a model that sees its thoughts as its own words starts to write them.
    Nothing,
}

/// Encodes a user message; returns `None` if it is empty.
pub(super) fn user(message: &UserMessage) -> Option<Value> {
    let content = match &message.content {
        Content::Text(text) if text.trim().is_empty() => return None,
        Content::Text(text) => scrub(text).into(),
        Content::Blocks(blocks) => match parts(blocks) {
            parts if parts.is_empty() => return None,
            parts => Value::Array(parts),
        },
    };
    Some(json!({"role": "user", "content": content}))
}

/// Encodes text and images; blank text is skipped.
fn parts(blocks: &[Block]) -> Vec<Value> {
    let part = |block: &Block| match block {
        Block::Text(text) if !text.text.trim().is_empty() => Some(text_part(&text.text)),
        Block::Image(picture) => Some(image(picture)),
        _ => None,
    };
    blocks.iter().filter_map(part).collect()
}

pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": scrub(text)})
}

fn image(image: &Image) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": image.mime_type, "data": image.data}})
}

/// Encodes an assistant message; returns `None` if it is empty.
pub(super) fn assistant(message: &AssistantMessage, rules: AnthropicEncoding) -> Option<Value> {
    let blocks: Vec<Value> = message.content.iter().filter_map(|block| assistant_block(block, rules)).collect();
    (!blocks.is_empty()).then(|| json!({"role": "assistant", "content": blocks}))
}

fn assistant_block(block: &Block, rules: AnthropicEncoding) -> Option<Value> {
    match block {
        Block::Text(text) => (!text.text.trim().is_empty()).then(|| text_part(&text.text)),
        Block::Thinking(thinking) => {
            let signature = thinking.signature.as_deref().filter(|signature| !signature.trim().is_empty());
            match signature {
                Some(signature) if thinking.redacted => Some(json!({"type": "redacted_thinking", "data": signature})),
                // Even if the text is empty: models that hide their thinking still sign it.
                Some(signature) => {
                    Some(json!({"type": "thinking", "thinking": thinking.thinking, "signature": signature}))
                }
                None if thinking.redacted || thinking.thinking.trim().is_empty() => None,
                None => match rules.unsigned {
                    Unsigned::Thinking => {
                        Some(json!({"type": "thinking", "thinking": thinking.thinking, "signature": ""}))
                    }
                    Unsigned::Text => Some(text_part(&thinking.thinking)),
                    Unsigned::Nothing => None,
                },
            }
        }
        Block::ToolCall(call) => Some(tool_use(call, rules)),
        Block::Image(_) | Block::Other(_) => None,
    }
}

fn tool_use(call: &ToolCall, rules: AnthropicEncoding) -> Value {
    json!({
        "type": "tool_use",
        "id": call.id.as_str(),
        "name": sent_name(&call.name, rules.subscription),
        "input": call.arguments,
    })
}

/// Encodes a run of tool results as one user message. Images of failed calls follow the results, because Anthropic allows no image inside.
pub(super) fn tool_results<'a>(results: impl Iterator<Item = &'a ToolResult>) -> Value {
    let mut content = Vec::new();
    let mut after = Vec::new();
    for result in results {
        let inside = if images(result).next().is_none() {
            scrub(&output_text(result)).into()
        } else if result.is_error {
            after.push(text_part(&format!("Image(s) of the failed call {}:", result.tool_call_id)));
            after.extend(images(result).map(image));
            scrub(&output_text(result)).into()
        } else {
            let mut inside = parts(&result.content);
            if inside.iter().all(|part| part["type"] != "text") {
                inside.insert(0, text_part(SEE_IMAGE));
            }
            Value::Array(inside)
        };
        content.push(json!({
            "type": "tool_result",
            "tool_use_id": result.tool_call_id.as_str(),
            "content": inside,
            "is_error": result.is_error,
        }));
    }
    content.append(&mut after);
    json!({"role": "user", "content": content})
}

/// Returns the tool result, if the message is one.
pub(super) fn as_tool_result(message: &Message) -> Option<&ToolResult> {
    match message {
        Message::ToolResult(result) => Some(result),
        _ => None,
    }
}
