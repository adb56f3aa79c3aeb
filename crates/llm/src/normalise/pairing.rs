//! Pairs each tool call with its result.

use std::collections::HashMap;
use std::sync::Arc;

use super::handoff::Names;
use crate::ids::ToolCallId;
use crate::message::{AssistantMessage, Message, ToolCall, ToolResult};

const NO_RESULT: &str = "No result provided";

/// A step of a conversation.
pub(super) enum ConversationStep<'a> {
    /// An answer with the results of its calls, in the order in which they are sent.
    Answer { message: &'a Arc<AssistantMessage>, results: Vec<Paired<'a>> },
    /// Any other message.
    Other(&'a Arc<Message>),
}

/// The result of a call.
pub(super) enum Paired<'a> {
    /// A result from the conversation.
    Real(&'a Arc<Message>),
    /// A missing result: the conversation broke off before it. Has the call's timestamp, so that equal inputs give equal outputs.
    Missing { call: &'a ToolCall, timestamp: i64 },
}

impl Paired<'_> {
    /// Converts the result to a message, under the call's new id.
    pub(super) fn into_message(self, names: &Names) -> Arc<Message> {
        let renamed = |id: &ToolCallId| names.get(id).cloned();
        match self {
            Self::Real(message) => match &**message {
                Message::ToolResult(result) => match renamed(&result.tool_call_id) {
                    Some(id) if id != result.tool_call_id => {
                        Arc::new(Message::ToolResult(ToolResult { tool_call_id: id, ..result.clone() }))
                    }
                    _ => Arc::clone(message),
                },
                _ => Arc::clone(message),
            },
            Self::Missing { call, timestamp } => {
                let mut result = ToolResult::text(call, NO_RESULT, true, timestamp);
                result.tool_call_id = renamed(&call.id).unwrap_or(result.tool_call_id);
                Arc::new(Message::ToolResult(result))
            }
        }
    }
}

/// A call's result found in the conversation.
#[derive(Clone, Copy)]
struct Found<'a> {
    message: &'a Arc<Message>,
    /// Whether a user or assistant message is between the call and the result.
    is_late: bool,
}

/// An answer that is collecting its results.
struct OpenAnswer<'a> {
    message: &'a Arc<AssistantMessage>,
    calls: Vec<&'a ToolCall>,
    /// Results by index of the call.
    found: Vec<Option<Found<'a>>>,
    /// Indexes of calls in the order in which their results arrived.
    arrived: Vec<usize>,
    /// Whether the conversation continued after it.
    is_past: bool,
}

enum PairingSlot<'a> {
    Answer(OpenAnswer<'a>),
    Other(&'a Arc<Message>),
}

/// Pairs calls with results. Skips failed answers, results without a call, second results of a call and unknown roles.
pub(super) fn pair(messages: &[Arc<Message>]) -> Vec<ConversationStep<'_>> {
    let mut slots: Vec<PairingSlot<'_>> = Vec::with_capacity(messages.len());
    // The last answer with a call of each id: some servers reuse ids, even within one answer.
    let mut last_answer: HashMap<&ToolCallId, usize> = HashMap::new();
    let mut current: Option<usize> = None;
    for message in messages {
        match &**message {
            Message::ToolResult(result) => {
                let Some(&slot) = last_answer.get(&result.tool_call_id) else { continue };
                let Some(PairingSlot::Answer(open)) = slots.get_mut(slot) else { continue };
                let mut calls = open.calls.iter().zip(&open.found);
                let waits =
                    |(call, found): (&&ToolCall, &Option<Found<'_>>)| call.id == result.tool_call_id && found.is_none();
                if let Some(call) = calls.position(waits) {
                    open.found[call] = Some(Found { message, is_late: open.is_past });
                    open.arrived.push(call);
                }
            }
            Message::Assistant(answer) => {
                pass(&mut slots, &mut current);
                if answer.stop_reason.is_failure() {
                    continue;
                }
                let calls: Vec<&ToolCall> = answer.tool_calls().collect();
                last_answer.extend(calls.iter().map(|call| (&call.id, slots.len())));
                current = Some(slots.len());
                let found = vec![None; calls.len()];
                slots.push(PairingSlot::Answer(OpenAnswer {
                    message: answer,
                    calls,
                    found,
                    arrived: Vec::new(),
                    is_past: false,
                }));
            }
            Message::User(_) => {
                pass(&mut slots, &mut current);
                slots.push(PairingSlot::Other(message));
            }
            Message::System(_) => slots.push(PairingSlot::Other(message)),
            Message::Other(_) => {}
        }
    }
    slots.into_iter().map(into_step).collect()
}

/// Records that the conversation continues: later results for the current answer are late.
fn pass(slots: &mut [PairingSlot<'_>], current: &mut Option<usize>) {
    if let Some(PairingSlot::Answer(open)) = current.take().and_then(|at| slots.get_mut(at)) {
        open.is_past = true;
    }
}

/// Orders results by arrival, followed by late and missing ones in the order of the calls.
fn into_step(slot: PairingSlot<'_>) -> ConversationStep<'_> {
    let open = match slot {
        PairingSlot::Other(message) => return ConversationStep::Other(message),
        PairingSlot::Answer(open) => open,
    };
    let in_time = open.arrived.iter().filter_map(|call| open.found[*call]).filter(|found| !found.is_late);
    let mut results: Vec<Paired<'_>> = in_time.map(|found| Paired::Real(found.message)).collect();
    for (call, found) in open.calls.iter().zip(&open.found) {
        match found {
            Some(Found { is_late: false, .. }) => {}
            Some(Found { message, .. }) => results.push(Paired::Real(message)),
            None => results.push(Paired::Missing { call, timestamp: open.message.timestamp }),
        }
    }
    ConversationStep::Answer { message: open.message, results }
}
