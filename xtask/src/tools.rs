//! Third-party programs that `cargo xtask ci` runs if they are installed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::cargo;

/// A cargo subcommand.
pub(crate) struct CargoTool {
    /// Name of its package and its program.
    name: &'static str,
    /// The version to install: a newer one may report other problems or need a newer compiler.
    version: &'static str,
    /// Arguments to start it with.
    args: &'static [&'static str],
    /// Whether it builds in about a minute, and is therefore installed when missing.
    is_small: bool,
}

/// Checks licences, bans and sources of all packages, as configured in `deny.toml`.
pub(crate) const DENY: CargoTool = CargoTool {
    name: "cargo-deny",
    version: "0.20.2",
    args: &["--locked", "--log-level", "error", "check", "licenses", "bans", "sources"],
    is_small: false,
};
/// Finds unused dependencies.
pub(crate) const SHEAR: CargoTool =
    CargoTool { name: "cargo-shear", version: "1.12.4", args: &["shear"], is_small: true };

impl CargoTool {
    /// Runs the tool; true if it finds nothing. `None` if it is missing, and is big or could not be installed.
    pub(crate) fn run(&self) -> anyhow::Result<Option<bool>> {
        if self.is_small && !self.install()? {
            return Ok(None);
        }
        let Some(program) = self.find()? else { return Ok(None) };
        println!("\n==> {} {}", program.display(), self.args.join(" "));
        let status = Command::new(&program).args(self.args).current_dir(cargo::root()).status();
        Ok(Some(status.with_context(|| format!("cannot start {}", program.display()))?.success()))
    }

    /// Installs the tool below the target directory, unless it is there or on the search path; true if it is available afterwards.
    pub(crate) fn install(&self) -> anyhow::Result<bool> {
        if self.find()?.is_some() {
            return Ok(true);
        }
        let folder = folder()?;
        let root = folder.to_str().context("the target directory is no text")?;
        // Optimising takes longer than the tool needs for its work.
        cargo::run(&["install", "--debug", "--locked", "--root", root, "--version", self.version, self.name], &[])
    }

    fn find(&self) -> anyhow::Result<Option<PathBuf>> {
        let own = folder()?.join("bin").join(format!("{}{}", self.name, std::env::consts::EXE_SUFFIX));
        let starts = |program: &PathBuf| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        Ok([own, self.name.into()].into_iter().find(starts))
    }
}

fn folder() -> anyhow::Result<PathBuf> {
    let metadata = cargo::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(target).join("tools"))
}
