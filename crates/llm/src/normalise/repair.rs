//! Moves tool results after their calls, in histories that another program wrote or that were truncated.
//!
//! A session log has one result for each call. [`transform`](super::transform) brings any history into an order that a wire format can
//! encode; this repair reports its changes, and follows the rules of one model.

use std::collections::HashMap;
use std::sync::Arc;

use super::calls;
use super::edit::{self, BlockEdit};
use crate::ids::ToolCallId;
use crate::message::{Block, Message, RawBlock, ToolCall, ToolResult};

/// Text for a missing result: OpenClaw's words, so that a history gives the same prompt in both programs.
pub const MISSING_RESULT: &str =
    "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair.";

/// A repaired history, and the number of changes.
#[derive(Clone, Debug, Default)]
pub struct RepairedHistory {
    /// The messages.
    pub messages: Vec<Arc<Message>>,
    /// Number of synthetic results added.
    pub n_added: usize,
    /// Number of dropped second results of a call.
    pub n_duplicates: usize,
    /// Number of dropped results without a call.
    pub n_orphans: usize,
}

/// A call in an answer, by its index.
struct OpenCall<'a> {
    id: &'a str,
    /// Whether the id in the answer has white space around it, which is removed.
    is_spaced: bool,
    name: &'a str,
    result: Option<&'a Arc<Message>>,
}

/// An answer, and the messages up to the next one.
#[derive(Default)]
struct RepairSpan<'a> {
    answer: Option<&'a Arc<Message>>,
    calls: Vec<OpenCall<'a>>,
    /// Messages that are not results.
    rest: Vec<&'a Arc<Message>>,
}

/// Moves each result after its call, in the order of the calls, and drops the others. A call without a result gets a synthetic one if
/// `synthetic` is set. Failed answers keep their calls and get no results.
///
/// Ids may be reused: results belong to the call in the answer before them. A displaced one moves only if exactly one call lacks it.
pub fn repair(messages: &[Arc<Message>], synthetic: bool) -> RepairedHistory {
    let mut report = RepairedHistory::default();
    let mut turns = vec![RepairSpan::default()];
    let mut displaced = Vec::new();
    for message in messages {
        match &**message {
            Message::Assistant(answer) => {
                let calls = if answer.stop_reason.is_failure() { Vec::new() } else { calls_of(&answer.content) };
                turns.push(RepairSpan { answer: Some(message), calls, rest: Vec::new() });
            }
            Message::ToolResult(result) => {
                let id = result.tool_call_id.as_str().trim();
                let Some(turn) = turns.last_mut() else { continue };
                let of_id = || turn.calls.iter().filter(|call| call.id == id);
                if of_id().any(|call| call.result.is_none()) {
                    if let Some(call) = turn.calls.iter_mut().find(|call| call.id == id && call.result.is_none()) {
                        call.result = Some(message);
                    }
                } else if of_id().next().is_some() {
                    report.n_duplicates += 1;
                } else {
                    displaced.push((turns.len(), id, message));
                }
            }
            _ => {
                if let Some(turn) = turns.last_mut() {
                    turn.rest.push(message);
                }
            }
        }
    }
    let owners = if displaced.is_empty() { HashMap::new() } else { calls_by_id(&turns) };
    for (at, id, message) in displaced {
        let owners = owners.get(id).map_or(&[][..], Vec::as_slice);
        let call = match owners[..owners.partition_point(|(turn, _)| *turn < at)] {
            [(turn, call)] => Some(&mut turns[turn].calls[call]).filter(|call| call.result.is_none()),
            _ => None,
        };
        match call {
            Some(call) => call.result = Some(message),
            None => report.n_orphans += 1,
        }
    }
    for turn in turns {
        let is_spaced = turn.calls.iter().any(|call| call.is_spaced);
        report.messages.extend(turn.answer.map(|answer| if is_spaced { trimmed(answer) } else { Arc::clone(answer) }));
        for call in &turn.calls {
            match (call.result, turn.answer) {
                (Some(result), _) => report.messages.push(of_call(result, call)),
                (None, Some(answer)) if synthetic => {
                    report.n_added += 1;
                    report.messages.push(missing(call, answer.timestamp()));
                }
                (None, _) => {}
            }
        }
        report.messages.extend(turn.rest.into_iter().cloned());
    }
    report
}

/// Returns the positions of the calls with each id, as indexes of turns and of calls in them, in order.
fn calls_by_id<'a>(turns: &[RepairSpan<'a>]) -> HashMap<&'a str, Vec<(usize, usize)>> {
    let mut by_id: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    for (turn, span) in turns.iter().enumerate() {
        for (at, call) in span.calls.iter().enumerate() {
            by_id.entry(call.id).or_default().push((turn, at));
        }
    }
    by_id
}

fn calls_of(content: &[Arc<Block>]) -> Vec<OpenCall<'_>> {
    content
        .iter()
        .filter_map(|block| match &**block {
            Block::ToolCall(call) => Some((call.id.as_str(), call.name.as_str())),
            Block::Other(raw) if calls::is_call(&raw.raw) => {
                Some((raw.raw["id"].as_str()?, raw.raw["name"].as_str().unwrap_or_default()))
            }
            _ => None,
        })
        .map(|(id, name)| OpenCall { id: id.trim(), is_spaced: id.trim() != id, name, result: None })
        .collect()
}

/// Removes white space around the ids of an answer's calls.
fn trimmed(message: &Arc<Message>) -> Arc<Message> {
    let Message::Assistant(answer) = &**message else { return Arc::clone(message) };
    let edited = edit::answer(answer, |block| match block {
        Block::ToolCall(call) => {
            BlockEdit::Put(Block::ToolCall(ToolCall { id: ToolCallId::new(call.id.as_str().trim()), ..call.clone() }))
        }
        Block::Other(raw) if calls::is_call(&raw.raw) => {
            let mut raw = raw.raw.clone();
            raw["id"] = raw["id"].as_str().unwrap_or_default().trim().into();
            BlockEdit::Put(Block::Other(RawBlock { raw }))
        }
        _ => BlockEdit::Keep,
    });
    edited.map_or_else(|| Arc::clone(message), |answer| Arc::new(Message::Assistant(answer)))
}

/// Gives a result the id of its call, which may have had white space around it, and the name of the tool, which some programs omit.
fn of_call(message: &Arc<Message>, call: &OpenCall<'_>) -> Arc<Message> {
    let Message::ToolResult(result) = &**message else { return Arc::clone(message) };
    let is_named = !result.tool_name.trim().is_empty() || call.name.is_empty();
    if is_named && result.tool_call_id.as_str() == call.id {
        return Arc::clone(message);
    }
    let tool_name = if is_named { result.tool_name.clone() } else { call.name.to_owned() };
    Arc::new(Message::ToolResult(ToolResult { tool_call_id: ToolCallId::new(call.id), tool_name, ..result.clone() }))
}

/// Uses the answer's timestamp, so that equal histories give equal requests.
fn missing(call: &OpenCall<'_>, timestamp: i64) -> Arc<Message> {
    let name = if call.name.is_empty() { "unknown" } else { call.name };
    let call = ToolCall::new(ToolCallId::new(call.id), name, Default::default());
    Arc::new(Message::ToolResult(ToolResult::text(&call, MISSING_RESULT, true, timestamp)))
}
