//! Repairs a conversation between two attempts. The log only grows: a repair adds entries.

use std::sync::Arc;

use pinch_coding_agent::compaction::{Compacted, CompactionReason};
use pinch_coding_agent::entry::{EntryBody, EntryId};
use pinch_coding_agent::session::{AgentSession, CompactRequest};
use pinch_llm::message::{Block, Content, Message};
use pinch_stdx::cancel::Cancel;

use crate::run::decide::RepairOutcome;
use crate::run::tool_results::{per_result_limit, shortened};
use crate::runtime::CompactRefusal;

/// Replaces old messages with a summary.
pub(super) async fn compact(session: &mut AgentSession, reason: CompactionReason, cancel: &Cancel) -> RepairOutcome {
    if let Err(error) = session.omit_failed().await {
        return RepairOutcome::NotCompacted { reason: error.to_string() };
    }
    let request = CompactRequest { reason, focus: None, cancel: cancel.clone() };
    match session.compact(request, &|_| {}).await {
        Ok(_) if session.log().is_compaction_futile() => RepairOutcome::NotCompacted {
            reason: "two summaries in a row saved less than a tenth of the conversation".to_owned(),
        },
        Ok(_) => RepairOutcome::Compacted,
        Err(error) => RepairOutcome::NotCompacted { reason: error.to_string() },
    }
}

/// Replaces old messages with a summary on request.
pub(super) async fn compact_now(
    session: &mut AgentSession,
    focus: Option<&str>,
    cancel: &Cancel,
) -> Result<Compacted, CompactRefusal> {
    let is_said =
        |message: &Arc<Message>| matches!(**message, Message::User(_) | Message::Assistant(_) | Message::ToolResult(_));
    if !session.messages().iter().any(is_said) {
        return Err(CompactRefusal::new("no real conversation messages"));
    }
    session.omit_failed().await.map_err(|error| CompactRefusal::new(error.to_string()))?;
    let mut request = CompactRequest::manual(focus.map(str::to_owned));
    request.cancel = cancel.clone();
    session.compact(request, &|_| {}).await.map_err(|error| CompactRefusal::new(error.to_string()))
}

/// Shortens oversized tool results by edits of the context; the entries themselves are unchanged.
pub(super) async fn truncate_tool_results(session: &mut AgentSession) -> RepairOutcome {
    let limit = per_result_limit(session.model().context_window);
    let context = session.log().context();
    let too_long: Vec<(EntryId, Vec<Block>)> = (context.messages.iter().zip(&context.entry_ids))
        .filter_map(|(message, id)| match &**message {
            Message::ToolResult(result) => shortened(&result.content, limit).map(|content| (id.clone(), content)),
            _ => None,
        })
        .collect();
    let mut count = 0;
    for (target_id, content) in too_long {
        let edit = EntryBody::ContextEdit { target_id, replacement: Some(Content::Blocks(content)) };
        if let Err(error) = session.log_mut().append(edit).await {
            tracing::error!(%error, "could not shorten a tool result");
            break;
        }
        count += 1;
    }
    session.reload();
    if count == 0 { RepairOutcome::NotTruncated } else { RepairOutcome::Truncated { count } }
}
