//! The files visible in a sandbox.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::confinement::{Confinement, NetworkAccess, PathAccess};

mod package_managers;

/// Files by which root changes the whole machine. The names below them are not the sandbox's own.
pub(crate) const KERNEL_FILES: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/// Readable system directories, where they exist.
const SYSTEM: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store"];
/// The parts of `/etc` that programs need and that contain no secrets.
const ETC: [&str; 33] = [
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/default/locale",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/inputrc",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/java",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/profile",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];
/// Further files needed for network access.
const ETC_NETWORK: [&str; 4] = ["/etc/hosts", "/etc/resolv.conf", "/etc/gai.conf", "/run/systemd/resolve"];
/// The parts of a home directory that compilers and package managers need, without keys.
const TOOLCHAINS: [&str; 19] = [
    ".bun/bin",
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".config/git/attributes",
    ".config/git/config",
    ".config/git/ignore",
    ".deno/bin",
    ".gitconfig",
    ".local/bin",
    ".local/lib",
    ".nvm",
    ".pyenv",
    ".rustup",
    ".volta",
    "go/bin",
    "go/pkg",
];

/// Files that compilers and test runners look for in all directories above their own. They fail if one is unreadable.
const ABOVE: [&str; 13] = [
    ".cargo/config",
    ".cargo/config.toml",
    ".editorconfig",
    "Cargo.toml",
    "go.mod",
    "go.work",
    "package.json",
    "pyproject.toml",
    "pytest.ini",
    "rust-toolchain",
    "rust-toolchain.toml",
    "setup.cfg",
    "tsconfig.json",
];

/// The files visible in a sandbox, and a private directory for temporary files, removed on drop.
#[derive(Debug)]
pub(crate) struct SandboxView {
    /// Readable files and directories.
    pub(crate) readable: Vec<PathBuf>,
    /// Writable files and directories.
    pub(crate) writable: Vec<PathBuf>,
    /// Both, as named and with links resolved: system directories are often links.
    visible: Vec<PathBuf>,
    workspace: PathBuf,
    private: PrivateDir,
}

/// A directory for temporary files, removed on drop. It is locked, so that others are recognized as left behind.
#[derive(Debug)]
struct PrivateDir {
    dir: TempDir,
    _lock: File,
}

impl SandboxView {
    /// Creates a view of the requested files without system directories, since a container has its own.
    pub(crate) fn of_container(asked: &Confinement) -> io::Result<Self> {
        let private = PrivateDir::create()?;
        if rustix::process::geteuid().is_root() {
            // Commands run as the owner of the workspace.
            let owner = asked.workspace.metadata()?;
            for dir in [private.path(), &private.path().join(HOME)] {
                std::os::unix::fs::chown(dir, Some(owner.uid()), Some(owner.gid()))?;
            }
        }
        let mut view = Self {
            readable: Vec::new(),
            writable: vec![private.path().canonicalize()?],
            visible: Vec::new(),
            workspace: asked.workspace.canonicalize()?,
            private,
        };
        view.add_asked(asked)?;
        Ok(view)
    }

    /// Creates the requested view.
    pub(crate) fn new(asked: &Confinement) -> io::Result<Self> {
        let private = PrivateDir::create()?;
        let home = private.path().join(HOME);
        let workspace = asked.workspace.canonicalize()?;
        let mut view = Self {
            readable: SYSTEM.iter().chain(&ETC).map(PathBuf::from).collect(),
            writable: vec![private.path().canonicalize()?],
            visible: Vec::new(),
            workspace: workspace.clone(),
            private,
        };
        if asked.network == NetworkAccess::On {
            view.readable.extend(ETC_NETWORK.map(PathBuf::from));
        }
        if let Some(real_home) = &asked.home {
            view.readable.extend(link_toolchains(real_home, &home)?);
            package_managers::copy_configuration(Path::new("/"), real_home, &home)?;
        }
        let above = workspace.ancestors().skip(1).flat_map(|dir| ABOVE.map(|name| dir.join(name)));
        // The target of a link may be anything.
        let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        view.readable.extend(above.filter(is_file));
        view.add_asked(asked)?;
        Ok(view)
    }

