//! Session statistics: message counts, tokens, cost, and context usage.

use std::path::PathBuf;

use pinch_llm::ids::SessionId;
use pinch_llm::message::Message;

use super::{AgentSession, SessionView};
use crate::compaction::estimate;
pub use crate::compaction::estimate::ContextUsage;
use crate::entry::EntryBody;
use crate::session_log::{Context, SessionLog};
pub use pinch_session::totals::UsageTotals;

/// Statistics of a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionStats {
    /// Path of the file, if there is one.
    pub session_file: Option<PathBuf>,
    /// Id of the session.
    pub session_id: SessionId,
    /// User messages on all branches, including compacted ones.
    pub user_messages: usize,
    /// Answers on all branches.
    pub assistant_messages: usize,
    /// Tool calls in those answers.
    pub tool_calls: usize,
    /// Tool results on all branches.
    pub tool_results: usize,
    /// All messages on all branches, including system messages.
    pub total_messages: usize,
    /// Total usage on all branches: answers, model calls inside tools, summaries, and usage outside the conversation.
    pub spent: UsageTotals,
    /// Context usage; `None` if the size of the window is unknown.
    pub context: Option<ContextUsage>,
}

impl AgentSession {
    /// Computes the statistics. Reads all entries of all branches.
    pub fn stats(&self) -> SessionStats {
        self.view().stats()
    }

    /// Returns the context usage, or `None` if the size of the window is unknown.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        self.view().context_usage()
    }
}

impl SessionView<'_> {
    /// Computes the statistics. Reads all entries of all branches.
    pub fn stats(&self) -> SessionStats {
        let mut stats = SessionStats {
            session_file: self.log.path().map(PathBuf::from),
            session_id: self.log.id().to_owned(),
            user_messages: 0,
            assistant_messages: 0,
            tool_calls: 0,
            tool_results: 0,
            total_messages: 0,
            spent: UsageTotals::of(self.log),
            context: self.context_usage(),
        };
        for entry in self.log.entries() {
            let Some(message) = entry.body.as_message() else { continue };
            stats.total_messages += 1;
            match &**message {
                Message::User(_) => stats.user_messages += 1,
                Message::ToolResult(_) => stats.tool_results += 1,
                Message::Assistant(answer) => {
                    stats.assistant_messages += 1;
                    stats.tool_calls += answer.tool_calls().count();
                }
                _ => {}
            }
        }
        stats
    }

    /// Returns the context usage, or `None` if the size of the window is unknown.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        usage_of(self.log, &self.log.context(), self.model.context_window)
    }
}

/// Returns the context usage of a conversation.
pub(super) fn usage_of(log: &SessionLog, context: &Context, context_window: u64) -> Option<ContextUsage> {
    if context_window == 0 {
        return None;
    }
    let is_known = log.active_branch().entries().rev().find_map(|entry| match &entry.body {
        EntryBody::Compaction(_) => Some(false),
        EntryBody::Message(message) => {
            let answer = message.as_assistant()?;
            (!answer.stop_reason.is_failure() && !answer.usage.is_zero()).then_some(true)
        }
        _ => None,
    });
    let tokens = is_known.unwrap_or(true).then(|| estimate::tokens_of(context).tokens);
    Some(ContextUsage { tokens, context_window })
}
