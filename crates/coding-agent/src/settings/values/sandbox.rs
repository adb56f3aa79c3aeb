//! What keeps tools apart from the rest of the machine.

use super::SettingsReader;

/// What keeps the tools of a session apart from the rest of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxDefaults {
    /// The name of a backend, `auto` or `none`.
    pub backend: String,
    /// The image of containers.
    pub image: String,
    /// Whether the working directory can be changed.
    pub can_write: bool,
    /// Whether commands reach the network.
    pub has_network: bool,
    /// Other files and directories as they are written; `true`: they can be changed.
    pub extra_roots: Vec<(String, bool)>,
}

impl SettingsReader<'_> {
    pub(super) fn sandbox(&self) -> SandboxDefaults {
        let roots = self.texts("sandbox.extraRoots").unwrap_or_default();
        let root = |text: String| match text.strip_suffix(":rw") {
            Some(path) => (path.to_owned(), true),
            None => (text.strip_suffix(":ro").unwrap_or(&text).to_owned(), false),
        };
        SandboxDefaults {
            backend: self.text("sandbox.backend").unwrap_or_else(|| "none".to_owned()),
            image: self.text("sandbox.image").unwrap_or_default(),
            can_write: self.str("sandbox.workspaceAccess") == Some("rw"),
            has_network: self.str("sandbox.network") == Some("on"),
            extra_roots: roots.into_iter().map(root).collect(),
        }
    }
}
