//! What a session may do at most, whatever else is configured.

use super::rules::ToolRules;

/// What a session may do at most. A configuration can only restrict it further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionMode {
    /// Files of the workspace are read. Nothing is changed, and no command runs.
    ReadOnly,
    /// Files of the workspace are read and changed. A person is asked about commands that are not allowed yet.
    Guarded,
    /// The same. A reviewer is asked about commands first; without one, a person is.
    Workspace,
    /// Nothing is restricted by the mode. Commands for which nothing is configured run unasked.
    Full,
}

/// Built-in tools that change something.
const CHANGING: [&str; 5] = ["write", "edit", "apply_patch", "exec", "process"];

impl PermissionMode {
    /// The name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Guarded => "guarded",
            Self::Workspace => "workspace",
            Self::Full => "full",
        }
    }

    /// Whether the tools for files see the workspace alone.
    pub fn is_rooted(self) -> bool {
        self != Self::Full
    }

    /// The tools that a session in this mode is not offered.
    pub(super) fn rules(self) -> ToolRules {
        let deny = match self {
            Self::ReadOnly => CHANGING.map(str::to_owned).to_vec(),
            Self::Guarded | Self::Workspace | Self::Full => Vec::new(),
        };
        ToolRules { allow: None, deny }
    }
}
