//! Messages as items of the Responses format.

use std::collections::HashSet;

use pinch_stdx::json::write;
use serde_json::{Map, Value, json};

use super::grammar::GrammarTools;
use crate::catalog::canonical_provider;
use crate::message::block::join_text;
use crate::message::{AssistantMessage, Block, Content, Image, Text, Thinking, ToolCall, ToolResult, UserMessage};
use crate::model::Model;
use crate::normalise::ids::{IdShape, Renamer, hash_mark, short_hash};
use crate::wire::tool_output;

/// Converts messages to items.
pub(super) struct Items<'a> {
    pub(super) model: &'a Model,
    pub(super) grammar: &'a GrammarTools,
    /// Calls that were encoded as custom tool calls: their results are encoded likewise.
    custom_calls: HashSet<String>,
    /// Ids that pair calls with results: the call's part of each id, unless another call has it.
    call_ids: Renamer,
    /// Ids of the items so far. The server rejects a second item with the same id, as a turn that was recorded twice has.
    item_ids: HashSet<String>,
    pub(super) items: Vec<Value>,
}

impl<'a> Items<'a> {
    pub(super) fn new(model: &'a Model, grammar: &'a GrammarTools) -> Self {
        Self {
            model,
            grammar,
            custom_calls: HashSet::new(),
            call_ids: Renamer::new(),
            item_ids: HashSet::new(),
            items: Vec::new(),
        }
    }

    /// Encodes a user message, unless it is empty.
    pub(super) fn user(&mut self, message: &UserMessage) {
        let parts = match &message.content {
            Content::Text(text) => text_part(text).into_iter().collect(),
            Content::Blocks(blocks) => parts(blocks),
        };
        if !parts.is_empty() {
            self.items.push(json!({"role": "user", "content": parts}));
        }
    }

    /// Encodes an assistant message. `number` is its position among the messages, for texts without an id.
    pub(super) fn assistant(&mut self, message: &AssistantMessage, number: usize) {
        let begin = self.items.len();
        let is_own = is_own(message, self.model);
        let mut n_texts = 0;
        // Whether an item with an id was dropped just before.
        let mut after_gap = false;
        for block in &message.content {
            match &**block {
                Block::Thinking(thinking) => {
                    if after_gap {
                        self.drop_last_reasoning(begin);
                    }
                    self.reasoning(thinking);
                }
                // Even one with an id: that is only the item's name, and says nothing about its content.
                Block::Text(text) if text.text.trim().is_empty() => {
                    after_gap |= text.signature.is_some();
                    continue;
                }
                Block::Text(text) => {
                    self.text(text, number, n_texts);
                    n_texts += 1;
                }
                Block::ToolCall(call) => self.call(call, is_own, message),
                Block::Image(_) | Block::Other(_) => continue,
            }
            after_gap = false;
        }
        self.drop_last_reasoning(begin);
    }

    /// Drops reasoning without the item that it led to, which the server rejects.
    fn drop_last_reasoning(&mut self, begin: usize) {
        while self.items.len() > begin && self.items.last().is_some_and(|item| item["type"] == "reasoning") {
            let dropped = self.items.pop();
            if let Some(id) = dropped.as_ref().and_then(|item| item["id"].as_str()) {
                self.item_ids.remove(id);
            }
        }
    }

    /// Adds a reasoning item, unless the conversation already has it.
    fn reasoning(&mut self, thinking: &Thinking) {
        let Some(item) = reasoning(thinking) else { return };
        if item["id"].as_str().is_none_or(|id| self.item_ids.insert(id.to_owned())) {
            self.items.push(item);
        }
    }

    /// Adds a text of an answer. One without an id of its own is named after its position.
    fn text(&mut self, text: &Text, number: usize, n_texts: usize) {
        let (id, phase) = text.signature.as_deref().map(read_signature).unwrap_or_default();
        let id = id.map(|id| match id.chars().count() > IdShape::RESPONSES.max {
            true => format!("msg_{}", short_hash(&id)),
            false => id,
        });
        let id = id.filter(|id| self.item_ids.insert(id.clone())).unwrap_or_else(|| match n_texts {
            0 => format!("msg_pi_{number}"),
            _ => format!("msg_pi_{number}_{n_texts}"),
        });
        let content = json!([{"type": "output_text", "text": text.text, "annotations": []}]);
        let mut item =
            json!({"type": "message", "role": "assistant", "content": content, "status": "completed", "id": id});
        if let Some(phase) = phase {
            item["phase"] = phase.into();
        }
        self.items.push(item);
    }

