//! The events of a streamed answer.
//!
//! Events carry deltas and never the message so far, so that an answer of n chunks costs O(n). To get the message so far, fold the events
//! with [`Fold`].
//!
//! Laws that every stream obeys (checked in debug builds): at most one `Start`, before everything except an `End`; per block one
//! `BlockStart`, then deltas, and at most one `BlockEnd`; several blocks may be open at once; indexes count up and never shift; exactly one
//! `End`, and nothing after it.

use std::sync::Arc;

use pinch_stdx::text::prefix;

pub mod fold;
pub mod laws;
pub mod stream;

pub use fold::Fold;
pub use stream::{Emit, EventStream};

use crate::error::LlmError;
use crate::ids::ToolCallId;
use crate::message::{AssistantMessage, Block, StopReason, Usage};
use crate::redact::Secrets;
use crate::request::Request;

/// Maximum bytes of the text of a failure.
const MAX_ERROR_TEXT: usize = 8192;

/// One event of an answer.
#[derive(Clone, Debug)]
pub enum StreamEvent {
    /// The provider accepted the request. The message contains only what is known by now.
    Start(Arc<AssistantMessage>),
    /// A block starts.
    BlockStart {
        /// Its index in the message's content.
        index: usize,
        /// Its kind.
        kind: BlockKind,
    },
    /// More of a block: text, thinking, or raw JSON text of a call's arguments. May be empty.
    Delta {
        /// The block's index.
        index: usize,
        /// The new text.
        text: Box<str>,
    },
    /// A block is finished. Its content is authoritative, even if it differs from the concatenated deltas.
    BlockEnd {
        /// The block's index.
        index: usize,
        /// The complete block.
        block: Arc<Block>,
    },
    /// The usage known so far has changed. JSON mode writes it with the next event.
    Usage(Box<Usage>),
    /// The answer has ended, successfully or not.
    End(Finished),
}

/// The kind of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Text.
    Text,
    /// Text that accompanies the work and is not part of the answer.
    Commentary,
    /// Thinking, possibly redacted.
    Thinking {
        /// Whether the provider hides the reasoning.
        redacted: bool,
    },
    /// A tool call. Id and name may still be empty with providers that send them late.
    ToolCall {
        /// The call's id.
        id: ToolCallId,
        /// The tool's name.
        name: String,
    },
}

/// How an answer ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The complete message, or the part that had arrived before a failure.
    pub message: Arc<AssistantMessage>,
    /// The failure; `None` if the answer succeeded. In memory only.
    pub error: Option<Arc<LlmError>>,
}

impl Finished {
    /// Returns whether the answer succeeded.
    pub fn is_ok(&self) -> bool {
        !matches!(self.message.stop_reason, StopReason::Error | StopReason::Aborted)
    }

    /// Removes the request's secrets, and others that were sent, from the text of a failure.
    pub(crate) fn hide(&mut self, request: &Request, sent: Secrets) {
        if self.is_ok() && self.error.is_none() {
            return;
        }
        let secrets = sent.and(request);
        if let Some(text) = self.message.error_message.as_deref().and_then(|text| secrets.hidden_in(text)) {
            Arc::make_mut(&mut self.message).error_message = Some(text);
        }
        if let Some(error) = &mut self.error
            && let Some(text) = secrets.hidden_in(&error.text)
        {
            Arc::make_mut(error).text = text;
        }
    }

    /// Cuts a long text of a failure. Some servers answer with whole pages or repeat the request; everything that is decided by the text
    /// looks at its beginning.
    pub(crate) fn limit_text(&mut self) {
        if let Some(text) = self.message.error_message.as_deref().and_then(limited) {
            Arc::make_mut(&mut self.message).error_message = Some(text);
        }
        if let Some(error) = &mut self.error
            && let Some(text) = limited(&error.text)
        {
            Arc::make_mut(error).text = text;
        }
    }
}

/// Returns the beginning of a text that is too long, and how long it was.
fn limited(text: &str) -> Option<String> {
    (text.len() > MAX_ERROR_TEXT).then(|| {
        let start = prefix(text, MAX_ERROR_TEXT);
        format!("{start}… [first {} of {} bytes]", start.len(), text.len())
    })
}
