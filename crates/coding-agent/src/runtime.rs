//! Creating sessions: [`create_agent_session`] combines settings, credentials, models, resources and a log, and returns a
//! [`SessionRuntime`] that can switch to other sessions.
//!
//! ```
//! use pinch_coding_agent::llm::provider::scripted::{ScriptedReply, ScriptedProvider};
//! use pinch_coding_agent::{AgentSessionOptions, Host, create_agent_session};
//! # use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // No file is read or written, and a provider that answers from a script stands in for a model.
//! let provider = Arc::new(ScriptedProvider::new([ScriptedReply::text("Hello!")]));
//! let options = AgentSessionOptions::in_memory(Host::builder().build(), "/work")
//!     .model(ScriptedProvider::model("scripted"))
//!     .provider(provider);
//! let mut agent = create_agent_session(options).await?;
//! assert_eq!(agent.ask("Hi").await?, "Hello!");
//! # Ok(())
//! # }
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use pinch_agent_core::event::AgentEvent;
use pinch_llm::message::StopReason;

use crate::document::ChangeError;
use crate::entry::EntryId;
use crate::event::SessionEvent;
use crate::extension::SessionReason;
use crate::packages::source::absolute;
use crate::services::{DirectorySettings, ServiceOptions, Services};
use crate::session::create::{Chooser, ModelChoice, prepare};
use crate::session::{
    AgentSession, CreateError, Created, ForkAt, ForkError, Prompt, ScopedModel, SessionError, SessionOptions, create,
};
use crate::session_log::{NewSession, SessionLog};
use crate::settings::{Settings, SettingsManager};
use crate::store::{JsonlStore, MemoryStore, SessionRef, SessionStore, StoreError};
use crate::tools::bash::BashTool;

mod options;

pub use options::{AgentSessionOptions, SessionTarget};

/// Creates a session: loads settings, models, credentials and resources of the working directory, selects a model, builds tools and system
/// prompt, and opens the log.
///
/// Dropping the future early leaves no partially written file.
///
/// # Errors
/// [`RuntimeError`]. Problems in documents are not errors: see [`SessionRuntime::take_notes`].
pub fn create_agent_session(options: AgentSessionOptions) -> BoxFuture<'static, Result<SessionRuntime, RuntimeError>> {
    SessionSetup::new(options).create()
}

/// The first step of [`create_agent_session`]: reads the settings and determines the store, so that a program can look up sessions before
/// selecting one.
pub struct SessionSetup {
    options: AgentSessionOptions,
    directory: DirectorySettings,
    problems: Vec<String>,
    store: Arc<dyn SessionStore>,
}

impl SessionSetup {
    /// Reads the settings of the working directory, and of its project if trusted.
    pub fn new(options: AgentSessionOptions) -> Self {
        let (directory, problems) = DirectorySettings::read(&options.services, &options.cwd);
        let store = match &options.store {
            Some(given) => Arc::clone(given),
            None => default_store(&options, &directory.settings().settings()),
        };
        Self { options, directory, problems, store }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &SettingsManager {
        self.directory.settings()
    }

    /// Returns the store for new sessions.
    pub fn store(&self) -> &Arc<dyn SessionStore> {
        &self.store
    }

    /// Selects the session to open, overriding the options.
    #[must_use]
    pub fn open(mut self, target: SessionTarget) -> Self {
        self.options.target = target;
        self
    }

    /// Creates the session: see [`create_agent_session`].
    ///
    /// # Errors
    /// [`RuntimeError`].
    pub fn create(self) -> BoxFuture<'static, Result<SessionRuntime, RuntimeError>> {
        Box::pin(async move {
            let Self { options, directory, problems, store } = self;
            let settings = directory.settings().settings();
            let mut log = open_target(&options, &store, &settings).await?;
            if let Some(name) = &options.name {
                log.append_name(name).await?;
            }
            let log_cwd = Path::new(log.cwd());
            let services = match *log.cwd() == *options.cwd.to_string_lossy() {
                true => Services::load_directory(directory, problems),
                false => Services::load(&options.services, log_cwd),
            };
            let AgentSessionOptions { services: service_options, session, store: given, .. } = options;
            let services = services.installed().await;
            let problems = services.problems();
            let current = create(services, log, &session).await.map_err(not_created(problems))?;
            let is_given = given.is_some() || service_options.agent_dir.is_none();
            let mut runtime =
                SessionRuntime { options: service_options, session_options: session, store, is_given, current };
            runtime.choose_models();
            Ok(runtime)
        })
    }
}

/// Describes why there is no session, with the problems in documents, which may be the cause.
fn not_created(problems: Vec<String>) -> impl FnOnce(CreateError) -> RuntimeError {
    |source| RuntimeError::Create { source, problems }
}

