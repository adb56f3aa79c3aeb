//! Options for creating a session.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_agent_core::tool::Tool;
use pinch_llm::ids::SessionId;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_stdx::host::Host;

use crate::auth::AuthStorage;
use crate::extension::Extension;
use crate::models::ModelRegistry;
use crate::resources::ResourceLoader;
use crate::services::{ResourceOptions, ResourceSource, ServiceOptions};
use crate::session::SessionOptions;
use crate::session::create::ModelChoice;
use crate::settings::SettingsManager;
use crate::store::{SessionRef, SessionStore};

/// Options for [`create_agent_session`](super::create_agent_session).
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentSessionOptions {
    /// Agent directory, trust, and the parts that replace files.
    pub services: ServiceOptions,
    /// Model, thinking level, tools, hooks, extensions.
    pub session: SessionOptions,
    /// Working directory of a new session; a stored session has its own.
    pub cwd: PathBuf,
    /// Which session to open.
    pub target: SessionTarget,
    /// Id of a new session; `None` generates one.
    pub session_id: Option<SessionId>,
    /// Name to give to the session.
    pub name: Option<String>,
    /// Where sessions are stored; `None`: as JSONL files in `session_dir`, or in memory without an agent directory.
    pub store: Option<Arc<dyn SessionStore>>,
    /// Directory of session files; `None`: as configured in the settings, or else below the agent directory.
    pub session_dir: Option<PathBuf>,
}

/// Which session to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionTarget {
    /// A new session in the store.
    #[default]
    New,
    /// A new session outside any store: it ends with the program and cannot be switched back to.
    InMemory,
    /// The most recent session of the working directory, or a new one.
    MostRecent,
    /// A specific session. A missing file is created with the first message.
    Open(SessionRef),
    /// A specific session in the working directory of these options, instead of the one it records. The record is not changed.
    OpenHere(SessionRef),
    /// A new session copied from this one.
    Fork(SessionRef),
}

impl AgentSessionOptions {
    /// Creates options for a new session with the files of an agent directory: settings, credentials, models, resources, sessions.
    pub fn new(host: Host, cwd: impl Into<PathBuf>, agent_dir: impl Into<PathBuf>) -> Self {
        Self { services: ServiceOptions::new(host.clone(), agent_dir), ..Self::in_memory(host, cwd) }
    }

    /// Creates options for a new session without files: no settings, credentials or resources are read, and sessions are kept in memory.
    /// Supply the parts you need with the other methods.
    pub fn in_memory(host: Host, cwd: impl Into<PathBuf>) -> Self {
        Self {
            services: ServiceOptions::in_memory(host),
            session: SessionOptions::default(),
            cwd: cwd.into(),
            target: SessionTarget::default(),
            session_id: None,
            name: None,
            store: None,
            session_dir: None,
        }
    }

    /// Sets the session to open.
    #[must_use]
    pub fn open(mut self, target: SessionTarget) -> Self {
        self.target = target;
        self
    }

    /// Sets the model.
    #[must_use]
    pub fn model(mut self, model: impl Into<Arc<Model>>) -> Self {
        self.session.model = ModelChoice::Exact(model.into());
        self
    }

    /// Sets the model by pattern: an id, part of an id, or `provider/id`, optionally followed by `:` and a thinking level.
    #[must_use]
    pub fn model_named(mut self, pattern: impl Into<String>) -> Self {
        self.session.model = ModelChoice::Named { provider: None, pattern: pattern.into() };
        self
    }

    /// Sends requests to this provider instead of the model's server. The provider handles credentials itself.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.session.provider = Some(provider);
        self
    }

    /// Adds an active tool, which replaces a built-in one of the same name.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.session.custom_tools.push(Arc::new(tool));
        self
    }

    /// Adds an extension.
    #[must_use]
    pub fn extension(mut self, extension: Arc<dyn Extension>) -> Self {
        self.session.extensions.push(extension);
        self
    }

    /// Sets the stored credentials.
    #[must_use]
    pub fn auth(mut self, auth: AuthStorage) -> Self {
        self.services.auth = Some(auth);
        self
    }

    /// Sets the models.
    #[must_use]
    pub fn models(mut self, models: ModelRegistry) -> Self {
        self.services.models = Some(models);
        self
    }

    /// Sets the settings.
    #[must_use]
    pub fn settings(mut self, settings: SettingsManager) -> Self {
        self.services.settings = Some(settings);
        self
    }

    /// Sets the resources.
    #[must_use]
    pub fn resources(mut self, resources: ResourceLoader) -> Self {
        self.services.resources = ResourceSource::Given(Box::new(resources));
        self
    }

    /// Sets how resources are discovered.
    #[must_use]
    pub fn discover(mut self, options: ResourceOptions) -> Self {
        self.services.resources = ResourceSource::Discover(options);
        self
    }

    /// Sets the session store.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.store = Some(store);
        self
    }
}
