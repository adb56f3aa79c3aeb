//! The front door: a session with everything that belongs to it, exchangeable for another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_stdx::host::Host;

use crate::entry::EntryId;
use crate::extension::SessionReason;
use crate::packages::source::absolute;
use crate::services::{FolderSettings, ServiceOptions, Services};
use crate::session::create::{Chooser, ModelWish};
use crate::session::{
    AgentSession, CreateError, Created, ForkAt, ForkError, ScopedModel, SessionError, SessionOptions, create,
};
use crate::session_log::{NewSession, SessionLog};
use crate::settings::Settings;
use crate::store::{JsonlStore, SessionRef, SessionStore, StoreError};
use crate::tools::bash::BashTool;

/// What [`create_agent_session`] makes a session from. [`AgentSessionOptions::new`] has the usual values of all but three.
#[derive(Clone)]
pub struct AgentSessionOptions {
    /// Folders, trust, and which resources count.
    pub services: ServiceOptions,
    /// Model, thinking level, tools, hooks.
    pub session: SessionOptions,
    /// The working directory of a new session; one that is taken up has its own.
    pub cwd: PathBuf,
    /// Which conversation.
    pub log: LogWish,
    /// Where sessions are kept; `None`: as the settings say, else below the agent directory.
    pub session_dir: Option<PathBuf>,
}

/// Which conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogWish {
    /// A new one, kept on disk.
    #[default]
    New,
    /// A new one that is kept in memory only.
    InMemory,
    /// The newest of the working directory, or a new one.
    Newest,
    /// The one in this file.
    File(PathBuf),
}

impl AgentSessionOptions {
    /// A new session in a working directory, with everything that the user's documents say.
    pub fn new(host: Host, cwd: impl Into<PathBuf>, agent_dir: impl Into<PathBuf>) -> Self {
        Self {
            services: ServiceOptions::new(host, agent_dir),
            session: SessionOptions::default(),
            cwd: cwd.into(),
            log: LogWish::default(),
            session_dir: None,
        }
    }
}

/// Makes a session: reads settings, models, credentials and resources of the working directory, chooses a model, builds tools and prompt, and
/// opens the log.
///
/// # Errors
/// [`RuntimeError`]. What is wrong in documents stops nothing: see [`SessionRuntime::take_notes`].
pub async fn create_agent_session(options: AgentSessionOptions) -> Result<SessionRuntime, RuntimeError> {
    let host = &options.services.host;
    let cwd = options.cwd.to_string_lossy();
    let (folder, problems) = FolderSettings::read(&options.services, &options.cwd);
    let settings = folder.settings().settings();
    let log = match &options.log {
        LogWish::InMemory => SessionLog::in_memory(host, NewSession::in_folder(&cwd)),
        LogWish::File(path) => open(host, &options.cwd.join(path), &settings, &cwd).await?,
        LogWish::New => SessionLog::create(host, store(&options, &settings), NewSession::in_folder(&cwd)).await?,
        LogWish::Newest => SessionLog::continue_recent(host, store(&options, &settings), &cwd).await?,
    };
    let log_cwd = Path::new(log.cwd());
    let services = match log_cwd == options.cwd {
        true => Services::load_folder(folder, problems),
        false => Services::load(&options.services, log_cwd),
    };
    SessionRuntime::with_services(options.services, services.installed().await, options.session, log).await
}

/// The store that options and settings name.
fn store(options: &AgentSessionOptions, settings: &Settings) -> Arc<dyn SessionStore> {
    let ServiceOptions { agent_dir, host, .. } = &options.services;
    let of_settings = || Some(absolute(settings.session_dir.as_deref()?, &options.cwd, host.home()));
    let store = match options.session_dir.as_ref().map(|dir| options.cwd.join(dir)).or_else(of_settings) {
        Some(dir) => JsonlStore::flat(dir),
        None => JsonlStore::by_cwd(agent_dir.join("sessions")),
    };
    Arc::new(store.durability(settings.durability))
}

/// Opens a file, to be kept as safe as the settings want it.
async fn open(host: &Host, path: &Path, settings: &Settings, cwd: &str) -> Result<SessionLog, StoreError> {
    let store = Arc::new(JsonlStore::flat(path.parent().unwrap_or(path)).durability(settings.durability));
    SessionLog::open(host, store, &SessionRef::Path(path.to_owned()), cwd).await
}

/// A session that can be exchanged for another one. The next session is made before the old one is given up, so that a failure leaves the old
/// one usable.
pub struct SessionRuntime {
    options: ServiceOptions,
    wishes: SessionOptions,
    now: Created,
}

impl SessionRuntime {
    /// Begins with a session on a log.
    ///
    /// # Errors
    /// [`RuntimeError`].
    pub async fn start(options: ServiceOptions, wishes: SessionOptions, log: SessionLog) -> Result<Self, RuntimeError> {
        let services = Services::load_installing(&options, Path::new(log.cwd())).await;
        Self::with_services(options, services, wishes, log).await
    }

