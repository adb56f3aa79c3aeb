//! Sandbox settings for tools.

use super::SettingsReader;

/// Sandbox settings for the tools of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxDefaults {
    /// Name of a backend, `auto` or `none`.
    pub backend: String,
    /// Image for containers.
    pub image: String,
    /// Directory with the root file system for containers without images, as written.
    pub rootfs: Option<String>,
    /// Whether the working directory is writable.
    pub can_write: bool,
    /// Whether commands have unlimited network access.
    pub has_network: bool,
    /// Servers to which network access is limited, if it is limited to any.
    pub domains: Option<Vec<String>>,
    /// Whether servers are listed although network access is not limited to them.
    pub has_unused_domains: bool,
    /// Whether processes outside must be hidden.
    pub hides_processes: bool,
    /// Additional files and directories as written; `true` if they are writable.
    pub extra_roots: Vec<(String, bool)>,
}

impl SettingsReader<'_> {
    pub(super) fn sandbox(&self) -> SandboxDefaults {
        let roots = self.texts("sandbox.extraRoots").unwrap_or_default();
        let root = |text: String| match text.strip_suffix(":rw") {
            Some(path) => (path.to_owned(), true),
            None => (text.strip_suffix(":ro").unwrap_or(&text).to_owned(), false),
        };
        let domains = self.texts("sandbox.domains").unwrap_or_default();
        let is_limited = self.str("sandbox.network") == Some("domains");
        SandboxDefaults {
            has_unused_domains: !is_limited && !domains.is_empty(),
            domains: is_limited.then_some(domains),
            backend: self.text("sandbox.backend").unwrap_or_else(|| "none".to_owned()),
            image: self.text("sandbox.image").unwrap_or_default(),
            rootfs: self.text("sandbox.rootfs"),
            can_write: self.str("sandbox.workspaceAccess") == Some("rw"),
            has_network: self.str("sandbox.network") == Some("on"),
            hides_processes: self.flag("sandbox.hideProcesses"),
            extra_roots: roots.into_iter().map(root).collect(),
        }
    }
}
