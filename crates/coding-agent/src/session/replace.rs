//! Replacing a session's log: with a new one, a fork, or a stored one.

use std::path::PathBuf;

use pinch_llm::message::Message;

use super::answering::answering;
use super::{AgentSession, SessionError, observer};
use crate::entry::{EntryBody, EntryId};
use crate::extension::{BeforeFork, BeforeSwitch, Notification, ResourcesDiscover, SessionReason, SwitchDecision};
use crate::recovery::RecoveryState;
use crate::resources::ExtraPaths;
use crate::session_log::{NewSession, SessionLog};
use crate::store::StoreError;

/// Where to fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkAt {
    /// Before a user message, so that it can be edited.
    Before,
    /// After an entry, which the fork includes.
    Entry,
}

/// Why a fork failed; the session is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The session has not been stored yet.
    #[error("This session has not been saved yet. Send a message before cloning or forking it.")]
    NotSaved,
    /// The entry is not a user message.
    #[error("Invalid entry ID for forking")]
    NotAMessage,
    /// The entry does not exist, or the new session cannot be written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl From<StoreError> for ForkError {
    fn from(error: StoreError) -> Self {
        Self::Session(error.into())
    }
}

impl AgentSession {
    /// Switches to a new, empty session with the same parts, in the same store; `parent` names the session it continues.
    ///
    /// # Errors
    /// Fails with [`SessionError::SwitchCancelled`] if an extension cancels it, or if the store cannot create the session; the old session
    /// is kept.
    pub async fn begin_new(&mut self, parent: Option<String>) -> Result<(), SessionError> {
        self.begin_with(parent, Vec::new()).await
    }

    /// Switches to a new session that begins with these entries.
    pub(super) async fn begin_with(
        &mut self,
        parent: Option<String>,
        entries: Vec<EntryBody>,
    ) -> Result<(), SessionError> {
        let new = NewSession { parent_session: parent, ..NewSession::in_directory(self.log.cwd()) };
        self.ask_to_leave(SessionReason::New, None).await?;
        let mut log = self.log.create_sibling(new).await?;
        for entry in entries {
            log.append(entry).await?;
        }
        let left = self.leave_for(log, SessionReason::New).await;
        self.note_model().await?;
        self.arrive(SessionReason::New, left).await;
        Ok(())
    }

    /// Switches to a new session with this one's branch up to an entry. Returns the text of the message the fork starts before.
    ///
    /// # Errors
    /// Returns a [`ForkError`].
    pub async fn fork(&mut self, entry: &EntryId, place: ForkAt) -> Result<Option<String>, ForkError> {
        let Some(found) = self.log.entry(entry) else {
            return Err(StoreError::NoEntry { id: entry.to_string() }.into());
        };
        let text = match (place, found.body.as_message().map(|message| &**message)) {
            (ForkAt::Entry, _) => None,
            (ForkAt::Before, Some(Message::User(user))) => Some(user.content.text("")),
            (ForkAt::Before, _) => return Err(ForkError::NotAMessage),
        };
        if !self.log.is_saved() {
            return Err(ForkError::NotSaved);
        }
        let ask = BeforeFork { entry: entry.clone(), before: place == ForkAt::Before };
        let asking = self.control.extensions().before_fork(&ask);
        if answering(&self.control, &self.log, asking).await == SwitchDecision::Cancel {
            return Err(SessionError::SwitchCancelled.into());
        }
        let leaf = if place == ForkAt::Entry { Some(entry) } else { found.parent_id.as_ref() };
        let log = match leaf {
            Some(leaf) => self.log.branched_session(leaf).await?,
            None => {
                let parent_session = self.log.path().map(|path| path.display().to_string());
                self.log
                    .create_sibling(NewSession { parent_session, ..NewSession::in_directory(self.log.cwd()) })
                    .await?
            }
        };
        let left = self.leave_for(log, SessionReason::Fork).await;
        self.note_model().await.map_err(ForkError::Session)?;
        self.arrive(SessionReason::Fork, left).await;
        Ok(text)
    }

    /// Switches to another log. Tools that depend on the working directory must be replaced by the caller: see [`AgentSession::set_tools`].
    ///
    /// # Errors
    /// Fails with [`SessionError::SwitchCancelled`] if an extension cancels it, or if changes cannot be written to the log.
    pub async fn switch_to(&mut self, log: SessionLog) -> Result<(), SessionError> {
        self.ask_to_leave(SessionReason::Resume, log.path().map(PathBuf::from)).await?;
        let left = self.leave_for(log, SessionReason::Resume).await;
        self.note_model().await?;
        self.arrive(SessionReason::Resume, left).await;
        Ok(())
    }

