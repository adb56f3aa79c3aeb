//! Switching to another model or thinking level.

use std::sync::Arc;

use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::model::{Model, thinking};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;

use super::{AgentSession, SessionError};
use crate::entry::EntryBody;
use crate::extension::ModelSource;
use crate::session_log::SessionLog;

/// A model to cycle through, with an optional thinking level.
#[derive(Clone, Debug)]
pub struct ScopedModel {
    /// The model.
    pub model: Arc<Model>,
    /// The level; `None` keeps the current one.
    pub thinking: Option<ThinkingLevel>,
}

/// Finds the model of a branch, or returns `None` if it is unknown or has no credentials.
pub type FindModel = Arc<dyn Fn(&ProviderId, &ModelId) -> Option<Arc<Model>> + Send + Sync>;

/// Selects the model and level of a conversation. The level is `None` to use the conversation's; the result is `None` if there is no model.
pub(crate) type ChooseModel = Arc<dyn Fn(&SessionLog) -> Option<(Arc<Model>, Option<ThinkingLevel>)> + Send + Sync>;

/// Direction of cycling through a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleDirection {
    /// To the next item; the last is followed by the first.
    Forward,
    /// To the previous item; the first is preceded by the last.
    Backward,
}

impl AgentSession {
    /// Sets how the model of a replacement conversation is selected.
    pub(crate) fn choose_model_with(&mut self, choose: ChooseModel) {
        self.choose_model = Some(choose);
    }

    /// Records the model and the level in the log if they differ.
    pub(super) async fn note_model(&mut self) -> Result<(), SessionError> {
        let (context, has_level) = (self.log.context(), self.log.active_branch().has_level());
        let model = &self.agent.model;
        let is_same = context.model.is_some_and(|of| of.provider == model.provider && of.model_id == model.id);
        if !is_same {
            self.log.append(model_change(model)).await?;
        }
        if !has_level || context.thinking_level != self.agent.thinking.as_str() {
            self.log.append(level_change(self.agent.thinking)).await?;
        }
        Ok(())
    }

    /// Switches to another model from the next request on. The thinking level is clamped to those it supports; if the level was `off` only
    /// because the old model did not support thinking, the default level is used.
    ///
    /// # Errors
    /// Fails if there are no credentials for the model, or the change cannot be written; the model is unchanged.
    pub async fn set_model(&mut self, model: Arc<Model>) -> Result<(), SessionError> {
        self.select_model(model, ModelSource::Set).await
    }

    async fn select_model(&mut self, model: Arc<Model>, source: ModelSource) -> Result<(), SessionError> {
        if let Some(auth) = &self.auth
            && auth.check(&model, &Cancel::new()).await.is_err()
        {
            return Err(SessionError::NoKey { provider: model.provider.clone(), model: model.id.clone() });
        }
        let wanted = level_after(&self.agent.model, &model, self.agent.thinking, self.usual_thinking);
        self.log.append(model_change(&model)).await?;
        let previous = std::mem::replace(&mut self.agent.model, Arc::clone(&model));
        self.control.model_changed(&model, &previous, source, &self.log).await;
        self.set_thinking(wanted).await?;
        Ok(())
    }

    /// Switches to the next or previous of some models; a model that is not among them counts as the first. Returns `None` if there are
    /// fewer than two.
    ///
    /// # Errors
    /// Same as [`AgentSession::set_model`].
    pub async fn cycle_model(
        &mut self,
        models: &[ScopedModel],
        direction: CycleDirection,
    ) -> Result<Option<ScopedModel>, SessionError> {
        let Some(next) = next_of(models, &self.agent.model, direction) else { return Ok(None) };
        self.select_model(Arc::clone(&next.model), ModelSource::Cycle).await?;
        if let Some(level) = next.thinking {
            self.set_thinking(level).await?;
        }
        Ok(Some(ScopedModel { model: Arc::clone(&next.model), thinking: Some(self.agent.thinking) }))
    }

    /// Returns the thinking levels that the model supports.
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        thinking::supported(&self.agent.model)
    }

    /// Switches to another thinking level from the next request on, clamped to those the model supports. Returns the resulting level.
    ///
    /// # Errors
    /// Fails if the change cannot be written.
    pub async fn set_thinking(&mut self, level: ThinkingLevel) -> Result<ThinkingLevel, SessionError> {
        let level = thinking::clamp(&self.agent.model, level);
        if level != self.agent.thinking {
            self.log.append(level_change(level)).await?;
            let previous = std::mem::replace(&mut self.agent.thinking, level);
            self.control.level_changed(level, previous, &self.log).await;
        }
        Ok(level)
    }

    /// Switches to the next thinking level that the model supports, wrapping around. Returns `None` if there is only one.
    ///
    /// # Errors
    /// Fails if the change cannot be written.
    pub async fn cycle_thinking(&mut self) -> Result<Option<ThinkingLevel>, SessionError> {
        match next_level(&self.agent.model, self.agent.thinking) {
            Some(level) => self.set_thinking(level).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Returns the next or previous of some models; a model that is not among them counts as the first. Returns `None` if there are fewer than
/// two.
pub fn next_of<'a>(models: &'a [ScopedModel], current: &Model, direction: CycleDirection) -> Option<&'a ScopedModel> {
    if models.len() < 2 {
        return None;
    }
    let is_current = |scoped: &ScopedModel| scoped.model.provider == current.provider && scoped.model.id == current.id;
    let at = models.iter().position(is_current).unwrap_or(0);
    let step = match direction {
        CycleDirection::Forward => 1,
        CycleDirection::Backward => models.len() - 1,
    };
    models.get((at + step) % models.len())
}

/// Returns the next thinking level that a model supports, wrapping around, or `None` if there is only one.
pub fn next_level(model: &Model, now: ThinkingLevel) -> Option<ThinkingLevel> {
    let levels = thinking::supported(model);
    if levels.len() < 2 {
        return None;
    }
    let at = levels.iter().position(|level| *level == now).unwrap_or(levels.len() - 1);
    levels.get((at + 1) % levels.len()).copied()
}

pub(super) fn model_change(model: &Model) -> EntryBody {
    EntryBody::ModelChange { provider: model.provider.clone(), model_id: model.id.clone() }
}

pub(super) fn level_change(level: ThinkingLevel) -> EntryBody {
    EntryBody::ThinkingLevelChange { thinking_level: level.as_str().to_owned() }
}

/// Returns the thinking level for a replacement model: the current one, or the default if the old model did not support thinking.
pub(super) fn level_after(old: &Model, new: &Model, now: ThinkingLevel, usual: Option<ThinkingLevel>) -> ThinkingLevel {
    if !old.reasoning && new.reasoning { usual.unwrap_or(now) } else { now }
}
