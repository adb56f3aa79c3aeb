//! Results in place of those that never came.

use std::sync::Arc;

use pinch_llm::message::{Message, ToolCall, ToolResult};

use super::SessionLog;
use super::guard;
use crate::entry::EntryBody;

/// What a model reads in place of a result that never came.
pub const MISSING_RESULT: &str = "Tool result missing: the run ended before the tool finished.";

/// The result of a call that never got one.
pub(super) fn missing_result(call: &ToolCall, text: &str, now: i64) -> EntryBody {
    EntryBody::Message(Arc::new(Message::ToolResult(ToolResult::text(call, text, true, now))))
}

impl SessionLog {
    /// The calls on the active branch that still have no result. The next message heals them: results that say so are appended before it,
    /// so that opening a session for reading writes nothing.
    pub fn awaited_calls(&self) -> Vec<ToolCall> {
        self.awaited.clone().unwrap_or_else(|| guard::awaited_at(&self.index, self.leaf))
    }

    /// Appends results for all calls that still have none; returns how many.
    ///
    /// # Errors
    /// As [`SessionLog::append`].
    pub async fn heal(&mut self) -> Result<usize, crate::store::StoreError> {
        let calls = self.awaited_calls();
        for call in &calls {
            let result = missing_result(call, self.missing_result, self.host.now_ms());
            self.append(result).await?;
        }
        Ok(calls.len())
    }
}
