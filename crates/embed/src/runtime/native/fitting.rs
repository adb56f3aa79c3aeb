//! Keeps requests within the model's window, also if the server reports a smaller usage than it has.

use std::sync::Arc;

use pinch_coding_agent::compaction::estimate::estimated_tokens;
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::message::Message;
use pinch_llm::request::Request;

use crate::run::tool_results::shortened;

/// The share of the window, in percent, that a request may use.
const MOST: u64 = 90;

/// Truncates results of tools that would use more than half of the window, at two characters per token.
///
/// # Errors
/// An overflow, if the request is still too long.
pub(super) fn fit(request: &mut Request) -> Result<(), LlmError> {
    let window = request.model.context_window;
    if window == 0 {
        return Ok(());
    }
    let limit = usize::try_from(window).unwrap_or(usize::MAX);
    for message in &mut request.messages {
        if let Message::ToolResult(result) = &**message
            && let Some(content) = shortened(&result.content, limit)
        {
            let mut result = result.clone();
            result.content = content;
            *message = Arc::new(Message::ToolResult(result));
        }
    }
    let estimated = estimated_tokens(&request.messages);
    if estimated <= window / 100 * MOST {
        return Ok(());
    }
    let text = format!(
        "Context overflow: the conversation has about {estimated} tokens, which is more than {MOST} % of the model's context window ({window})"
    );
    Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::ContextOverflow, text))
}
