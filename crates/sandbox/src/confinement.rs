//! The requirements on a sandbox, and the guarantees of a backend.

use std::path::PathBuf;

use crate::config::SandboxConfig;
use crate::domains::{DomainList, InvalidDomain};
pub use crate::scope::PathAccess;

/// Network access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// No access.
    #[default]
    Off,
    /// Access to these servers only, through an HTTP proxy that commands find in their environment.
    Domains(DomainList),
    /// The same access as outside.
    On,
}

impl NetworkAccess {
    /// Returns the access that a configuration gives. An empty list of servers gives none.
    ///
    /// # Errors
    /// Fails if a server in the list is invalid.
    pub fn of(config: &SandboxConfig) -> Result<Self, InvalidDomain> {
        Ok(match (config.domains.as_deref(), config.container.network.trim()) {
            (Some([]), _) | (None, "none") => Self::Off,
            (Some(domains), _) => Self::Domains(DomainList::parse(domains)?),
            (None, _) => Self::On,
        })
    }
}

/// The requirements on a sandbox. Anything not listed is inaccessible, except system directories, which are readable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Confinement {
    /// The agent's working directory.
    pub workspace: PathBuf,
    /// Access to the workspace.
    pub access: PathAccess,
    /// Other files and directories.
    pub roots: Vec<(PathBuf, PathAccess)>,
    /// Home directory whose toolchains are usable: compilers, package caches and the git configuration, without keys.
    pub home: Option<PathBuf>,
    /// Network access.
    pub network: NetworkAccess,
    /// Whether processes outside must be hidden.
    pub hide_processes: bool,
    /// Limits of each process: names such as `nofile`, and `soft:hard` or one number for both. Backends with containers take theirs from the
    /// settings of the container instead.
    pub limits: Vec<(String, String)>,
}

impl Confinement {
    /// Requires a writable workspace, and nothing else.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: workspace.into(),
            access: PathAccess::Write,
            roots: Vec::new(),
            home: None,
            network: NetworkAccess::Off,
            hide_processes: false,
            limits: Vec::new(),
        }
    }

    /// Makes the workspace read-only.
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

    /// Makes the toolchains of a home directory usable.
    #[must_use]
    pub fn toolchains_of(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Sets the network access.
    #[must_use]
    pub fn network(mut self, network: NetworkAccess) -> Self {
        self.network = network;
        self
    }

    /// Requires that processes outside are hidden.
    #[must_use]
    pub fn hide_processes(mut self) -> Self {
        self.hide_processes = true;
        self
    }

    /// Sets the limits of each process.
    #[must_use]
    pub fn limits(mut self, limits: Vec<(String, String)>) -> Self {
        self.limits = limits;
        self
    }
}

/// The guarantees of a backend on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxGuarantees {
    /// Neither tools nor commands can read or change files outside. Names, sizes and times may be visible.
    pub files: bool,
    /// Commands cannot change permissions, owners and times of files outside.
    pub attributes: bool,
    /// Network access can be disabled.
    pub network: bool,
    /// Network access can be limited to a list of servers.
    pub domains: bool,
    /// Processes outside are hidden.
    pub processes: bool,
    /// Signals do not reach processes outside.
    pub signals: bool,
}

impl SandboxGuarantees {
    /// Returns what is not guaranteed, as it is reported to users.
    pub fn missing(&self) -> Vec<&'static str> {
        let all = [
            (self.files, "isolate files"),
            (self.attributes, "protect permissions, owners and times of files outside"),
            (self.network, "disable network access"),
            (self.domains, "limit network access to a list of servers"),
            (self.processes, "hide processes"),
            (self.signals, "block signals to processes outside"),
        ];
        all.into_iter().filter(|(is_guaranteed, _)| !is_guaranteed).map(|(_, what)| what).collect()
    }

    /// Returns the first requirement that is not guaranteed.
    pub fn lacks(&self, asked: &Confinement) -> Option<&'static str> {
        let needs = [
            (true, self.files, "isolate files"),
            (asked.network == NetworkAccess::Off, self.network, "disable network access"),
            (
                matches!(asked.network, NetworkAccess::Domains(_)),
                self.domains,
                "limit network access to a list of servers",
            ),
            (asked.hide_processes, self.processes, "hide processes"),
        ];
        needs.into_iter().find(|(is_asked, is_guaranteed, _)| *is_asked && !is_guaranteed).map(|(_, _, what)| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmet_requirements_are_named() {
        let all = SandboxGuarantees {
            files: true,
            attributes: true,
            network: true,
            domains: true,
            processes: true,
            signals: true,
        };
        let asked = Confinement::new("/w");
        assert_eq!(all.lacks(&asked), None);
        let no_network = SandboxGuarantees { network: false, ..all };
        assert_eq!(no_network.lacks(&asked), Some("disable network access"));
        assert_eq!(no_network.lacks(&asked.clone().network(NetworkAccess::On)), None);
        let no_domains = SandboxGuarantees { domains: false, ..all };
        let listed = asked.clone().network(NetworkAccess::Domains(DomainList::default()));
        assert_eq!(
            (no_domains.lacks(&listed), all.lacks(&listed)),
            (Some("limit network access to a list of servers"), None)
        );
        let visible = SandboxGuarantees { processes: false, ..all };
        assert_eq!((all.missing(), visible.missing()), (vec![], vec!["hide processes"]));
        assert_eq!(
            (visible.lacks(&asked), visible.lacks(&asked.clone().hide_processes())),
            (None, Some("hide processes"))
        );
    }
}
