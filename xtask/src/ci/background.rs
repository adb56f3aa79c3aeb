//! A check that runs in a process of its own while others run, with its own build directory, because a cargo process locks its directory.

use std::fs::File;
use std::process::{Child, Command};
use std::time::Instant;

use anyhow::Context;

use crate::cargo;

/// A running check. Dropping it stops it.
pub(super) struct BackgroundCheck {
    subcommand: &'static str,
    child: Child,
    began: Instant,
}

impl BackgroundCheck {
    /// Starts `cargo xtask SUBCOMMAND`. Its output goes to a file and is printed by [`finish`](Self::finish).
    pub(super) fn start(subcommand: &'static str) -> anyhow::Result<Self> {
        let build = cargo::root().join("target").join(subcommand);
        std::fs::create_dir_all(&build).with_context(|| format!("cannot create {}", build.display()))?;
        let path = log(subcommand);
        let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.arg(subcommand).env("CARGO_TARGET_DIR", &build).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("cannot start the check of {subcommand}"))?;
        println!("\n==> {subcommand}: running in the background");
        Ok(Self { subcommand, child, began: Instant::now() })
    }

    /// Waits for the end and prints the output; returns whether the check passed, and the seconds since its start.
    pub(super) fn finish(mut self) -> anyhow::Result<(bool, f64)> {
        let status = self.child.wait().with_context(|| format!("cannot wait for the check of {}", self.subcommand))?;
        let seconds = self.began.elapsed().as_secs_f64();
        let path = log(self.subcommand);
        println!("{}", std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?);
        Ok((status.success(), seconds))
    }
}

impl Drop for BackgroundCheck {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn log(subcommand: &str) -> std::path::PathBuf {
    cargo::root().join("target").join(subcommand).join("ci.log")
}
