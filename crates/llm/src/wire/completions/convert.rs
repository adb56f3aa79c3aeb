//! Messages in OpenAI's format.

use pinch_stdx::json::write;
use serde_json::{Map, Value, json};

use crate::message::{AssistantMessage, Block, Content, Image, Thinking, ToolCall, ToolResult, UserMessage};
use crate::model::Model;
use crate::model::dialect::HistoryRules;
use crate::normalise::ids::{IdShape, hash_mark};
use crate::wire::tool_output::{images, output_text};

/// Members that servers use for reasoning, in order of precedence. Only these are ever written back: the name comes from a session file,
/// which must not be able to set a member such as `role`.
pub(super) const REASONING_MEMBERS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// Encodes a user message; returns `None` if it is empty.
pub(super) fn user(message: &UserMessage) -> Option<Value> {
    let content: Value = match &message.content {
        Content::Text(text) if text.trim().is_empty() => return None,
        Content::Text(text) => text.as_str().into(),
        Content::Blocks(blocks) => {
            let parts: Vec<Value> = blocks.iter().filter_map(part).collect();
            if parts.is_empty() {
                return None;
            }
            parts.into()
        }
    };
    Some(json!({"role": "user", "content": content}))
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text(text) => (!text.text.trim().is_empty()).then(|| json!({"type": "text", "text": text.text})),
        Block::Image(image) => Some(image_part(image)),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    }
}

fn image_part(image: &Image) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:{};base64,{}", image.mime_type, image.data)}})
}

/// Encodes an assistant message; returns `None` if it has neither text nor call.
pub(super) fn assistant(message: &AssistantMessage, model: &Model) -> Option<Value> {
    let rules = &model.dialect.history;
    let texts: Vec<&str> =
        message.content.iter().filter_map(|block| block.as_text()).filter(|text| !text.trim().is_empty()).collect();
    let thinking: Vec<&Thinking> = message
        .content
        .iter()
        .filter_map(|block| match &**block {
            Block::Thinking(thinking) => Some(thinking),
            _ => None,
        })
        .collect();
    let calls: Vec<&ToolCall> = message.tool_calls().collect();

    let mut encoded = Map::new();
    encoded.insert("role".into(), "assistant".into());
    encoded.insert("content".into(), Value::Null);
    let readable: Vec<&str> =
        thinking.iter().map(|block| block.thinking.as_str()).filter(|text| !text.trim().is_empty()).collect();
    let content = if rules.thinking_as_text && !readable.is_empty() {
        let parts = std::iter::once(readable.join("\n\n")).chain(texts.iter().map(|text| (*text).to_owned()));
        Some(Value::Array(parts.map(|text| json!({"type": "text", "text": text})).collect()))
    } else {
        put_reasoning(&mut encoded, &thinking, &calls, &readable);
        // One string, because some models imitate lists of parts.
        (!texts.is_empty()).then(|| texts.concat().into())
    };
    if content.is_none() && calls.is_empty() {
        return None;
    }
    encoded["content"] = content.unwrap_or_else(|| empty_content(rules));
    if !calls.is_empty() {
        encoded.insert("tool_calls".into(), calls.iter().map(|call| tool_call(call)).collect());
    }
    if rules.reasoning_content && model.reasoning {
        encoded.entry("reasoning_content").or_insert_with(|| "".into());
    }
    Some(Value::Object(encoded))
}

fn empty_content(rules: &HistoryRules) -> Value {
    if rules.assistant_after_tool_result || rules.non_null_content { "".into() } else { Value::Null }
}

fn put_reasoning(encoded: &mut Map<String, Value>, thinking: &[&Thinking], calls: &[&ToolCall], readable: &[&str]) {
    let details: Vec<Value> =
        thinking.iter().filter_map(|block| details(block.signature.as_deref()?)).flatten().collect();
    // Older sessions store each detail with its call.
    let old = calls.iter().filter_map(|call| serde_json::from_str(call.thought_signature.as_deref()?).ok());
    let details: Vec<Value> = if details.is_empty() { old.filter(Value::is_object).collect() } else { details };
    if !details.is_empty() {
        encoded.insert("reasoning_details".into(), details.into());
        return;
    }
    let first = thinking.iter().find(|block| !block.thinking.trim().is_empty());
    let member = first.and_then(|block| block.signature.as_deref());
    if let Some(member) = member.filter(|name| REASONING_MEMBERS.contains(name)) {
        encoded.insert(member.to_owned(), readable.join("\n").into());
    }
}

/// Returns reasoning details if a signature contains a list of them.
fn details(signature: &str) -> Option<Vec<Value>> {
    if !signature.starts_with('[') {
        return None;
    }
    serde_json::from_str(signature).ok()
}

fn tool_call(call: &ToolCall) -> Value {
    let arguments = write::to_string(&call.arguments).unwrap_or_else(|_| "{}".into());
    json!({"id": call.id.as_str(), "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

/// Encodes a tool result.
pub(super) fn tool_result(result: &ToolResult, rules: &HistoryRules) -> Value {
    let mut encoded =
        json!({"role": "tool", "content": output_text(result), "tool_call_id": result.tool_call_id.as_str()});
    if rules.tool_result_name {
        encoded["name"] = result.tool_name.as_str().into();
    }
    encoded
}

/// Encodes the images of a run of tool results as a user message, because results can only contain text.
pub(super) fn images_of<'a>(results: impl Iterator<Item = &'a ToolResult>) -> Option<Value> {
    let parts: Vec<Value> = results.flat_map(images).map(image_part).collect();
    if parts.is_empty() {
        return None;
    }
    let text = json!({"type": "text", "text": "Attached image(s) from tool result:"});
    Some(json!({"role": "user", "content": std::iter::once(text).chain(parts).collect::<Vec<_>>()}))
}

/// Normalizes another model's call id. The Responses format combines two ids, separated by a bar.
pub(super) fn normalise_id(id: &str, target: &Model) -> String {
    let Some((call, item)) = id.split_once('|') else {
        return match target.dialect.history.max_call_id {
            0 => id.to_owned(),
            max => id.chars().take(max).collect(),
        };
    };
    let shape = IdShape::CHAT;
    let (call, item) = (shape.spell(call), shape.spell(item));
    let whole = format!("{call}_{item}");
    if whole.len() <= shape.max {
        return whole;
    }
    let mark = hash_mark(id);
    let n_kept = shape.max.saturating_sub(1 + mark.len());
    format!("{}_{mark}", call.chars().take(n_kept).collect::<String>())
}
