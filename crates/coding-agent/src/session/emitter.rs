//! Emitting the events of a run to the caller that polls it.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::event::AgentEvent;
use pinch_llm::message::Message;
use pinch_stdx::pull::Emitter;

use super::answering::answering;
use super::{SessionControl, SessionError};
use crate::entry::EntryId;
use crate::event::SessionEvent;
use crate::extension::Notification;
use crate::session_log::{SessionLog, roles};
use crate::store::StoreError;

/// What a stream of session events yields.
pub(super) type SessionItem = Result<SessionEvent, SessionError>;

/// Receives events and is awaited before the next step.
pub(crate) trait EventListener: Send + Sync {
    fn event(&self, event: SessionEvent) -> BoxFuture<'_, ()>;
}

/// A listener that calls a synchronous callback.
pub(super) struct CallbackListener<'a>(pub(super) &'a (dyn Fn(SessionEvent) + Send + Sync));

impl EventListener for CallbackListener<'_> {
    fn event(&self, event: SessionEvent) -> BoxFuture<'_, ()> {
        (self.0)(event);
        Box::pin(async {})
    }
}

impl EventListener for SessionEmitter<'_> {
    fn event(&self, event: SessionEvent) -> BoxFuture<'_, ()> {
        Box::pin(self.emit(event))
    }
}

/// Emits events to the caller.
pub(super) struct SessionEmitter<'r> {
    emitter: &'r Emitter<SessionItem>,
    pub(super) control: SessionControl,
}

impl<'r> SessionEmitter<'r> {
    pub(super) fn new(emitter: &'r Emitter<SessionItem>, control: SessionControl) -> Self {
        Self { emitter, control }
    }

    pub(super) async fn emit(&self, event: SessionEvent) {
        self.emit_failures().await;
        self.emitter.emit(Ok(event)).await;
    }

    /// Emits the failures of extensions.
    pub(super) async fn emit_failures(&self) {
        for failure in self.control.extensions().take_failures() {
            self.emitter.emit(Ok(SessionEvent::ExtensionError(failure))).await;
        }
    }

    pub(super) async fn emit_queues(&self) {
        let (steering, follow_up) = self.control.waiting();
        self.emit(SessionEvent::QueueUpdate { steering, follow_up }).await;
    }

    /// Appends a message without calling the model, and emits its events.
    pub(super) async fn record(&self, message: Arc<Message>, log: &mut SessionLog) -> Result<(), StoreError> {
        let message = self.control.admitted(&message).await.unwrap_or(message);
        let start = SessionEvent::Agent(AgentEvent::MessageStart(Arc::clone(&message)));
        self.control.notify_extensions(Notification::Event(&start), log).await;
        self.emit(start).await;
        let extensions = self.control.extensions();
        let changed = answering(&self.control, log, extensions.message_end(&message)).await;
        let message = match changed {
            Some(changed) => self.control.admitted(&changed).await.unwrap_or(changed),
            None => message,
        };
        log.append(roles::entry_of(&message)).await?;
        self.emit(SessionEvent::Agent(AgentEvent::MessageEnd { message, error: None, queued: None })).await;
        Ok(())
    }

    /// Emits the event of an entry without message events.
    pub(super) async fn entry_appended(&self, log: &SessionLog, id: &EntryId) {
        if let Some(entry) = log.entry(id) {
            self.emit(SessionEvent::EntryAppended(Box::new((*entry).clone()))).await;
        }
    }

    /// Emits conflicts with other programs; returns whether there were any.
    pub(super) async fn emit_conflicts(&self, log: &mut SessionLog) -> bool {
        let mut any = false;
        while log.take_conflict().is_some() {
            any = true;
            let path = log.path().map(PathBuf::from).unwrap_or_default();
            self.emit(SessionEvent::Conflict { path, leaf: log.leaf_id().cloned() }).await;
        }
        any
    }
}
