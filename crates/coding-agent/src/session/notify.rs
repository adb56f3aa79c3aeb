//! Notifying extensions of changes, and updating the snapshot that is readable without the session.

use std::sync::Arc;

use pinch_agent_core::ToolSet;
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;

use super::answering::answering;
use super::control::{ControlState, SessionControl};
use crate::entry::EntryId;
use crate::event::SessionEvent;
use crate::extension::actions::SessionSnapshot;
use crate::extension::{ModelSource, Notification, Point};
use crate::prompt::PromptSections;
use crate::session_log::SessionLog;

impl SessionControl {
    /// Updates the snapshot.
    pub(super) fn update_snapshot(&self, update: impl FnOnce(&mut SessionSnapshot)) {
        self.share(|state| {
            update(Arc::make_mut(&mut state.now));
            self.facts().set(state.now.facts());
        });
    }

    /// Notifies the extensions, meanwhile answering their queries.
    pub(super) async fn notify_extensions(&self, notification: Notification<'_>, log: &SessionLog) {
        if notification.point().is_some_and(|point| self.extensions().wants(point)) {
            // Boxed: the future of every run would keep room for it.
            Box::pin(answering(self, log, self.extensions().notify(notification))).await;
        }
    }

    /// Handles a change of the model.
    pub(super) async fn model_changed(
        &self,
        model: &Arc<Model>,
        previous: &Arc<Model>,
        source: ModelSource,
        log: &SessionLog,
    ) {
        self.update_snapshot(|now| now.model = Arc::clone(model));
        if model.provider != previous.provider || model.id != previous.id {
            self.notify_extensions(Notification::Model { model, previous, source }, log).await;
        }
    }

    /// Handles a change of the thinking level.
    pub(super) async fn level_changed(&self, level: ThinkingLevel, previous: ThinkingLevel, log: &SessionLog) {
        self.update_snapshot(|now| now.thinking = level);
        if level != previous {
            self.notify_extensions(Notification::Thinking { level, previous }, log).await;
        }
    }

    /// Handles a change of the name.
    pub(super) async fn name_changed(&self, event: &SessionEvent, log: &SessionLog) {
        self.update_snapshot(|now| now.session_name = log.name());
        self.notify_extensions(Notification::Event(event), log).await;
    }

    /// Records the entry of a message of the current turn.
    pub(super) fn record_entry(&self, message: &Message, id: EntryId) {
        if !self.extensions().wants(Point::TurnEnd) {
            return;
        }
        self.share(|state| match message {
            Message::Assistant(_) => state.turn.answer = Some(id),
            Message::ToolResult(_) => state.turn.results.push(id),
            _ => {}
        });
    }

    /// Returns what the model is offered of these active tools.
    pub(super) fn offered(&self, active: &ToolSet) -> ToolSet {
        self.peek(|state| state.tooling.offered(active))
    }

    /// Handles a change of tools and system prompt.
    pub(super) fn tools_changed(&self, tools: &ToolSet, system: &PromptSections) {
        let extensions = self.extensions();
        self.share(|ControlState { tooling, now, .. }| {
            tooling.adopt(tools, extensions);
            let now = Arc::make_mut(now);
            now.active_tools = tools.clone();
            now.all_tools = tooling.all(extensions);
            now.system = system.clone();
        });
    }
}
