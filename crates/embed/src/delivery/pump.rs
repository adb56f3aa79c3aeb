//! Forwards events from a run to its sink.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use pinch_stdx::queue::{Bounds, MergeQueue};
use tokio::time::Instant;

use super::contract::{OutgoingBlock, Receipt, ReplyId, ReplySink, RunId, SendFailure, SinkLimits};
use super::event::{Queued, ReplyEvent};
use super::media;
use super::rules::fit;
use super::snapshot::ReplySnapshot;
use super::terms::DeliveryTerms;
use crate::replies::piece::{BlockReply, ReplySpan};
use crate::replies::unit::TextLimit;

/// Time limit for each call of a sink.
pub const SINK_TIMEOUT: Duration = Duration::from_secs(15);

/// The longest delay that a channel may ask for before a retry. If it asks for more, the block counts as not sent.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// Maximum number of tries per block.
const MAX_TRIES: u32 = 3;

/// Delay before the second try, unless the channel asks for another one; it doubles before the third.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Time after the end of the run in which sends may still begin.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Puts events into the queue without waiting.
#[derive(Debug)]
pub(crate) struct ReplySender {
    queue: Arc<MergeQueue<Queued>>,
    text: Option<TextLimit>,
}

impl ReplySender {
    /// Queues an event; drops it if the run has ended.
    pub(crate) fn send(&self, event: ReplyEvent) {
        if matches!(event, ReplyEvent::Agent(_) | ReplyEvent::BlockReplyFlush) {
            return;
        }
        if self.queue.push(Queued { event, text: self.text }).is_err() {
            tracing::debug!("a reply came after the end of its run");
        }
    }

    /// Marks the end of the events. Queued ones are still delivered.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

/// A delivered block.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeliveredBlock {
    /// The block.
    pub block: OutgoingBlock,
    /// The channel's receipt.
    pub receipt: Receipt,
}

/// A block that could not be delivered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailedBlock {
    /// The block.
    pub block: OutgoingBlock,
    /// Why the last try failed.
    pub failure: Arc<SendFailure>,
}

/// Outcome of all blocks of a run. Each block is in exactly one of the five fields.
#[derive(Clone, Debug, Default)]
pub struct Delivered {
    /// Delivered blocks, in order.
    pub blocks: Vec<DeliveredBlock>,
    /// Blocks that failed. If a transient failure persists after three tries, no further blocks are sent, to preserve their order; after a
    /// permanent failure, the next block is sent.
    pub failed: Vec<FailedBlock>,
    /// The block whose send took too long and was dropped: it may or may not have arrived. It can be sent again to a channel that remembers
    /// ids.
    pub unconfirmed: Option<OutgoingBlock>,
    /// Blocks that were never tried.
    pub remaining: Vec<OutgoingBlock>,
    /// Blocks withheld by a [plugin](crate::plugin::Plugin::message_sending). They count as handled.
    pub withheld: Vec<OutgoingBlock>,
}

impl Delivered {
    /// Returns whether every block arrived.
    pub fn is_complete(&self) -> bool {
        self.unconfirmed.is_none() && self.not_sent().next().is_none()
    }

    /// Returns the blocks that did not arrive, in order.
    pub fn not_sent(&self) -> impl Iterator<Item = &OutgoingBlock> {
        self.failed.iter().map(|failed| &failed.block).chain(&self.remaining)
    }
}

/// What the sink still receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SinkGate {
    /// Everything.
    Open,
    /// Everything but blocks, because one could not be sent.
    NoBlocks,
    /// Nothing, because a call took too long.
    Closed,
}

/// The receiving end of the queue. Its owner polls [`Pump::run`] in the same task as the run, after it. Queuing an event therefore wakes
/// nothing: the task that queued it polls the pump next, and waking it would poll the whole run again for every event.
pub(crate) struct Pump {
    queue: Arc<MergeQueue<Queued>>,
    sink: Arc<dyn ReplySink>,
    run: RunId,
    /// Limits of the channel and of the sink; blocks respect both.
    limits: [SinkLimits; 2],
    terms: DeliveryTerms,
    snapshot: ReplySnapshot,
    gate: SinkGate,
    /// When the end of the run was noticed.
    closed_at: Option<Instant>,
    /// Number of blocks so far that are not part of an answer.
    n_unplaced: u64,
    delivered: Delivered,
}

