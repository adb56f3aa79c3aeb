//! What is asked of a sandbox, and what a backend guarantees.

use std::path::PathBuf;

/// What may be done below a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAccess {
    /// Files may be read and run.
    Read,
    /// Files may be changed, too.
    Write,
}

/// Whether the network can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// It cannot.
    #[default]
    Off,
    /// It can, as from outside.
    On,
}

/// What is asked of a sandbox. Everything that is not named here is out of reach, except the directories of the system, which can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Confinement {
    /// The directory that the agent works in.
    pub workspace: PathBuf,
    /// What it may do there.
    pub access: PathAccess,
    /// Other files and directories.
    pub roots: Vec<(PathBuf, PathAccess)>,
    /// A home directory whose toolchains can be used: compilers, package caches and the configuration of git, without keys.
    pub home: Option<PathBuf>,
    /// Whether it reaches the network.
    pub network: NetworkAccess,
    /// Whether it must not see the processes outside.
    pub hide_processes: bool,
}

impl Confinement {
    /// A workspace that can be changed, and nothing else.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            access: PathAccess::Write,
            roots: Vec::new(),
            home: None,
            network: NetworkAccess::Off,
            hide_processes: false,
        }
    }

    /// Keeps the workspace from being changed.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.access = PathAccess::Read;
        self
    }

    /// Adds a file or directory.
    #[must_use]
    pub fn root(mut self, path: impl Into<PathBuf>, access: PathAccess) -> Self {
        self.roots.push((path.into(), access));
        self
    }

    /// Lets the toolchains of a home directory be used.
    #[must_use]
    pub fn toolchains_of(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Lets the network be reached.
    #[must_use]
    pub fn network(mut self, network: NetworkAccess) -> Self {
        self.network = network;
        self
    }

    /// Asks for processes outside not to be seen.
    #[must_use]
    pub fn hide_processes(mut self) -> Self {
        self.hide_processes = true;
        self
    }
}

/// What a backend guarantees on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxGuarantees {
    /// Files outside can be neither read nor changed, by tools or by commands. Their names, sizes and times may be visible.
    pub files: bool,
    /// The network can be switched off.
    pub network: bool,
    /// Processes outside are not visible.
    pub processes: bool,
    /// Signals do not reach processes outside.
    pub signals: bool,
}

impl SandboxGuarantees {
    /// The first thing that is asked for and not guaranteed.
    pub fn lacks(&self, asked: &Confinement) -> Option<&'static str> {
        let needs = [
            (true, self.files, "keep files apart"),
            (asked.network == NetworkAccess::Off, self.network, "switch the network off"),
            (asked.hide_processes, self.processes, "hide processes"),
        ];
        needs.into_iter().find(|(is_asked, is_guaranteed, _)| *is_asked && !is_guaranteed).map(|(_, _, what)| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_and_not_guaranteed_is_named() {
        let all = SandboxGuarantees { files: true, network: true, processes: true, signals: true };
        let asked = Confinement::new("/w");
        assert_eq!(all.lacks(&asked), None);
        let no_network = SandboxGuarantees { network: false, ..all };
        assert_eq!(no_network.lacks(&asked), Some("switch the network off"));
        assert_eq!(no_network.lacks(&asked.clone().network(NetworkAccess::On)), None);
        let visible = SandboxGuarantees { processes: false, ..all };
        assert_eq!(
            (visible.lacks(&asked), visible.lacks(&asked.clone().hide_processes())),
            (None, Some("hide processes"))
        );
    }
}
