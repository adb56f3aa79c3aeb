//! What a host implements to receive replies, and what both sides promise.
//!
//! A [`ReplySink`] sends blocks and says what became of each: a [`Receipt`], or a [`SendFailure`]. Every block has a [`ReplyId`]; the same
//! text has the same id over attempts, joins, coalescing and the final payloads, so a channel that remembers ids never shows a text twice.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use pinch_ports::BoxError;

use super::event::Lifecycle;
use super::snapshot::{PartialReply, ReasoningSnapshot};
use crate::replies::piece::{BlockReply, ReplySpan, ToolNote};
use crate::replies::unit::{TextLimit, TextUnit};

/// The name of a run, unique among the runs of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Arc<str>);

impl RunId {
    /// The text of the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for RunId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names a part of a run's reply. Printed as `run/message/start-end`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplyId {
    /// The run.
    pub run: RunId,
    /// The answer of the model, counted within the run from 1; 0 for text that is not part of an answer.
    pub message: u32,
    /// Bytes of the answer's visible text. An empty range names the answer's reasoning.
    pub bytes: Range<u64>,
}

impl ReplyId {
    /// The id of a place in a run.
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
    /// Names the text. A send that is tried again has the same id.
    pub id: ReplyId,
    /// Text, media and thread.
    pub reply: BlockReply,
}

/// What a channel says about a block that it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The channel's name of the message, if it has one: for edits and threads.
    pub id: Option<String>,
}

/// Why a block was not sent.
#[derive(Debug, thiserror::Error)]
#[error("the block was not sent")]
pub struct SendFailure {
    /// How long the channel asks to wait before the next try; up to [`MAX_RETRY_AFTER`](super::MAX_RETRY_AFTER) is waited.
    pub retry_after: Option<Duration>,
    /// Another try would fail, too: the block itself is refused.
    pub permanent: bool,
    /// What went wrong.
    #[source]
    pub source: BoxError,
}

impl SendFailure {
    /// A failure that may pass.
    pub fn transient(source: impl Into<BoxError>) -> Self {
        Self { retry_after: None, permanent: false, source: source.into() }
    }

    /// A failure that will not pass.
    pub fn permanent(source: impl Into<BoxError>) -> Self {
        Self { retry_after: None, permanent: true, source: source.into() }
    }

    /// Sets how long the channel asks to wait.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }
}

/// What a channel can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkLimits {
    /// The longest text of a block. Longer blocks are split, and blocks are joined only below it.
    pub text: Option<TextLimit>,
    /// Media of a block at most. More of them go into blocks of their own.
    pub max_media: Option<usize>,
    /// The largest local file in bytes. A larger one is not sent; the block says so.
    pub max_media_bytes: Option<u64>,
}

impl SinkLimits {
    /// Blocks of at most so many UTF-16 units.
    pub fn of_chars(max_chars: usize) -> Self {
        Self::of_text(max_chars, TextUnit::Utf16)
    }

    /// Blocks whose text has at most this length.
    pub fn of_text(max: usize, unit: TextUnit) -> Self {
        Self { text: Some(TextLimit { max: max.max(1), unit }), ..Self::default() }
    }

    /// Sets how many media a block may have.
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

/// Receives the reply of a run during the run. Calls come one after another, in order.
///
/// A run never waits for its sink, and the sink cannot lose a text: what is not sent is in [`Delivered`](super::Delivered). Each call has
/// [`SINK_TIMEOUT`](super::SINK_TIMEOUT); a call that takes longer is dropped, and the sink gets nothing more. A block whose send
/// was dropped may or may not have arrived: it is [`Delivered::unconfirmed`](super::Delivered::unconfirmed).
pub trait ReplySink: Send + Sync {
    /// What the channel can take; asked once, before the first block.
    fn limits(&self) -> SinkLimits {
        SinkLimits::default()
    }

    /// Sends a block. A transient failure is tried again with the same [`OutgoingBlock::id`], three times in all.
    ///
    /// # Errors
    /// [`SendFailure`], if the block did not arrive.
    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>>;

    /// The text of the answer grew.
    fn partial<'a>(&'a self, _reply: PartialReply<'a>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// The reasoning grew.
    fn reasoning<'a>(&'a self, _reasoning: ReasoningSnapshot<'a>) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// A stretch of reasoning is over.
    fn reasoning_end(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// The draft changed: this is all of its text. A draft is one message that a channel edits, and that the first block or payload after it
    /// takes the place of. There are none unless the request or the configuration asks for them.
    fn draft<'a>(&'a self, _text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// Something about the run that its user may want to know: it waits, continues with another model, shortens the conversation. The last
    /// one may be about the tokens it used.
    fn notice<'a>(&'a self, _text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// A tool's summary or output, as far as the run's verbosity shows them.
    fn tool_note<'a>(&'a self, _note: &'a ToolNote) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// The model begins an answer: time for a typing indicator.
    fn typing(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// The run starts or ends: one start, then one end.
    fn lifecycle<'a>(&'a self, _event: &'a Lifecycle) -> BoxFuture<'a, ()> {
        Box::pin(ready(()))
    }

    /// The last call: an earlier one took too long, and nothing more comes.
    fn cut_off(&self) {}
}
