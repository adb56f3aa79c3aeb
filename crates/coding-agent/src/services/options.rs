//! What services are made from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_stdx::host::Host;

use crate::auth::AuthStorage;
use crate::models::ModelRegistry;
use crate::resources::{CommandLinePaths, ResourceLoader, Without};
use crate::settings::SettingsManager;

/// What services are made from: files of the agent directory, and in their place whatever the caller gives.
///
/// Parts that the caller gives are shared by all sessions of a runtime, whichever directory they work in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// Clock, ids and environment.
    pub host: Host,
    /// The directory of the user's files. `None`: no file of the user or of the project is read or written, and every part that is not given
    /// is empty or the built-in one.
    pub agent_dir: Option<PathBuf>,
    /// Stored credentials; `None`: those in `auth.json`. Keys in the environment of `host` count in both cases.
    pub auth: Option<AuthStorage>,
    /// The models; `None`: the built-in catalog and `models.json`.
    pub models: Option<ModelRegistry>,
    /// The settings; `None`: `settings.json` of the user and, when it is trusted, of the project.
    pub settings: Option<SettingsManager>,
    /// Context files, skills, prompt templates, themes and extensions in files.
    pub resources: ResourceSource,
    /// Whether the project is trusted; `None`: as decided earlier, else as the user's settings say.
    pub trust: Option<bool>,
    /// Packages that settings name and that are missing are installed before the session starts, and this is called for each: see
    /// [`super::Services::load_installing`]. `None`: they are only reported.
    pub install_packages: Option<Announce>,
}

/// Where resources come from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ResourceSource {
    /// They are looked up in the agent directory and in the project.
    Discover(ResourceOptions),
    /// The caller has loaded or made them.
    Given(Box<ResourceLoader>),
}

impl Default for ResourceSource {
    fn default() -> Self {
        Self::Discover(ResourceOptions::default())
    }
}

/// What is looked up as resources. The default is everything.
#[derive(Clone, Debug, Default)]
pub struct ResourceOptions {
    /// Resources that are named for this run.
    pub paths: CommandLinePaths,
    /// Kinds of resources that are not looked up.
    pub without: Without,
    /// Replaces the default system prompt: a text, or the path of a file that holds it.
    pub system_prompt: Option<String>,
    /// Appended to the system prompt: texts, or paths of files that hold them.
    pub append_system_prompt: Vec<String>,
    /// Names of the skills to use; `*` matches anything. `None`: all.
    pub skill_names: Option<Vec<String>>,
}

impl ServiceOptions {
    /// The files of an agent directory, and everything that is found in them and in the project.
    pub fn new(host: Host, agent_dir: impl Into<PathBuf>) -> Self {
        Self { agent_dir: Some(agent_dir.into()), ..Self::in_memory(host) }
    }

    /// No files at all: empty settings, no stored credentials, the built-in models, no resources.
    pub fn in_memory(host: Host) -> Self {
        Self {
            host,
            agent_dir: None,
            auth: None,
            models: None,
            settings: None,
            resources: ResourceSource::default(),
            trust: None,
            install_packages: None,
        }
    }

    /// What is looked up as resources; `None` when the caller gave them.
    pub fn discovery(&self) -> Option<&ResourceOptions> {
        match &self.resources {
            ResourceSource::Discover(options) => Some(options),
            ResourceSource::Given(_) => None,
        }
    }
}

/// Called with the name of each package before it is installed, because that takes a while.
#[derive(Clone)]
pub struct Announce(
    #[cfg_attr(not(feature = "packages"), expect(dead_code, reason = "nothing is installed"))]
    Arc<dyn Fn(&str) + Send + Sync>,
);

impl Announce {
    /// Calls `announce` with the source of the package, as settings or the command line name it.
    pub fn new(announce: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(announce))
    }

    #[cfg(feature = "packages")]
    pub(super) fn announce(&self, package: &str) {
        (self.0)(package);
    }
}

impl fmt::Debug for Announce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announce").finish_non_exhaustive()
    }
}
