//! Failures as regular answers: events and log show a failed turn, never an open one.

use std::sync::Arc;

use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::Finished;
use pinch_llm::message::{AssistantMessage, StopReason};

use crate::agent::Agent;

/// Text of a cancelled answer.
pub(super) const ABORTED: &str = "Request was aborted";

/// Creates an empty answer without a request: the run was cancelled, or something failed before the request.
pub(super) fn local_answer(agent: &Agent, stop: StopReason, text: String) -> Finished {
    let model = &agent.model;
    let kind = if stop == StopReason::Aborted { LlmErrorKind::Aborted } else { LlmErrorKind::InvalidRequest };
    let error = LlmError::new(model.provider.clone(), kind, text.clone());
    let mut message =
        AssistantMessage::pending(model.api.clone(), model.provider.clone(), model.id.clone(), agent.host.now_ms());
    message.stop_reason = stop;
    message.error_message = Some(text);
    message.thinking_level = Some(agent.thinking);
    // Nothing was waited for.
    message.duration_ms = Some(0);
    Finished { message: Arc::new(message), error: Some(Arc::new(error)) }
}
