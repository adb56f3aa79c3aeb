//! What a container is made of, beside what is asked of the sandbox.

use std::path::PathBuf;

use crate::config::ContainerConfig;
use crate::scope::{SandboxScope, WorkspaceAccess};

/// What a container is made of, beside what is asked of the sandbox.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ContainerOptions {
    /// Its image and its limits.
    pub config: ContainerConfig,
    /// Which sessions share it, and by which key.
    pub scope: (SandboxScope, String),
    /// The workspace of the agent, if it works in a copy, and what it may do there.
    pub agent_workspace: Option<(PathBuf, WorkspaceAccess)>,
    /// The home directory of the host's user: what holds keys in it is never bound.
    pub home: Option<PathBuf>,
    /// The variables of the host, of which the program gets those that are about it.
    pub env: Vec<(String, String)>,
    /// The present, in milliseconds.
    pub now_ms: i64,
}

impl ContainerOptions {
    /// A container of its own for whoever has this key.
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

    /// Sets which sessions share it.
    #[must_use]
    pub fn scope(mut self, scope: SandboxScope, key: impl Into<String>) -> Self {
        self.scope = (scope, key.into());
        self
    }

    /// Shows the workspace of an agent that works in a copy.
    #[must_use]
    pub fn agent_workspace(mut self, dir: impl Into<PathBuf>, access: WorkspaceAccess) -> Self {
        self.agent_workspace = Some((dir.into(), access));
        self
    }

    /// Describes the host: the home directory of its user, its variables, and the time in milliseconds.
    #[must_use]
    pub fn host(mut self, home: Option<PathBuf>, env: Vec<(String, String)>, now_ms: i64) -> Self {
        (self.home, self.env, self.now_ms) = (home, env, now_ms);
        self
    }
}
