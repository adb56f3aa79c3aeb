//! Packages from npm.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

/// Installs packages into a directory of their own, unless that has been done. No script of a package runs.
pub(super) fn install(folder: &Path, packages: &[&str]) -> anyhow::Result<()> {
    install_with(folder, r#"{"private":true}"#, packages)
}

/// Installs packages into a directory with this `package.json`, unless that has been done.
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
