//! Another log in the place of a session's own: a new one, a fork, or one that was kept.

use pinch_llm::message::Message;

use super::models::{level_change, model_change};
use super::{AgentSession, SessionError};
use crate::entry::EntryId;
use crate::recovery::RecoveryState;
use crate::session_log::{NewSession, SessionLog};
use crate::store::StoreError;

/// Where a fork begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkAt {
    /// Before a message of the user, so that it can be said anew.
    Before,
    /// Behind an entry: the fork has all that it has.
    Entry,
}

/// Why there is no fork; the session is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// Nothing of the session is on disk yet.
    #[error("This session has not been saved yet. Wait for the first assistant response before cloning or forking it.")]
    NotSaved,
    /// A fork can begin before messages of the user only.
    #[error("Invalid entry ID for forking")]
    NotAMessage,
    /// There is no such entry, or the new session cannot be written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl From<StoreError> for ForkError {
    fn from(error: StoreError) -> Self {
        Self::Session(error.into())
    }
}

impl AgentSession {
    /// Goes over to a new, empty session with the same parts, in the same store; `parent` names the one it follows.
    ///
    /// # Errors
    /// When the store cannot make room for it; the old session stays then.
    pub async fn begin_new(&mut self, parent: Option<String>) -> Result<(), SessionError> {
        let new = NewSession { parent_session: parent, ..NewSession::in_folder(self.log.cwd()) };
        let old = self.log.id().to_owned();
        self.log.new_session(new).await?;
        self.log.append(model_change(&self.agent.model)).await?;
        self.log.append(level_change(self.agent.thinking)).await?;
        self.came_to_new_log(&old);
        Ok(())
    }

    /// Goes over to a new session that holds this one's branch up to an entry. Answers with the text of the message the fork begins before.
    ///
    /// # Errors
    /// [`ForkError`].
    pub async fn fork(&mut self, entry: &EntryId, place: ForkAt) -> Result<Option<String>, ForkError> {
        if !self.log.is_saved() {
            return Err(ForkError::NotSaved);
        }
        let Some(found) = self.log.entry(entry) else {
            return Err(StoreError::NoEntry { id: entry.to_string() }.into());
        };
        let old = self.log.id().to_owned();
        let text = match (place, found.body.as_message().map(|message| &**message)) {
            (ForkAt::Entry, _) => {
                self.log.create_branched_session(entry).await?;
                None
            }
            (ForkAt::Before, Some(Message::User(user))) => {
                match &found.parent_id {
                    Some(parent) => self.log.create_branched_session(parent).await?,
                    None => {
                        let parent_session = self.log.path().map(|path| path.display().to_string());
                        let new = NewSession { parent_session, ..NewSession::in_folder(self.log.cwd()) };
                        self.log.new_session(new).await?;
                    }
                }
                Some(user.content.text(""))
            }
            (ForkAt::Before, _) => return Err(ForkError::NotAMessage),
        };
        self.came_to_new_log(&old);
        Ok(text)
    }

    /// Takes another log up. Tools that act in a working directory are the caller's to replace: see [`AgentSession::set_tools`].
    ///
    /// # Errors
    /// When what has changed cannot be written to it.
    pub async fn switch_to(&mut self, log: SessionLog) -> Result<(), SessionError> {
        let old = self.log.id().to_owned();
        self.log = log;
        self.came_to_new_log(&old);
        if !self.log.active_branch().has_level() {
            self.log.append(level_change(self.agent.thinking)).await?;
        }
        Ok(())
    }

    /// Takes everything that depends on the log from the one it is now.
    fn came_to_new_log(&mut self, old: &str) {
        let session_id = &mut self.agent.options.session_id;
        if session_id.as_deref() == Some(old) {
            *session_id = Some(self.log.id().to_owned());
        }
        self.state = RecoveryState::default();
        self.take_over_branch();
    }
}
