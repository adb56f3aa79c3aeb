use std::collections::HashMap;
use std::sync::Mutex;

use futures::future::BoxFuture;
use proptest::prelude::*;

use super::super::snapshot::{PartialReply, PartialScope};
use super::*;
use crate::replies::piece::Growth;

/// Behaviour of a sink in one call of `send`.
#[derive(Clone, Copy, Debug)]
enum Act {
    Take,
    TakeAfter(u64),
    Fail {
        retry_after: Option<u64>,
    },
    Refuse,
    Panic,
    Hang,
    /// The channel takes the block, but its confirmation is lost.
    TakeAndHang,
}

#[derive(Default)]
struct Recording {
    calls: Mutex<Vec<String>>,
    /// Number of arrivals by id.
    arrived: Mutex<HashMap<ReplyId, u32>>,
    acts: Mutex<Vec<Act>>,
    limits: SinkLimits,
    scope: PartialScope,
    /// Text length at which the sink hangs.
    hangs_at_partial: Option<usize>,
}

impl Recording {
    fn with(acts: impl IntoIterator<Item = Act>) -> Arc<Self> {
        let mut acts: Vec<Act> = acts.into_iter().collect();
        acts.reverse();
        Arc::new(Self { acts: Mutex::new(acts), ..Self::default() })
    }

    fn log(&self, line: String) {
        self.calls.lock().unwrap().push(line);
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

impl ReplySink for Recording {
    fn limits(&self) -> SinkLimits {
        self.limits
    }

    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        Box::pin(async move {
            let act = self.acts.lock().unwrap().pop().unwrap_or(Act::Take);
            let take = || *self.arrived.lock().unwrap().entry(block.id.clone()).or_default() += 1;
            match act {
                Act::Take => take(),
                Act::TakeAfter(secs) => {
                    tokio::time::sleep(Duration::from_secs(secs)).await;
                    take();
                }
                Act::Fail { retry_after } => {
                    let failure = SendFailure::transient("busy");
                    return Err(SendFailure { retry_after: retry_after.map(Duration::from_secs), ..failure });
                }
                Act::Refuse => return Err(SendFailure::permanent("refused")),
                Act::Panic => panic!("boom"),
                Act::Hang => std::future::pending().await,
                Act::TakeAndHang => {
                    take();
                    std::future::pending().await
                }
            }
            self.log(format!("block {}", block.reply.text));
            Ok(Receipt { id: Some(block.id.to_string()) })
        })
    }

    fn partial_scope(&self) -> PartialScope {
        self.scope
    }

    fn partial<'a>(&'a self, reply: PartialReply<'a>) -> BoxFuture<'a, ()> {
        self.log(format!("partial {}", reply.text));
        match self.hangs_at_partial == Some(reply.text.len()) {
            true => Box::pin(std::future::pending()),
            false => Box::pin(std::future::ready(())),
        }
    }

    fn cut_off(&self) {
        self.log("cut off".into());
    }
}

async fn deliver(sink: &Arc<Recording>, events: Vec<ReplyEvent>) -> Delivered {
    let (sender, pump) = Pump::new(Arc::clone(sink) as Arc<dyn ReplySink>, RunId::from("r"), DeliveryTerms::default());
    events.into_iter().for_each(|event| sender.send(event));
    sender.close();
    pump.run().await
}

fn partial(at: usize, delta: &str) -> ReplyEvent {
    ReplyEvent::PartialReply(Growth { at, delta: delta.into(), shown: true, ..Growth::default() })
}

fn block(at: u64, text: &str) -> ReplyEvent {
    let span = ReplySpan { message: 1, bytes: at..at + text.len() as u64 };
    ReplyEvent::BlockReply(BlockReply { span: Some(span), ..BlockReply::text(text) })
}

fn three() -> Vec<ReplyEvent> {
    vec![block(0, "a"), block(1, "b"), block(2, "c")]
}

fn texts<'a>(blocks: impl IntoIterator<Item = &'a OutgoingBlock>) -> Vec<&'a str> {
    blocks.into_iter().map(|block| block.reply.text.as_str()).collect()
}

#[tokio::test]
async fn a_sink_of_changes_gets_only_what_is_new() {
    for (scope, last) in [(PartialScope::Whole, "partial abc"), (PartialScope::Change, "partial c")] {
        let sink = Arc::new(Recording { scope, ..Recording::default() });
        deliver(&sink, vec![partial(0, "ab"), block(0, "ab"), partial(2, "c")]).await;
        assert_eq!(sink.calls(), ["partial ab", "block ab", last]);
    }
}

