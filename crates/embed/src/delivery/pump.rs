//! Carries events from a run to its sinks.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use pinch_stdx::queue::{Bounds, MergeQueue};

use super::ReplyEvent;
use super::sinks::{AgentData, ReplySinks};
use super::so_far::SoFar;
use crate::replies::piece::{AgentStream, BlockReply};

/// How long a sink may hold one event.
pub const SINK_TIMEOUT: Duration = Duration::from_secs(15);

/// Puts events into the queue; never waits.
#[derive(Debug)]
pub(crate) struct ReplySender(Arc<MergeQueue<ReplyEvent>>);

impl ReplySender {
    /// Sends an event. After the end of the run it goes nowhere.
    pub(crate) fn send(&self, event: ReplyEvent) {
        if self.0.push(event).is_err() {
            tracing::debug!("a reply came after the end of its run");
        }
    }

    /// Nothing more will come; what waits is still delivered.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}

/// What became of the blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delivered {
    /// Blocks the sink took.
    pub blocks: Vec<BlockReply>,
    /// Blocks it did not take: they belong into the payloads.
    pub undelivered: Vec<BlockReply>,
    /// The sink was cut off.
    pub lagged: bool,
}

/// The reading end. Its owner polls [`Pump::run`] in the same task as the run, after it: an event in the queue wakes nobody, since whoever
/// has put it there polls the pump next. Waking the task would poll the whole run once more for every event.
pub(crate) struct Pump {
    queue: Arc<MergeQueue<ReplyEvent>>,
    sinks: Arc<dyn ReplySinks>,
    so_far: SoFar,
}

impl Pump {
    /// A pump and the way into it.
    pub(crate) fn new(sinks: Arc<dyn ReplySinks>) -> (ReplySender, Self) {
        let queue = Arc::new(MergeQueue::new(Bounds::default()));
        (ReplySender(Arc::clone(&queue)), Self { queue, sinks, so_far: SoFar::default() })
    }

    /// Delivers until the sender is closed and everything is out. A sink that panics is passed over; one that holds an event longer than
    /// [`SINK_TIMEOUT`] gets nothing more.
    pub(crate) async fn run(mut self) -> Delivered {
        let mut delivered = Delivered::default();
        while let Some(event) = self.next().await {
            if delivered.lagged {
                delivered.undelivered.extend(block_of(&event).cloned());
                continue;
            }
            let told = AssertUnwindSafe(self.tell(&event)).catch_unwind();
            match tokio::time::timeout(SINK_TIMEOUT, told).await {
                Ok(Ok(())) => delivered.blocks.extend(block_of(&event).cloned()),
                Ok(Err(_)) => {
                    tracing::warn!("a reply sink panicked");
                    delivered.undelivered.extend(block_of(&event).cloned());
                }
                Err(_) => {
                    tracing::warn!("a reply sink is too slow and gets nothing more");
                    delivered.lagged = true;
                    delivered.undelivered.extend(block_of(&event).cloned());
                    self.sinks.on_lagged();
                }
            }
        }
        delivered
    }

    async fn next(&self) -> Option<ReplyEvent> {
        std::future::poll_fn(|_| match self.queue.try_next() {
            Some(event) => Poll::Ready(Some(event)),
            None if self.queue.is_closed() => Poll::Ready(None),
            None => Poll::Pending,
        })
        .await
    }

    async fn tell(&mut self, event: &ReplyEvent) {
        let sinks = Arc::clone(&self.sinks);
        match event {
            ReplyEvent::PartialReply(growth) => {
                self.so_far.grow(growth);
                sinks.on_agent_event(AgentStream::Assistant, self.so_far.text_event()).await;
                if growth.shown {
                    sinks.on_partial_reply(self.so_far.partial()).await;
                }
            }
            ReplyEvent::BlockReply(block) => sinks.on_block_reply(block).await,
            ReplyEvent::BlockReplyFlush => sinks.on_block_reply_flush().await,
            ReplyEvent::AssistantMessageStart => sinks.on_assistant_message_start().await,
            ReplyEvent::ReasoningStream(growth) => {
                self.so_far.reason(growth);
                sinks.on_reasoning_stream(self.so_far.reasoning()).await;
            }
            ReplyEvent::ReasoningEnd => sinks.on_reasoning_end().await,
            ReplyEvent::ToolResult(note) => sinks.on_tool_result(note).await,
            ReplyEvent::Agent(note) => {
                if !note.for_caller().is_null() {
                    sinks.on_agent_event(note.stream, AgentData::Value(note.for_caller())).await;
                }
            }
        }
    }
}

fn block_of(event: &ReplyEvent) -> Option<&BlockReply> {
    match event {
        ReplyEvent::BlockReply(block) => Some(block),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::PartialReply;
    use super::*;
    use crate::replies::piece::Growth;
    use futures::future::BoxFuture;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Recording {
        told: Mutex<Vec<String>>,
        stuck_at: Option<&'static str>,
    }

    impl ReplySinks for Recording {
        fn on_partial_reply<'a>(&'a self, reply: PartialReply<'a>) -> BoxFuture<'a, ()> {
            self.told.lock().unwrap().push(format!("partial {}", reply.text));
            Box::pin(std::future::ready(()))
        }

        fn on_block_reply<'a>(&'a self, block: &'a BlockReply) -> BoxFuture<'a, ()> {
            Box::pin(async move {
                if self.stuck_at == Some(&block.text) {
                    std::future::pending::<()>().await;
                }
                assert_ne!(block.text, "boom");
                self.told.lock().unwrap().push(format!("block {}", block.text));
            })
        }

        fn on_lagged(&self) {
            self.told.lock().unwrap().push("lagged".into());
        }
    }

    async fn delivered(stuck_at: Option<&'static str>, events: Vec<ReplyEvent>) -> (Vec<String>, Delivered) {
        let sinks = Arc::new(Recording { stuck_at, ..Recording::default() });
        let (sender, pump) = Pump::new(Arc::clone(&sinks) as Arc<dyn ReplySinks>);
        events.into_iter().for_each(|event| sender.send(event));
        sender.close();
        let delivered = pump.run().await;
        let told = sinks.told.lock().unwrap().clone();
        (told, delivered)
    }

    fn partial(at: usize, delta: &str) -> ReplyEvent {
        ReplyEvent::PartialReply(Growth { at, delta: delta.into(), shown: true, ..Growth::default() })
    }

    fn block(text: &str) -> ReplyEvent {
        ReplyEvent::BlockReply(BlockReply::text(text))
    }

    #[tokio::test(start_paused = true)]
    async fn growth_merges_while_nobody_reads() {
        let events = vec![partial(0, "a"), partial(1, "b"), block("ab"), partial(2, "c")];
        assert_eq!(delivered(None, events).await.0, ["partial ab", "block ab", "partial abc"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_sink_is_cut_off_and_its_blocks_are_kept() {
        let (told, delivered) = delivered(Some("b"), vec![block("a"), block("b"), block("c")]).await;
        assert_eq!(told, ["block a", "lagged"]);
        let texts: Vec<&str> = delivered.undelivered.iter().map(|block| block.text.as_str()).collect();
        assert_eq!((texts, delivered.lagged), (vec!["b", "c"], true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_disturbs_nobody_else() {
        assert_eq!(delivered(None, vec![block("boom"), block("a")]).await.0, ["block a"]);
    }
}
