//! The files that a sandbox sees.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::confinement::{Confinement, NetworkAccess, PathAccess};

/// Directories of the system that can be read, where they exist.
const SYSTEM: [&str; 9] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store"];
/// What of `/etc` programs need, and holds no secret.
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
/// What else is needed where the network can be reached.
const ETC_NETWORK: [&str; 4] = ["/etc/hosts", "/etc/resolv.conf", "/etc/gai.conf", "/run/systemd/resolve"];
/// What of a home directory compilers and package managers need, without keys.
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

/// Files that compilers and test runners look for in all directories above the one they work in. They stop at one that they cannot read.
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

/// The files that a sandbox sees, and a directory of its own for temporary ones, which is removed with this.
#[derive(Debug)]
pub(crate) struct SandboxView {
    /// Files and directories that can be read.
    pub(crate) readable: Vec<PathBuf>,
    /// Those that can be changed.
    pub(crate) writable: Vec<PathBuf>,
    /// Both, as they are named and as they really are: the directories of the system are often links.
    seen: Vec<PathBuf>,
    workspace: PathBuf,
    private: TempDir,
}

impl SandboxView {
    /// The view that is asked for.
    pub(crate) fn new(asked: &Confinement) -> io::Result<Self> {
        let private = tempfile::Builder::new().prefix("pinch-sandbox-").tempdir()?;
        let home = private.path().join("home");
        std::fs::create_dir(&home)?;
        let workspace = asked.workspace.canonicalize()?;
        let mut view = Self {
            readable: SYSTEM.iter().chain(&ETC).map(PathBuf::from).collect(),
            writable: vec![private.path().canonicalize()?],
            seen: Vec::new(),
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
        // What a link leads to may be anything.
        let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_file());
        view.readable.extend(above.filter(is_file));
        view.add(workspace, asked.access);
        for (path, access) in &asked.roots {
            view.add(path.canonicalize()?, *access);
        }
        view.readable.retain(|path| path.exists());
        let named = view.readable.iter().chain(&view.writable);
        view.seen = named.flat_map(|path| [Some(path.clone()), path.canonicalize().ok()]).flatten().collect();
        view.seen.sort_unstable();
        view.seen.dedup();
        Ok(view)
    }

    fn add(&mut self, path: PathBuf, access: PathAccess) {
        match access {
            PathAccess::Read => self.readable.push(path),
            PathAccess::Write => self.writable.push(path),
        }
    }

    /// The directory for temporary files.
    pub(crate) fn private(&self) -> &Path {
        self.private.path()
    }

    /// The directory that the workspace is in, unless it is visible itself.
    pub(crate) fn above_workspace(&self) -> Option<&Path> {
        self.workspace.parent().filter(|above| !self.contains(above))
    }

    /// Whether a path is below what can be seen.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.seen.iter().any(|root| path.starts_with(root))
    }
}

/// Puts links to the toolchains of a home directory into that of a sandbox, which can be changed otherwise. Returns what they lead to.
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
