//! A session that can be exchanged for another one, with what belongs to its working directory.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::entry::EntryId;
use crate::services::Services;
use crate::session::{AgentSession, ForkAt, ForkError, SessionError};
use crate::session_log::SessionLog;
use crate::store::{JsonlStore, SessionRef};

/// Makes sessions from logs: the model, tools and prompt of the working directory that a log names.
pub trait SessionFactory: Send + Sync {
    /// A session on a log, and what belongs to its working directory.
    ///
    /// # Errors
    /// A sentence for people.
    fn create(&self, log: SessionLog) -> BoxFuture<'_, Result<(AgentSession, Arc<Services>), String>>;
}

/// A session that can be exchanged. The next session is made before the old one is given up, so that a failure leaves the old one usable.
pub struct SessionRuntime {
    session: AgentSession,
    services: Arc<Services>,
    factory: Arc<dyn SessionFactory>,
}

impl SessionRuntime {
    /// A runtime that begins with a session.
    pub fn new(session: AgentSession, services: Arc<Services>, factory: Arc<dyn SessionFactory>) -> Self {
        Self { session, services, factory }
    }

    /// The session.
    pub fn session(&self) -> &AgentSession {
        &self.session
    }

    /// The session, to be prompted.
    pub fn session_mut(&mut self) -> &mut AgentSession {
        &mut self.session
    }

    /// What belongs to the working directory of the session.
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Goes over to a new, empty session of the same kind: one that is kept only in memory is followed by another such.
    ///
    /// # Errors
    /// When the store cannot make room for it; the old session stays then.
    pub async fn new_session(&mut self, parent: Option<String>) -> Result<(), SessionError> {
        self.session.begin_new(parent).await
    }

    /// Goes over to a session that was kept.
    ///
    /// # Errors
    /// When there is no such file, it holds no session, or no model can be found for it; the old session stays then.
    pub async fn switch_session(&mut self, path: &Path) -> Result<(), SwitchError> {
        let path = self.services.cwd.join(path);
        if !path.is_file() {
            return Err(SwitchError::Missing { path: path.display().to_string() });
        }
        let folder = path.parent().unwrap_or(&path);
        let store = Arc::new(JsonlStore::flat(folder).durability(self.services.settings.durability));
        let cwd = self.services.cwd.to_string_lossy();
        let log = SessionLog::open(&self.services.host, store, &SessionRef::Path(path.clone()), &cwd).await;
        let log = log.map_err(|error| SwitchError::Session(error.into()))?;
        if !log.cwd().is_empty() && !Path::new(log.cwd()).is_dir() {
            return Err(SwitchError::FolderGone { cwd: log.cwd().to_owned() });
        }
        let (session, services) = self.factory.create(log).await.map_err(SwitchError::Cannot)?;
        self.session = session;
        self.services = services;
        Ok(())
    }

    /// Goes over to a copy of the session up to an entry: see [`AgentSession::fork`].
    ///
    /// # Errors
    /// [`ForkError`]; the old session stays then.
    pub async fn fork(&mut self, entry: &EntryId, place: ForkAt) -> Result<Option<String>, ForkError> {
        self.session.fork(entry, place).await
    }
}

/// Why another session was not taken up.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// There is no such file.
    #[error("Session file not found: {path}")]
    Missing {
        /// The file.
        path: String,
    },
    /// The session worked in a folder that does not exist any more.
    #[error("Stored session working directory does not exist: {cwd}")]
    FolderGone {
        /// The folder.
        cwd: String,
    },
    /// It cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A session cannot be made from it.
    #[error("{0}")]
    Cannot(String),
}
