//! Preparing a conversation for a model.
//!
//! Conversations move between models, and are cut, aborted and edited on the way. [`transform`] makes of any of them one that the target
//! accepts: every tool call has exactly one result right behind it, nothing refers to a message that is not there, and nothing in it
//! belongs to another model. Equal inputs give equal outputs; the originals are never touched, and what needs no change is shared.
//!
//! Histories of agents, which are old, long and from everywhere, go through [`history`] before.

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

/// Rewrites the id of a tool call that another model made, so that the target takes it: id, target, the message that holds the call.
pub type IdRule<'a> = &'a dyn Fn(&str, &Model, &AssistantMessage) -> String;

/// Prepares a conversation for a model. The steps in order:
///
/// 1. answers that failed or were aborted go;
/// 2. images go where the model cannot see, and where there are more than it takes, a note in their place;
/// 3. answers of other models lose thinking and signatures, and their calls get ids by `ids`;
/// 4. each call is followed by its one result, or a synthetic one; other results go. System messages and whatever else stood between a call
///    and its results comes after them.
///
/// Messages of unknown roles go: they are for programs, not for models.
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
