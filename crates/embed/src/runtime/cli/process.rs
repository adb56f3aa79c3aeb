//! Runs the program of a command-line agent.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::process::{ChildTree, Exit};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use super::printed::PrintedAnswer;

/// How long a program that is asked to stop may take.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum size of each output stream, in bytes.
const MAX_OUTPUT: usize = 64 * 1024 * 1024;
/// How long to read output after the program has exited, since descendants may hold it open.
const DRAIN: Duration = Duration::from_secs(1);

/// A program and its input.
pub(super) struct CliProcess<'a> {
    pub(super) program: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: Vec<(String, String)>,
    pub(super) dir: &'a Path,
    pub(super) input: Option<String>,
    /// How long it may print nothing.
    pub(super) silence: Duration,
}

/// How a program ended.
pub(super) enum CliEnd {
    /// It exited.
    Exited { exit: Exit, stdout: String, stderr: String },
    /// It printed nothing for too long and was stopped.
    Silent,
    /// The run was stopped, and the program with it.
    Stopped(CancelReason),
    /// It could not be started.
    NotStarted(String),
}

/// Runs a program to its end. `answering` receives its output as it arrives.
pub(super) async fn run(
    process: CliProcess<'_>,
    cancel: &Cancel,
    mut answering: Option<&mut PrintedAnswer<'_>>,
) -> CliEnd {
    let mut command = std::process::Command::new(process.program);
    command.args(process.args).env_clear().envs(process.env).current_dir(process.dir);
    let stdin = if process.input.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match ChildTree::spawn_as_is(command) {
        Ok(child) => child,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            return CliEnd::NotStarted(format!("{error}{cause}"));
        }
    };
    let input = process.input.unwrap_or_default();
    let mut stdin = child.take_stdin();
    let writes = async move {
        if let Some(pipe) = &mut stdin {
            // A program that does not read its input reports this in its answer.
            drop(pipe.write_all(input.as_bytes()).await);
        }
        drop(stdin);
    };
    let mut writes = std::pin::pin!(writes);
    let mut has_written = false;
    let (mut out, mut err) = (child.take_stdout(), child.take_stderr());
    let (mut out_buffer, mut err_buffer) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut exit = None;
    let mut quiet_since = Instant::now();
    while exit.is_none() || out.is_some() || err.is_some() {
        let limit = if exit.is_some() { DRAIN } else { process.silence };
        tokio::select! {
            biased;
            reason = cancel.cancelled() => {
                drop(child.terminate(GRACE).await);
                return CliEnd::Stopped(reason);
            }
            n = read(&mut out, &mut out_buffer) => {
                quiet_since = Instant::now();
                if n == 0 {
                    out = None;
                } else if stdout.len() < MAX_OUTPUT {
                    stdout.extend_from_slice(&out_buffer[..n]);
                    if let Some(answering) = &mut answering {
                        answering.printed(&out_buffer[..n]).await;
                    }
                }
            }
            n = read(&mut err, &mut err_buffer) => {
                quiet_since = Instant::now();
                if n == 0 {
                    err = None;
                } else if stderr.len() < MAX_OUTPUT {
                    stderr.extend_from_slice(&err_buffer[..n]);
                }
            }
            () = &mut writes, if !has_written => has_written = true,
            ended = child.wait(), if exit.is_none() => match ended {
                Ok(ended) => {
                    exit = Some(ended);
                    quiet_since = Instant::now();
                }
                Err(error) => return CliEnd::NotStarted(error.to_string()),
            },
            () = tokio::time::sleep_until(quiet_since + limit) => {
                if exit.is_some() {
                    break;
                }
                drop(child.terminate(GRACE).await);
                return CliEnd::Silent;
            }
        }
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match exit {
        Some(exit) => CliEnd::Exited { exit, stdout: text(&stdout), stderr: text(&stderr) },
        None => CliEnd::NotStarted("the program has no status".to_owned()),
    }
}

/// Reads from a pipe; 0 at its end. A missing pipe never returns.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
