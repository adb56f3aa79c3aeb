//! The answers that a process is streaming, as the provider of a model.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::mpsc;

/// Maximum events of an answer that wait to be read; more break the stream off.
const MAX_UNREAD: usize = 1 << 16;

/// The open streams of a process, by id.
#[derive(Default)]
pub(super) struct OpenStreams {
    open: Mutex<HashMap<String, mpsc::Sender<Value>>>,
    next: AtomicU64,
}

impl OpenStreams {
    fn open(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Value>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a stream. Returns its id, and its events.
    pub(super) fn begin(&self) -> (String, mpsc::Receiver<Value>) {
        let id = format!("p{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, events) = mpsc::channel(MAX_UNREAD);
        self.open().insert(id.clone(), sender);
        (id, events)
    }

    /// Takes in an event. One of a stream that has ended is dropped.
    pub(super) fn feed(&self, id: &str, event: Value) {
        let mut open = self.open();
        if open.get(id).is_some_and(|stream| stream.try_send(event).is_err()) {
            open.remove(id);
        }
    }

    /// Ends a stream: its reader gets what has arrived, and then the end.
    pub(super) fn end(&self, id: &str) {
        self.open().remove(id);
    }
}
