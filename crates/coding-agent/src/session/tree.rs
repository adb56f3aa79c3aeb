//! Moving to another entry in the session's tree.

use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_llm::model::{Model, thinking};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;

use super::answering::answering;
use super::compacting::Summariser;
use super::emitter::{CallbackListener, EventListener};
use super::{AgentSession, SessionError};
use crate::compaction::CompactError;
use crate::compaction::branch::{self, BranchInstructions, LeftBranch};
use crate::compaction::hooks::{BeforeMove, MoveChanges, MovedLeaf, PendingMove};
use crate::entry::{BranchSummary, EntryBody, EntryId};
use crate::event::SessionEvent;
use crate::extension::{ModelSource, Notification};

/// Where to move, and what to do with the branch left behind.
#[derive(Clone, Debug)]
pub struct Navigation {
    /// The entry to move to.
    pub target: EntryId,
    /// Whether to summarise the branch left behind, appending the summary at the new position.
    pub summarise: bool,
    /// What the summary should focus on.
    pub focus: Option<String>,
    /// Whether `focus` replaces the default instructions.
    pub replace_instructions: bool,
    /// A label for the summary, or else for the target.
    pub label: Option<String>,
    /// Cancels the summary; the leaf does not move then.
    pub cancel: Cancel,
}

impl Navigation {
    /// Moves to an entry without a summary.
    pub fn to(target: EntryId) -> Self {
        Self {
            target,
            summarise: false,
            focus: None,
            replace_instructions: false,
            label: None,
            cancel: Cancel::default(),
        }
    }
}

/// The result of moving to another position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Navigated {
    /// Text of the message moved to, for editing: the leaf is before it.
    pub editor_text: Option<String>,
    /// Whether the move was cancelled; the leaf is unchanged then.
    pub cancelled: bool,
    /// Whether that is because the summary was cancelled.
    pub aborted: bool,
    /// The entry with the summary.
    pub summary: Option<EntryId>,
}

impl Navigated {
    fn stayed(aborted: bool) -> Self {
        Self { cancelled: true, aborted, ..Self::default() }
    }
}

/// Why the leaf was not moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NavigateError {
    /// The entry does not exist, or the log cannot be written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The summary failed.
    #[error(transparent)]
    Summary(CompactError),
}

impl From<crate::store::StoreError> for NavigateError {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Session(error.into())
    }
}

impl AgentSession {
    /// Moves to an entry; for a message of the user or an extension, to the entry before it, so that it can be edited. The branch's
    /// thinking level is restored, and its model if available. `on_event` is called for retries of summary requests.
    ///
    /// # Errors
    /// [`NavigateError`]; the leaf is unchanged.
    pub async fn navigate(
        &mut self,
        to: Navigation,
        on_event: &(dyn Fn(SessionEvent) + Send + Sync),
    ) -> Result<Navigated, NavigateError> {
        self.navigate_with(to, &CallbackListener(on_event)).await
    }

    pub(super) async fn navigate_with(
        &mut self,
        to: Navigation,
        emitter: &dyn EventListener,
    ) -> Result<Navigated, NavigateError> {
        let old_leaf = self.log.leaf_id().cloned();
        if old_leaf.as_ref() == Some(&to.target) {
            return Ok(Navigated::default());
        }
        let left = branch::collect(&self.log, old_leaf.as_ref(), &to.target)?;
        let cancel = to.cancel.child();
        let _entered = self.control.enter(&cancel);
        let ahead = PendingMove {
            target: to.target.clone(),
            old_leaf: old_leaf.clone(),
            common_ancestor: left.common_ancestor.clone(),
            left: left.entries.clone(),
            summarise: to.summarise,
            focus: to.focus.clone(),
            replace_instructions: to.replace_instructions,
            label: to.label.clone(),
        };
        let asking = async {
            match self.summaries.before_move(&ahead, &cancel).await {
                BeforeMove::Continue(changes) if changes == MoveChanges::default() => {
                    self.control.extensions().before_tree(&ahead).await
                }
                other => other,
            }
        };
        let changes = match cancel.run(answering(&self.control, &self.log, asking)).await {
            Err(_) => return Ok(Navigated::stayed(true)),
            Ok(BeforeMove::Cancel) => return Ok(Navigated::stayed(false)),
            Ok(BeforeMove::Continue(changes)) => changes,
        };
        let label = changes.label.clone().or(to.label.clone());
        let from_hook = changes.summary.is_some() && to.summarise;
        let summary = match self.summary_of(&left, &to, changes, emitter, &cancel).await {
            Ok(summary) => summary,
            Err(CompactError::Cancelled) => return Ok(Navigated::stayed(true)),
            Err(error) => return Err(NavigateError::Summary(error)),
        };
        let (new_leaf, editor_text) = self.landing(&to.target);
        let summary = match summary {
            Some(summary) => Some(self.log.branch_with_summary(new_leaf.as_ref(), summary).await?),
            None => {
                match &new_leaf {
                    Some(leaf) => self.log.move_to(leaf)?,
                    None => self.log.reset_leaf(),
                }
                None
            }
        };
        if let Some(label) = label {
            self.log.append_label(summary.as_ref().unwrap_or(&to.target), Some(&label)).await?;
        }
        self.take_over_branch().await;
        let new_leaf = self.log.leaf_id().cloned();
        let moved = MovedLeaf { new_leaf, old_leaf, summary: summary.clone(), from_hook };
        self.summaries.moved(&moved);
        self.control.notify_extensions(Notification::Moved(&moved), &self.log).await;
        Ok(Navigated { editor_text, cancelled: false, aborted: false, summary })
    }

