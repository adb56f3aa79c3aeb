//! Running a process: its pipes, its lines in both directions, and its end.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use pinch_stdx::process::ChildTree;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::link::{LineKind, Link, MAX_LINE, MAX_UNREAD, Serve, Served};
use super::output::PendingOutput;
use crate::extension::error::ExtensionError;

/// Maximum unread lines to the process; further senders wait.
const MAX_OUTGOING: usize = 64;
/// How long the process may leave a line unread.
const MAX_STALL: Duration = Duration::from_secs(30);
/// Number of invalid lines after which the process is killed.
const MAX_GARBAGE: usize = 100;
/// Maximum bytes of its stderr reported with its exit.
const MAX_STDERR: usize = 4096;
/// How long it may run after its stdin was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Starts a process. It lives as long as its tasks.
pub(super) fn start(command: std::process::Command, serve: Serve) -> Result<(Arc<Link>, JoinSet<()>), ExtensionError> {
    let mut command = command;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = ChildTree::spawn_as_is(command).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        ExtensionError::new(format!("{error}{cause}"))
    })?;
    let (out, lines) = mpsc::channel(MAX_OUTGOING);
    let link = Link::new(out);
    let pipes = (process.take_stdin(), process.take_stdout(), process.take_stderr());
    let mut tasks = JoinSet::new();
    tasks.spawn(watch(Arc::clone(&link), process, pipes, lines, serve));
    Ok((link, tasks))
}

type Pipes = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);

/// Supervises a process until it has exited.
async fn watch(link: Arc<Link>, mut process: ChildTree, pipes: Pipes, lines: mpsc::Receiver<Vec<u8>>, serve: Serve) {
    let (stdin, stdout, stderr) = pipes;
    let mut tail = Vec::new();
    let mut exit = None;
    // How long it may take to exit.
    let mut patience = GRACE;
    let closed;
    let why = {
        let last_line = Notify::new();
        let mut reading = std::pin::pin!(read(&link, stdout, &serve));
        let mut writing = std::pin::pin!(write(stdin, lines, &last_line));
        let mut noting = std::pin::pin!(keep_tail(stderr, &mut tail, &link.output));
        let mut is_noted = false;
        loop {
            tokio::select! {
                biased;
                () = link.closing.notified() => {
                    closed = true;
                    last_line.notify_one();
                    // Messages to it may still be in transit; its answers arrive before its output ends.
                    let is_at_end = tokio::select! {
                        rest = last_words(&mut reading, &mut noting, is_noted) => rest.is_some(),
                        _ = &mut writing => false,
                    };
                    patience = if is_at_end { GRACE } else { Duration::ZERO };
                    break None;
                }
                why = &mut reading => {
                    closed = false;
                    if why.is_none() && !is_noted {
                        // Its last output explains why it exited.
                        drop(tokio::time::timeout(GRACE, &mut noting).await);
                    }
                    break why;
                }
                why = &mut writing => { closed = false; break Some(why); }
                ended = process.wait() => {
                    exit = ended.ok();
                    closed = false;
                    break last_words(&mut reading, &mut noting, is_noted).await.flatten();
                }
                () = &mut noting, if !is_noted => is_noted = true,
            }
        }
        // Its input is closed here at the latest, since the writer is dropped.
    };
    if exit.is_none() && why.is_none() {
        exit = tokio::time::timeout(patience, process.wait()).await.ok().and_then(Result::ok);
    }
    if exit.is_none() {
        exit = process.terminate(GRACE).await.ok();
    }
    process.kill();
    if closed {
        link.end("it was closed".to_owned());
        return;
    }
    let how = match exit {
        Some(exit) => exit.signal_name().unwrap_or_else(|| format!("exit code {}", exit.status())),
        None => "unknown end".to_owned(),
    };
    let stderr_suffix = String::from_utf8_lossy(&tail).trim().to_owned();
    let stderr_suffix = if stderr_suffix.is_empty() { String::new() } else { format!(": {stderr_suffix}") };
    let why =
        why.map_or_else(|| format!("it exited ({how}){stderr_suffix}"), |why| format!("{why} ({how}){stderr_suffix}"));
    link.end(why);
    if let Some(error) = link.gone() {
        link.report("process", &error);
    }
}

/// Drains both pipes of a process. Returns `None` if they do not end in time.
async fn last_words<T>(
    reading: impl Future<Output = T>,
    noting: impl Future<Output = ()>,
    is_noted: bool,
) -> Option<T> {
    let noting = async {
        if !is_noted {
            noting.await;
        }
    };
    let rest = async { tokio::join!(reading, noting) };
    tokio::time::timeout(GRACE, rest).await.ok().map(|(read, ())| read)
}

/// Reads messages until the output ends or becomes invalid.
async fn read(link: &Arc<Link>, stdout: Option<ChildStdout>, serve: &Serve) -> Option<String> {
    let mut stdout = BufReader::new(stdout?);
    let mut served = Served::default();
    let mut n_garbage = 0;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let limit = MAX_LINE as u64 + 1;
        let n_read = (&mut stdout).take(limit).read_until(b'\n', &mut bytes).await.unwrap_or(0);
        if n_read == 0 {
            return None;
        }
        if bytes.len() > MAX_LINE {
            return Some("it sent a line longer than 16 MiB".to_owned());
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let kind = link.take_in(&bytes, serve, &mut served);
        if kind == LineKind::Flood {
            return Some(format!(
                "it sent requests without reading their answers, which are longer than {} MiB",
                MAX_UNREAD >> 20
            ));
        }
        if kind == LineKind::Invalid {
            n_garbage += 1;
            let shown: String = String::from_utf8_lossy(&bytes).trim().chars().take(200).collect();
            if n_garbage == 1 {
                let text = format!("stdout is for messages only, but it wrote: {shown}");
                link.report("process", &ExtensionError::new(text));
            }
            if n_garbage >= MAX_GARBAGE {
                return Some(format!("it sent {MAX_GARBAGE} invalid lines"));
            }
        }
    }
}

/// Writes lines until the process stops reading. After `last_line` is notified, writes the queued lines and closes the input.
async fn write(stdin: Option<ChildStdin>, mut lines: mpsc::Receiver<Vec<u8>>, last_line: &Notify) -> String {
    let Some(mut stdin) = stdin else { return "it has no input".to_owned() };
    loop {
        let line = tokio::select! {
            biased;
            () = last_line.notified() => {
                lines.close();
                continue;
            }
            line = lines.recv() => line,
        };
        let Some(line) = line else { break };
        let writing = async {
            stdin.write_all(&line).await?;
            stdin.flush().await
        };
        match tokio::time::timeout(MAX_STALL, writing).await {
            Ok(Ok(())) => {}
            // Its exit is about to be noticed.
            Ok(Err(_)) => std::future::pending::<()>().await,
            Err(_) => return format!("it read nothing for {} s", MAX_STALL.as_secs()),
        }
    }
    drop(stdin);
    std::future::pending().await
}

/// Passes the error output on, and keeps its last bytes.
async fn keep_tail(stderr: Option<impl AsyncRead + Unpin>, tail: &mut Vec<u8>, output: &PendingOutput) {
    let Some(mut stderr) = stderr else { return };
    let mut buffer = vec![0; MAX_STDERR];
    while let Ok(n_read @ 1..) = stderr.read(&mut buffer).await {
        output.push(&buffer[..n_read]);
        tail.extend_from_slice(&buffer[..n_read]);
        tail.drain(..tail.len().saturating_sub(MAX_STDERR));
    }
    output.finish();
}
