//! The files visible in a sandbox.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::confinement::{Confinement, NetworkAccess, PathAccess};

/// Files by which root changes the whole machine. The names below them are not the sandbox's own.
pub(crate) const KERNEL_FILES: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/// Readable system directories, where they exist.
const SYSTEM: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store"];
/// The parts of `/etc` that programs need and that contain no secrets.
const ETC: [&str; 29] = [
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
    "/etc/pki",
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
    private: TempDir,
}

impl SandboxView {
    /// Creates a view of the requested files without system directories, since a container has its own.
    pub(crate) fn of_container(asked: &Confinement) -> io::Result<Self> {
        let private = private_dir()?;
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
        let private = private_dir()?;
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

    /// Returns whether a path is visible.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.visible.iter().any(|root| path.starts_with(root))
    }
}

/// Name of the home directory within the private one.
const HOME: &str = "home";

/// Creates a directory for temporary files, with an empty home directory.
fn private_dir() -> io::Result<TempDir> {
    let private = tempfile::Builder::new().prefix("pinch-sandbox-").tempdir()?;
    std::fs::create_dir(private.path().join(HOME))?;
    Ok(private)
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
