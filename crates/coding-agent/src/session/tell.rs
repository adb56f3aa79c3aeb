//! How a run's events reach whoever pulls them.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::event::AgentEvent;
use pinch_llm::message::Message;
use pinch_stdx::pull::Emitter;

use super::attend::attended;
use super::{SessionControl, SessionError};
use crate::entry::EntryId;
use crate::event::SessionEvent;
use crate::extension::Told;
use crate::session_log::{SessionLog, roles};
use crate::store::StoreError;

/// What a stream of session events yields.
pub(super) type SessionItem = Result<SessionEvent, SessionError>;

/// Somebody who is told what happens; the next step waits for it.
pub(crate) trait Listener: Send + Sync {
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
        Box::pin(self.emit(event))
    }
}

/// Gives events to the reader.
pub(super) struct Tell<'r> {
    emitter: &'r Emitter<SessionItem>,
    pub(super) control: SessionControl,
}

impl<'r> Tell<'r> {
    pub(super) fn new(emitter: &'r Emitter<SessionItem>, control: SessionControl) -> Self {
        Self { emitter, control }
    }

    pub(super) async fn emit(&self, event: SessionEvent) {
        self.failures().await;
        self.emitter.emit(Ok(event)).await;
    }

    /// Tells of extensions that failed.
    pub(super) async fn failures(&self) {
        for failure in self.control.extensions().take_failures() {
            self.emitter.emit(Ok(SessionEvent::ExtensionError(failure))).await;
        }
    }

    pub(super) async fn queues(&self) {
        let (steering, follow_up) = self.control.waiting();
        self.emit(SessionEvent::QueueUpdate { steering, follow_up }).await;
    }

    /// Keeps a message that nobody is asked to answer.
    pub(super) async fn note(&self, message: Arc<Message>, log: &mut SessionLog) -> Result<(), StoreError> {
        let message = self.control.fitted(&message).await.unwrap_or(message);
        let start = SessionEvent::Agent(AgentEvent::MessageStart(Arc::clone(&message)));
        self.control.tell_extensions(Told::Event(&start), log).await;
        self.emit(start).await;
        let extensions = self.control.extensions();
        let changed = attended(&self.control, log, extensions.message_end(&message)).await;
        let message = match changed {
            Some(changed) => self.control.fitted(&changed).await.unwrap_or(changed),
            None => message,
        };
        log.append(roles::entry_of(&message)).await?;
        self.emit(SessionEvent::Agent(AgentEvent::MessageEnd { message, error: None, queued: None })).await;
        Ok(())
    }

    /// Tells of an entry that belongs to no message event.
    pub(super) async fn entry_appended(&self, log: &SessionLog, id: &EntryId) {
        if let Some(entry) = log.entry(id) {
            self.emit(SessionEvent::EntryAppended(Box::new((*entry).clone()))).await;
        }
    }

    /// Tells of what other programs wrote meanwhile; true when they did.
    pub(super) async fn conflicts(&self, log: &mut SessionLog) -> bool {
        let mut any = false;
        while log.take_conflict().is_some() {
            any = true;
            let path = log.path().map(PathBuf::from).unwrap_or_default();
            self.emit(SessionEvent::Conflict { path, leaf: log.leaf_id().cloned() }).await;
        }
        any
    }
}
