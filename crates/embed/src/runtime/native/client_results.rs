//! Adds the results of client tools to the conversation.

use std::sync::Arc;

use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::session::AgentSession;
use pinch_llm::message::{Message, ToolResult};
use pinch_stdx::host::Host;
use pinch_tools::results::{limited, result_limit};

use super::store_error;
use crate::plugin::RunHooks;
use crate::run::RunError;
use crate::run::client_tools::ClientToolResult;

/// Appends results of calls that wait for them, limited and passed through the hooks like those of other tools. Results already in the
/// conversation, from an earlier attempt, are skipped.
pub(super) async fn append(
    session: &mut AgentSession,
    results: &[ClientToolResult],
    hooks: &RunHooks,
    host: &Host,
) -> Result<(), RunError> {
    let limit = result_limit(session.model().context_window);
    for result in results {
        let awaited = session.log().awaited_calls();
        let Some(call) = awaited.iter().find(|call| call.id.as_str() == result.call_id) else {
            if session.messages().iter().any(|message| is_result_of(message, &result.call_id)) {
                continue;
            }
            return Err(RunError::Config(format!(
                "no call with the id {:?} waits for a result in this session. Use the ids of the pending calls of its last run",
                result.call_id
            )));
        };
        let mut message = ToolResult::text(call, "", result.is_error, host.now_ms());
        message.content = limited(&result.content, limit).unwrap_or_else(|| result.content.clone());
        let message = session.control().with_admitted_images(Arc::new(Message::ToolResult(message))).await;
        let entry = EntryBody::Message(hooks.written(message).await);
        session.log_mut().append(entry).await.map_err(store_error)?;
    }
    session.reload();
    Ok(())
}

fn is_result_of(message: &Message, call_id: &str) -> bool {
    matches!(message, Message::ToolResult(result) if result.tool_call_id.as_str() == call_id)
}
