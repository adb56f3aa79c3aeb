//! Checks on container options: system directories, the host's network and ineffective profiles are rejected.

use std::path::{Component, Path, PathBuf};

use pinch_stdx::text::shortened;

/// Host directories that are never mounted.
const BLOCKED: [&str; 10] =
    ["/etc", "/private/etc", "/proc", "/sys", "/dev", "/boot", "/root", "/run", "/var/run", "/private/var/run"];
/// Names in a home directory that contain keys or programs that the user runs.
const BLOCKED_IN_HOME: [&str; 8] = [".aws", ".cargo", ".config", ".docker", ".gnupg", ".netrc", ".npm", ".ssh"];
/// Path of the agent's workspace inside a container that works elsewhere.
pub const AGENT_MOUNT: &str = "/agent";
/// Paths of workspaces inside a container.
const RESERVED: [&str; 2] = ["/workspace", AGENT_MOUNT];
/// Maximum characters of a value repeated in an error.
const SHOWN: usize = 300;

/// Why a container is not created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerRefusal {
    /// The source or target of a bind is not an absolute path.
    #[error("Sandbox security: bind {bind:?} needs an absolute source and an absolute target")]
    NonAbsolute {
        /// The bind.
        bind: String,
    },
    /// A bind exposes a system directory, or one with keys.
    #[error("Sandbox security: bind {bind:?} exposes {}, which no container may access", path.display())]
    BlockedPath {
        /// The bind.
        bind: String,
        /// The directory.
        path: PathBuf,
    },
    /// A bind exposes the whole file system.
    #[error("Sandbox security: bind {bind:?} exposes the whole file system")]
    CoversRoot {
        /// The bind.
        bind: String,
    },
    /// A bind covers what the sandbox mounts itself, such as the workspace.
    #[error("Sandbox security: bind {bind:?} covers {}, which the sandbox mounts itself", target.display())]
    ReservedTarget {
        /// The bind.
        bind: String,
        /// The covered path.
        target: PathBuf,
    },
    /// A bind exposes something outside the workspace.
    #[error(
        "Sandbox security: bind {bind:?} is outside the workspace; to allow that, set docker.dangerouslyAllowExternalBindSources"
    )]
    OutsideRoots {
        /// The bind.
        bind: String,
    },
    /// The network is the host's or another container's.
    #[error("Sandbox security: network {network:?} is not isolated")]
    Network {
        /// The network.
        network: String,
    },
    /// A profile does not confine anything.
    #[error("Sandbox security: {kind} profile {profile:?} does not confine anything")]
    Profile {
        /// The kind of profile.
        kind: &'static str,
        /// The profile.
        profile: String,
    },
}

impl ContainerRefusal {
    /// Returns the kind of refusal as an identifier.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NonAbsolute { .. } => "non_absolute",
            Self::BlockedPath { .. } => "blocked_path",
            Self::CoversRoot { .. } => "covers_root",
            Self::ReservedTarget { .. } => "reserved_target",
            Self::OutsideRoots { .. } => "outside_roots",
            Self::Network { .. } => "network",
            Self::Profile { .. } => "profile",
        }
    }
}

/// Allowed sources and targets of binds.
#[derive(Clone, Debug, Default)]
pub struct BindRules {
    /// Directories whose contents may be mounted.
    pub roots: Vec<PathBuf>,
    /// Home directory of the host's user: directories in it that contain keys are never mounted.
    pub home: Option<PathBuf>,
    /// Whether other sources are allowed.
    pub allow_external: bool,
    /// Other paths inside that the sandbox mounts itself, such as the working directory.
    pub reserved: Vec<PathBuf>,
    /// Whether the workspace inside may be covered.
    pub allow_reserved_targets: bool,
}

