//! Choosing the first entry to keep.

use std::ops::Range;
use std::sync::Arc;

use pinch_llm::message::Message;

use super::estimate::message_tokens;
use crate::entry::{Entry, EntryBody};
use crate::session_log::{edited_messages, roles};

/// A position at which a path is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutPoint {
    /// Index of the first entry to keep.
    pub first_kept: usize,
    /// Start of the turn that the cut splits; `None` if it falls between turns.
    pub turn_start: Option<usize>,
}

/// Finds the cut that keeps about `keep_recent_tokens` of a range of a path. Never cuts before a tool result, so calls and results stay
/// together.
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
            // Within trailing results the cut moves back: keeping too much beats cutting nothing.
            let after = valid.iter().find(|valid| **valid >= at);
            cut = after.or_else(|| valid.iter().rev().find(|valid| **valid < at)).copied().unwrap_or(cut);
            break;
        }
    }
    let turn_start = if begins_turn(&path[cut]) { None } else { (start..cut).rev().find(|at| begins_turn(&path[*at])) };
    let mut first_kept = cut;
    while first_kept > start && belongs_to_next(&path[first_kept - 1]) {
        first_kept -= 1;
    }
    let moved_to_turn = first_kept != cut && begins_turn(&path[first_kept]);
    CutPoint { first_kept, turn_start: turn_start.filter(|_| !moved_to_turn) }
}

/// Returns whether the kept part may start with this entry.
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

/// Returns whether a turn starts with this entry.
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

/// Returns whether an entry belongs to the one that follows it, as settings and labels do.
fn belongs_to_next(entry: &Entry) -> bool {
    !matches!(entry.body, EntryBody::Message(_) | EntryBody::Compaction(_))
}