/// Returns the store that options and settings select.
fn default_store(options: &AgentSessionOptions, settings: &Settings) -> Arc<dyn SessionStore> {
    let ServiceOptions { agent_dir, host, .. } = &options.services;
    let of_settings = || Some(absolute(settings.session_dir.as_deref()?, &options.cwd, host.home()));
    let dir = options.session_dir.as_ref().map(|dir| options.cwd.join(dir));
    let store = match (dir.or_else(|| of_settings().filter(|_| agent_dir.is_some())), agent_dir) {
        (Some(dir), _) => JsonlStore::flat(dir),
        (None, Some(agent_dir)) => JsonlStore::by_cwd(agent_dir.join("sessions")),
        (None, None) => return Arc::new(MemoryStore::new()),
    };
    Arc::new(store.durability(settings.durability))
}

async fn open_target(
    options: &AgentSessionOptions,
    store: &Arc<dyn SessionStore>,
    settings: &Settings,
) -> Result<SessionLog, RuntimeError> {
    let (host, cwd) = (&options.services.host, options.cwd.to_string_lossy());
    let new = || NewSession { id: options.session_id.clone(), ..NewSession::in_directory(&cwd) };
    let log = match &options.target {
        SessionTarget::InMemory => SessionLog::in_memory(host, new()),
        SessionTarget::New => SessionLog::create(host, Arc::clone(store), new()).await?,
        SessionTarget::MostRecent => SessionLog::continue_recent(host, Arc::clone(store), &cwd).await?,
        SessionTarget::Fork(source) => SessionLog::fork_from(host, Arc::clone(store), source, new()).await?,
        SessionTarget::Open(at) | SessionTarget::OpenHere(at) => {
            let is_given = options.store.is_some() || options.services.agent_dir.is_none();
            let (store, at) = store_of(at, store, is_given, settings, &options.cwd);
            let log = SessionLog::open(host, store, &at, &cwd).await?;
            if matches!(options.target, SessionTarget::OpenHere(_)) { log.with_cwd(&cwd) } else { log }
        }
    };
    let is_here = log.cwd().is_empty() || *log.cwd() == *cwd;
    if log.path().is_some() && !is_here && !Path::new(log.cwd()).exists() {
        return Err(RuntimeError::DirectoryGone { cwd: log.cwd().to_owned(), file: log.path().map(Path::to_owned) });
    }
    Ok(log)
}

/// Returns the store of a session. For a file, unless the caller supplied a store, it is the file's directory, so that following sessions
/// are stored next to it.
fn store_of(
    at: &SessionRef,
    store: &Arc<dyn SessionStore>,
    is_given: bool,
    settings: &Settings,
    cwd: &Path,
) -> (Arc<dyn SessionStore>, SessionRef) {
    match at {
        SessionRef::Path(path) if !is_given => {
            let path = cwd.join(path);
            let beside = JsonlStore::flat(path.parent().unwrap_or(&path)).durability(settings.durability);
            (Arc::new(beside), SessionRef::Path(path))
        }
        at => (Arc::clone(store), at.clone()),
    }
}

/// A session that can be replaced by another one. If the next session cannot be created, the current one continues.
pub struct SessionRuntime {
    options: ServiceOptions,
    session_options: SessionOptions,
    store: Arc<dyn SessionStore>,
    /// Whether the store is the caller's or in memory, and thus contains all sessions.
    is_given: bool,
    current: Created,
}

impl SessionRuntime {
    /// Makes replacement sessions use the model that a new session would get, or keep their own.
    fn choose_models(&mut self) {
        let (chooser, services) = (Chooser::of(&self.session_options), Arc::clone(&self.current.services));
        self.current.session.choose_model_with(Arc::new(move |log| chooser.choose_again(&services, log)));
    }

