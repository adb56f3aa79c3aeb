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
    /// Receives partial results.
    pub progress: &'a Progress,
    /// Clock, ids and environment.
    pub host: &'a Host,
}

/// Maximum number of queued reports per call; further ones replace the newest.
const MAX_WAITING: usize = 16;

/// Receives partial results from a running tool. Reporting never blocks: a slow reader sees fewer of them, but always the newest.
#[derive(Clone, Debug)]
pub struct Progress {
    call: usize,
    board: Arc<ProgressBoard>,
}

/// Reports of a tool that is called directly: the first ones and the newest.
#[derive(Debug)]
pub struct Reports(Arc<ProgressBoard>);

impl Reports {
    /// Takes the oldest report.
    pub fn take(&self) -> Option<ToolOutput> {
        self.0.take().map(|(_, so_far)| so_far)
    }
}

/// Reports of all calls of a message, in order of arrival.
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
    /// Creates a progress for one call on a board.
    pub(crate) fn new(call: usize, board: Arc<ProgressBoard>) -> Self {
        Self { call, board }
    }

    /// Creates a progress that ignores reports, for calling a tool directly.
    pub fn ignored() -> Self {
        Self::new(0, Arc::default())
    }

    /// Creates a progress for calling a tool directly, and access to its reports.
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

    /// Takes the oldest report.
    pub(crate) fn take(&self) -> Option<(usize, ToolOutput)> {
        self.lock().pieces.pop_front()
    }

    /// Ignores further reports of this call.
    pub(crate) fn close(&self, call: usize) {
        self.lock().closed.push(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_reports_keeps_the_first_ones_and_the_newest() {
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
    fn late_reports_are_ignored() {
        let board = Arc::new(ProgressBoard::default());
        let progress = Progress::new(3, Arc::clone(&board));
        board.close(3);
        progress.report(ToolOutput::text("late"));
        assert!(board.take().is_none());
    }
}
