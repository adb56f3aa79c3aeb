//! The command line client of docker, podman or runc.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_machine::{CommandSpec, LocalMachine, Machine as _, ProcessEnd};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::process::LastWill;
use pinch_stdx::text::shortened;

use crate::confined::last_will;

/// Maximum bytes of its output to keep.
const MAX_OUTPUT: usize = 64 * 1024;
/// Maximum characters of its output to show.
const SHOWN: usize = 400;
/// Variables that configure the client: those of the host are passed to it, and those of commands must not be.
const OWN: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS", "LOCPATH", "GCONV_PATH"];
const OWN_PREFIXES: [&str; 12] = [
    "XDG_",
    "DOCKER_",
    "CONTAINER",
    "PODMAN_",
    "BUILDAH_",
    "STORAGE_",
    "REGISTRY_",
    "LD_",
    "GLIBC_",
    "GO",
    "BASH",
    "SSL_",
];
const OWN_ENDS: [&str; 1] = ["_PROXY"];

/// Returns whether a variable configures the client.
pub(super) fn is_own(name: &str) -> bool {
    OWN.contains(&name)
        || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || OWN_ENDS.iter().any(|end| name.to_ascii_uppercase().ends_with(end))
}

/// The client of docker, podman or runc.
#[derive(Clone, Debug)]
pub(super) struct ContainerClient {
    pub(super) program: PathBuf,
    /// Its environment variables.
    env: Vec<(String, String)>,
}

impl ContainerClient {
    /// Looks up a client on a `PATH`, and selects the host variables that configure it.
    pub(super) fn find(name: &str, path: &str, env: &[(String, String)]) -> Option<Self> {
        let mut dirs = path.split(':').filter(|dir| dir.starts_with('/'));
        let program = dirs.find_map(|dir| Some(Path::new(dir).join(name)).filter(|program| program.is_file()))?;
        let mut env: Vec<_> = env.iter().filter(|(name, _)| is_own(name) && name != "PATH").cloned().collect();
        env.push(("PATH".to_owned(), path.to_owned()));
        Some(Self { program, env })
    }

    /// Returns a call of the client with additional variables.
    pub(super) fn command(&self, args: Vec<String>, more: Vec<(String, String)>) -> CommandSpec {
        let env = self.env.iter().cloned().chain(more).collect();
        CommandSpec::new(self.program.clone(), args, PathBuf::from("/"), env)
    }

    /// Runs the client and returns its output.
    ///
    /// # Errors
    /// Returns its error output if it fails.
    pub(super) async fn run<const N: usize>(&self, args: [&str; N], patience: Duration) -> Result<String, String> {
        self.run_all(args.map(str::to_owned).to_vec(), patience).await
    }

    /// Like [`Self::run`], for any number of arguments.
    pub(super) async fn run_all(&self, args: Vec<String>, patience: Duration) -> Result<String, String> {
        let program = self.program.file_name().unwrap_or_default().to_string_lossy();
        let what = format!("{program} {}", args.first().map_or("", String::as_str));
        let command = self.command(args, Vec::new());
        let mut process = LocalMachine.spawn(command).await.map_err(|error| error.to_string())?;
        let mut output = Vec::new();
        let mut keep = |data: &[u8]| output.extend(data.iter().take(MAX_OUTPUT - output.len()));
        let end = process.pump(&Cancel::new(), Some(patience), Duration::ZERO, &mut keep).await;
        let output = String::from_utf8_lossy(&output).into_owned();
        match end {
            Ok(ProcessEnd::Exited(exit)) if exit.is_success() => Ok(output),
            Ok(ProcessEnd::Exited(_)) => Err(format!("{what}: {}", shortened(output.trim(), SHOWN))),
            Ok(_) => Err(format!("{what}: no answer in {} seconds", patience.as_secs())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns a command that removes a container on drop, or when this program is killed. Nothing waits for it.
    pub(super) fn removal(&self, name: &str) -> std::io::Result<LastWill> {
        let args = ["rm", "--force", "--volumes", name].map(str::to_owned);
        last_will(&self.command(args.to_vec(), Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_configure_the_client_are_recognized() {
        for name in
            ["PATH", "DOCKER_HOST", "CONTAINERS_CONF", "https_proxy", "LD_PRELOAD", "XDG_RUNTIME_DIR", "GODEBUG"]
        {
            assert!(is_own(name), "{name}");
        }
        for name in ["LANG", "CARGO_HOME", "MY_SETTING"] {
            assert!(!is_own(name), "{name}");
        }
    }
}
