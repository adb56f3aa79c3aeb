//! Options of a container beyond the sandbox's requirements.

use std::path::PathBuf;

use crate::config::ContainerConfig;
use crate::scope::{SandboxScope, WorkspaceAccess};

/// Options of a container beyond the sandbox's requirements.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ContainerOptions {
    /// Image and limits.
    pub config: ContainerConfig,
    /// Which sessions share it, and their key.
    pub scope: (SandboxScope, String),
    /// The agent's workspace, if it works in a copy, and the access to it.
    pub agent_workspace: Option<(PathBuf, WorkspaceAccess)>,
    /// Home directory of the host's user: directories in it that contain keys are never mounted.
    pub home: Option<PathBuf>,
    /// Host variables, from which the client gets those that concern it.
    pub env: Vec<(String, String)>,
    /// Current time in Unix milliseconds.
    pub now_ms: i64,
}

impl ContainerOptions {
    /// Creates options for a container that is used under this key only.
    pub fn new(config: ContainerConfig, key: impl Into<String>) -> Self {
        Self {
            config,
            scope: (SandboxScope::Session, key.into()),
            agent_workspace: None,
            home: None,
            env: Vec::new(),
            now_ms: 0,
        }
    }

    /// Sets which sessions share the container.
    #[must_use]
    pub fn scope(mut self, scope: SandboxScope, key: impl Into<String>) -> Self {
        self.scope = (scope, key.into());
        self
    }

    /// Mounts the workspace of an agent that works in a copy.
    #[must_use]
    pub fn agent_workspace(mut self, dir: impl Into<PathBuf>, access: WorkspaceAccess) -> Self {
        self.agent_workspace = Some((dir.into(), access));
        self
    }

    /// Describes the host: its user's home directory, its variables, and the current time in milliseconds.
    #[must_use]
    pub fn host(mut self, home: Option<PathBuf>, env: Vec<(String, String)>, now_ms: i64) -> Self {
        (self.home, self.env, self.now_ms) = (home, env, now_ms);
        self
    }
}