impl BindRules {
    /// Checks a bind as written, and with its symbolic links resolved.
    ///
    /// # Errors
    /// Returns a [`ContainerRefusal`] if it is not allowed.
    pub fn check(&self, bind: &str) -> Result<(), ContainerRefusal> {
        let shown = || shortened(bind, SHOWN).into_owned();
        let mut parts = bind.trim().split(':');
        let (source, target) = (parts.next().unwrap_or_default().trim(), parts.next().unwrap_or_default().trim());
        if !source.starts_with('/') {
            return Err(ContainerRefusal::NonAbsolute { bind: shown() });
        }
        let written = normal(Path::new(source));
        let real = resolved(&written);
        for path in [&written, &real] {
            if path == Path::new("/") {
                return Err(ContainerRefusal::CoversRoot { bind: shown() });
            }
            if let Some(blocked) = self.blocked().find(|blocked| path.starts_with(blocked)) {
                return Err(ContainerRefusal::BlockedPath { bind: shown(), path: blocked });
            }
        }
        if !target.starts_with('/') {
            return Err(ContainerRefusal::NonAbsolute { bind: shown() });
        }
        let target = normal(Path::new(target));
        // Below a parent of such a path, it is mounted on its own.
        let mut all = RESERVED.iter().map(Path::new).chain(self.reserved.iter().map(PathBuf::as_path));
        let reserved = all.find(|reserved| target.starts_with(reserved) || target == Path::new("/"));
        if let Some(target) = reserved.filter(|_| !self.allow_reserved_targets) {
            return Err(ContainerRefusal::ReservedTarget { bind: shown(), target: target.to_owned() });
        }
        let is_inside =
            |path: &Path| self.roots.iter().any(|root| path.starts_with(root) || path.starts_with(resolved(root)));
        let may_be_shown = self.allow_external || (is_inside(&written) && is_inside(&real));
        if !may_be_shown {
            return Err(ContainerRefusal::OutsideRoots { bind: shown() });
        }
        // A parent of a blocked directory would expose it.
        match self.blocked().find(|blocked| blocked.starts_with(&written) || blocked.starts_with(&real)) {
            Some(path) => Err(ContainerRefusal::BlockedPath { bind: shown(), path }),
            None => Ok(()),
        }
    }

    fn blocked(&self) -> impl Iterator<Item = PathBuf> {
        let homes = self.home.iter().flat_map(|home| [normal(home), resolved(home)]);
        let in_homes = homes.flat_map(|home| BLOCKED_IN_HOME.map(|name| home.join(name)));
        BLOCKED.into_iter().map(PathBuf::from).chain(in_homes)
    }
}

/// Checks a container's network.
///
/// # Errors
/// Fails if it is the host's or, unless allowed, another container's.
pub fn check_network(network: &str, allow_join: bool) -> Result<(), ContainerRefusal> {
    let word = network.trim().to_lowercase();
    let joins = word.starts_with("container:") || word.starts_with("ns:");
    match word == "host" || (joins && !allow_join) {
        true => Err(ContainerRefusal::Network { network: shortened(network, SHOWN).into_owned() }),
        false => Ok(()),
    }
}

/// Checks a container's seccomp or AppArmor profile.
///
/// # Errors
/// Fails if it does not confine anything.
pub fn check_profile(kind: &'static str, profile: &str) -> Result<(), ContainerRefusal> {
    match profile.trim().eq_ignore_ascii_case("unconfined") {
        true => Err(ContainerRefusal::Profile { kind, profile: shortened(profile, SHOWN).into_owned() }),
        false => Ok(()),
    }
}

/// Resolves `.` and `..` in an absolute path lexically.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::Normal(name) => normal.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    normal
}

/// Resolves the symbolic links in the existing part of a path.
fn resolved(path: &Path) -> PathBuf {
    let mut above = path;
    let mut rest = Vec::new();
    loop {
        if let Ok(real) = above.canonicalize() {
            return rest.iter().rev().fold(real, |path: PathBuf, name| path.join(name));
        }
        match (above.parent(), above.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                above = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
