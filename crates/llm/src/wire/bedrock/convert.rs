//! Messages in the Converse format.

use serde_json::{Map, Value, json};

use crate::message::{AssistantMessage, Block, Content, Image, Thinking, ToolResult, UserMessage};
use crate::wire::tool_output;

/// Replaces a blank text, which Converse rejects.
const NO_TEXT: &str = "<empty>";

/// An image type that Converse does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unknown image type: {0}")]
pub(super) struct UnknownImage(String);

pub(super) fn text_block(text: &str) -> Value {
    json!({ "text": text })
}

/// Encodes the blocks of a user message; there is always at least one.
pub(super) fn user(message: &UserMessage) -> Result<Vec<Value>, UnknownImage> {
    let mut parts = match &message.content {
        Content::Text(text) if text.trim().is_empty() => Vec::new(),
        Content::Text(text) => vec![text_block(text)],
        Content::Blocks(blocks) => parts(blocks)?,
    };
    if parts.is_empty() {
        parts.push(text_block(NO_TEXT));
    }
    Ok(parts)
}

/// Encodes text and images; blank text is skipped.
fn parts(blocks: &[Block]) -> Result<Vec<Value>, UnknownImage> {
    let part = |block: &Block| match block {
        Block::Text(text) if !text.text.trim().is_empty() => Some(Ok(text_block(&text.text))),
        Block::Image(picture) => Some(image(picture)),
        _ => None,
    };
    blocks.iter().filter_map(part).collect()
}

fn image(image: &Image) -> Result<Value, UnknownImage> {
    let format = match image.mime_type.as_str() {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        other => return Err(UnknownImage(other.to_owned())),
    };
    Ok(json!({"image": {"format": format, "source": {"bytes": image.data}}}))
}

/// Encodes the blocks of an answer; may be empty.
pub(super) fn assistant(message: &AssistantMessage, is_claude: bool) -> Vec<Value> {
    let block = |block: &Block| match block {
        Block::Text(text) => (!text.text.trim().is_empty()).then(|| text_block(&text.text)),
        Block::Thinking(thinking) => reasoning(thinking, is_claude),
        Block::ToolCall(call) => {
            let input = without_empty_keys(&call.arguments);
            Some(json!({"toolUse": {"toolUseId": call.id.as_str(), "name": call.name, "input": input}}))
        }
        Block::Image(_) | Block::Other(_) => None,
    };
    message.content.iter().filter_map(|content| block(content)).collect()
}

fn reasoning(thinking: &Thinking, is_claude: bool) -> Option<Value> {
    let signature = thinking.signature.as_deref().filter(|signature| !signature.trim().is_empty());
    let text = thinking.thinking.as_str();
    let is_blank = text.trim().is_empty();
    match signature {
        Some(payload) if thinking.redacted => Some(json!({"reasoningContent": {"redactedContent": payload}})),
        None if thinking.redacted => None,
        // Even if the text is empty: models that hide their thinking still sign it.
        Some(signature) if is_claude => {
            Some(json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}))
        }
        _ if is_blank => None,
        // Claude checks signatures, and a model that sees its thoughts as its own words starts to write them.
        None if is_claude => None,
        _ => Some(json!({"reasoningContent": {"reasoningText": {"text": text}}})),
    }
}

/// Returns the arguments without members with empty names, which Converse rejects at any depth.
fn without_empty_keys(map: &Map<String, Value>) -> Value {
    let kept = map.iter().filter(|(key, _)| !key.is_empty()).map(|(key, value)| (key.clone(), cleaned(value)));
    Value::Object(kept.collect())
}

fn cleaned(value: &Value) -> Value {
    match value {
        Value::Object(map) => without_empty_keys(map),
        Value::Array(items) => items.iter().map(cleaned).collect(),
        other => other.clone(),
    }
}

/// Encodes a run of tool results as the blocks of one user message. For Claude, which allows no images inside, images of failed calls
/// follow the results.
pub(super) fn tool_results<'a>(
    results: impl Iterator<Item = &'a ToolResult>,
    is_claude: bool,
) -> Result<Vec<Value>, UnknownImage> {
    let mut blocks = Vec::new();
    let mut after = Vec::new();
    for result in results {
        let mut inside = parts(&result.content)?;
        if result.is_error && is_claude {
            let images: Vec<Value> = inside.extract_if(.., |part| part.get("image").is_some()).collect();
            if !images.is_empty() {
                after.push(text_block(&format!("Image(s) of the failed call {}:", result.tool_call_id)));
                after.extend(images);
                if inside.is_empty() {
                    inside.push(text_block(tool_output::SEE_IMAGE));
                }
            }
        }
        if inside.is_empty() {
            inside.push(text_block(tool_output::NO_OUTPUT));
        }
        let status = if result.is_error { "error" } else { "success" };
        blocks.push(json!({"toolResult": {
            "toolUseId": result.tool_call_id.as_str(), "content": inside, "status": status,
        }}));
    }
    blocks.append(&mut after);
    Ok(blocks)
}