#[tokio::test(start_paused = true)]
async fn growth_is_merged_while_the_sink_is_busy() {
    let sink = Recording::with([]);
    deliver(&sink, vec![partial(0, "a"), partial(1, "b"), block(0, "ab"), partial(2, "c")]).await;
    assert_eq!(sink.calls(), ["partial ab", "block ab", "partial abc"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_block_does_not_count_as_delivered() {
    let sink = Recording::with([Act::Take, Act::Refuse]);
    let delivered = deliver(&sink, three()).await;
    assert_eq!(texts(delivered.blocks.iter().map(|block| &block.block)), ["a", "c"]);
    assert_eq!(texts(delivered.failed.iter().map(|failed| &failed.block)), ["b"]);
    assert!(!delivered.is_complete());
    assert_eq!(delivered.blocks[0].receipt.id.as_deref(), Some("r/1/0-1"));
}

#[tokio::test(start_paused = true)]
async fn a_transient_failure_is_tried_three_times_and_honours_retry_after() {
    let began = Instant::now();
    let sink = Recording::with([Act::Fail { retry_after: Some(7) }, Act::Fail { retry_after: Some(30) }]);
    assert!(deliver(&sink, three()).await.is_complete());
    assert_eq!(began.elapsed(), Duration::from_secs(37));
    assert_eq!(sink.calls(), ["block a", "block b", "block c"]);

    let sink = Recording::with([Act::Fail { retry_after: None }; 3]);
    let delivered = deliver(&sink, three()).await;
    assert_eq!(texts(delivered.not_sent()), ["a", "b", "c"], "the order is kept");
    assert_eq!((delivered.failed.len(), sink.acts.lock().unwrap().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_retry_delay_beyond_the_limit_fails_the_block() {
    let began = Instant::now();
    let sink = Recording::with([Act::Fail { retry_after: Some(31) }]);
    let delivered = deliver(&sink, three()).await;
    assert_eq!((texts(delivered.not_sent()), began.elapsed()), (vec!["a", "b", "c"], Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_stuck_sink_is_cut_off_and_its_current_block_is_unconfirmed() {
    let sink = Recording::with([Act::Take, Act::TakeAndHang]);
    let delivered = deliver(&sink, three()).await;
    assert_eq!(sink.calls(), ["block a", "cut off"]);
    assert_eq!(texts(&delivered.unconfirmed), ["b"]);
    assert_eq!(texts(delivered.not_sent()), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_does_not_affect_other_blocks() {
    let sink = Recording::with([Act::Panic]);
    let delivered = deliver(&sink, three()).await;
    assert_eq!(
        (sink.calls(), texts(delivered.not_sent())),
        (vec!["block b".to_owned(), "block c".to_owned()], vec!["a"])
    );
}

#[tokio::test(start_paused = true)]
async fn long_blocks_are_split_before_they_are_sent() {
    let sink = Arc::new(Recording { limits: SinkLimits::of_chars(10), ..Recording::default() });
    let delivered = deliver(&sink, vec![block(0, "One two. Three four. Five.")]).await;
    assert!(delivered.is_complete());
    assert_eq!(sink.calls(), ["block One two.", "block Three", "block four.", "block Five."]);
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Take),
        1 => (1..14_u64).prop_map(Act::TakeAfter),
        1 => prop::option::of(0..40_u64).prop_map(|retry_after| Act::Fail { retry_after }),
        1 => Just(Act::Refuse),
        1 => Just(Act::Panic),
        1 => Just(Act::Hang),
        1 => Just(Act::TakeAndHang),
    ]
}

proptest! {
    /// Whatever the sink does: each block is in exactly one field, delivered blocks arrived once, others did not arrive (except the
    /// unconfirmed one), and the run ends.
    #[test]
    fn nothing_is_lost_and_nothing_arrives_twice(
        acts in prop::collection::vec(act(), 0..12),
        limit in prop::option::of(1..4_usize),
        hangs_at_partial in prop::option::of(1..40_usize),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut sink = Recording { limits: limit.map(SinkLimits::of_chars).unwrap_or_default(), hangs_at_partial, ..Recording::default() };
            sink.acts = Mutex::new(acts);
            let sink = Arc::new(sink);
            let pieces = |n: u64| [partial(usize::try_from(n * 3).unwrap(), "abc"), block(n * 3, "abc")];
            let events = (0..10).flat_map(pieces).collect();
            let hour = Duration::from_secs(3600);
            let delivered = tokio::time::timeout(hour, deliver(&sink, events)).await.expect("the run hangs");
            let sent = delivered.blocks.iter().map(|block| &block.block);
            let mut ids: Vec<&ReplyId> =
                sent.chain(&delivered.unconfirmed).chain(delivered.not_sent()).map(|block| &block.id).collect();
            ids.sort_by_key(|id| id.bytes.start);
            let mut at = 0;
            for id in ids {
                prop_assert_eq!(id.bytes.start, at);
                at = id.bytes.end;
            }
            prop_assert_eq!(at, 30);
            let arrived = sink.arrived.lock().unwrap();
            prop_assert!(arrived.values().all(|n| *n == 1), "{arrived:?}");
            prop_assert!(delivered.blocks.iter().all(|block| arrived.contains_key(&block.block.id)));
            prop_assert!(delivered.not_sent().all(|block| !arrived.contains_key(&block.id)));
            Ok(())
        })?;
    }
}
