//! What services are made from.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_stdx::host::Host;

use crate::resources::{CommandLinePaths, Without};

/// What services are made from. [`ServiceOptions::new`] has the usual values of all but two.
#[derive(Clone, Debug)]
pub struct ServiceOptions {
    /// Clock, ids and environment.
    pub host: Host,
    /// The folder of a user's documents.
    pub agent_dir: PathBuf,
    /// Whether the project is trusted; `None`: as it was decided before, and as the user's settings say.
    pub trust: Option<bool>,
    /// Resources that are named for this run.
    pub paths: CommandLinePaths,
    /// Kinds of resources that are not looked for.
    pub without: Without,
    /// Takes the place of the usual system prompt: a text, or a file that holds it.
    pub system_prompt: Option<String>,
    /// Put behind the system prompt: texts, or files that hold them.
    pub append_system_prompt: Vec<String>,
    /// Names of the skills that count; `*` stands for anything. `None`: all.
    pub skill_names: Option<Vec<String>>,
    /// Packages that are named and missing are installed before a session begins, and this is told of each: see
    /// [`super::Services::load_installing`]. `None`: they are reported only.
    pub install_packages: Option<Announce>,
}

impl ServiceOptions {
    /// Everything that is found counts.
    pub fn new(host: Host, agent_dir: impl Into<PathBuf>) -> Self {
        Self {
            host,
            agent_dir: agent_dir.into(),
            trust: None,
            paths: CommandLinePaths::default(),
            without: Without::default(),
            system_prompt: None,
            append_system_prompt: Vec::new(),
            skill_names: None,
            install_packages: None,
        }
    }
}

/// Is told of each package before it is installed, for that takes a while.
#[derive(Clone)]
pub struct Announce(
    #[cfg_attr(not(feature = "packages"), expect(dead_code, reason = "nothing is installed"))]
    Arc<dyn Fn(&str) + Send + Sync>,
);

impl Announce {
    /// Is called with what settings or the command line say of the package.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    #[cfg(feature = "packages")]
    pub(super) fn tell(&self, package: &str) {
        (self.0)(package);
    }
}

impl fmt::Debug for Announce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announce").finish_non_exhaustive()
    }
}