    /// Adds the workspace and other roots.
    fn add_asked(&mut self, asked: &Confinement) -> io::Result<()> {
        self.add(self.workspace.clone(), asked.access);
        for (path, access) in &asked.roots {
            self.add(path.canonicalize()?, *access);
        }
        self.readable.retain(|path| path.exists());
        let named = self.readable.iter().chain(&self.writable);
        self.visible = named.flat_map(|path| [Some(path.clone()), path.canonicalize().ok()]).flatten().collect();
        self.visible.sort_unstable();
        self.visible.dedup();
        Ok(())
    }

    fn add(&mut self, path: PathBuf, access: PathAccess) {
        match access {
            PathAccess::Read => self.readable.push(path),
            PathAccess::Write => self.writable.push(path),
        }
    }

    /// Returns the directory for temporary files.
    pub(crate) fn private(&self) -> &Path {
        self.private.path()
    }

    /// Returns the parent directory of the workspace, unless it is visible itself.
    pub(crate) fn above_workspace(&self) -> Option<&Path> {
        self.workspace.parent().filter(|above| !self.contains(above))
    }

    /// Returns whether a path is visible, but cannot be changed.
    pub(crate) fn is_read_only(&self, path: &Path) -> bool {
        let is_writable =
            |root: &PathBuf| path.starts_with(root) || root.canonicalize().is_ok_and(|root| path.starts_with(root));
        self.contains(path) && !self.writable.iter().any(is_writable)
    }

    /// Returns whether a path is visible.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.visible.iter().any(|root| path.starts_with(root))
    }
}

/// Name of the home directory within the private one.
const HOME: &str = "home";

/// Prefix of the names of private directories.
const PREFIX: &str = "pinch-sandbox-dir-";
/// Age below which a private directory may be about to be locked.
const YOUNG: Duration = Duration::from_secs(60 * 60);

impl PrivateDir {
    /// Creates a directory with an empty home directory.
    fn create() -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let lock = File::open(dir.path())?;
        lock.try_lock()?;
        std::fs::create_dir(dir.path().join(HOME))?;
        Ok(Self { dir, _lock: lock })
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the private directories of programs that were killed.
pub(crate) async fn prune_directories() {
    let prune = || remove_abandoned(&tempfile::env::temp_dir(), YOUNG);
    drop(tokio::task::spawn_blocking(prune).await);
}

fn remove_abandoned(dir: &Path, young: Duration) {
    let is_old = |meta: &Metadata| meta.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= young));
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_private = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && is_old(&meta));
        // Those of other users cannot be opened.
        if is_private && File::open(entry.path()).is_ok_and(|dir| dir.try_lock().is_ok()) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

/// Links the toolchains of a home directory into the sandbox's, which is otherwise writable. Returns the targets.
fn link_toolchains(real_home: &Path, home: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in TOOLCHAINS {
        let Ok(target) = real_home.join(name).canonicalize() else { continue };
        let link = home.join(name);
        if let Some(parent) = link.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::os::unix::fs::symlink(&target, link)?;
        found.push(target);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_programs_are_removed() {
        let kept = PrivateDir::create().unwrap();
        let dir = kept.path().parent().unwrap();
        let abandoned = tempfile::Builder::new().prefix(PREFIX).tempdir_in(dir).unwrap().keep();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), abandoned.join("link")).unwrap();
        std::fs::write(outside.path().join("file"), "kept").unwrap();
        remove_abandoned(dir, YOUNG);
        assert!(abandoned.exists(), "it is too young");
        remove_abandoned(dir, Duration::ZERO);
        assert!(!abandoned.exists() && kept.path().exists() && outside.path().join("file").exists());
    }
}
