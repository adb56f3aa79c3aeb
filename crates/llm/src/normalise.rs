//! Preparing a conversation for a model.
//!
//! Conversations move between models, and are truncated, aborted and edited on the way. [`transform`] turns any of them into one that the
//! target accepts: every tool call is directly followed by exactly one result, nothing refers to a missing message, and nothing in it
//! belongs to another model. Equal inputs give equal outputs; the originals are never modified, and unchanged parts are shared.
//!
//! Agent histories, which are old, long and come from many sources, first go through [`history`].

use std::sync::Arc;

pub mod ids;
mod handoff;
mod images;
mod pairing;
pub mod system;

mod edit;
pub mod calls;
pub mod call_ids;
pub mod thinking;
pub mod text;
pub mod repair;
pub mod turns;
pub mod history;

pub use images::without_images;

use crate::message::{AssistantMessage, Message};
use crate::model::Model;

/// Rewrites another model's tool call id so that the target accepts it: id, target, the message with the call.
pub type IdRule<'a> = &'a dyn Fn(&str, &Model, &AssistantMessage) -> String;

/// Prepares a conversation for a model, in these steps:
///
/// 1. failed and aborted answers are removed;
/// 2. images are replaced by a note if the model has no vision, or if there are more than it accepts;
/// 3. answers of other models lose thinking and signatures, and their calls get ids from `ids`;
/// 4. each call is followed by its only result, or a synthetic one; other results are removed. System messages and anything else between a
///    call and its results is moved after them.
///
/// Messages of unknown roles are removed: they are for programs, not for models.
pub fn transform(messages: &[Arc<Message>], target: &Model, ids: Option<IdRule<'_>>) -> Vec<Arc<Message>> {
    let paired = pairing::pair(messages);
    let mut renamer = ids::Renamer::new();
    let answers = messages.iter().filter_map(|message| message.as_assistant());
    let own_calls = answers.filter(|answer| handoff::is_own(answer, target)).flat_map(|answer| answer.tool_calls());
    own_calls.for_each(|call| renamer.keep(call.id.as_str()));
    let mut out = Vec::with_capacity(messages.len());
    for step in paired {
        match step {
            pairing::ConversationStep::Answer { message, results } => {
                let (answer, names) = handoff::hand_off(message, target, ids, &mut renamer);
                out.push(answer);
                out.extend(results.into_iter().map(|result| images::without(result.into_message(&names), target)));
            }
            pairing::ConversationStep::Other(message) => out.push(images::without(Arc::clone(message), target)),
        }
    }
    images::limited(&mut out, target.image_counts());
    out
}

#[cfg(test)]
mod tests;
