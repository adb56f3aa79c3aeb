//! Programs of other people that `cargo xtask ci` runs when they are installed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::cargo;

/// One of cargo's subcommands.
pub(crate) struct CargoTool {
    /// Its package and program.
    name: &'static str,
    /// The version that is installed: a newer one may find something else, or need a newer compiler.
    version: &'static str,
    /// What it is started with.
    args: &'static [&'static str],
    /// Whether it is built in a minute or so, and therefore installed when it is missing.
    is_small: bool,
}

/// Licences, bans and sources of all packages, as `deny.toml` has them.
pub(crate) const DENY: CargoTool = CargoTool {
    name: "cargo-deny",
    version: "0.20.2",
    args: &["--locked", "--log-level", "error", "check", "licenses", "bans", "sources"],
    is_small: false,
};
/// Dependencies that nothing uses.
pub(crate) const SHEAR: CargoTool =
    CargoTool { name: "cargo-shear", version: "1.12.4", args: &["shear"], is_small: true };

impl CargoTool {
    /// Runs it; true when it finds nothing. `None` when it is missing, and either big or impossible to install.
    pub(crate) fn run(&self) -> anyhow::Result<Option<bool>> {
        if self.is_small && !self.install()? {
            return Ok(None);
        }
        let Some(program) = self.find()? else { return Ok(None) };
        println!("\n==> {} {}", program.display(), self.args.join(" "));
        let status = Command::new(&program).args(self.args).current_dir(cargo::root()).status();
        Ok(Some(status.with_context(|| format!("cannot start {}", program.display()))?.success()))
    }

    /// Installs it below the target directory, unless it is there or on the search path; true when it is there then.
    pub(crate) fn install(&self) -> anyhow::Result<bool> {
        if self.find()?.is_some() {
            return Ok(true);
        }
        let folder = folder()?;
        let root = folder.to_str().context("the target directory is no text")?;
        cargo::run(&["install", "--locked", "--root", root, "--version", self.version, self.name], &[])
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
