//! A session that is no longer the current one of its key.

use std::sync::{Arc, Mutex, PoisonError};

use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::session_log::SessionLog;
use pinch_ports::SessionEntry;

use super::entries;
use crate::key;
use crate::parts::Parts;
use crate::plugin::{BeforeReset, ResetReason, SessionContext, SessionEnd, SessionStart};

/// Holds the session replaced by a change of the index. The change may be tried several times.
#[derive(Clone, Default)]
pub(super) struct ReplacedEntry(Arc<Mutex<Option<(SessionEntry, ResetReason)>>>);

impl ReplacedEntry {
    /// Records the session that this try replaces, if any.
    pub(super) fn set(&self, entry: Option<(SessionEntry, ResetReason)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = entry;
    }

    fn take(&self) -> Option<(SessionEntry, ResetReason)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Notifies plugins that a key got a new session, and which session that ended.
pub(super) async fn notify(parts: &Parts, session_key: &str, session_id: &str, replaced: &ReplacedEntry) {
    let plugins = &parts.registered.plugins;
    if plugins.is_empty() {
        return;
    }
    let agent = key::agent(session_key);
    let cx = |session_id: &str| SessionContext {
        agent_id: agent.clone(),
        session_key: Some(session_key.into()),
        session_id: session_id.into(),
    };
    let before = replaced.take();
    if let Some((entry, reason)) = &before {
        let (mut reset, mut end) =
            (BeforeReset { session_file: None, messages: Vec::new(), reason: *reason }, SessionEnd::default());
        match entries::transcript(parts, session_key, entry).await {
            Ok(log) => {
                reset.session_file = log.path().map(Into::into);
                reset.messages = log.context().messages;
                end = end_of(&log);
            }
            Err(error) => tracing::warn!(%error, session_key, "could not read a session that ends"),
        }
        plugins.session_ended(reset, end, cx(&entry.session_id));
    }
    plugins.session_started(SessionStart { resumed_from: before.map(|(entry, _)| entry.session_id) }, cx(session_id));
}

fn end_of(log: &SessionLog) -> SessionEnd {
    let branch = log.active_branch();
    let mut messages = branch.entries().filter(|entry| matches!(entry.body, EntryBody::Message(_))).peekable();
    let first = messages.peek().and_then(|entry| entry.timestamp_ms());
    let (mut n_messages, mut last) = (0, None);
    for entry in messages {
        (n_messages, last) = (n_messages + 1, entry.timestamp_ms());
    }
    let duration_ms = first.zip(last).and_then(|(first, last)| u64::try_from(last - first).ok());
    SessionEnd { n_messages, duration_ms }
}
