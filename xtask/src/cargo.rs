//! Calls to cargo, printed before they run.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Runs cargo in the root with these arguments, inheriting our output; returns true on success.
pub(crate) fn run(args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<bool> {
    let vars: String = env.iter().map(|(name, value)| format!("{name}={value:?} ")).collect();
    println!("\n==> {vars}cargo {}", args.join(" "));
    let mut command = command();
    command.args(args).envs(env.iter().copied());
    Ok(command.status().context("cannot start cargo")?.success())
}

/// Cargo's metadata of the workspace's own packages.
pub(crate) fn metadata() -> anyhow::Result<Value> {
    let text = output(&["metadata", "--format-version", "1", "--no-deps", "--locked"])?;
    serde_json::from_str(&text).context("cargo metadata is not JSON")
}

/// Standard output of a cargo call.
pub(crate) fn output(args: &[&str]) -> anyhow::Result<String> {
    let output = command().args(args).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    String::from_utf8(output.stdout).context("cargo prints no text")
}

fn command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    remove_own_variables(&mut command);
    command
}

/// Removes the variables that the cargo running this program has set for this program only.
pub(crate) fn remove_own_variables(command: &mut Command) {
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(name);
    }
}
