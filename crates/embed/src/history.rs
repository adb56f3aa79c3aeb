//! Limits the history that a model receives to the last user turns, as configured for the channel.
//!
//! The limit is an extension that shortens the messages of each request. The session keeps everything.

use std::sync::Arc;

use pinch_coding_agent::extension::{ContextAction, Extension, ExtensionCx, HandlerFuture, Point, Points};
use pinch_llm::message::Message;

use crate::config::channels::ChannelsConfig;
use crate::key;

/// Returns the limit for a conversation in user turns, by its key; `None` if none is configured.
pub fn limit_for(channels: &ChannelsConfig, session_key: &str) -> Option<u64> {
    let parsed = key::parse(session_key);
    let rest = parsed.as_ref().map_or(session_key, |parsed| parsed.rest.as_str());
    let mut parts = rest.split(':').filter(|part| !part.is_empty());
    let channel = channels.get(&parts.next()?.trim().to_lowercase())?;
    match parts.next()?.to_lowercase().as_str() {
        "dm" | "direct" => {
            let id = parts.collect::<Vec<_>>().join(":").to_lowercase();
            let of_peer = channel.dms.get(without_thread(&id)).copied().flatten();
            of_peer.or(channel.dm_history_limit)
        }
        "channel" | "group" => channel.history_limit,
        _ => None,
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

/// Limits a conversation to its last user turns.
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
            Ok(if first == 0 { ContextAction::Keep } else { ContextAction::Replace(messages[first..].to_vec()) })
        })
    }
}
