//! What a container must not be given: directories of the system, the network of the host, profiles that confine nothing.

use std::path::{Component, Path, PathBuf};

use pinch_stdx::text::shortened;

/// Directories of the host that no container sees.
const BLOCKED: [&str; 10] =
    ["/etc", "/private/etc", "/proc", "/sys", "/dev", "/boot", "/root", "/run", "/var/run", "/private/var/run"];
/// Names below a home directory that hold keys, or programs that the user runs.
const BLOCKED_IN_HOME: [&str; 8] = [".aws", ".cargo", ".config", ".docker", ".gnupg", ".netrc", ".npm", ".ssh"];
/// Where a container has the agent's workspace, when it works elsewhere.
pub(crate) const AGENT_MOUNT: &str = "/agent";
/// Where a container has its workspaces.
const RESERVED: [&str; 2] = ["/workspace", AGENT_MOUNT];
/// Characters of a value that are repeated in an error at most.
const SHOWN: usize = 300;

/// Why a container is not created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerRefusal {
    /// The source of a bind, or its target, is not an absolute path.
    #[error("Sandbox security: bind {bind:?} needs an absolute source and an absolute target")]
    NonAbsolute {
        /// The bind.
        bind: String,
    },
    /// A bind shows a directory of the system, or one with keys.
    #[error("Sandbox security: bind {bind:?} shows {}, which no container may see", path.display())]
    BlockedPath {
        /// The bind.
        bind: String,
        /// The directory.
        path: PathBuf,
    },
    /// A bind shows everything.
    #[error("Sandbox security: bind {bind:?} shows the whole file system")]
    CoversRoot {
        /// The bind.
        bind: String,
    },
    /// A bind stands where the workspace is inside.
    #[error("Sandbox security: bind {bind:?} covers {target}, where the workspace is")]
    ReservedTarget {
        /// The bind.
        bind: String,
        /// What it covers.
        target: &'static str,
    },
    /// A bind shows something outside of the workspace.
    #[error(
        "Sandbox security: bind {bind:?} is outside of the workspace; to allow that, set docker.dangerouslyAllowExternalBindSources"
    )]
    OutsideRoots {
        /// The bind.
        bind: String,
    },
    /// The network is that of the host, or of another container.
    #[error("Sandbox security: network {network:?} is not isolated")]
    Network {
        /// The network.
        network: String,
    },
    /// A profile confines nothing.
    #[error("Sandbox security: {kind} profile {profile:?} confines nothing")]
    Profile {
        /// Of what it is one.
        kind: &'static str,
        /// The profile.
        profile: String,
    },
}

impl ContainerRefusal {
    /// The kind of refusal, as one word.
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

/// Where binds may lead.
#[derive(Clone, Debug, Default)]
pub struct BindRules {
    /// Directories whose contents may be shown.
    pub roots: Vec<PathBuf>,
    /// The home directory of the host's user: what holds keys in it is never shown.
    pub home: Option<PathBuf>,
    /// Whether anything else may be shown.
    pub allow_external: bool,
    /// Whether the workspace inside may be covered.
    pub allow_reserved_targets: bool,
}

impl BindRules {
    /// Checks a bind as it is written, and with the symbolic links in it resolved.
    ///
    /// # Errors
    /// [`ContainerRefusal`].
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
        let reserved = RESERVED.into_iter().find(|reserved| target.starts_with(reserved) || target == Path::new("/"));
        if let Some(target) = reserved.filter(|_| !self.allow_reserved_targets) {
            return Err(ContainerRefusal::ReservedTarget { bind: shown(), target });
        }
        let is_inside =
            |path: &Path| self.roots.iter().any(|root| path.starts_with(root) || path.starts_with(resolved(root)));
        let may_be_shown = self.allow_external || (is_inside(&written) && is_inside(&real));
        if !may_be_shown {
            return Err(ContainerRefusal::OutsideRoots { bind: shown() });
        }
        // A directory above a blocked one shows it, too.
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

/// Checks the network of a container.
///
/// # Errors
/// When it is that of the host or, unless that is allowed, of another container.
pub fn check_network(network: &str, allow_join: bool) -> Result<(), ContainerRefusal> {
    let word = network.trim().to_lowercase();
    let joins = word.starts_with("container:") || word.starts_with("ns:");
    match word == "host" || (joins && !allow_join) {
        true => Err(ContainerRefusal::Network { network: shortened(network, SHOWN).into_owned() }),
        false => Ok(()),
    }
}

/// Checks a seccomp or AppArmor profile of a container.
///
/// # Errors
/// When it confines nothing.
pub fn check_profile(kind: &'static str, profile: &str) -> Result<(), ContainerRefusal> {
    match profile.trim().eq_ignore_ascii_case("unconfined") {
        true => Err(ContainerRefusal::Profile { kind, profile: shortened(profile, SHOWN).into_owned() }),
        false => Ok(()),
    }
}

/// Takes `.` and `..` out of an absolute path by their spelling.
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

/// A path with the symbolic links of its existing part resolved.
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
