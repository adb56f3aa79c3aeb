//! Another model, another thinking level.

use std::sync::Arc;

use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::model::{Model, thinking};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;

use super::{AgentSession, SessionError};
use crate::entry::EntryBody;
use crate::extension::ModelSource;
use crate::session_log::SessionLog;

/// A model to choose from, and the thinking level it is chosen with.
#[derive(Clone, Debug)]
pub struct ScopedModel {
    /// The model.
    pub model: Arc<Model>,
    /// The level; `None`: as it is.
    pub thinking: Option<ThinkingLevel>,
}

/// Finds the model that a branch names; `None` when it is unknown or has no credentials.
pub type FindModel = Arc<dyn Fn(&ProviderId, &ModelId) -> Option<Arc<Model>> + Send + Sync>;

/// Chooses the model of a conversation and its level; `None` for the level: as the conversation says, for the whole: there is none.
pub(crate) type ChooseModel = Arc<dyn Fn(&SessionLog) -> Option<(Arc<Model>, Option<ThinkingLevel>)> + Send + Sync>;

/// Which way through a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleDirection {
    /// To the next one; after the last comes the first.
    Forward,
    /// To the one before; before the first comes the last.
    Backward,
}

impl AgentSession {
    /// Has the model of each conversation that takes this one's place chosen like this.
    pub(crate) fn choose_model_with(&mut self, choose: ChooseModel) {
        self.choose_model = Some(choose);
    }

    /// Notes the model and the level in the log, where it does not say so.
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

    /// Asks another model from the next request on. The thinking level is clamped to what it can; a level that was `off` only because the old
    /// model cannot think becomes the usual one again.
    ///
    /// # Errors
    /// When there are no credentials for it, or the change cannot be written; the model is unchanged.
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

    /// Goes on to the next or previous of some models; a model that is not among them counts as the first. `None` when there are fewer than
    /// two.
    ///
    /// # Errors
    /// As [`AgentSession::set_model`].
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

    /// The thinking levels that the model has.
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        thinking::supported(&self.agent.model)
    }

    /// Takes another thinking level from the next request on, clamped to what the model can; answers with the level it came to.
    ///
    /// # Errors
    /// When the change cannot be written.
    pub async fn set_thinking(&mut self, level: ThinkingLevel) -> Result<ThinkingLevel, SessionError> {
        let level = thinking::clamp(&self.agent.model, level);
        if level != self.agent.thinking {
            self.log.append(level_change(level)).await?;
            let previous = std::mem::replace(&mut self.agent.thinking, level);
            self.control.level_changed(level, previous, &self.log).await;
        }
        Ok(level)
    }

    /// Goes on to the next thinking level that the model has, after the last to the first; `None` when it has only one.
    ///
    /// # Errors
    /// When the change cannot be written.
    pub async fn cycle_thinking(&mut self) -> Result<Option<ThinkingLevel>, SessionError> {
        match next_level(&self.agent.model, self.agent.thinking) {
            Some(level) => self.set_thinking(level).await.map(Some),
            None => Ok(None),
        }
    }
}

/// The next or previous of some models; a model that is not among them counts as the first. `None` when there are fewer than two.
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

/// The next thinking level that a model has, after the last the first; `None` when it has only one.
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

/// The thinking level to want of a model that takes the place of another one: the same, but the usual one where the old model could not think.
pub(super) fn level_after(old: &Model, new: &Model, now: ThinkingLevel, usual: Option<ThinkingLevel>) -> ThinkingLevel {
    if !old.reasoning && new.reasoning { usual.unwrap_or(now) } else { now }
}
