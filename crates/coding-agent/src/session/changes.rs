//! Changes requested from outside while a run borrows the session.

use std::sync::Arc;

use pinch_agent_core::Agent;
use pinch_llm::model::{Model, thinking};
use pinch_llm::thinking::ThinkingLevel;

use super::control::{Adopted, Change};
use super::emitter::SessionEmitter;
use super::models::{level_after, level_change, model_change};
use super::{AgentSession, SessionError};
use crate::event::SessionEvent;
use crate::extension::ModelSource;
use crate::prompt::PromptSections as SystemPrompt;
use crate::session_log::SessionLog;

/// The session's model and level, which the agent may not have adopted yet.
pub(super) struct CurrentSelection {
    pub(super) model: Arc<Model>,
    pub(super) thinking: ThinkingLevel,
    usual: Option<ThinkingLevel>,
    /// What the agent has not adopted.
    pending: Adopted,
    system: Option<SystemPrompt>,
}

impl CurrentSelection {
    pub(super) fn of(session: &AgentSession) -> Self {
        let agent = &session.agent;
        Self {
            model: Arc::clone(&agent.model),
            thinking: agent.thinking,
            usual: session.usual_thinking,
            pending: Adopted::default(),
            system: None,
        }
    }

    /// Applies the pending changes in order; returns whether there were any. User commands are left for the end.
    pub(super) async fn take_in(
        &mut self,
        log: &mut SessionLog,
        emitter: &SessionEmitter<'_>,
        at_end: bool,
    ) -> Result<bool, SessionError> {
        let changes = emitter.control.take_changes(at_end);
        let any = !changes.is_empty();
        for change in changes {
            Box::pin(self.make(change, log, emitter)).await?;
        }
        Ok(any)
    }

    async fn make(
        &mut self,
        change: Change,
        log: &mut SessionLog,
        emitter: &SessionEmitter<'_>,
    ) -> Result<(), SessionError> {
        match change {
            Change::Model(model) => {
                let wanted = level_after(&self.model, &model, self.thinking, self.usual);
                log.append(model_change(&model)).await?;
                self.pending.model = Some(Arc::clone(&model));
                let previous = std::mem::replace(&mut self.model, Arc::clone(&model));
                emitter.control.model_changed(&model, &previous, ModelSource::Set, log).await;
                self.set_level(wanted, log, emitter).await?;
            }
            Change::Thinking(level) => self.set_level(level, log, emitter).await?,
            Change::Tools(tools, system) => {
                emitter.control.tools_changed(&tools, &system);
                self.pending.tools = Some(emitter.control.offered(&tools));
                self.pending.system = Some(system.clone());
                self.system = Some(system);
            }
            Change::Name(name) => {
                log.append_name(&name).await?;
                let event = SessionEvent::InfoChanged { name: log.name() };
                emitter.control.name_changed(&event, log).await;
                emitter.emit(event).await;
            }
            Change::Entry(body) => {
                let id = log.append(body).await?;
                emitter.entry_appended(log, &id).await;
            }
            Change::Bash(ran) => drop(log.append_message(ran.into_message()).await?),
            Change::Note(message) => emitter.record(emitter.control.custom(&message), log).await?,
        }
        Ok(())
    }

    async fn set_level(
        &mut self,
        level: ThinkingLevel,
        log: &mut SessionLog,
        emitter: &SessionEmitter<'_>,
    ) -> Result<(), SessionError> {
        let level = thinking::clamp(&self.model, level);
        if level != self.thinking {
            log.append(level_change(level)).await?;
            let previous = std::mem::replace(&mut self.thinking, level);
            emitter.control.level_changed(level, previous, log).await;
            self.pending.thinking = Some(level);
            emitter.emit(SessionEvent::ThinkingLevelChanged { level }).await;
        }
        Ok(())
    }

    /// Returns and clears what the agent has not adopted yet.
    pub(super) fn take_pending(&mut self) -> Adopted {
        std::mem::take(&mut self.pending)
    }

    /// Returns the system prompt, if it changed.
    pub(super) fn into_system(self) -> Option<SystemPrompt> {
        self.system
    }
}

/// Passes pending changes to an idle agent.
pub(super) fn adopt(agent: &mut Agent, adopted: &mut Adopted) {
    if let Some(model) = adopted.model.take() {
        agent.model = model;
    }
    if let Some(level) = adopted.thinking.take() {
        agent.thinking = level;
    }
    if let Some(tools) = adopted.tools.take() {
        agent.tools = tools;
    }
    adopted.system = None;
}
