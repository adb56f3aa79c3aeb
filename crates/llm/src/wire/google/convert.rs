//! Messages in Google's format.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::message::{AssistantMessage, Block, Content, Image, Message, ToolCall, ToolResult, UserMessage};
use crate::model::Model;
use crate::normalise;
use crate::normalise::ids::anthropic_id;
use crate::wire::tool_output::{images, output_text};

/// The documented placeholder for a missing call signature. It is not base64.
pub(super) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Options for encoding messages.
#[derive(Clone, Copy)]
pub(super) struct GoogleEncoding<'a> {
    pub(super) model: &'a Model,
    /// Whether calls without a signature get the placeholder.
    pub(super) mark_calls: bool,
}

/// Encodes the conversation. Results of one answer's calls become one content.
pub(super) fn contents(messages: &[Arc<Message>], rules: GoogleEncoding<'_>) -> Vec<Value> {
    let with_ids = rules.model.dialect.history.google_call_ids;
    let rule = |id: &str, _: &Model, _: &AssistantMessage| if with_ids { anthropic_id(id) } else { id.to_owned() };
    let normalised = normalise::transform(messages, rules.model, Some(&rule));
    let mut contents = Vec::with_capacity(normalised.len());
    let mut rest = &normalised[..];
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        match &**message {
            Message::User(message) => contents.extend(user(message)),
            Message::Assistant(answer) => contents.extend(assistant(answer, rules)),
            Message::ToolResult(first) => {
                let more = after.iter().map_while(|message| match &**message {
                    Message::ToolResult(result) => Some(result),
                    _ => None,
                });
                let results: Vec<&ToolResult> = std::iter::once(first).chain(more).collect();
                rest = &after[results.len() - 1..];
                put_results(&mut contents, &results, rules.model);
            }
            Message::System(_) | Message::Other(_) => {}
        }
    }
    contents
}

fn content(role: &str, parts: Vec<Value>) -> Option<Value> {
    (!parts.is_empty()).then(|| json!({"role": role, "parts": parts}))
}

fn user(message: &UserMessage) -> Option<Value> {
    let text = |text: &str| (!text.trim().is_empty()).then(|| json!({"text": text}));
    let parts = match &message.content {
        Content::Text(said) => text(said).into_iter().collect(),
        Content::Blocks(blocks) => {
            let part = |block: &Block| match block {
                Block::Text(block) => text(&block.text),
                Block::Image(image) => Some(inline(image)),
                Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
            };
            blocks.iter().filter_map(part).collect()
        }
    };
    content("user", parts)
}

fn inline(image: &Image) -> Value {
    json!({"inlineData": {"mimeType": image.mime_type, "data": image.data}})
}

fn assistant(answer: &AssistantMessage, rules: GoogleEncoding<'_>) -> Option<Value> {
    content("model", answer.content.iter().filter_map(|block| part(block, rules)).collect())
}

fn part(block: &Block, rules: GoogleEncoding<'_>) -> Option<Value> {
    let (mut part, signature) = match block {
        Block::Text(text) => (json!({"text": text.text}), valid_signature(text.signature.as_deref())),
        Block::Thinking(thinking) => {
            (json!({"thought": true, "text": thinking.thinking}), valid_signature(thinking.signature.as_deref()))
        }
        Block::ToolCall(call) => {
            let mark = rules.mark_calls.then_some(NO_SIGNATURE);
            let signature = valid_signature(call.thought_signature.as_deref()).or(mark);
            (json!({"functionCall": function_call(call, rules.model)}), signature)
        }
        Block::Image(_) | Block::Other(_) => return None,
    };
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    // Google puts the last signature of an answer on an empty text, so only blank unsigned text is skipped.
    let is_blank = part["text"].as_str().is_some_and(|text| text.trim().is_empty());
    (!is_blank || signature.is_some()).then_some(part)
}

fn function_call(call: &ToolCall, model: &Model) -> Value {
    let mut encoded = json!({"name": call.name, "args": call.arguments});
    if model.dialect.history.google_call_ids {
        encoded["id"] = call.id.as_str().into();
    }
    encoded
}

/// Returns the signature if it is base64: Google rejects requests with any other.
pub(super) fn valid_signature(signature: Option<&str>) -> Option<&str> {
    signature.filter(|text| {
        let digits = text.trim_end_matches('=');
        let is_digit = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
        text.len() % 4 == 0 && text.len() - digits.len() <= 2 && !digits.is_empty() && digits.bytes().all(is_digit)
    })
}

/// Writes the results of one answer's calls, followed by the images for models that do not accept them inside results.
fn put_results(contents: &mut Vec<Value>, results: &[&ToolResult], model: &Model) {
    let inside = model.dialect.history.google_images_in_results;
    contents.extend(content("user", results.iter().map(|result| function_response(result, model, inside)).collect()));
    let behind = results.iter().filter(|result| !inside && images(result).next().is_some());
    contents.extend(behind.filter_map(|result| {
        let caption = std::iter::once(json!({"text": "Tool result image:"}));
        content("user", caption.chain(images(result).map(inline)).collect())
    }));
}

fn function_response(result: &ToolResult, model: &Model, images_inside: bool) -> Value {
    let key = if result.is_error { "error" } else { "output" };
    let mut encoded = json!({"name": result.tool_name, "response": {key: output_text(result)}});
    if images_inside && images(result).next().is_some() {
        encoded["parts"] = images(result).map(inline).collect();
    }
    if model.dialect.history.google_call_ids {
        encoded["id"] = result.tool_call_id.as_str().into();
    }
    json!({"functionResponse": encoded})
}

/// Returns whether a content has an unsigned call.
pub(super) fn has_unsigned_call(contents: &[Value]) -> bool {
    let parts = contents.iter().filter_map(|content| content["parts"].as_array()).flatten();
    parts.filter(|part| part.get("functionCall").is_some()).any(|part| part.get("thoughtSignature").is_none())
}
