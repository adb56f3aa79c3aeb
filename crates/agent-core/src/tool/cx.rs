//! The context of one tool call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_llm::ids::ToolCallId;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use tokio::sync::Notify;

use super::ToolOutput;

/// The context of one tool call.
#[derive(Clone, Copy, Debug)]
pub struct ToolCx<'a> {
    /// The call.
    pub call: &'a ToolCallId,
    /// Cancelled when the tool should stop.
    pub cancel: &'a Cancel,
    /// Takes partial results.
    pub progress: &'a Progress,
    /// Clock, ids and environment.
    pub host: &'a Host,
}

/// Queued reports per call at most; further ones replace the newest.
const MAX_WAITING: usize = 16;

/// Takes partial results from a running tool. Reporting never waits: a slow reader sees fewer of them, but always the newest.
#[derive(Clone, Debug)]
pub struct Progress {
    call: usize,
    board: Arc<ProgressBoard>,
}

/// Reports of a tool that is called by hand: the first ones and the newest.
#[derive(Debug)]
pub struct Reports(Arc<ProgressBoard>);

impl Reports {
    /// Takes the oldest report.
    pub fn take(&self) -> Option<ToolOutput> {
        self.0.take().map(|(_, so_far)| so_far)
    }
}

/// The pieces of all calls of one message, in the order they came.
#[derive(Debug, Default)]
pub(crate) struct ProgressBoard {
    waiting: Mutex<WaitingProgress>,
    pub(crate) changed: Notify,
}

#[derive(Debug, Default)]
struct WaitingProgress {
    pieces: VecDeque<(usize, ToolOutput)>,
    closed: Vec<usize>,
}

impl Progress {
    /// A place for one call's pieces on a board.
    pub(crate) fn new(call: usize, board: Arc<ProgressBoard>) -> Self {
        Self { call, board }
    }

    /// Progress that is ignored, for calling a tool by hand.
    pub fn ignored() -> Self {
        Self::new(0, Arc::default())
    }

    /// Progress for calling a tool by hand, and its reports.
    pub fn kept() -> (Self, Reports) {
        let board = Arc::default();
        (Self::new(0, Arc::clone(&board)), Reports(board))
    }

    /// Reports a partial result. Reports after the tool has returned are ignored.
    pub fn report(&self, so_far: ToolOutput) {
        let mut waiting = self.board.lock();
        if waiting.closed.contains(&self.call) {
            return;
        }
        let own = waiting.pieces.iter().filter(|(call, _)| *call == self.call).count();
        if own >= MAX_WAITING
            && let Some((_, newest)) = waiting.pieces.iter_mut().rev().find(|(call, _)| *call == self.call)
        {
            *newest = so_far;
        } else {
            waiting.pieces.push_back((self.call, so_far));
        }
        drop(waiting);
        self.board.changed.notify_one();
    }
}

impl ProgressBoard {
    fn lock(&self) -> MutexGuard<'_, WaitingProgress> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the oldest piece.
    pub(crate) fn take(&self) -> Option<(usize, ToolOutput)> {
        self.lock().pieces.pop_front()
    }

    /// From here on nothing of this call is taken.
    pub(crate) fn close(&self, call: usize) {
        self.lock().closed.push(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_keeps_the_first_pieces_and_the_newest() {
        let board = Arc::new(ProgressBoard::default());
        let progress = Progress::new(0, Arc::clone(&board));
        for n in 0..100 {
            progress.report(ToolOutput::text(n.to_string()));
        }
        let mut texts = Vec::new();
        while let Some((_, piece)) = board.take() {
            texts.push(piece.content[0].as_text().unwrap().to_owned());
        }
        assert_eq!(texts.len(), MAX_WAITING);
        assert_eq!((texts[0].as_str(), texts[MAX_WAITING - 1].as_str()), ("0", "99"));
    }

    #[test]
    fn late_pieces_are_passed_over() {
        let board = Arc::new(ProgressBoard::default());
        let progress = Progress::new(3, Arc::clone(&board));
        board.close(3);
        progress.report(ToolOutput::text("late"));
        assert!(board.take().is_none());
    }
}
