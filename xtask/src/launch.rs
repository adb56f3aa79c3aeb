//! Programs of the workspace that are built on demand, including everything that links pinch itself.
//!
//! Except in release builds, they are built the way `cargo test --workspace --all-features` builds everything, so that both share build
//! output.

pub(crate) mod browser;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::cargo;

/// A program and how to build it together with everything it starts.
pub(crate) struct LaunchProgram {
    name: &'static str,
    build: &'static [&'static str],
}

/// The runner of the case files.
pub(crate) const CASES: LaunchProgram =
    LaunchProgram { name: "cases", build: &["--workspace", "--all-features", "--bin", "pinch", "--test", "cases"] };
/// The program that compares pinch with other programs.
pub(crate) const DEV: LaunchProgram = LaunchProgram { name: "pinch-dev", build: DEV_BUILD };
/// Release build of the same program, for benchmarks.
pub(crate) const DEV_RELEASE: LaunchProgram =
    LaunchProgram { name: "pinch-dev", build: &["--release", "--package", "pinch-cli", "--package", "pinch-dev"] };
/// pinch itself.
pub(crate) const PINCH: LaunchProgram = LaunchProgram { name: "pinch", build: DEV_BUILD };

/// Includes the program's small test because only then does cargo select the features that tests are built with.
const DEV_BUILD: &[&str] =
    &["--workspace", "--all-features", "--bin", "pinch", "--bin", "pinch-dev", "--test", "tasks"];

/// Arguments of a command that another program parses, including `--help`.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    rest: Vec<OsString>,
}

impl Args {
    /// Returns whether the program's own performance is not measured; in that case any build of it will do.
    pub(crate) fn measure_nothing_of_it(&self) -> bool {
        self.rest == ["build"] || self.rest.iter().any(|arg| arg == "--help" || arg == "-h")
    }

    /// Returns these arguments, preceded by the name of the command.
    pub(crate) fn of(&self, command: &str) -> Vec<OsString> {
        std::iter::once(command.into()).chain(self.rest.iter().cloned()).collect()
    }
}

impl LaunchProgram {
    /// Builds the program and runs it in the current directory, inheriting our output.
    pub(crate) fn run(&self, args: &[OsString], env: &[(&str, OsString)]) -> anyhow::Result<ExitStatus> {
        let mut command = self.command()?;
        command.args(args).envs(env.iter().map(|(name, value)| (name, value)));
        command.status().with_context(|| format!("cannot start {}", self.name))
    }

    /// Builds the program, runs it, and returns its output.
    pub(crate) fn output(&self, args: &[OsString]) -> anyhow::Result<String> {
        let output = self.command()?.args(args).stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot start {}", self.name))?;
        if !output.status.success() {
            bail!("{} failed: {}", self.name, output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("{} prints no text", self.name))
    }

    fn command(&self) -> anyhow::Result<Command> {
        let mut command = Command::new(self.built()?);
        cargo::remove_own_variables(&mut command);
        Ok(command)
    }

    /// Builds the program and returns its path. Progress and errors go to standard error, as cargo writes them.
    fn built(&self) -> anyhow::Result<PathBuf> {
        let format = ["build", "--message-format", "json-render-diagnostics"];
        let messages = cargo::output(&[&format, self.build].concat())?;
        let is_it =
            |message: &Value| message["reason"] == "compiler-artifact" && message["target"]["name"] == self.name;
        let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut programs =
            messages.filter(is_it).filter_map(|message: Value| Some(message["executable"].as_str()?.into()));
        programs.next().with_context(|| format!("cargo has built no {}", self.name))
    }
}

/// Exit code that mirrors a child's exit status; after a signal, the code that shells use.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal).and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
