//! Answers of one model in a conversation with another.

use std::collections::HashMap;
use std::sync::Arc;

use super::IdRule;
use super::ids::Renamer;
use crate::catalog::canonical_provider;
use crate::ids::ToolCallId;
use crate::message::block::{Block, Text, Thinking, ToolCall};
use crate::message::{AssistantMessage, Message};
use crate::model::Model;

/// New tool call ids by old one; empty if nothing was renamed.
pub(super) type Names = HashMap<ToolCallId, ToolCallId>;

/// Returns whether an answer is the target's own: thinking and signatures are valid only for the same requested model, provider and format.
/// Which model actually answered does not matter.
pub(super) fn is_own(message: &AssistantMessage, target: &Model) -> bool {
    canonical_provider(message.provider.as_str()) == canonical_provider(target.provider.as_str())
        && message.api == target.api
        && message.model == target.id
}

/// Returns the answer as the target may see it, with the new ids of its calls.
pub(super) fn hand_off(
    message: &Arc<AssistantMessage>,
    target: &Model,
    ids: Option<IdRule<'_>>,
    renamer: &mut Renamer,
) -> (Arc<Message>, Names) {
    let mut names = Names::new();
    let is_own = is_own(message, target);
    let content: Vec<Arc<Block>> = message
        .content
        .iter()
        .filter_map(|block| match &**block {
            Block::Thinking(thinking) => (is_own && is_worth_keeping(thinking)).then(|| Arc::clone(block)),
            Block::ToolCall(_) if is_own => Some(Arc::clone(block)),
            Block::ToolCall(call) => {
                let wanted = ids.map_or_else(|| call.id.to_string(), |rule| rule(call.id.as_str(), target, message));
                let id = ToolCallId::from(renamer.rename(call.id.as_str(), &wanted));
                if id == call.id && call.thought_signature.is_none() {
                    return Some(Arc::clone(block));
                }
                names.insert(call.id.clone(), id.clone());
                Some(Arc::new(Block::ToolCall(ToolCall { id, thought_signature: None, ..call.clone() })))
            }
            Block::Text(Text { text, signature: Some(_) }) if !is_own => Some(Arc::new(Block::text(text.as_str()))),
            _ => Some(Arc::clone(block)),
        })
        .collect();
    let is_same = content.len() == message.content.len()
        && content.iter().zip(&message.content).all(|(new, old)| Arc::ptr_eq(new, old));
    let answer =
        if is_same { Arc::clone(message) } else { Arc::new(AssistantMessage { content, ..(**message).clone() }) };
    (Arc::new(Message::Assistant(answer)), names)
}

/// Returns whether to keep thinking: signed and redacted thinking stays even if it is empty, because the provider relies on it.
fn is_worth_keeping(thinking: &Thinking) -> bool {
    thinking.redacted
        || thinking.signature.as_ref().is_some_and(|signature| !signature.is_empty())
        || !thinking.thinking.trim().is_empty()
}
