//! The contract between a run and the host that receives its reply.
//!
//! A [`ReplySink`] sends blocks and reports the outcome of each: a [`Receipt`] or a [`SendFailure`]. Every block has a [`ReplyId`]; the
//! same text has the same id across attempts, joins, coalescing and the final payloads, so a channel that remembers ids never shows a text
//! twice.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use pinch_ports::BoxError;

use super::event::Lifecycle;
use super::snapshot::{PartialReply, PartialScope, ReasoningSnapshot};
pub use crate::key::RunId;
use crate::replies::piece::{BlockReply, ReplySpan, ToolNote};
use crate::replies::unit::{TextLimit, TextUnit};

/// Identifies a part of a run's reply. Displayed as `run/message/start-end`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplyId {
    /// The run.
    pub run: RunId,
    /// Number of the model's answer within the run, starting at 1; 0 for text that is not part of an answer.
    pub message: u32,
    /// Byte range of the answer's visible text. An empty range identifies the answer's reasoning.
    pub bytes: Range<u64>,
}

impl ReplyId {
    /// Creates the id of a position in a run.
    pub fn new(run: &RunId, span: &ReplySpan) -> Self {
        Self { run: run.clone(), message: span.message, bytes: span.bytes.clone() }
    }
}

impl fmt::Display for ReplyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}-{}", self.run, self.message, self.bytes.start, self.bytes.end)
    }
}

/// A block on its way to a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingBlock {
    /// Identifies the text. A retried send has the same id.
    pub id: ReplyId,
    /// Text, media and thread.
    pub reply: BlockReply,
}

/// The channel's confirmation of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The channel's message id, if it has one: for edits and threads.
    pub id: Option<String>,
}

/// Why a block was not sent.
#[derive(Debug, thiserror::Error)]
#[error("the block was not sent")]
pub struct SendFailure {
    /// The delay that the channel asks for before the next try, honoured up to [`MAX_RETRY_AFTER`](super::MAX_RETRY_AFTER).
    pub retry_after: Option<Duration>,
    /// Whether retrying is pointless: the channel rejects the block itself.
    pub permanent: bool,
    /// The cause.
    #[source]
    pub source: BoxError,
}

impl SendFailure {
    /// Creates a failure that may be retried.
    pub fn transient(source: impl Into<BoxError>) -> Self {
        Self { retry_after: None, permanent: false, source: source.into() }
    }

    /// Creates a failure for which retrying is pointless.
    pub fn permanent(source: impl Into<BoxError>) -> Self {
        Self { retry_after: None, permanent: true, source: source.into() }
    }

    /// Sets the delay that the channel asks for.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }
}

/// Limits of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkLimits {
    /// The longest text per block. Longer blocks are split, and blocks are joined only up to this length.
    pub text: Option<TextLimit>,
    /// Maximum number of media per block. Further media are sent in separate blocks.
    pub max_media: Option<usize>,
    /// The largest local file, in bytes. A larger file is not sent, and the block says so.
    pub max_media_bytes: Option<u64>,
}

impl SinkLimits {
    /// Limits blocks to this many UTF-16 code units.
    pub fn of_chars(max_chars: usize) -> Self {
        Self::of_text(max_chars, TextUnit::Utf16)
    }

    /// Limits the text of blocks to this length.
    pub fn of_text(max: usize, unit: TextUnit) -> Self {
        Self { text: Some(TextLimit { max: max.max(1), unit }), ..Self::default() }
    }

    /// Sets the maximum number of media per block.
    #[must_use]
    pub fn max_media(self, max: usize) -> Self {
        Self { max_media: Some(max.max(1)), ..self }
    }

    /// Sets the largest local file, in bytes.
    #[must_use]
    pub fn max_media_bytes(self, max: u64) -> Self {
        Self { max_media_bytes: Some(max), ..self }
    }
}

/// Receives the reply of a run during the run. Calls are made in order, one at a time.
///
/// A run never waits for its sink, and the sink cannot lose a text: [`Delivered`](super::Delivered) lists what was not sent. Each call may
/// take up to [`SINK_TIMEOUT`](super::SINK_TIMEOUT); a call that takes longer is dropped, and the sink receives nothing more. A block whose
/// send was dropped may or may not have arrived: it is [`Delivered::unconfirmed`](super::Delivered::unconfirmed).
pub trait ReplySink: Send + Sync {
    /// Returns the channel's limits. Called once, before the first block.
    fn limits(&self) -> SinkLimits {
        SinkLimits::default()
    }

    /// Sends a block. After a transient failure it is retried with the same [`OutgoingBlock::id`], up to three tries in total.
    ///
    /// # Errors
    /// [`SendFailure`], if the block did not arrive.
    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>>;

    /// Returns what [`ReplySink::partial`] needs. Called once, before the first event.
    fn partial_scope(&self) -> PartialScope {
        PartialScope::default()
    }

    /// Called when the text of the answer grows.
    fn partial<'a>(&'a self, _reply: PartialReply<'a>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Called when the reasoning grows.
    fn reasoning<'a>(&'a self, _reasoning: ReasoningSnapshot<'a>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Called at the end of a stretch of reasoning.
    fn reasoning_end(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Called with the whole text of the draft when it changes. A draft is one message that a channel edits, and that the first block or
    /// payload after it replaces. There are none unless the request or the configuration enables them.
    fn draft<'a>(&'a self, _text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Called with a notice for the user: the run waits, continues with another model, or compacts the conversation. The last notice may be
    /// about token usage.
    fn notice<'a>(&'a self, _text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Called with a tool's summary or output, as far as the run's verbosity shows them.
    fn tool_note<'a>(&'a self, _note: &'a ToolNote) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Called when the model begins an answer, to show a typing indicator.
    fn typing(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Called when the run starts and when it ends, exactly once each.
    fn lifecycle<'a>(&'a self, _event: &'a Lifecycle) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// The last call: an earlier call took too long, and the sink receives nothing more.
    fn cut_off(&self) {}
}
