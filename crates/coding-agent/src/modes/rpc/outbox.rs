//! Lines for the client from code that cannot wait for it: extensions, user commands, answers during a run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pinch_stdx::cancel::Cancel;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Maximum pending bytes before user commands pause and no further requests are read.
const ROOM: usize = 1024 * 1024;
/// Maximum pending bytes before mere updates are dropped.
const FULL: usize = 32 * 1024 * 1024;
/// Maximum bytes of command output sent in one line.
const MAX_TEXT: usize = 64 * 1024;

/// Lines waiting for the client; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox(Arc<OutboxShared>);

#[derive(Debug, Default)]
struct OutboxShared {
    state: Mutex<OutboxState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct OutboxState {
    pieces: VecDeque<OutboxItem>,
    n_bytes: usize,
}

#[derive(Debug)]
enum OutboxItem {
    Line(Bytes),
    /// Output of a command since its last line.
    Text {
        command: u64,
        id: Option<Value>,
        text: String,
    },
    /// Replaces an earlier update with the same name.
    Shown {
        name: String,
        line: Bytes,
    },
}

impl OutboxItem {
    /// Estimates the memory it takes.
    fn n_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Line(line) => line.len(),
                Self::Text { text, .. } => text.len(),
                Self::Shown { name, line } => name.len() + line.len(),
            }
    }

    fn into_line(self) -> Bytes {
        match self {
            Self::Line(line) | Self::Shown { line, .. } => line,
            Self::Text { id, text, .. } => {
                let mut event = json!({"type": "bash_execution_update"});
                if let Some(id) = id {
                    event["id"] = id;
                }
                event["delta"] = text.into();
                format!("{event}\n").into()
            }
        }
    }
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, OutboxState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut OutboxState) -> T) -> T {
        let done = change(&mut self.state());
        self.0.changed.notify_waiters();
        done
    }

    /// Adds a line that must not be dropped.
    pub(super) fn push(&self, line: impl Into<Bytes>) {
        self.change(|state| state.push(OutboxItem::Line(line.into())));
    }

    /// Adds output of a command, merging it with earlier output. Commands print only while there is room; output beyond that, while a
    /// command is being stopped, is dropped.
    pub(super) fn push_text(&self, command: u64, id: Option<&Value>, text: &str) {
        self.change(|state| {
            if state.n_bytes > FULL {
                return;
            }
            match state.pieces.back_mut() {
                Some(OutboxItem::Text { command: last, text: before, .. })
                    if *last == command && before.len() + text.len() <= MAX_TEXT =>
                {
                    before.push_str(text);
                    state.n_bytes += text.len();
                }
                _ => state.push(OutboxItem::Text { command, id: id.cloned(), text: text.to_owned() }),
            }
        });
    }

    /// Adds an update, replacing a pending one with the same name. Dropped if too much is pending.
    pub(super) fn show(&self, name: Option<String>, line: impl Into<Bytes>) {
        self.change(|state| {
            if let Some(name) = &name
                && let Some(at) = state
                    .pieces
                    .iter()
                    .position(|piece| matches!(piece, OutboxItem::Shown { name: of, .. } if of == name))
                && let Some(old) = state.pieces.remove(at)
            {
                state.n_bytes -= old.n_bytes();
            }
            if state.n_bytes <= FULL {
                let line = line.into();
                state.push(name.map_or_else(
                    || OutboxItem::Line(line.clone()),
                    |name| OutboxItem::Shown { name, line: line.clone() },
                ));
            }
        });
    }

    /// Removes and returns the first line.
    pub(super) fn pop(&self) -> Option<Bytes> {
        if self.is_empty() {
            return None;
        }
        self.change(|state| {
            let piece = state.pieces.pop_front()?;
            state.n_bytes -= piece.n_bytes();
            Some(piece.into_line())
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().pieces.is_empty()
    }

    /// Returns whether producers may continue.
    pub(super) fn has_room(&self) -> bool {
        self.state().n_bytes < ROOM
    }

    /// Waits until there is a line.
    pub(super) async fn filled(&self) {
        self.until(|state| !state.pieces.is_empty()).await;
    }

    async fn until(&self, holds: impl Fn(&OutboxState) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            // Register before checking, so that no change is missed.
            changed.as_mut().enable();
            if holds(&self.state()) {
                return;
            }
            changed.await;
        }
    }

    /// Runs work that adds lines, pausing it while the outbox is full. Cancelled work ends immediately.
    pub(super) async fn paced<T>(&self, work: impl Future<Output = T>, cancel: &Cancel) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.until(|state| state.n_bytes >= ROOM) => {}
            }
            tokio::select! {
                biased;
                _ = cancel.cancelled() => return work.await,
                () = self.until(|state| state.n_bytes < ROOM) => {}
            }
        }
    }
}

impl OutboxState {
    fn push(&mut self, piece: OutboxItem) {
        self.n_bytes += piece.n_bytes();
        self.pieces.push_back(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(outbox: &Outbox) -> Vec<Value> {
        std::iter::from_fn(|| outbox.pop()).map(|line| serde_json::from_slice(&line).unwrap()).collect()
    }

    #[test]
    fn command_output_is_merged_and_updates_are_replaced() {
        let outbox = Outbox::default();
        outbox.push_text(1, Some(&json!("a")), "x");
        outbox.push_text(1, Some(&json!("a")), "y");
        outbox.push_text(2, None, "z");
        outbox.show(Some("status".into()), "1\n");
        outbox.show(None, "2\n");
        outbox.show(Some("status".into()), "3\n");
        outbox.push("4\n");
        let update = |delta: &str| json!({"type": "bash_execution_update", "delta": delta});
        let mut first = update("xy");
        first["id"] = "a".into();
        assert_eq!(lines(&outbox), [first, update("z"), json!(2), json!(3), json!(4)]);
        assert_eq!(outbox.state().n_bytes, 0);
    }

    #[test]
    fn unread_lines_are_bounded() {
        let outbox = Outbox::default();
        let long = "x".repeat(MAX_TEXT);
        for _ in 0..2000 {
            outbox.push_text(1, None, &long);
            outbox.show(None, "\"shown\"\n");
        }
        assert!(outbox.state().n_bytes < FULL + 2 * MAX_TEXT);
        outbox.push("\"an answer\"\n");
        assert_eq!(lines(&outbox).last(), Some(&json!("an answer")));
    }

    #[tokio::test]
    async fn work_pauses_without_room_and_ends_when_cancelled() {
        let (outbox, cancel) = (Outbox::default(), Cancel::new());
        let n_polls = std::cell::Cell::new(0);
        let work = std::future::poll_fn(|cx| {
            n_polls.set(n_polls.get() + 1);
            outbox.push_text(1, None, &"x".repeat(MAX_TEXT));
            cx.waker().wake_by_ref();
            match cancel.is_cancelled() {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        });
        let mut paced = std::pin::pin!(outbox.paced(work, &cancel));
        for _ in 0..200 {
            assert!(futures::poll!(&mut paced).is_pending());
        }
        assert_eq!(n_polls.get(), ROOM / MAX_TEXT);
        outbox.pop();
        outbox.pop();
        assert!(futures::poll!(&mut paced).is_pending());
        assert_eq!(n_polls.get(), ROOM / MAX_TEXT + 1);
        cancel.cancel(pinch_stdx::cancel::CancelReason::User);
        paced.await;
    }
}