    /// Notifies extensions, once, that the session is closed. Call it before the program exits.
    pub async fn shut_down(&mut self, reason: SessionReason) {
        self.shut_down_for(reason, None).await;
    }

    /// Notifies extensions, once, that the session is closed, and which one takes its place.
    pub(crate) async fn shut_down_for(&mut self, reason: SessionReason, target: Option<&PathBuf>) {
        if !std::mem::replace(&mut self.is_shut_down, true) {
            self.control.notify_extensions(Notification::SessionShutdown { reason, target }, &self.log).await;
        }
    }

    /// Starts the extensions again after the session was shut down: nothing has taken its place.
    pub(crate) async fn revive(&mut self) {
        self.is_shut_down = false;
        self.control.extensions().renew();
        self.restart_extensions().await;
        self.begin_with_tools();
        self.arrive(SessionReason::Reload, None).await;
    }

    /// Asks extensions whether to leave the session for another one.
    pub async fn may_leave(&self, reason: SessionReason, target: Option<PathBuf>) -> bool {
        self.ask_to_leave(reason, target).await.is_ok()
    }

    async fn ask_to_leave(&self, reason: SessionReason, target: Option<PathBuf>) -> Result<(), SessionError> {
        let ask = BeforeSwitch { reason, target };
        match answering(&self.control, &self.log, self.control.extensions().before_switch(&ask)).await {
            SwitchDecision::Proceed => Ok(()),
            SwitchDecision::Cancel => Err(SessionError::SwitchCancelled),
        }
    }

    /// Replaces the log and everything that depends on it. Returns the file of the session that is left.
    async fn leave_for(&mut self, log: SessionLog, reason: SessionReason) -> Option<PathBuf> {
        let target = log.path().map(PathBuf::from);
        let notification = Notification::SessionShutdown { reason, target: target.as_ref() };
        self.control.notify_extensions(notification, &self.log).await;
        self.control.extensions().renew();
        self.control.drop_pending();
        self.restart_extensions().await;
        let old = std::mem::replace(&mut self.log, log);
        let session_id = &mut self.agent.options.session_id;
        if session_id.as_deref() == Some(old.id()) {
            *session_id = Some(self.log.id().to_owned());
        }
        self.state = RecoveryState::default();
        self.is_shut_down = false;
        let log = &self.log;
        self.control.update_snapshot(|now| {
            now.session_id = log.id().to_owned();
            now.session_file = log.path().map(PathBuf::from);
            now.session_name = log.name();
            now.cwd = PathBuf::from(log.cwd());
        });
        let chosen = self.choose_model.as_ref().and_then(|choose| choose(&self.log));
        self.take_over(chosen, false).await;
        self.begin_with_tools();
        old.path().map(PathBuf::from)
    }

    /// Starts the extensions anew, meanwhile answering those of the old ones that ask for something.
    async fn restart_extensions(&mut self) {
        let extensions = self.control.extensions();
        let is_observed = observer::is_wanted(extensions);
        answering(&self.control, &self.log, extensions.restart()).await;
        if !is_observed {
            let observer = &mut self.agent.options.observer;
            *observer = observer::observer(observer.take(), extensions);
        }
    }

    /// Makes the tools active that a session on the current log starts with.
    fn begin_with_tools(&mut self) {
        let (control, messages) = (&self.control, &self.agent.messages);
        let (active, all, offered, prompt_for) = control.share(|state| {
            let tooling = &mut state.tooling;
            tooling.begin_again(messages, control.extensions());
            let active = tooling.active(control.extensions());
            let offered = tooling.offered(&active);
            (active, tooling.all(control.extensions()), offered, tooling.prompt_for.clone())
        });
        if let Some(make) = prompt_for {
            self.system = make(&offered);
        }
        self.agent.tools = offered;
        let system = self.system.clone();
        control.update_snapshot(|now| (now.active_tools, now.all_tools, now.system) = (active, all, system));
    }

    /// Notifies extensions of the current session, and loads the resources they return, from the next prompt on.
    pub(crate) async fn arrive(&mut self, reason: SessionReason, previous: Option<PathBuf>) {
        self.control.extensions().reset_ui();
        self.control
            .notify_extensions(Notification::SessionStart { reason, previous: previous.as_ref() }, &self.log)
            .await;
        let reason = if reason == SessionReason::Reload { reason } else { SessionReason::Startup };
        let discovering = self.control.extensions().resources(ResourcesDiscover { reason });
        let found = answering(&self.control, &self.log, discovering).await;
        if found == self.found {
            return;
        }
        self.found = found;
        if let Some(load) = &self.load_found {
            self.control.commands_changed(load(&self.found));
        }
    }

    /// Returns the skills, prompts and themes that extensions found at the last start or replacement of the session.
    pub fn discovered(&self) -> &[ExtraPaths] {
        &self.found
    }
}
