//! What extensions are told of changes, and what is known of a session without having it.

use std::sync::Arc;

use pinch_agent_core::ToolSet;
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;

use super::attend::attended;
use super::control::{SessionControl, State};
use crate::entry::EntryId;
use crate::event::SessionEvent;
use crate::extension::actions::SessionNow;
use crate::extension::{ModelSource, Point, Told};
use crate::prompt::Prompt;
use crate::session_log::SessionLog;

impl SessionControl {
    /// Notes something that can be known without having the session.
    pub(super) fn note(&self, note: impl FnOnce(&mut SessionNow)) {
        self.share(|state| {
            note(Arc::make_mut(&mut state.now));
            self.facts().set(state.now.facts());
        });
    }

    /// Tells the extensions something, and answers their questions meanwhile.
    pub(super) async fn tell_extensions(&self, told: Told<'_>, log: &SessionLog) {
        if told.point().is_some_and(|point| self.extensions().wants(point)) {
            attended(self, log, self.extensions().tell(told)).await;
        }
    }

    /// Another model is used.
    pub(super) async fn model_is(
        &self,
        model: &Arc<Model>,
        previous: &Arc<Model>,
        source: ModelSource,
        log: &SessionLog,
    ) {
        self.note(|now| now.model = Arc::clone(model));
        if model.provider != previous.provider || model.id != previous.id {
            self.tell_extensions(Told::Model { model, previous, source }, log).await;
        }
    }

    /// Another thinking level is used.
    pub(super) async fn level_is(&self, level: ThinkingLevel, previous: ThinkingLevel, log: &SessionLog) {
        self.note(|now| now.thinking = level);
        if level != previous {
            self.tell_extensions(Told::Thinking { level, previous }, log).await;
        }
    }

    /// The session has another name.
    pub(super) async fn name_is(&self, event: &SessionEvent, log: &SessionLog) {
        self.note(|now| now.session_name = log.name());
        self.tell_extensions(Told::Event(event), log).await;
    }

    /// A message of the turn under way is in the log.
    pub(super) fn note_entry(&self, message: &Message, id: EntryId) {
        if !self.extensions().wants(Point::TurnEnd) {
            return;
        }
        self.share(|state| match message {
            Message::Assistant(_) => state.turn.answer = Some(id),
            Message::ToolResult(_) => state.turn.results.push(id),
            _ => {}
        });
    }

    /// Other tools and another prompt are used.
    pub(super) fn tools_are(&self, tools: &ToolSet, system: &Prompt) {
        let extensions = self.extensions();
        self.share(|State { tooling, now, .. }| {
            tooling.adopt(tools, extensions);
            let now = Arc::make_mut(now);
            now.active_tools = tools.clone();
            now.all_tools = tooling.all(extensions);
            now.system = system.clone();
        });
    }
}
