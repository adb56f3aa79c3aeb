//! Options for creating services.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_stdx::host::Host;

use crate::auth::AuthStorage;
use crate::models::ModelRegistry;
use crate::resources::{CommandLinePaths, ResourceLoader, Without};
use crate::settings::SettingsManager;

/// Options for creating services: the files of the agent directory, or parts supplied by the caller instead.
///
/// Parts supplied by the caller are shared by all sessions of a runtime, whatever their directories.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// Clock, ids and environment.
    pub host: Host,
    /// The directory of the user's files. `None`: no file of the user or the project is read or written, and parts not supplied are empty
    /// or built-in.
    pub agent_dir: Option<PathBuf>,
    /// Stored credentials; `None`: those in `auth.json`. Keys in the environment of `host` apply in both cases.
    pub auth: Option<AuthStorage>,
    /// The models; `None`: the built-in catalog and `models.json`.
    pub models: Option<ModelRegistry>,
    /// The settings; `None`: `settings.json` of the user and, if trusted, of the project.
    pub settings: Option<SettingsManager>,
    /// Context files, skills, prompt templates, themes and extensions in files.
    pub resources: ResourceSource,
    /// Whether the project is trusted; `None`: as decided earlier, or else by the user's settings.
    pub trust: Option<bool>,
    /// Called for each missing package in the settings before it is installed, prior to starting the session: see
    /// [`super::Services::load_installing`]. `None`: missing packages are only reported.
    pub install_packages: Option<Announce>,
}

/// Where resources come from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ResourceSource {
    /// Discover them in the agent directory and the project.
    Discover(ResourceOptions),
    /// Use those loaded or created by the caller.
    Given(Box<ResourceLoader>),
}

impl Default for ResourceSource {
    fn default() -> Self {
        Self::Discover(ResourceOptions::default())
    }
}

/// Which resources are discovered. By default all of them.
#[derive(Clone, Debug, Default)]
pub struct ResourceOptions {
    /// Resources named for this run.
    pub paths: CommandLinePaths,
    /// Types of resources that are not discovered.
    pub without: Without,
    /// Replaces the default system prompt: a text, or the path of a file that holds it.
    pub system_prompt: Option<String>,
    /// Appended to the system prompt: texts, or paths of files that hold them.
    pub append_system_prompt: Vec<String>,
    /// Names of the skills to use; `*` matches anything. `None` uses all.
    pub skill_names: Option<Vec<String>>,
}

impl ServiceOptions {
    /// Creates options with the files of an agent directory, discovering everything in it and in the project.
    pub fn new(host: Host, agent_dir: impl Into<PathBuf>) -> Self {
        Self { agent_dir: Some(agent_dir.into()), ..Self::in_memory(host) }
    }

    /// Creates options without files: empty settings, no stored credentials, the built-in models, no resources.
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

    /// Returns how resources are discovered, or `None` if the caller supplied them.
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
    /// Creates a callback that receives the source of the package, as written in the settings or on the command line.
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
