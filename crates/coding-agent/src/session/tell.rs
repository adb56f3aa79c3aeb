//! How a run's events reach whoever pulls them.

use std::path::PathBuf;

use futures::future::BoxFuture;
use pinch_stdx::pull::Giver;

use super::{SessionControl, SessionError};
use crate::entry::EntryId;
use crate::event::SessionEvent;
use crate::session_log::SessionLog;

/// What a stream of session events yields.
pub(super) type SessionItem = Result<SessionEvent, SessionError>;

/// Somebody who is told what happens; the next step waits for it.
pub(super) trait Listener: Send + Sync {
    fn event(&self, event: SessionEvent) -> BoxFuture<'_, ()>;
}

/// A listener that need not be waited for.
pub(super) struct AtOnce<'a>(pub(super) &'a (dyn Fn(SessionEvent) + Send + Sync));

impl Listener for AtOnce<'_> {
    fn event(&self, event: SessionEvent) -> BoxFuture<'_, ()> {
        (self.0)(event);
        Box::pin(async {})
    }
}

impl Listener for Tell<'_> {
    fn event(&self, event: SessionEvent) -> BoxFuture<'_, ()> {
        Box::pin(self.give(event))
    }
}

/// Gives events to the reader.
pub(super) struct Tell<'r> {
    giver: &'r Giver<SessionItem>,
    pub(super) control: SessionControl,
}

impl<'r> Tell<'r> {
    pub(super) fn new(giver: &'r Giver<SessionItem>, control: SessionControl) -> Self {
        Self { giver, control }
    }

    pub(super) async fn give(&self, event: SessionEvent) {
        self.giver.give(Ok(event)).await;
    }

    pub(super) async fn queues(&self) {
        let (steering, follow_up) = self.control.waiting();
        self.give(SessionEvent::QueueUpdate { steering, follow_up }).await;
    }

    /// Tells of an entry that belongs to no message event.
    pub(super) async fn entry_appended(&self, log: &SessionLog, id: &EntryId) {
        if let Some(entry) = log.entry(id) {
            self.give(SessionEvent::EntryAppended(Box::new((*entry).clone()))).await;
        }
    }

    /// Tells of what other programs wrote meanwhile; true when they did.
    pub(super) async fn conflicts(&self, log: &mut SessionLog) -> bool {
        let mut any = false;
        while log.take_conflict().is_some() {
            any = true;
            let path = log.path().map(PathBuf::from).unwrap_or_default();
            self.give(SessionEvent::Conflict { path, leaf: log.leaf_id().cloned() }).await;
        }
        any
    }
}
