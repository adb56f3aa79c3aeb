//! Permission modes, which limit a session regardless of other configuration.

use super::rules::ToolRules;

/// An upper limit on what a session may do. The configuration can only restrict it further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermissionMode {
    /// Read files in the workspace. No changes and no commands.
    ReadOnly,
    /// Read and change files in the workspace. Commands need a person's approval unless already allowed.
    Guarded,
    /// Like `Guarded`, but a reviewer is asked about commands first, if there is one.
    Workspace,
    /// No limits. Commands without configured rules run without asking.
    Full,
}

/// Built-in tools that can change something.
const CHANGING: [&str; 5] = ["write", "edit", "apply_patch", "exec", "process"];

impl PermissionMode {
    /// All modes, strictest first.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::Guarded, Self::Workspace, Self::Full];

    /// Parses the name of a mode; `None` if it is unknown.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Returns the stricter of two modes.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        self.min(other)
    }

    /// Returns the name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Guarded => "guarded",
            Self::Workspace => "workspace",
            Self::Full => "full",
        }
    }

    /// Returns whether file tools are restricted to the workspace.
    pub fn is_rooted(self) -> bool {
        self != Self::Full
    }

    /// Returns the rules that remove tools in this mode.
    pub(super) fn rules(self) -> ToolRules {
        let deny = match self {
            Self::ReadOnly => CHANGING.map(str::to_owned).to_vec(),
            Self::Guarded | Self::Workspace | Self::Full => Vec::new(),
        };
        ToolRules { allow: None, deny }
    }
}
