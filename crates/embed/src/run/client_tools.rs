//! Results of tools that the caller of a run runs.

use pinch_llm::message::Block;

/// The result of a call that a run ended with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ClientToolResult {
    /// The id of the call, as in [`PendingToolCall::id`](super::meta::PendingToolCall::id).
    pub call_id: String,
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl ClientToolResult {
    /// A text.
    pub fn text(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { call_id: call_id.into(), content: vec![Block::text(text)], is_error: false }
    }

    /// Marks it as a failure.
    #[must_use]
    pub fn failed(self) -> Self {
        Self { is_error: true, ..self }
    }
}
