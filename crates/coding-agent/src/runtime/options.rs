//! What a session is created from.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_agent_core::tool::Tool;
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

/// What [`create_agent_session`](super::create_agent_session) creates a session from.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentSessionOptions {
    /// Agent directory, trust, and the parts that replace its files.
    pub services: ServiceOptions,
    /// Model, thinking level, tools, hooks, extensions.
    pub session: SessionOptions,
    /// The working directory of a new session; a stored session has its own.
    pub cwd: PathBuf,
    /// Which session to open.
    pub target: SessionTarget,
    /// The id of a new session; `None`: a fresh one.
    pub session_id: Option<String>,
    /// The name to give to the session.
    pub name: Option<String>,
    /// Where sessions are kept; `None`: as JSONL files in `session_dir`, or in memory when there is no agent directory.
    pub store: Option<Arc<dyn SessionStore>>,
    /// The directory of session files; `None`: as the settings say, else below the agent directory.
    pub session_dir: Option<PathBuf>,
}

/// Which session to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionTarget {
    /// A new session in the store.
    #[default]
    New,
    /// A new session that no store has: it ends with the program and cannot be switched back to.
    InMemory,
    /// The most recent session of the working directory, or a new one.
    MostRecent,
    /// This session. A file that does not exist is created with the first message.
    Open(SessionRef),
    /// A new session that is a copy of this one.
    Fork(SessionRef),
}

impl AgentSessionOptions {
    /// A new session in a working directory with the files of an agent directory: settings, credentials, models, resources, sessions.
    pub fn new(host: Host, cwd: impl Into<PathBuf>, agent_dir: impl Into<PathBuf>) -> Self {
        Self { services: ServiceOptions::new(host.clone(), agent_dir), ..Self::in_memory(host, cwd) }
    }

    /// A new session without any files: no settings, credentials or resources are read, and sessions are kept in memory. What is needed is
    /// given by the other functions.
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

    /// Opens this session.
    #[must_use]
    pub fn open(mut self, target: SessionTarget) -> Self {
        self.target = target;
        self
    }

    /// Uses this model.
    #[must_use]
    pub fn model(mut self, model: impl Into<Arc<Model>>) -> Self {
        self.session.model = ModelChoice::Exact(model.into());
        self
    }

    /// Uses the model that a pattern names: an id, a part of one, or `provider/id`, optionally with `:` and a thinking level.
    #[must_use]
    pub fn model_named(mut self, pattern: impl Into<String>) -> Self {
        self.session.model = ModelChoice::Named { provider: None, pattern: pattern.into() };
        self
    }

    /// Sends requests to this provider in place of the server that the model names. Credentials are its own business.
    #[must_use]
    pub fn provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.session.provider = Some(provider);
        self
    }

    /// Adds a tool. It is active, and replaces a built-in one of the same name.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.session.custom_tools.push(tool);
        self
    }

    /// Adds an extension.
    #[must_use]
    pub fn extension(mut self, extension: Arc<dyn Extension>) -> Self {
        self.session.extensions.push(extension);
        self
    }

    /// Uses stored credentials of the caller.
    #[must_use]
    pub fn auth(mut self, auth: AuthStorage) -> Self {
        self.services.auth = Some(auth);
        self
    }

    /// Uses models of the caller.
    #[must_use]
    pub fn models(mut self, models: ModelRegistry) -> Self {
        self.services.models = Some(models);
        self
    }

    /// Uses settings of the caller.
    #[must_use]
    pub fn settings(mut self, settings: SettingsManager) -> Self {
        self.services.settings = Some(settings);
        self
    }

    /// Uses resources of the caller.
    #[must_use]
    pub fn resources(mut self, resources: ResourceLoader) -> Self {
        self.services.resources = ResourceSource::Given(Box::new(resources));
        self
    }

    /// Looks up resources this way.
    #[must_use]
    pub fn discover(mut self, options: ResourceOptions) -> Self {
        self.services.resources = ResourceSource::Discover(options);
        self
    }

    /// Keeps sessions in a store of the caller.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.store = Some(store);
        self
    }
}
