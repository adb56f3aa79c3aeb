//! Where the kept part starts.

use std::ops::Range;
use std::sync::Arc;

use pinch_llm::message::Message;

use super::estimate::message_tokens;
use crate::entry::{Entry, EntryBody};
use crate::session_log::{edited_messages, roles};

/// Where a path is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutPoint {
    /// Place of the first entry that is kept.
    pub first_kept: usize,
    /// Start of the turn that the cut divides; `None` when it is between turns.
    pub turn_start: Option<usize>,
}

/// Finds the cut that keeps about `keep_recent_tokens` of a range of a path: never before a tool's result, so that no call is separated
/// from it.
pub fn find(path: &[Arc<Entry>], range: Range<usize>, keep_recent_tokens: u64) -> CutPoint {
    let start = range.start;
    let messages = edited_messages(path);
    let valid: Vec<usize> = range.clone().filter(|at| may_begin(&path[*at])).collect();
    let Some(mut cut) = valid.first().copied() else { return CutPoint { first_kept: start, turn_start: None } };
    let mut sum = 0;
    for at in range.rev() {
        if matches!(path[at].body, EntryBody::Compaction(_)) {
            continue;
        }
        sum += messages[at].as_deref().map_or(0, message_tokens);
        if sum >= keep_recent_tokens && messages[at].is_some() {
            // Inside of trailing results the cut moves back: too much is kept rather than nothing cut.
            let after = valid.iter().find(|valid| **valid >= at);
            cut = after.or_else(|| valid.iter().rev().find(|valid| **valid < at)).copied().unwrap_or(cut);
            break;
        }
    }
    let turn_start = if begins_turn(&path[cut]) { None } else { (start..cut).rev().find(|at| begins_turn(&path[*at])) };
    let mut first_kept = cut;
    while first_kept > start && goes_with_next(&path[first_kept - 1]) {
        first_kept -= 1;
    }
    let moved_to_turn = first_kept != cut && begins_turn(&path[first_kept]);
    CutPoint { first_kept, turn_start: turn_start.filter(|_| !moved_to_turn) }
}

/// Whether the kept part may start with this entry.
fn may_begin(entry: &Entry) -> bool {
    match &entry.body {
        EntryBody::Message(message) => match &**message {
            Message::User(_) | Message::Assistant(_) => true,
            Message::Other(other) => matches!(
                other.role(),
                roles::BASH_EXECUTION | roles::CUSTOM | roles::BRANCH_SUMMARY | roles::COMPACTION_SUMMARY
            ),
            Message::System(_) | Message::ToolResult(_) => false,
        },
        EntryBody::CustomMessage(_) | EntryBody::BranchSummary(_) => true,
        _ => false,
    }
}

/// Whether a turn starts with this entry.
fn begins_turn(entry: &Entry) -> bool {
    match &entry.body {
        EntryBody::Message(message) => match &**message {
            Message::User(_) => true,
            Message::Other(other) => other.role() == roles::BASH_EXECUTION,
            _ => false,
        },
        EntryBody::CustomMessage(_) | EntryBody::BranchSummary(_) => true,
        _ => false,
    }
}

/// Settings, labels and the like belong to what follows them.
fn goes_with_next(entry: &Entry) -> bool {
    !matches!(entry.body, EntryBody::Message(_) | EntryBody::Compaction(_))
}
