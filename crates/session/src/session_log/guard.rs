//! Guarantees that every tool call has exactly one result before the next message: the state machine, and the entries it appends.

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
    /// Write the entry, preceded by missing results for these calls.
    Write { missing: Vec<ToolCall> },
    /// Hold it back until the awaited results arrive.
    Hold,
    /// Ignore it: it is a result that no call awaits, or an answer with nothing but incomplete calls.
    Refuse,
}

/// Removes calls without arguments from an entry: no model can have made them, and no tool may run them.
pub(super) fn complete(body: EntryBody) -> EntryBody {
    match &body {
        EntryBody::Message(message) => match message.as_assistant() {
            Some(answer) if answer.content.iter().any(|block| is_incomplete(block)) => {
                let mut kept = AssistantMessage::clone(answer);
                kept.content.retain(|block| !is_incomplete(block));
                // Only its calls marked it as an answer: see `judge`.
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

/// Returns whether a block is a call without arguments; parsing keeps such calls unchanged.
fn is_incomplete(block: &Block) -> bool {
    let Block::Other(block) = block else { return false };
    block.raw["type"] == "toolCall" && block.raw["arguments"].is_null() && block.raw["input"].is_null()
}

/// Returns whether a message is a copy of something delivered outside the conversation. It is not a turn, so calls keep awaiting their
/// results across it.
fn is_mirror(answer: &AssistantMessage) -> bool {
    answer.model == "delivery-mirror"
}

/// Decides how to handle an append while these calls await results.
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

/// Returns the calls that await results after an entry was appended.
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

/// Returns the calls of a message that need results: none if the message failed. Duplicate ids are awaited once.
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

/// Returns the calls that await results at an entry: those of the last assistant message on its path, if only results follow. Edits that
/// remove the message from the context change nothing, since the file stays paired.
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
