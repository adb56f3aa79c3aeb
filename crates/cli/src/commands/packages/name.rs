//! The names of package commands.

/// A package command's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackageCommandName {
    Install,
    Remove,
    Update,
    List,
    Config,
}

impl PackageCommandName {
    pub(super) const ALL: [Self; 5] = [Self::Install, Self::Remove, Self::Update, Self::List, Self::Config];

    pub(super) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "install" => Self::Install,
            "remove" | "uninstall" => Self::Remove,
            "update" => Self::Update,
            "list" => Self::List,
            "config" => Self::Config,
            _ => return None,
        })
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Remove => "remove",
            Self::Update => "update",
            Self::List => "list",
            Self::Config => "config",
        }
    }
}
