//! Results of tools that the caller of a run executes.

use pinch_llm::message::Block;

/// Result of a tool call that a run ended with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ClientToolResult {
    /// Id of the call, as in [`PendingToolCall::id`](super::meta::PendingToolCall::id).
    pub call_id: String,
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl ClientToolResult {
    /// Creates a result with a text.
    pub fn text(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { call_id: call_id.into(), content: vec![Block::text(text)], is_error: false }
    }

    /// Marks it as a failure.
    #[must_use]
    pub fn failed(self) -> Self {
        Self { is_error: true, ..self }
    }
}
