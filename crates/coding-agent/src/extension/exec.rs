//! Programs that extensions run.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::process::ChildTree;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::error::ExtensionError;

/// Bytes that are kept of each of a program's outputs; what comes behind them is read and dropped.
const MAX_OUTPUT: usize = 16 << 20;
/// How long a program may take to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// How a program is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOptions {
    /// The directory it runs in; `None`: the session's.
    pub cwd: Option<PathBuf>,
    /// When it is stopped; `None`: never.
    pub timeout: Option<Duration>,
}

/// What a program came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecOutput {
    /// The first 16 MiB of its output, as text.
    pub stdout: String,
    /// The first 16 MiB of its error output.
    pub stderr: String,
    /// Its exit code, 128 and the signal's number when a signal killed it.
    pub code: i32,
    /// Its time was up, or it was cancelled.
    pub killed: bool,
}

/// Runs a program to its end; what it leaves running in the background is not waited for longer than a second.
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
            }
        };
        let (exit, killed) = match ended {
            Some(exit) => (exit, false),
            None => (process.terminate(GRACE).await.map_err(failed)?, true),
        };
        if !is_read {
            // What runs on in the background may hold the pipes open forever.
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
