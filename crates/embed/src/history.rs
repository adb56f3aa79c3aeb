//! Limits the history that a model receives to the last user turns, as configured for the channel.
//!
//! The limit is an extension that shortens the messages of each request. The session keeps everything.

use std::sync::Arc;

use pinch_coding_agent::extension::{ContextAction, Extension, ExtensionCx, HandlerFuture, Point, Points};
use pinch_coding_agent::session_log::roles;
use pinch_llm::message::Message;

use crate::config::channels::{ChannelsConfig, HistoryLimits};
use crate::key::{ChatAddress, PeerKind};

/// Returns the limit for a conversation in user turns, by its key; `None` if none is configured. `account` is the channel account of a
/// conversation whose key names none. What is configured for the account comes before what is configured for the channel.
pub fn limit_for(channels: &ChannelsConfig, session_key: &str, account: Option<&str>) -> Option<u64> {
    let chat = ChatAddress::of(session_key).filter(|chat| !chat.is_subagent)?;
    let channel = channels.get(&chat.channel)?;
    let account = channel.account(chat.account.as_deref().or(account)).map(|account| &account.history);
    let first =
        |limit: &dyn Fn(&HistoryLimits) -> Option<u64>| account.and_then(limit).or_else(|| limit(&channel.history));
    match chat.kind {
        PeerKind::Direct => {
            let peer = chat.id.to_lowercase();
            let peer = without_thread(&peer);
            first(&|limits| limits.of_peers.get(peer).copied()).or_else(|| first(&|limits| limits.of_direct_chats))
        }
        PeerKind::Channel | PeerKind::Group => first(&|limits| limits.of_groups),
        PeerKind::Room => None,
    }
}

/// Strips a trailing `:thread:<digits>` or `:topic:<digits>` from an id.
fn without_thread(id: &str) -> &str {
    let cut = [":thread:", ":topic:"].into_iter().find_map(|marker| {
        let (before, thread) = id.rsplit_once(marker)?;
        (!thread.is_empty() && thread.bytes().all(|byte| byte.is_ascii_digit())).then_some(before)
    });
    cut.unwrap_or(id)
}

/// Returns where the last `limit` user turns begin. A limit of 0 keeps everything.
pub fn first_kept(messages: &[Arc<Message>], limit: u64) -> usize {
    if limit == 0 {
        return 0;
    }
    let users = messages.iter().enumerate().rev().filter(|(_, message)| matches!(***message, Message::User(_)));
    let mut kept = 0;
    let mut begins = 0;
    for (at, _) in users {
        kept += 1;
        if kept > limit {
            return begins;
        }
        begins = at;
    }
    0
}

fn is_summary(message: &Message) -> bool {
    matches!(message, Message::Other(other) if other.role() == roles::COMPACTION_SUMMARY)
}

/// Limits a conversation to its last user turns; summaries of what was compacted stay.
pub(crate) struct HistoryLimit(pub(crate) u64);

impl Extension for HistoryLimit {
    fn name(&self) -> &str {
        "history-limit"
    }

    fn points(&self) -> Points {
        Points::of([Point::Context])
    }

    fn context<'a>(&'a self, messages: &'a [Arc<Message>], _: &'a ExtensionCx) -> HandlerFuture<'a, ContextAction> {
        let first = first_kept(messages, self.0);
        Box::pin(async move {
            if first == 0 {
                return Ok(ContextAction::Keep);
            }
            // The summary of what was compacted is not a turn.
            let summaries = messages[..first].iter().filter(|message| is_summary(message));
            Ok(ContextAction::Replace(summaries.chain(&messages[first..]).cloned().collect()))
        })
    }
}