    /// Sends a prompt, runs it to the end and returns the text of the last answer. For events, cancellation or images, use
    /// [`AgentSession::prompt`].
    ///
    /// # Errors
    /// [`AskError`]; the session remains usable.
    pub async fn ask(&mut self, text: &str) -> Result<String, AskError> {
        let mut run = self.current.session.prompt(Prompt::text(text));
        let (mut last, mut gave_up) = (None, None);
        while let Some(event) = run.next().await {
            match event? {
                SessionEvent::Agent(AgentEvent::TurnEnd { message, .. }) => (last, gave_up) = (Some(message), None),
                SessionEvent::RetryEnd { success: false, final_error, .. } => gave_up = final_error,
                _ => {}
            }
        }
        let answer = last.ok_or(AskError::NoAnswer)?;
        match answer.stop_reason {
            StopReason::Error | StopReason::Aborted => {
                let why = gave_up.or_else(|| answer.error_message.clone());
                Err(AskError::Failed(why.unwrap_or_else(|| format!("request {}", answer.stop_reason.as_str()))))
            }
            _ => Ok(answer.content.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n")),
        }
    }

    /// Returns the session.
    pub fn session(&self) -> &AgentSession {
        &self.current.session
    }

    /// Returns the session, for sending prompts.
    pub fn session_mut(&mut self) -> &mut AgentSession {
        &mut self.current.session
    }

    /// Returns the services of the session's working directory.
    pub fn services(&self) -> &Arc<Services> {
        &self.current.services
    }

    /// Returns the store for new sessions.
    pub fn store(&self) -> &Arc<dyn SessionStore> {
        &self.store
    }

    /// Returns the models to cycle through; empty means all available ones.
    pub fn scope(&self) -> &[ScopedModel] {
        &self.current.scope
    }

    /// Returns the tool that runs the user's commands.
    pub fn shell(&self) -> &Arc<BashTool> {
        &self.current.shell
    }

    /// Returns the notes about documents and selections since the last call, as sentences for people.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.current.notes);
        notes.extend(self.current.services.take_problems());
        notes
    }