    /// Summarises the branch being left, if that is requested and there is something to summarise.
    async fn summary_of(
        &self,
        left: &LeftBranch,
        to: &Navigation,
        changes: MoveChanges,
        emitter: &dyn EventListener,
        cancel: &Cancel,
    ) -> Result<Option<BranchSummary>, CompactError> {
        if !to.summarise || left.entries.is_empty() {
            return Ok(None);
        }
        if let Some((summary, details)) = changes.summary {
            let from_id = String::new();
            return Ok(Some(BranchSummary { from_id, summary, details, from_hook: Some(true), usage: None }));
        }
        let wanted = BranchInstructions {
            text: changes.focus.or_else(|| to.focus.clone()),
            replace: changes.replace_instructions.unwrap_or(to.replace_instructions),
        };
        let reserve = self.branch_reserve_tokens;
        Summariser::of(self).summarise_branch(left, reserve, &wanted, emitter, cancel).await.map(Some)
    }

    /// Loads conversation, model and level at the current leaf.
    pub(super) async fn take_over_branch(&mut self) {
        self.take_over(None, true).await;
    }

    /// Loads the conversation at the current leaf, with its model and level unless others were selected. Extensions are notified of their
    /// changes with `notifies`.
    pub(super) async fn take_over(&mut self, chosen: Option<(Arc<Model>, Option<ThinkingLevel>)>, notifies: bool) {
        let context = self.log.context();
        let (chosen, chosen_level) = chosen.map_or((None, None), |(model, level)| (Some(model), level));
        let of_branch = || {
            self.find_model.as_ref().zip(context.model.as_ref()).and_then(|(find, branch)| {
                let now = &self.agent.model;
                let same = now.provider == branch.provider && now.id == branch.model_id;
                if same { None } else { find(&branch.provider, &branch.model_id) }
            })
        };
        if let Some(model) = chosen.or_else(of_branch) {
            let previous = std::mem::replace(&mut self.agent.model, Arc::clone(&model));
            match notifies {
                true => self.control.model_changed(&model, &previous, ModelSource::Restore, &self.log).await,
                false => self.control.update_snapshot(|now| now.model = model),
            }
        }
        let has_level = self.log.active_branch().has_level();
        let level = ThinkingLevel::parse(&context.thinking_level).filter(|_| has_level);
        let level = thinking::clamp(&self.agent.model, chosen_level.or(level).unwrap_or(self.agent.thinking));
        let previous = std::mem::replace(&mut self.agent.thinking, level);
        match notifies {
            true => self.control.level_changed(level, previous, &self.log).await,
            false => self.control.update_snapshot(|now| now.thinking = level),
        }
        self.agent.messages = context.messages;
    }

    /// Returns the user messages that can be forked before, as entry and text, in file order.
    pub fn fork_points(&self) -> Vec<(EntryId, String)> {
        self.view().fork_points()
    }

    /// Returns the new leaf, and the text to edit.
    fn landing(&self, target: &EntryId) -> (Option<EntryId>, Option<String>) {
        let Some(entry) = self.log.entry(target) else { return (None, None) };
        let text = match &entry.body {
            EntryBody::Message(message) => match &**message {
                Message::User(user) => Some(user.content.text("")),
                _ => None,
            },
            EntryBody::CustomMessage(message) => Some(message.content.text("")),
            _ => None,
        };
        match text {
            Some(text) => (entry.parent_id.clone(), Some(text)),
            None => (Some(target.clone()), None),
        }
    }
}
