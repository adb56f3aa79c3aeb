//! How a history is cut into chunks that a summarising model can read (embed-runner 6.3.1).

use std::collections::HashSet;
use std::sync::Arc;

use pinch_coding_agent::compaction::estimate::message_tokens;
use pinch_llm::ids::ToolCallId;
use pinch_llm::message::Message;

/// The share of the window that a chunk of ordinary messages has.
const BASE_RATIO: f64 = 0.4;
/// The share that a chunk of long messages has at least.
const MIN_RATIO: f64 = 0.15;
/// Estimates may be too low by this factor.
const SAFETY_MARGIN: f64 = 1.2;
/// A message that takes more of the window is too long to be summarised.
const OVERSIZED_SHARE: f64 = 0.5;

/// Tokens of messages together.
pub fn tokens_of(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| message_tokens(message)).sum()
}

/// The share of the window that one chunk may take: less if messages are long, since estimates of those are further off.
pub fn adaptive_ratio(messages: &[Arc<Message>], window: u64) -> f64 {
    if messages.is_empty() || window == 0 {
        return BASE_RATIO;
    }
    let average = tokens_of(messages) as f64 / messages.len() as f64;
    let share = average * SAFETY_MARGIN / window as f64;
    if share > 0.1 { (BASE_RATIO - (2.0 * share).min(BASE_RATIO - MIN_RATIO)).max(MIN_RATIO) } else { BASE_RATIO }
}

/// Whether a message is too long to be summarised.
pub fn is_oversized(tokens: u64, window: u64) -> bool {
    window > 0 && tokens as f64 * SAFETY_MARGIN > window as f64 * OVERSIZED_SHARE
}

/// Cuts messages into at most `parts` parts of about the same size, never between calls and their results.
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

/// Cuts messages into chunks of at most `max` tokens, less a margin for estimates. A message that is longer ends its chunk.
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

/// A history whose oldest part was cut off.
#[derive(Clone, Debug, PartialEq)]
pub struct DroppedHistory {
    /// What is left.
    pub kept: Vec<Arc<Message>>,
    /// What was cut off, oldest first, with results whose calls were cut off.
    pub dropped: Vec<Arc<Message>>,
    /// How often something was cut off.
    pub n_chunks: usize,
    /// How many tokens were allowed.
    pub budget: u64,
}

/// Cuts off the older half of a history until the rest takes no more than a share of the window.
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
