//! What a session has come to: counts, tokens, money, and how full the model's window is.

use std::path::PathBuf;

use pinch_llm::message::Message;

use super::{AgentSession, SessionView};
use crate::compaction::estimate;
pub use crate::compaction::estimate::ContextUsage;
use crate::entry::EntryBody;
use crate::session_log::{Context, SessionLog};
pub use pinch_session::totals::Spent;

/// What a session has come to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionStats {
    /// The file, when there is one.
    pub session_file: Option<PathBuf>,
    /// The session's id.
    pub session_id: String,
    /// Messages of the user on all branches, those that were summed up too.
    pub user_messages: usize,
    /// Answers on all branches.
    pub assistant_messages: usize,
    /// Calls in those answers.
    pub tool_calls: usize,
    /// Results of calls on all branches.
    pub tool_results: usize,
    /// All messages of all branches, the system's too.
    pub total_messages: usize,
    /// Everything that was paid for on any branch: answers, work inside of tools, summaries, and work outside of the conversation.
    pub spent: Spent,
    /// How full the window is; `None` when the size of the window is unknown.
    pub context: Option<ContextUsage>,
}

impl AgentSession {
    /// What the session has come to. Reads all entries of all branches.
    pub fn stats(&self) -> SessionStats {
        self.view().stats()
    }

    /// How full the model's window is; `None` when the size of the window is unknown.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        self.view().context_usage()
    }
}

impl SessionView<'_> {
    /// What the session has come to. Reads all entries of all branches.
    pub fn stats(&self) -> SessionStats {
        let mut stats = SessionStats {
            session_file: self.log.path().map(PathBuf::from),
            session_id: self.log.id().to_owned(),
            user_messages: 0,
            assistant_messages: 0,
            tool_calls: 0,
            tool_results: 0,
            total_messages: 0,
            spent: Spent::of(self.log),
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

    /// How full the model's window is; `None` when the size of the window is unknown.
    pub fn context_usage(&self) -> Option<ContextUsage> {
        usage_of(self.log, &self.log.context(), self.model.context_window)
    }
}

/// How full a window is with a conversation.
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
