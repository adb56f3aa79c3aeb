//! What a model is told about the sandbox that it works in.

use std::path::PathBuf;

use crate::container::AGENT_MOUNT;
use crate::scope::WorkspaceAccess;

/// What a model is told about the sandbox that it works in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxFacts {
    /// The directory it works in, on the host.
    pub workspace: PathBuf,
    /// What it may do in the agent's workspace.
    pub access: WorkspaceAccess,
    /// Where it reads the agent's workspace, if it works elsewhere.
    pub agent_mount: Option<&'static str>,
    /// Where the browser of the sandbox is controlled.
    pub browser_bridge_url: Option<String>,
    /// Where the screen of that browser is shown.
    pub browser_screen_url: Option<String>,
    /// Whether it may control the host's browser.
    pub host_browser_allowed: bool,
    /// With which level commands may leave the sandbox, if the sender may have them leave it.
    pub elevated: Option<String>,
}

impl SandboxFacts {
    /// A sandbox without a browser, that nothing leaves.
    pub fn new(workspace: PathBuf, access: WorkspaceAccess) -> Self {
        Self {
            workspace,
            access,
            agent_mount: (access == WorkspaceAccess::ReadOnly).then_some(AGENT_MOUNT),
            browser_bridge_url: None,
            browser_screen_url: None,
            host_browser_allowed: false,
            elevated: None,
        }
    }

    /// Lets commands leave the sandbox, where that is both switched on and allowed to the sender.
    #[must_use]
    pub fn with_elevated(mut self, is_enabled: bool, is_allowed: bool, level: Option<&str>) -> Self {
        self.elevated = (is_enabled && is_allowed).then(|| level.unwrap_or("off").to_owned());
        self
    }
}
