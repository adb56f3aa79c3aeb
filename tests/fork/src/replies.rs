//! Reply handling: a stage that masks words in finished blocks, and a channel that shows each block once.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use pinch_embed::delivery::{Lifecycle, ReplyId};
use pinch_embed::replies::compose::{COALESCE, Stages, UnknownStage};
use pinch_embed::replies::{Piece, Pieces, Stage};
use pinch_embed::{OutgoingBlock, Receipt, ReplySink, SendFailure, SinkLimits};

/// Masks one word in the blocks of a reply. The text keeps its length, so channel limits still hold.
#[derive(Clone, Debug)]
pub struct Mask {
    /// The word; matching is case-sensitive.
    pub word: String,
}

impl Mask {
    /// Inserts the stage before blocks are joined.
    ///
    /// # Errors
    /// Fails if that stage does not exist.
    pub fn insert(self, stages: &mut Stages) -> Result<(), UnknownStage> {
        stages.insert_before(COALESCE, "mask", self)
    }
}

impl Stage for Mask {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        out.push(match piece {
            Piece::Block(mut block) => {
                block.text = block.text.replace(&self.word, &"*".repeat(self.word.chars().count()));
                Piece::Block(block)
            }
            other => other,
        });
    }

    fn finish(&mut self, _: &mut Pieces) {}
}

/// A channel that stores what it shows. It loses the confirmation of every first send, as networks can; the block is then sent again with
/// the same ID and not shown a second time.
#[derive(Debug)]
pub struct ReplyBoard {
    max_chars: usize,
    state: Mutex<BoardState>,
}

#[derive(Debug, Default)]
struct BoardState {
    shown: Vec<(ReplyId, String)>,
    n_sends: usize,
    lifecycle: Vec<Lifecycle>,
}

impl ReplyBoard {
    /// Creates a board for messages of at most this many UTF-16 units.
    pub fn new(max_chars: usize) -> Self {
        Self { max_chars, state: Mutex::default() }
    }

    /// The texts shown so far, in order.
    pub fn texts(&self) -> Vec<String> {
        self.state().shown.iter().map(|(_, text)| text.clone()).collect()
    }

    /// Number of block sends, including repetitions.
    pub fn n_sends(&self) -> usize {
        self.state().n_sends
    }

    /// The starts and ends of runs, in order.
    pub fn lifecycle(&self) -> Vec<Lifecycle> {
        self.state().lifecycle.clone()
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplySink for ReplyBoard {
    fn limits(&self) -> SinkLimits {
        SinkLimits::of_chars(self.max_chars)
    }

    fn send<'a>(&'a self, block: &'a OutgoingBlock) -> BoxFuture<'a, Result<Receipt, SendFailure>> {
        let mut state = self.state();
        state.n_sends += 1;
        let sent = match state.shown.iter().position(|(id, _)| *id == block.id) {
            Some(at) => Ok(Receipt { id: Some(format!("message {}", at + 1)) }),
            None => {
                state.shown.push((block.id.clone(), block.reply.text.clone()));
                Err(SendFailure::transient("the confirmation was lost").retry_after(Duration::ZERO))
            }
        };
        Box::pin(ready(sent))
    }

    fn lifecycle<'a>(&'a self, event: &'a Lifecycle) -> BoxFuture<'a, ()> {
        self.state().lifecycle.push(event.clone());
        Box::pin(ready(()))
    }
}
