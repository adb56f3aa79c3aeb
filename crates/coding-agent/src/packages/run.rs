//! Running git and npm: with argument lists instead of a shell, a time limit, and bounded output.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::process::{ChildTree, ProcessEnd, SpawnError};

use super::source::without_passwords;

/// Maximum bytes of output to keep; the end of longer output is kept.
const MAX_OUTPUT: usize = 64 * 1024;
/// How long a program may take to exit when stopped.
const GRACE: Duration = Duration::from_secs(2);

/// Why a tool run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageToolError {
    /// It could not be started.
    #[error("cannot run {program}: is it installed?")]
    Start {
        /// Name of the program.
        program: String,
        /// The cause.
        #[source]
        source: SpawnError,
    },
    /// It exited with an error.
    #[error("{command} failed with exit code {status}{}", output_suffix(.output))]
    Failed {
        /// The program and its subcommand.
        command: String,
        /// Its exit code.
        status: i32,
        /// The end of its output.
        output: String,
    },
    /// It timed out and was stopped.
    #[error("{command} took longer than {} s and was stopped", limit.as_secs())]
    TimedOut {
        /// The program and its subcommand.
        command: String,
        /// The time limit.
        limit: Duration,
    },
    /// The caller cancelled it.
    #[error("{command} was cancelled")]
    Cancelled {
        /// The program and its subcommand.
        command: String,
    },
    /// An I/O error occurred while it ran.
    #[error("could not read the output of {command}")]
    Io {
        /// The program and its subcommand.
        command: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

fn output_suffix(output: &str) -> String {
    let output = without_passwords(output.trim());
    if output.is_empty() { String::new() } else { format!(": {output}") }
}

/// Runs programs one after another.
#[derive(Clone, Copy)]
pub(super) struct PackageTools<'a> {
    pub(super) host: &'a Host,
    pub(super) cancel: &'a Cancel,
    pub(super) time_limit: Duration,
}

/// Which output to capture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CapturedOutput {
    /// Standard output only.
    Result,
    /// Everything, for error messages.
    Everything,
}

impl PackageTools<'_> {
    /// Runs a program until it exits and returns its output. Its whole process group is stopped on cancellation and timeout.
    pub(super) async fn run(
        &self,
        argv: &[&str],
        folder: &Path,
        env: &[(&str, &str)],
        want: CapturedOutput,
    ) -> Result<String, PackageToolError> {
        let Some((program, args)) = argv.split_first() else { return Ok(String::new()) };
        let mut command = std::process::Command::new(program);
        command.args(args).current_dir(folder).env_clear().envs(self.host.env().iter()).envs(env.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(if want == CapturedOutput::Everything { Stdio::piped() } else { Stdio::null() });
        let mut process = ChildTree::spawn_as_is(command)
            .map_err(|source| PackageToolError::Start { program: (*program).to_owned(), source })?;
        // Not all arguments: a URL may contain a password.
        let command = [*program, args.iter().find(|arg| !arg.starts_with('-')).unwrap_or(&"")].join(" ");
        let mut output = Vec::new();
        let mut keep = |bytes: &[u8]| {
            output.extend_from_slice(bytes);
            if output.len() > 2 * MAX_OUTPUT {
                output.drain(..output.len() - MAX_OUTPUT);
            }
        };
        let ended = process.pump(self.cancel, Some(self.time_limit), GRACE, &mut keep).await;
        let output = String::from_utf8_lossy(&output).into_owned();
        match ended {
            Err(source) => Err(PackageToolError::Io { command, source }),
            Ok(ProcessEnd::Cancelled(..)) => Err(PackageToolError::Cancelled { command }),
            Ok(ProcessEnd::TimedOut(_)) => Err(PackageToolError::TimedOut { command, limit: self.time_limit }),
            Ok(ProcessEnd::Exited(exit)) if !exit.is_success() => {
                Err(PackageToolError::Failed { command, status: exit.status(), output })
            }
            Ok(ProcessEnd::Exited(_)) => Ok(output),
        }
    }
}
