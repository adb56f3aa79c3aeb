//! Prepares the history of an agent for its model, according to the model's [`TranscriptRules`].
//!
//! Requests go through [`prepare`], whether their messages come from a file or from the current run. Nothing here reads a clock or creates
//! an id: equal histories give equal requests, and unchanged parts are shared.

use std::sync::Arc;

use super::{call_ids, calls, repair, text, thinking, turns};
use crate::message::Message;
use crate::model::transcript::TranscriptRules;

/// Facts about the request that the rules do not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// Whether another model answered before.
    pub model_changed: bool,
    /// Whether the model is asked to think.
    pub thinking: bool,
    /// Whether the server checks no signatures.
    pub unsigned_thinking: bool,
}

/// Returns the messages of a request: [`sanitised`], then in turns that the server accepts.
pub fn prepare(messages: &[Arc<Message>], rules: &TranscriptRules, facts: RequestFacts) -> Vec<Arc<Message>> {
    let mut messages = sanitised(messages, rules, facts);
    // These are for programs, and would separate turns.
    messages.retain(|message| !matches!(**message, Message::Other(_)));
    messages = calls::adopted(&messages);
    if rules.reasoning_items {
        // Those of adopted calls.
        messages = thinking::without_item_ids(&messages);
    }
    messages = turns::without_failed(messages);
    messages = thinking::without_thinking_only(messages);
    if rules.bound_thinking {
        messages = thinking::bound(messages, facts.unsigned_thinking);
    }
    if rules.forget_thinking {
        messages = thinking::current_only(messages);
    }
    messages = turns::without_silent(messages);
    messages = text::without_blanks(messages);
    // The start may have been removed.
    if rules.user_first || rules.opens_with_user {
        messages = turns::user_first(&messages);
    }
    if rules.merge_users && rules.synthetic_results {
        messages = turns::without_dangling(&messages);
    }
    let merged = turns::Merged { answers: rules.merge_answers, users: rules.merge_users, developers: false };
    if merged != turns::Merged::default() {
        messages = turns::merge(&messages, merged);
    }
    if rules.no_prefill && facts.thinking {
        messages = turns::without_prefill(messages);
    }
    messages
}

/// Returns the history without parts that the model's server rejects or misreads, in these steps: origin of messages; copies; content;
/// thinking; calls; results after their calls; ids; reasoning items; the start.
pub fn sanitised(messages: &[Arc<Message>], rules: &TranscriptRules, facts: RequestFacts) -> Vec<Arc<Message>> {
    let mut messages = text::mark_inter_session(messages);
    messages = turns::without_mirrors(&messages);
    messages = text::clean(&messages, rules);
    if rules.drop_thinking {
        messages = thinking::drop_all(&messages);
    }
    if rules.signed_thinking {
        messages = thinking::signed_only(&messages);
    }
    messages = calls::without_malformed(&messages);
    if rules.pair_results {
        let repaired = repair::repair(&messages, rules.synthetic_results);
        if repaired.n_added + repaired.n_duplicates + repaired.n_orphans > 0 {
            tracing::debug!(
                added = repaired.n_added,
                duplicates = repaired.n_duplicates,
                orphans = repaired.n_orphans,
                "tool results of a history were repaired"
            );
        }
        messages = repaired.messages;
    }
    // After the pairing, because repeated ids separate what belongs together.
    if let Some(rule) = rules.call_ids {
        messages = call_ids::rewrite(&messages, rule);
    }
    if rules.reasoning_items {
        if facts.model_changed {
            messages = thinking::without_orphan_items(&messages);
        }
        messages = thinking::without_item_ids(&messages);
    }
    if rules.user_first {
        messages = turns::user_first(&messages);
    }
    messages
}
