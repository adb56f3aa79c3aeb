//! Placeholder results for tool calls whose results are missing.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_llm::message::{Message, ToolCall, ToolResult};

use super::SessionLog;
use super::guard;
use crate::entry::EntryBody;

/// Text a model reads in place of a missing result.
pub const MISSING_RESULT: &str = "Tool result missing: the run ended before the tool finished.";

/// Creates the placeholder result of a call.
pub(super) fn missing_result(call: &ToolCall, text: &str, now: i64) -> EntryBody {
    EntryBody::Message(Arc::new(Message::ToolResult(ToolResult::text(call, text, true, now))))
}

impl SessionLog {
    /// Returns the calls on the active branch without results. The next message heals them by appending placeholder results before it;
    /// opening a session for reading therefore writes nothing.
    pub fn awaited_calls(&self) -> Vec<ToolCall> {
        self.awaited.clone().unwrap_or_else(|| guard::awaited_at(&self.index, self.leaf))
    }

    /// Appends placeholder results for all calls without results; returns their number.
    ///
    /// # Errors
    /// Same as [`SessionLog::append`].
    pub fn heal(&mut self) -> BoxFuture<'_, Result<usize, crate::store::StoreError>> {
        Box::pin(async move {
            let calls = self.awaited_calls();
            for call in &calls {
                let result = missing_result(call, self.missing_result, self.host.now_ms());
                self.append(result).await?;
            }
            Ok(calls.len())
        })
    }
}
