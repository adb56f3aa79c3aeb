//! Limits the size of an answer.

use crate::error::{LlmError, LlmErrorKind};
use crate::event::{Emit, StreamEvent};
use crate::request::Request;

/// Default maximum bytes of an answer: more than any model writes.
pub(super) const USUAL_LIMIT: usize = 64 * 1024 * 1024;
/// Overhead of a frame around its text: names, ids, counts.
const FRAME_OVERHEAD: usize = 4 * 1024;
/// What a block takes beside its text, in each place that keeps the answer.
const BLOCK_OVERHEAD: usize = 1024;
/// Maximum ratio of frame size to answer size: chunks of a few characters come in frames of hundreds of bytes.
const MAX_FACTOR: usize = 16;

/// Counts what a decoder keeps of a response, and stops an endless response.
#[derive(Debug)]
pub(super) struct ResponseBudget {
    limit: usize,
    /// Bytes of text, of blocks around it, and of frames that are kept in another form.
    n_kept: usize,
    /// Bytes of all frames with content.
    n_framed: usize,
}

impl ResponseBudget {
    pub(super) fn of(request: &Request) -> Self {
        Self { limit: request.options.max_answer_bytes.unwrap_or(USUAL_LIMIT), n_kept: 0, n_framed: 0 }
    }

    /// Counts a frame of `n_bytes` that produced the events after the first `n_before`.
    ///
    /// # Errors
    /// Returns an error if the answer is too large now.
    pub(super) fn take(
        &mut self,
        request: &Request,
        n_bytes: usize,
        emit: &Emit,
        n_before: usize,
    ) -> Result<(), LlmError> {
        let (mut n_text, mut n_blocks) = (0, 0);
        for event in emit.iter().skip(n_before) {
            match event {
                StreamEvent::Delta { text, .. } => n_text += text.len(),
                StreamEvent::BlockStart { .. } => n_blocks += 1,
                _ => {}
            }
        }
        // Hidden content of a frame is kept too: signatures, hidden reasoning, arguments in one chunk.
        let n_silent = if n_text == 0 { n_bytes } else { n_bytes.saturating_sub(FRAME_OVERHEAD + 6 * n_text) };
        self.n_kept =
            self.n_kept.saturating_add(n_text).saturating_add(n_silent).saturating_add(n_blocks * BLOCK_OVERHEAD);
        self.n_framed = self.n_framed.saturating_add(n_bytes);
        if self.limit == 0 || (self.n_kept <= self.limit && self.n_framed / MAX_FACTOR <= self.limit) {
            return Ok(());
        }
        let text = format!("The answer is larger than {} bytes (max_answer_bytes)", self.limit);
        Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::Protocol, text))
    }
}