    /// Begins with a session on a log whose working directory was looked through already.
    ///
    /// # Errors
    /// [`RuntimeError`].
    pub async fn with_services(
        options: ServiceOptions,
        services: Services,
        wishes: SessionOptions,
        log: SessionLog,
    ) -> Result<Self, RuntimeError> {
        let now = create(services, log, &wishes).await?;
        let mut runtime = Self { options, wishes, now };
        runtime.choose_models();
        Ok(runtime)
    }

    /// Conversations that take the place of this one get the model that a new session would get, or go on with their own.
    fn choose_models(&mut self) {
        let (chooser, services) = (Chooser::of(&self.wishes), Arc::clone(&self.now.services));
        self.now.session.choose_model_with(Arc::new(move |log| chooser.choose_again(&services, log)));
    }

    /// The session.
    pub fn session(&self) -> &AgentSession {
        &self.now.session
    }

    /// The session, to be prompted.
    pub fn session_mut(&mut self) -> &mut AgentSession {
        &mut self.now.session
    }

    /// What belongs to the working directory of the session.
    pub fn services(&self) -> &Arc<Services> {
        &self.now.services
    }

    /// The models to go through; empty: all that can be used.
    pub fn scope(&self) -> &[ScopedModel] {
        &self.now.scope
    }

    /// Runs commands of the user.
    pub fn shell(&self) -> &Arc<BashTool> {
        &self.now.shell
    }

    /// Takes what is to be said about documents and choices: sentences for people.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.now.notes);
        notes.extend(self.now.services.take_problems());
        notes
    }

    /// Goes over to a new, empty session of the same kind: one that is kept only in memory is followed by another such.
    ///
    /// # Errors
    /// When the store cannot make room for it; the old session stays then.
    pub async fn new_session(&mut self, parent: Option<String>) -> Result<(), SessionError> {
        self.now.session.begin_new(parent).await
    }

    /// Goes over to a session that was kept, with the settings and tools of its own working directory; false when an extension stands against
    /// it.
    ///
    /// # Errors
    /// When there is no such file, it holds no session, or no model can be found for it; the old session stays then.
    pub async fn switch_session(&mut self, path: &Path) -> Result<bool, RuntimeError> {
        let cwd = self.now.services.cwd();
        let path = cwd.join(path);
        if !path.is_file() {
            return Err(RuntimeError::Missing { path });
        }
        let settings = self.now.services.settings().settings();
        let log = open(&self.options.host, &path, &settings, &cwd.to_string_lossy()).await?;
        if !Path::new(log.cwd()).is_dir() {
            return Err(RuntimeError::FolderGone { cwd: log.cwd().to_owned() });
        }
        if !self.now.session.may_leave(SessionReason::Resume, Some(path)).await {
            return Ok(false);
        }
        self.replace(log, SessionReason::Resume).await?;
        Ok(true)
    }

    /// Reads settings, models, resources and extensions anew and goes on with the same session, wherever it is kept.
    ///
    /// # Errors
    /// When the session cannot be made anew; it stays as it is then.
    pub async fn reload(&mut self) -> Result<(), RuntimeError> {
        let log = self.now.session.log().again().await?;
        self.replace(log, SessionReason::Reload).await
    }

    async fn replace(&mut self, log: SessionLog, reason: SessionReason) -> Result<(), RuntimeError> {
        let mut wishes = SessionOptions { reason, ..self.wishes.clone() };
        if reason == SessionReason::Reload {
            let session = self.session();
            (wishes.model, wishes.thinking) = (ModelWish::This(Arc::clone(session.model())), Some(session.thinking()));
        }
        // What was set is read again.
        self.now.services.settings().flush().await;
        let services = Services::load_installing(&self.options, Path::new(log.cwd())).await;
        let next = create(services, log, &wishes).await?;
        self.end(reason).await;
        if reason != SessionReason::Reload {
            next.session.control().keep_switches_of(&self.now.session.control());
        }
        self.now = next;
        self.choose_models();
        Ok(())
    }

    /// Ends in order: extensions are told and ended, settings written, logins stored. To be called before a program ends.
    pub async fn close(&mut self) {
        self.end(SessionReason::Quit).await;
    }

    async fn end(&mut self, reason: SessionReason) {
        self.now.session.shut_down(reason).await;
        self.now.session.control().extensions().close().await;
        self.now.services.settle().await;
    }

    /// Goes over to a copy of the session up to an entry: see [`AgentSession::fork`].
    ///
    /// # Errors
    /// [`ForkError`]; the old session stays then.
    pub async fn fork(&mut self, entry: &EntryId, place: ForkAt) -> Result<Option<String>, ForkError> {
        self.now.session.fork(entry, place).await
    }
}

/// Why there is no session, or no other one.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// There is no such file.
    #[error("Session file not found: {}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The session worked in a folder that does not exist any more.
    #[error("Stored session working directory does not exist: {cwd}")]
    FolderGone {
        /// The folder.
        cwd: String,
    },
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A session cannot be made from it.
    #[error(transparent)]
    Create(#[from] CreateError),
}