    fn call(&mut self, call: &ToolCall, is_own: bool, message: &AssistantMessage) {
        let call_id = self.call_id(call.id.as_str());
        let (_, item_id) = split_id(call.id.as_str());
        let is_custom = self.grammar.has(&call.name) || item_id.is_some_and(|id| id.starts_with("ctc_"));
        let text = self.grammar.text_of(&call.name, &call.arguments);
        let text = text.filter(|_| is_custom && self.model.dialect.schema.grammar_tools);
        let prefix = if text.is_some() { "ctc_" } else { "fc_" };
        // An item of another model of the same server would require that model's reasoning beside it.
        let foreign_pair =
            !is_own && is_relative(message, self.model) && item_id.is_some_and(|id| id.starts_with("fc_"));
        let fits = |id: &&str| {
            let other_kind = ["fc_", "ctc_"].iter().any(|other| *other != prefix && id.starts_with(other));
            !id.is_empty() && !foreign_pair && !other_kind
        };
        let mut item = Map::new();
        let kind = if text.is_some() { "custom_tool_call" } else { "function_call" };
        item.insert("type".into(), kind.into());
        if let Some(id) = item_id.filter(fits).filter(|id| self.item_ids.insert((*id).to_owned())) {
            item.insert("id".into(), id.into());
        }
        item.insert("call_id".into(), call_id.as_str().into());
        item.insert("name".into(), call.name.as_str().into());
        if let Some(namespace) = call.namespace.as_deref().filter(|_| is_own) {
            item.insert("namespace".into(), namespace.into());
        }
        match text {
            Some(text) => {
                self.custom_calls.insert(call_id);
                item.insert("input".into(), text.into());
            }
            None => {
                let arguments = write::to_string(&call.arguments).unwrap_or_else(|_| "{}".into());
                item.insert("arguments".into(), arguments.into());
            }
        }
        self.items.push(Value::Object(item));
    }

    /// Returns the id that pairs a call with its result: unique per call, and never empty.
    fn call_id(&mut self, id: &str) -> String {
        match split_id(id) {
            ("", _) => self.call_ids.rename(id, &hash_mark(id)),
            (call, _) => self.call_ids.rename(id, call),
        }
    }

    /// Encodes a tool result.
    pub(super) fn tool_result(&mut self, result: &ToolResult) {
        let call_id = self.call_id(result.tool_call_id.as_str());
        let mut images = tool_output::images(result).map(image_part).peekable();
        let output: Value = if self.model.images && images.peek().is_some() {
            text_part(&join_text(&result.content, "\n")).into_iter().chain(images).collect()
        } else {
            tool_output::output_text(result).into()
        };
        let is_custom = self.custom_calls.contains(&call_id);
        let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
        self.items.push(json!({"type": kind, "call_id": call_id, "output": output}));
    }
}

fn parts(blocks: &[Block]) -> Vec<Value> {
    let part = |block: &Block| match block {
        Block::Text(text) => text_part(&text.text),
        Block::Image(image) => Some(image_part(image)),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => None,
    };
    blocks.iter().filter_map(part).collect()
}

fn text_part(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "input_text", "text": text}))
}

fn image_part(image: &Image) -> Value {
    let url = format!("data:{};base64,{}", image.mime_type, image.data);
    json!({"type": "input_image", "detail": "auto", "image_url": url})
}

/// Returns whether a message comes from the model.
pub(super) fn is_own(message: &AssistantMessage, model: &Model) -> bool {
    message.model == model.id && is_relative(message, model)
}

/// Returns whether a message comes from the model's server, possibly from another model.
fn is_relative(message: &AssistantMessage, model: &Model) -> bool {
    canonical_provider(message.provider.as_str()) == canonical_provider(model.provider.as_str())
        && message.api == model.api
}

/// Parses the item in a signature. Anything but a reasoning item is dropped: the signature comes from a file, and must not be able to add
/// anything else.
fn reasoning(thinking: &Thinking) -> Option<Value> {
    let item: Value = serde_json::from_str(thinking.signature.as_deref()?).ok()?;
    (item["type"] == "reasoning").then_some(item)
}

/// Parses id and phase of a text. Older sessions have the bare id.
fn read_signature(signature: &str) -> (Option<String>, Option<String>) {
    if !signature.starts_with('{') {
        return (Some(signature.to_owned()).filter(|id| !id.is_empty()), None);
    }
    let Ok(read) = serde_json::from_str::<Value>(signature) else { return (None, None) };
    let text = |member: &str| read[member].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    (text("id"), text("phase").filter(|phase| matches!(phase.as_str(), "commentary" | "final_answer")))
}

/// Returns the signature of a text.
pub(super) fn write_signature(id: &str, phase: Option<&str>) -> String {
    let mut signature = json!({"v": 1, "id": id});
    if let Some(phase) = phase {
        signature["phase"] = phase.into();
    }
    signature.to_string()
}

/// Splits a call's id into its two ids.
fn split_id(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item)),
        None => (id, None),
    }
}

/// Normalizes another model's call id.
pub(super) fn normalise_id(id: &str, target: &Model, source: &AssistantMessage) -> String {
    let (call, Some(item)) = split_id(id) else { return IdShape::RESPONSES.fit(id) };
    if !target.dialect.history.two_call_ids {
        return IdShape::RESPONSES.fit(id);
    }
    let item =
        if is_relative(source, target) { IdShape::RESPONSES.fit(item) } else { format!("fc_{}", short_hash(item)) };
    let item = if item.starts_with("fc_") { item } else { IdShape::RESPONSES.fit(&format!("fc_{item}")) };
    format!("{}|{item}", IdShape::RESPONSES.fit(call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_signatures_round_trip() {
        let pair = |id: &str, phase: Option<&str>| (Some(id.to_owned()), phase.map(str::to_owned));
        assert_eq!(read_signature("msg_1"), pair("msg_1", None));
        assert_eq!(read_signature(&write_signature("m", Some("commentary"))), pair("m", Some("commentary")));
        assert_eq!(read_signature(r#"{"v":1,"id":"m","phase":"system"}"#), pair("m", None));
        assert_eq!((read_signature("{"), read_signature("")), ((None, None), (None, None)));
    }
}