impl Pump {
    /// Creates a pump for the blocks of a run, and the sender for its queue.
    pub(crate) fn new(sink: Arc<dyn ReplySink>, run: RunId, terms: DeliveryTerms) -> (ReplySender, Box<Self>) {
        let queue = Arc::new(MergeQueue::new(Bounds::default()));
        let (limits, scope) = ([terms.limits, sink.limits()], sink.partial_scope());
        let text = limits[1].text.or(limits[0].text);
        // Boxed: a future that owns it would hold it twice.
        let pump = Box::new(Self {
            queue: Arc::clone(&queue),
            sink,
            run,
            limits,
            terms,
            snapshot: ReplySnapshot::with_scope(scope),
            gate: SinkGate::Open,
            closed_at: None,
            n_unplaced: 0,
            delivered: Delivered::default(),
        });
        (ReplySender { queue, text }, pump)
    }

    /// Continues the numbering of blocks that are not part of an answer after those delivered before.
    pub(crate) fn after(mut self: Box<Self>, before: &Delivered) -> Box<Self> {
        let known = before.blocks.iter().map(|one| &one.block).chain(&before.unconfirmed).chain(&before.withheld);
        let unplaced = known.chain(before.not_sent()).filter(|block| block.id.message == 0);
        self.n_unplaced = unplaced.map(|block| block.id.bytes.end).max().unwrap_or(0);
        self
    }

    /// Delivers until the sender is closed and everything is out.
    pub(crate) async fn run(mut self: Box<Self>) -> Delivered {
        while let Some(event) = self.next().await {
            if self.closed_at.is_none() && self.queue.is_closed() {
                self.closed_at = Some(Instant::now());
            }
            match event {
                // Boxed, as sending needs much more room than the run should keep for it.
                ReplyEvent::BlockReply(block) => Box::pin(self.deliver(block)).await,
                other if self.gate != SinkGate::Closed => self.notify(other).await,
                _ => {}
            }
        }
        self.delivered
    }

    async fn next(&self) -> Option<ReplyEvent> {
        std::future::poll_fn(|_| match self.queue.try_next() {
            Some(queued) => Poll::Ready(Some(queued.event)),
            None if self.queue.is_closed() => Poll::Ready(None),
            None => Poll::Pending,
        })
        .await
    }

    async fn deliver(&mut self, mut reply: BlockReply) {
        let span = reply.span.get_or_insert_with(|| {
            self.n_unplaced += 1;
            ReplySpan { message: 0, bytes: self.n_unplaced - 1..self.n_unplaced }
        });
        let id = ReplyId::new(&self.run, span);
        let max_bytes = self.limits.iter().filter_map(|limits| limits.max_media_bytes).min();
        media::drop_too_large(&mut reply, max_bytes, &self.terms).await;
        let Some(block) = self.asked(OutgoingBlock { id, reply }).await else { return };
        let [channel, sink] = self.limits;
        for part in fit(block, channel).into_iter().flat_map(|part| fit(part, sink)) {
            let is_late = self.closed_at.is_some_and(|at| at.elapsed() >= DRAIN_TIMEOUT);
            if self.gate != SinkGate::Open || is_late {
                self.delivered.remaining.push(part);
            } else {
                self.pause(&part).await;
                self.send(part).await;
            }
        }
    }

    /// Runs the block through the plugins; `None` if they withhold it.
    async fn asked(&mut self, mut block: OutgoingBlock) -> Option<OutgoingBlock> {
        if self.terms.hooks.is_empty() || self.gate != SinkGate::Open {
            return Some(block);
        }
        let changes = self.terms.hooks.sending(&block.reply.text, &block.reply.media_urls).await;
        if changes.cancel.0 == Some(true) {
            self.delivered.withheld.push(block);
            return None;
        }
        if let Some(text) = changes.content.0 {
            block.reply.text = text;
        }
        Some(block)
    }