    /// Switches to a new, empty session of the same kind: a session in memory is followed by another one in memory.
    ///
    /// # Errors
    /// Fails if the store cannot create it; the current session is kept.
    pub fn new_session(&mut self, parent: Option<String>) -> BoxFuture<'_, Result<(), SessionError>> {
        Box::pin(async move { self.current.session.begin_new(parent).await })
    }

    /// Switches to a stored session, with the settings and tools of its working directory. Returns false if an extension objects. A
    /// relative path is relative to the current working directory.
    ///
    /// # Errors
    /// Fails if the session does not exist or cannot be read, its working directory is gone ([`RuntimeError::DirectoryGone`]), or no model
    /// is available for it; the current session is kept.
    pub fn switch_session<'a>(&'a mut self, target: &'a SessionRef) -> BoxFuture<'a, Result<bool, RuntimeError>> {
        Box::pin(async move {
            let log = self.stored(target).await?;
            if self.options.agent_dir.is_some() && !Path::new(log.cwd()).is_dir() {
                let file = log.path().map(Path::to_owned);
                return Err(RuntimeError::DirectoryGone { cwd: log.cwd().to_owned(), file });
            }
            self.resume(log).await
        })
    }

    /// Switches to a stored session in the current working directory instead of the one it records, which is not changed. Returns false if
    /// an extension objects.
    ///
    /// # Errors
    /// Fails if the session does not exist or cannot be read, or no model is available for it; the current session is kept.
    pub fn switch_session_here<'a>(&'a mut self, target: &'a SessionRef) -> BoxFuture<'a, Result<bool, RuntimeError>> {
        Box::pin(async move {
            let here = self.current.services.cwd().to_string_lossy().into_owned();
            let log = self.stored(target).await?.with_cwd(&here);
            self.resume(log).await
        })
    }

    /// Switches to a copy of a stored session in the current working directory. Returns false if an extension objects; then, as on an
    /// error, no copy is left.
    ///
    /// # Errors
    /// Fails if the session cannot be read or the copy cannot be written, or no model is available for it; the current session is kept.
    pub fn switch_to_copy<'a>(&'a mut self, source: &'a SessionRef) -> BoxFuture<'a, Result<bool, RuntimeError>> {
        Box::pin(async move {
            let new = NewSession::in_directory(&self.current.services.cwd().to_string_lossy());
            let log = SessionLog::fork_from(&self.options.host, Arc::clone(&self.store), source, new).await?;
            let copy = match log.path() {
                Some(path) => SessionRef::Path(path.to_owned()),
                None => SessionRef::Id(log.id().clone()),
            };
            let done = self.resume(log).await;
            if !matches!(done, Ok(true)) {
                self.store.remove(&copy).await?;
            }
            done
        })
    }

    /// Opens the log of a stored session.
    async fn stored(&self, target: &SessionRef) -> Result<SessionLog, RuntimeError> {
        let (cwd, settings) = (self.current.services.cwd(), self.current.services.settings().settings());
        let (store, target) = store_of(target, &self.store, self.is_given, &settings, cwd);
        if let SessionRef::Path(path) = &target
            && !self.is_given
            && !path.is_file()
        {
            return Err(RuntimeError::Missing { path: path.clone() });
        }
        let log = SessionLog::open(&self.options.host, store, &target, &cwd.to_string_lossy()).await?;
        if !log.is_saved() {
            return Err(match target {
                SessionRef::Path(path) => RuntimeError::Missing { path },
                SessionRef::Id(id) => StoreError::NotFound { name: id.to_string() }.into(),
            });
        }
        Ok(log)
    }

    /// Continues the session of a log. Returns false if an extension objects.
    async fn resume(&mut self, log: SessionLog) -> Result<bool, RuntimeError> {
        if !self.current.session.may_leave(SessionReason::Resume, log.path().map(Path::to_owned)).await {
            return Ok(false);
        }
        self.replace(log, SessionReason::Resume).await?;
        Ok(true)
    }

    /// Reloads settings, models, resources and extensions, and continues the same session, wherever it is stored. Parts supplied by the
    /// caller are reloaded too.
    ///
    /// # Errors
    /// Fails if the session cannot be created again; it is left unchanged.
    pub fn reload(&mut self) -> BoxFuture<'_, Result<(), RuntimeError>> {
        Box::pin(async move {
            let log = self.current.session.log().reopen().await?;
            if let Some(settings) = &self.options.settings {
                settings.reload().await;
            }
            if let Some(models) = &self.options.models {
                self.current.notes.extend(models.refresh().iter().map(ToString::to_string));
            }
            if let crate::services::ResourceSource::Given(loader) = &mut self.options.resources {
                loader.reload();
            }
            self.replace(log, SessionReason::Reload).await
        })
    }

    /// Stores in `trust.json` whether the session's project is trusted. Takes effect with the next [`SessionRuntime::reload`], unless the
    /// caller has set the trust explicitly.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing was written.
    pub fn remember_trust(&self, trusted: bool) -> Result<(), ChangeError> {
        self.current.services.remember_trust(trusted)?;
        if let Some(prompt) = &self.session_options.trust_prompt {
            prompt.decided(self.current.services.cwd(), trusted);
        }
        Ok(())
    }

    async fn replace(&mut self, log: SessionLog, reason: SessionReason) -> Result<(), RuntimeError> {
        let mut options = SessionOptions { reason, ..self.session_options.clone() };
        if reason == SessionReason::Reload {
            let session = self.session();
            options.model = ModelChoice::Exact(Arc::clone(session.model()));
            options.thinking = Some(session.thinking());
        }
        // Write changed settings first, because they are read again.
        self.current.services.settings().flush().await;
        let services = Services::load_installing(&self.options, Path::new(log.cwd())).await;
        let target = log.path().filter(|_| reason != SessionReason::Reload).map(Path::to_owned);
        self.current.session.shut_down_for(reason, target.as_ref()).await;
        let problems = services.problems();
        let mut next = match prepare(services, log, &options).await {
            Ok(next) => next,
            Err(error) => {
                self.current.session.revive().await;
                return Err(not_created(problems)(error));
            }
        };
        self.end(reason).await;
        if reason != SessionReason::Reload {
            next.session.control().keep_switches_of(&self.current.session.control());
        }
        let previous = self.current.session.path().filter(|_| reason != SessionReason::Reload);
        std::mem::swap(&mut self.current, &mut next);
        // The old one no longer shows or asks anything.
        drop(next);
        self.choose_models();
        self.current.arrive(reason, previous).await;
        Ok(())
    }

    /// Closes the session: notifies and stops extensions, writes settings, stores logins. Call it before the program exits.
    pub fn close(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.end(SessionReason::Quit).await;
        })
    }

    async fn end(&mut self, reason: SessionReason) {
        self.current.session.shut_down(reason).await;
        self.current.session.control().extensions().close().await;
        self.current.services.settle().await;
    }

    /// Switches to a copy of the session up to an entry: see [`AgentSession::fork`].
    ///
    /// # Errors
    /// [`ForkError`]; the current session is kept.
    pub fn fork<'a>(
        &'a mut self,
        entry: &'a EntryId,
        place: ForkAt,
    ) -> BoxFuture<'a, Result<Option<String>, ForkError>> {
        Box::pin(async move { self.current.session.fork(entry, place).await })
    }
}

/// Why a session could not be created or switched to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The file does not exist.
    #[error("Session file not found: {}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The session's working directory no longer exists.
    #[error("Stored session working directory does not exist: {cwd}")]
    DirectoryGone {
        /// The directory.
        cwd: String,
        /// Path of the session's file.
        file: Option<PathBuf>,
    },
    /// The session cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session could not be created on its log.
    #[error("{source}")]
    Create {
        /// The cause.
        source: CreateError,
        /// Problems found in documents, as sentences for people; one of them may be the cause.
        problems: Vec<String>,
    },
}

/// Why [`SessionRuntime::ask`] has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The session could not continue.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The model failed after all retries.
    #[error("the model failed: {0}")]
    Failed(String),
    /// An extension handled the prompt, so no request was sent to a model.
    #[error("no request was sent to a model")]
    NoAnswer,
}
