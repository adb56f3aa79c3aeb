//! Adds the results of client tools to the conversation.

use std::sync::Arc;

use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::session::AgentSession;
use pinch_llm::message::{Message, ToolResult};
use pinch_stdx::host::Host;

use super::store_error;
use crate::run::RunError;
use crate::run::client_tools::ClientToolResult;

/// Appends results of calls that wait for them. Results already in the conversation, from an earlier attempt, are skipped.
pub(super) async fn append(
    session: &mut AgentSession,
    results: &[ClientToolResult],
    host: &Host,
) -> Result<(), RunError> {
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
        message.content.clone_from(&result.content);
        let entry = EntryBody::Message(Arc::new(Message::ToolResult(message)));
        session.log_mut().append(entry).await.map_err(store_error)?;
    }
    session.reload();
    Ok(())
}

fn is_result_of(message: &Message, call_id: &str) -> bool {
    matches!(message, Message::ToolResult(result) if result.tool_call_id.as_str() == call_id)
}