    /// Waits before every block but the first, to imitate a human typist.
    async fn pause(&self, block: &OutgoingBlock) {
        if let Some(pace) =
            self.terms.pace.as_ref().filter(|_| !block.reply.is_reasoning && !self.delivered.blocks.is_empty())
        {
            tokio::time::sleep(pace.pause()).await;
        }
    }

    /// Tries to send a block until it arrives or retrying is pointless.
    async fn send(&mut self, block: OutgoingBlock) {
        let mut n_tries = 1;
        loop {
            let sending = AssertUnwindSafe(self.sink.send(&block)).catch_unwind();
            let failure = match tokio::time::timeout(SINK_TIMEOUT, sending).await {
                Ok(Ok(Ok(receipt))) => {
                    self.terms.hooks.sent(&block.reply.text, None);
                    return self.delivered.blocks.push(DeliveredBlock { block, receipt });
                }
                Ok(Ok(Err(failure))) => failure,
                Ok(Err(_)) => SendFailure::permanent("the sink panicked"),
                Err(_) => {
                    self.terms.hooks.sent(&block.reply.text, Some("the channel did not answer in time".to_owned()));
                    self.delivered.unconfirmed = Some(block);
                    return self.cut_off();
                }
            };
            let delay = failure.retry_after.unwrap_or(RETRY_DELAY * n_tries);
            if failure.permanent || n_tries == MAX_TRIES || delay > MAX_RETRY_AFTER {
                tracing::warn!(why = %failure.source, id = %block.id, n_tries, "a reply block was not sent");
                self.terms.hooks.sent(&block.reply.text, Some(failure.source.to_string()));
                if !failure.permanent {
                    self.gate = SinkGate::NoBlocks;
                }
                return self.delivered.failed.push(FailedBlock { block, failure: Arc::new(failure) });
            }
            n_tries += 1;
            tokio::time::sleep(delay).await;
        }
    }

    fn cut_off(&mut self) {
        tracing::warn!("a reply sink is too slow and receives nothing more");
        self.gate = SinkGate::Closed;
        if std::panic::catch_unwind(AssertUnwindSafe(|| self.sink.cut_off())).is_err() {
            tracing::warn!("a reply sink panicked");
        }
    }

    async fn notify(&mut self, event: ReplyEvent) {
        let sink = Arc::clone(&self.sink);
        let done = {
            let mut call = pin!(AssertUnwindSafe(self.call(&*sink, &event)).catch_unwind());
            // Most sinks finish immediately and need no timer.
            match futures::poll!(&mut call) {
                Poll::Ready(done) => Ok(done),
                Poll::Pending => tokio::time::timeout(SINK_TIMEOUT, call).await,
            }
        };
        match done {
            Ok(Ok(())) => {}
            Ok(Err(_)) => tracing::warn!("a reply sink panicked"),
            Err(_) => self.cut_off(),
        }
    }

    async fn call(&mut self, sink: &dyn ReplySink, event: &ReplyEvent) {
        match event {
            ReplyEvent::Lifecycle(event) => sink.lifecycle(event).await,
            ReplyEvent::PartialReply(growth) => {
                self.snapshot.grow(growth);
                if growth.shown {
                    sink.partial(self.snapshot.partial()).await;
                }
            }
            ReplyEvent::AssistantMessageStart => sink.typing().await,
            ReplyEvent::ReasoningStream(growth) => {
                self.snapshot.grow_reasoning(growth);
                sink.reasoning(self.snapshot.reasoning()).await;
            }
            ReplyEvent::Draft(edit) => {
                if let Some(text) =
                    self.snapshot.change_draft(edit, self.limits.iter().filter_map(|limits| limits.text))
                {
                    sink.draft(text).await;
                }
            }
            ReplyEvent::Notice(text) => sink.notice(text).await,
            ReplyEvent::ReasoningEnd => sink.reasoning_end().await,
            ReplyEvent::ToolResult(note) => sink.tool_note(note).await,
            ReplyEvent::BlockReply(_) | ReplyEvent::BlockReplyFlush | ReplyEvent::Agent(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
