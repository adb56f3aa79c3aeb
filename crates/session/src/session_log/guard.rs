//! Every tool call has exactly one result before the next message: the state machine and what it appends.

use std::collections::HashSet;
use std::sync::Arc;

use pinch_llm::ids::ToolCallId;
use pinch_llm::message::{AssistantMessage, Block, Message, ToolCall};

use super::index::Index;
use super::roles::BASH_EXECUTION;
use crate::entry::EntryBody;
use crate::entry::scan::{EntryType, MessageRole};

/// What an append has to do.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Write it; before it results of these calls.
    Write { missing: Vec<ToolCall> },
    /// Keep it until the awaited results are there.
    Hold,
    /// Ignore it: no call waits for this result, or it is an answer of nothing but incomplete calls.
    Refuse,
}

/// The entry without calls that have no arguments: no model can have made them, and no tool may run them.
pub(super) fn complete(body: EntryBody) -> EntryBody {
    match &body {
        EntryBody::Message(message) => match message.as_assistant() {
            Some(answer) if answer.content.iter().any(|block| is_incomplete(block)) => {
                let mut kept = AssistantMessage::clone(answer);
                kept.content.retain(|block| !is_incomplete(block));
                // Marked by its calls alone: see `judge`.
                if kept.content.is_empty() {
                    body
                } else {
                    EntryBody::Message(Arc::new(Message::Assistant(Arc::new(kept))))
                }
            }
            _ => body,
        },
        _ => body,
    }
}

/// Whether a block is a call without arguments; reading keeps such a call as it is written.
fn is_incomplete(block: &Block) -> bool {
    let Block::Other(block) = block else { return false };
    block.raw["type"] == "toolCall" && block.raw["arguments"].is_null() && block.raw["input"].is_null()
}

/// Whether a message is a copy of what was delivered outside of the conversation. It is no turn: calls await their results across it.
fn is_mirror(answer: &AssistantMessage) -> bool {
    answer.model == "delivery-mirror"
}

/// Judges an append while these calls await their results.
pub(super) fn judge(body: &EntryBody, awaited: &[ToolCall]) -> Verdict {
    match body {
        EntryBody::Message(message) => match &**message {
            Message::ToolResult(result) if awaited.iter().any(|call| call.id == result.tool_call_id) => {
                Verdict::Write { missing: Vec::new() }
            }
            Message::ToolResult(_) => Verdict::Refuse,
            Message::Assistant(answer) if answer.content.iter().any(|block| is_incomplete(block)) => Verdict::Refuse,
            Message::Assistant(answer) if is_mirror(answer) => Verdict::Write { missing: Vec::new() },
            Message::Other(other) if other.role() == BASH_EXECUTION && !awaited.is_empty() => Verdict::Hold,
            _ => Verdict::Write { missing: awaited.to_vec() },
        },
        EntryBody::CustomMessage(_) => Verdict::Write { missing: awaited.to_vec() },
        _ => Verdict::Write { missing: Vec::new() },
    }
}

/// The calls that await results after an entry was appended.
pub(super) fn after(body: &EntryBody, mut awaited: Vec<ToolCall>) -> Vec<ToolCall> {
    match body {
        EntryBody::Message(message) => match &**message {
            Message::ToolResult(result) => {
                awaited.retain(|call| call.id != result.tool_call_id);
                awaited
            }
            Message::Assistant(answer) if is_mirror(answer) => awaited,
            message => calls_of(message),
        },
        _ => awaited,
    }
}

/// The calls of a message that must be answered: none of a message that failed. An id that occurs twice is awaited once.
fn calls_of(message: &Message) -> Vec<ToolCall> {
    let mut seen = HashSet::new();
    message
        .as_assistant()
        .filter(|assistant| !assistant.stop_reason.is_failure())
        .into_iter()
        .flat_map(|assistant| assistant.tool_calls())
        .filter(|call| seen.insert(call.id.clone()))
        .cloned()
        .collect()
}

/// The calls that await results at an entry: those of the last assistant message on its path, when only results follow it. That a later
/// entry takes the message out of the context changes nothing: the file stays paired.
pub(super) fn awaited_at(index: &Index, leaf: Option<usize>) -> Vec<ToolCall> {
    let mut answered: HashSet<ToolCallId> = HashSet::new();
    for at in index.path(leaf).into_iter().rev() {
        let slot = &index.slots()[at];
        match (slot.kind, slot.role) {
            (EntryType::Message, MessageRole::ToolResult) => {
                if let EntryBody::Message(message) = &index.entry(at).body
                    && let Message::ToolResult(result) = &**message
                {
                    answered.insert(result.tool_call_id.clone());
                }
            }
            (EntryType::Message, MessageRole::BashExecution) => {}
            (EntryType::Message, MessageRole::Assistant) => {
                let entry = index.entry(at);
                if entry.body.as_message().and_then(|message| message.as_assistant()).is_some_and(|a| is_mirror(a)) {
                    continue;
                }
                let mut calls = entry.body.as_message().map(|message| calls_of(message)).unwrap_or_default();
                calls.retain(|call| !answered.contains(&call.id));
                return calls;
            }
            (EntryType::Message | EntryType::CustomMessage, _) => return Vec::new(),
            _ => {}
        }
    }
    Vec::new()
}
