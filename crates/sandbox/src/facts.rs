//! Facts about the sandbox for the model.

use std::path::PathBuf;

use crate::container::AGENT_MOUNT;
use crate::scope::WorkspaceAccess;

/// What a model is told about its sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxFacts {
    /// The working directory, on the host.
    pub workspace: PathBuf,
    /// Access to the agent's workspace.
    pub access: WorkspaceAccess,
    /// Where the agent's workspace is readable, if the model works elsewhere.
    pub agent_mount: Option<PathBuf>,
    /// URL for controlling the sandbox's browser.
    pub browser_bridge_url: Option<String>,
    /// URL that shows the browser's screen.
    pub browser_screen_url: Option<String>,
    /// Whether the model may control the host's browser.
    pub host_browser_allowed: bool,
    /// Level at which commands may leave the sandbox, if the sender may do that.
    pub elevated: Option<String>,
}

impl SandboxFacts {
    /// Describes a sandbox without a browser, from which no command may leave.
    pub fn new(workspace: PathBuf, access: WorkspaceAccess) -> Self {
        Self {
            workspace,
            access,
            agent_mount: (access == WorkspaceAccess::ReadOnly).then(|| PathBuf::from(AGENT_MOUNT)),
            browser_bridge_url: None,
            browser_screen_url: None,
            host_browser_allowed: false,
            elevated: None,
        }
    }

    /// Lets commands leave the sandbox if that is enabled and allowed for the sender.
    #[must_use]
    pub fn with_elevated(mut self, is_enabled: bool, is_allowed: bool, level: Option<&str>) -> Self {
        self.elevated = (is_enabled && is_allowed).then(|| level.unwrap_or("off").to_owned());
        self
    }
}
