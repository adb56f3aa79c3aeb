//! Running programs for extensions.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::process::ChildTree;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::error::ExtensionError;

/// Maximum bytes kept of each output stream; the rest is read and dropped.
const MAX_OUTPUT: usize = 16 << 20;
/// How long a program may take to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// How to run a program.
#[derive(Clone, Debug, Default)]
pub struct ExecOptions {
    /// Working directory; `None` uses the session's.
    pub cwd: Option<PathBuf>,
    /// Timeout; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Stops the program.
    pub cancel: Cancel,
}

/// The result of running a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecOutput {
    /// The first 16 MiB of standard output, as text.
    pub stdout: String,
    /// The first 16 MiB of standard error, as text.
    pub stderr: String,
    /// Exit code; 128 plus the signal number if a signal killed it.
    pub code: i32,
    /// Whether it timed out or was cancelled.
    pub killed: bool,
}

/// Runs a program until it exits; waits at most a second for output of background processes it left running.
pub(super) async fn run(
    program: &str,
    args: &[String],
    options: ExecOptions,
    cwd: &Path,
    host: &Host,
    cancel: &Cancel,
) -> Result<ExecOutput, ExtensionError> {
    let mut command = std::process::Command::new(program);
    let folder = options.cwd.map_or_else(|| cwd.to_owned(), |folder| cwd.join(folder));
    command.args(args).current_dir(folder).env_clear().envs(host.env().iter());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = ChildTree::spawn_as_is(command).map_err(|error| ExtensionError::new(error.to_string()))?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (out, err) = (process.take_stdout(), process.take_stderr());
    let failed = |error: std::io::Error| ExtensionError::new(error.to_string());
    let (exit, killed) = {
        let reading = async { tokio::join!(read(out, &mut stdout), read(err, &mut stderr)) };
        let mut reading = std::pin::pin!(reading);
        let mut is_read = false;
        let time = async {
            match options.timeout {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let mut time = std::pin::pin!(time);
        let ended = loop {
            tokio::select! {
                exit = process.wait() => break Some(exit.map_err(failed)?),
                _ = &mut reading, if !is_read => is_read = true,
                () = &mut time => break None,
                _ = cancel.cancelled() => break None,
                _ = options.cancel.cancelled() => break None,
            }
        };
        let (exit, killed) = match ended {
            Some(exit) => (exit, false),
            None => (process.terminate(GRACE).await.map_err(failed)?, true),
        };
        if !is_read {
            // Background processes may keep the pipes open forever.
            drop(tokio::time::timeout(Duration::from_secs(1), &mut reading).await);
        }
        (exit, killed)
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(ExecOutput { stdout: text(&stdout), stderr: text(&stderr), code: exit.status(), killed })
}

async fn read(from: Option<impl AsyncRead + Unpin>, to: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(n_read @ 1..) = from.read(&mut buffer).await {
        let kept = n_read.min(MAX_OUTPUT.saturating_sub(to.len()));
        to.extend_from_slice(&buffer[..kept]);
    }
}
