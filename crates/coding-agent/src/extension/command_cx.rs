//! The contexts of commands, which may also leave the session.

use std::ops::Deref;
use std::path::PathBuf;

use super::actions::{ActionOutcome, NavigateTree, SessionAction};
use super::cx::ExtensionCx;
use super::error::ExtensionError;
use crate::compaction::Compacted;
use crate::entry::{EntryBody, EntryId};

/// The context of a command, which may also wait until the session is idle, and replace it. Handlers cannot do that, because the session
/// waits for them.
#[derive(Clone, Debug)]
pub struct CommandCx(ExtensionCx);

/// The result of leaving a session or a position in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replaced {
    /// Whether an extension cancelled it; nothing has changed then.
    pub cancelled: bool,
    /// Text of the user message moved to, for editing.
    pub text: Option<String>,
    /// The context of the current session; the original one is stale if the session was replaced.
    pub cx: CommandCx,
}

impl Deref for CommandCx {
    type Target = ExtensionCx;

    fn deref(&self) -> &ExtensionCx {
        &self.0
    }
}

impl CommandCx {
    pub(super) fn new(cx: ExtensionCx) -> Self {
        Self(cx)
    }

    /// Waits until no prompt is running or waiting.
    ///
    /// # Errors
    /// [`ExtensionError::Stale`].
    pub async fn wait_for_idle(&self) -> Result<(), ExtensionError> {
        self.act(SessionAction::WaitForIdle).await.map(drop)
    }

    /// Compacts the conversation, once the session is idle.
    ///
    /// # Errors
    /// Fails if nothing was compacted.
    pub async fn compact(&self, focus: Option<String>) -> Result<Compacted, ExtensionError> {
        match self.act(SessionAction::Compact { focus, wait: true }).await? {
            ActionOutcome::Compacted(done) => Ok(*done),
            _ => Err(ExtensionError::new("The session was not compacted")),
        }
    }

    /// Starts a new session.
    ///
    /// # Errors
    /// [`ExtensionError`]; the session is unchanged.
    pub async fn new_session(&self, parent: Option<String>) -> Result<Replaced, ExtensionError> {
        self.new_session_with(parent, Vec::new()).await
    }

    /// Starts a new session that begins with these entries.
    ///
    /// # Errors
    /// [`ExtensionError`]; the session is unchanged.
    pub async fn new_session_with(
        &self,
        parent: Option<String>,
        entries: Vec<EntryBody>,
    ) -> Result<Replaced, ExtensionError> {
        self.leave(SessionAction::NewSession { parent, entries }).await
    }

    /// Forks the branch up to an entry into a new session; `before` excludes the entry, a user message, so that it can be edited.
    ///
    /// # Errors
    /// [`ExtensionError`]; the session is unchanged.
    pub async fn fork(&self, entry: EntryId, before: bool) -> Result<Replaced, ExtensionError> {
        self.leave(SessionAction::Fork { entry, before }).await
    }

    /// Moves to another entry in the session's tree.
    ///
    /// # Errors
    /// [`ExtensionError`]; the leaf is unchanged.
    pub async fn navigate_tree(&self, to: NavigateTree) -> Result<Replaced, ExtensionError> {
        self.leave(SessionAction::Navigate(to)).await
    }

    /// Switches to another session.
    ///
    /// # Errors
    /// [`ExtensionError`]; the session is unchanged.
    pub async fn switch_session(&self, path: PathBuf) -> Result<Replaced, ExtensionError> {
        self.leave(SessionAction::Switch { path }).await
    }

    /// Requests a reload of the extensions once the session is idle. This context is stale afterwards.
    ///
    /// # Errors
    /// [`ExtensionError`].
    pub async fn reload(&self) -> Result<(), ExtensionError> {
        self.act(SessionAction::Reload).await.map(drop)
    }

    async fn leave(&self, act: SessionAction) -> Result<Replaced, ExtensionError> {
        let (cancelled, text) = match self.act(act).await? {
            ActionOutcome::Replaced { cancelled, text } => (cancelled, text),
            _ => (false, None),
        };
        Ok(Replaced { cancelled, text, cx: Self(self.0.newest()) })
    }
}
