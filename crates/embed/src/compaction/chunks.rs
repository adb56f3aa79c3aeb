//! Splits a history into chunks that fit a summarising model.

use std::collections::HashSet;
use std::sync::Arc;

use pinch_coding_agent::compaction::estimate::message_tokens;
use pinch_llm::ids::ToolCallId;
use pinch_llm::message::Message;

/// Share of the window for a chunk of ordinary messages.
const BASE_RATIO: f64 = 0.4;
/// Minimum share of the window for a chunk of long messages.
const MIN_RATIO: f64 = 0.15;
/// Factor by which token estimates may be too low.
const SAFETY_MARGIN: f64 = 1.2;
/// A message that takes a larger share of the window is too long to summarise.
const OVERSIZED_SHARE: f64 = 0.5;

/// Returns the total number of tokens in the messages.
pub fn tokens_of(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| message_tokens(message)).sum()
}

/// Returns the share of the window that one chunk may take: smaller for long messages, whose estimates are less accurate.
pub fn adaptive_ratio(messages: &[Arc<Message>], window: u64) -> f64 {
    if messages.is_empty() || window == 0 {
        return BASE_RATIO;
    }
    let average = tokens_of(messages) as f64 / messages.len() as f64;
    let share = average * SAFETY_MARGIN / window as f64;
    if share > 0.1 { (BASE_RATIO - (2.0 * share).min(BASE_RATIO - MIN_RATIO)).max(MIN_RATIO) } else { BASE_RATIO }
}

/// Returns whether a message is too long to be summarised.
pub fn is_oversized(tokens: u64, window: u64) -> bool {
    window > 0 && tokens as f64 * SAFETY_MARGIN > window as f64 * OVERSIZED_SHARE
}

/// Splits messages into at most `parts` parts of about the same size, never between a call and its result.
pub fn split_by_share(messages: &[Arc<Message>], parts: usize) -> Vec<Vec<Arc<Message>>> {
    let parts = parts.clamp(1, messages.len().max(1));
    let target = tokens_of(messages) as f64 / parts as f64;
    let mut chunks: Vec<Vec<Arc<Message>>> = Vec::new();
    let mut size = 0;
    for message in messages {
        let tokens = message_tokens(message);
        let starts = (size + tokens) as f64 > target && chunks.len() < parts && !is_result(message);
        match chunks.last_mut() {
            Some(chunk) if !starts => {
                size += tokens;
                chunk.push(Arc::clone(message));
            }
            _ => {
                size = tokens;
                chunks.push(vec![Arc::clone(message)]);
            }
        }
    }
    chunks
}

/// Splits messages into chunks of at most `max` tokens, minus a margin for estimation errors. A longer message ends its chunk.
pub fn chunk_by_max(messages: &[Arc<Message>], max: u64) -> Vec<Vec<Arc<Message>>> {
    let limit = ((max as f64 / SAFETY_MARGIN) as u64).max(1);
    let mut chunks: Vec<Vec<Arc<Message>>> = Vec::new();
    let mut size = u64::MAX;
    for message in messages {
        let tokens = message_tokens(message);
        match chunks.last_mut() {
            Some(chunk) if size.saturating_add(tokens) <= limit => {
                size += tokens;
                chunk.push(Arc::clone(message));
            }
            _ => {
                size = tokens;
                chunks.push(vec![Arc::clone(message)]);
            }
        }
        if tokens > limit {
            size = u64::MAX;
        }
    }
    chunks
}

/// A history whose oldest messages were dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct DroppedHistory {
    /// Messages that were kept.
    pub kept: Vec<Arc<Message>>,
    /// Messages that were dropped, oldest first, including results whose calls were dropped.
    pub dropped: Vec<Arc<Message>>,
    /// Number of times messages were dropped.
    pub n_chunks: usize,
    /// The token budget.
    pub budget: u64,
}

/// Drops the older half of a history until the rest takes no more than a share of the window.
pub fn drop_history(messages: &[Arc<Message>], window: u64, share: f64) -> DroppedHistory {
    let budget = ((window as f64 * share) as u64).max(1);
    let mut history = DroppedHistory { kept: messages.to_vec(), dropped: Vec::new(), n_chunks: 0, budget };
    while tokens_of(&history.kept) > budget {
        let mut halves = split_by_share(&history.kept, 2);
        if halves.len() < 2 {
            break;
        }
        let rest = halves.split_off(1).concat();
        history.dropped.extend(halves.into_iter().flatten());
        history.n_chunks += 1;
        let calls: HashSet<&ToolCallId> = rest.iter().flat_map(|message| call_ids(message)).collect();
        let is_orphan = |message: &Message| match message {
            Message::ToolResult(result) => !calls.contains(&result.tool_call_id),
            _ => false,
        };
        let (orphans, kept) = rest.iter().cloned().partition(|message| is_orphan(message));
        let orphans: Vec<Arc<Message>> = orphans;
        history.dropped.extend(orphans);
        history.kept = kept;
    }
    history
}

fn is_result(message: &Message) -> bool {
    matches!(message, Message::ToolResult(_))
}

fn call_ids(message: &Message) -> impl Iterator<Item = &ToolCallId> {
    message.as_assistant().into_iter().flat_map(|answer| answer.tool_calls().map(|call| &call.id))
}
