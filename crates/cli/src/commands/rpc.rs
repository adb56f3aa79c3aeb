//! `pinch --mode rpc`: JSON lines over stdin and stdout.

use std::io::{BufRead as _, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use pinch_cli::options::CliOptions;
use pinch_embed::coding_agent::modes::rpc::{ClientUi, IncomingLine, LineChannel, MAX_LINE, RpcClient, RpcError};
use pinch_embed::stdx::cancel::{Cancel, CancelReason};
use pinch_embed::stdx::host::Host;
use tokio::sync::mpsc;

use crate::exit::{CommandFailure, warn};
use crate::wiring::SessionUser;
use crate::{output, signals, wiring};

/// Number of the client's lines that are read ahead.
const READ_AHEAD: usize = 16;
/// Maximum number of lines waiting for the client.
const MAX_WAITING: usize = 256;
/// Bytes that are buffered before they are written, while more are coming.
const GATHERED: usize = 32 * 1024;
/// How long the program waits at exit for a client that does not read.
const GRACE: Duration = Duration::from_secs(10);

/// Serves the client on stdin and stdout until it closes stdin or stops reading.
pub(crate) async fn run(options: &CliOptions, host: &Host) -> Result<ExitCode, CommandFailure> {
    if !options.files.is_empty() {
        return Err(CommandFailure::user("@file arguments are not supported in RPC mode"));
    }
    if options.timeout.is_some() {
        return Err(CommandFailure::user("--timeout is not supported in RPC mode\nhint: the client can send abort"));
    }
    let stop = Cancel::new();
    let ui = ClientUi::new(host);
    let (to_writer, outgoing) = mpsc::channel(MAX_WAITING);
    let (to_session, incoming) = mpsc::channel(READ_AHEAD);
    let hung_up = Cancel::new();
    let at_end = hung_up.clone();
    // The reader may block forever, so it is never joined.
    std::thread::spawn(move || {
        read(&to_session);
        at_end.cancel(CancelReason::Shutdown);
    });
    let n_written = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&n_written);
    let writer = std::thread::spawn(move || write(outgoing, &counted));
    let lines = LineChannel { incoming, outgoing: to_writer, hung_up: hung_up.clone() };
    let mut client = RpcClient::new(&ui, lines, &stop).map_err(|error| CommandFailure::internal(error.to_string()))?;
    // Extensions may show dialogs to the client when they start.
    let mut runtime =
        client.wait_for(wiring::runtime(options, host, SessionUser::Client(Arc::new(ui.clone())), None)).await?;
    let watching = async {
        input_closed().await;
        hung_up.cancel(CancelReason::Shutdown);
        std::future::pending::<()>().await;
    };
    let serving = async {
        let serving = client.serve(&mut runtime);
        let mut serving = std::pin::pin!(async {
            tokio::select! {
                biased;
                done = serving => done,
                () = watching => Ok(()),
            }
        });
        tokio::select! {
            biased;
            done = &mut serving => done,
            () = output_closed() => {
                stop.cancel(CancelReason::Shutdown);
                serving.await
            }
        }
    };
    let (done, code) = signals::guard(&stop, serving).await;
    runtime.close().await;
    runtime.take_notes().iter().for_each(|note| warn(note));
    drop(runtime);
    match done {
        // The last output is flushed, unless a signal leaves no time for it.
        Ok(()) if code.is_none() => finish(writer, &n_written).await,
        Ok(()) => {}
        Err(RpcError::NobodyReads) => {}
        Err(error) => return Err(CommandFailure::internal(error.to_string())),
    }
    Ok(code.unwrap_or(ExitCode::SUCCESS))
}

/// Waits until stdout is closed; a program that writes nothing would not notice otherwise.
#[cfg(unix)]
async fn output_closed() {
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    // Files cannot be watched, and are never closed.
    #[expect(deprecated, reason = "standard output stays open for as long as it is watched")]
    let watched = AsyncFd::with_interest(std::io::stdout(), Interest::ERROR);
    if let Ok(output) = watched
        && output.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

#[cfg(not(unix))]
async fn output_closed() {
    std::future::pending().await
}

/// Waits until the client has closed its end of stdin, even if not everything it wrote has been read.
#[cfg(unix)]
async fn input_closed() {
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    // Files cannot be watched; their end is noticed when they are read.
    #[expect(deprecated, reason = "standard input stays open for as long as it is watched")]
    let watched = AsyncFd::with_interest(std::io::stdin(), Interest::READABLE);
    if let Ok(input) = watched {
        while let Ok(mut ready) = input.readable().await {
            if ready.ready().is_read_closed() {
                return;
            }
            ready.clear_ready();
        }
    }
    std::future::pending().await
}

#[cfg(not(unix))]
async fn input_closed() {
    std::future::pending().await
}

/// Waits until everything is written, or the client has not read anything for a while.
async fn finish(writer: JoinHandle<()>, n_written: &AtomicU64) {
    let mut done = tokio::task::spawn_blocking(move || writer.join());
    let mut before = n_written.load(Ordering::Relaxed);
    while tokio::time::timeout(GRACE, &mut done).await.is_err() {
        let now = n_written.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
    }
}

/// Forwards the client's input line by line, including a last line without a line feed.
fn read(to: &mpsc::Sender<IncomingLine>) {
    let mut input = std::io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match (&mut input).take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_whole = line.last() == Some(&b'\n');
        if is_whole {
            line.pop();
        } else if line.len() > MAX_LINE {
            if skip_line(&mut input).is_err() || to.blocking_send(IncomingLine::TooLong).is_err() {
                return;
            }
            continue;
        }
        if to.blocking_send(IncomingLine::Line(line.into())).is_err() {
            return;
        }
    }
}

/// Skips the rest of a line.
fn skip_line(input: &mut impl std::io::BufRead) -> std::io::Result<()> {
    loop {
        let piece = input.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        let (n, is_end) = match piece.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (piece.len(), false),
        };
        input.consume(n);
        if is_end {
            return Ok(());
        }
    }
}

/// Writes lines and counts them; ends if the reader or the writer is gone.
fn write(mut lines: mpsc::Receiver<Bytes>, n_written: &AtomicU64) {
    let mut out = output::stdout();
    let mut gathered = Vec::with_capacity(2 * GATHERED);
    while let Some(line) = lines.blocking_recv() {
        gathered.extend_from_slice(&line);
        while gathered.len() < GATHERED
            && let Ok(line) = lines.try_recv()
        {
            gathered.extend_from_slice(&line);
        }
        for piece in gathered.chunks(GATHERED) {
            if out.write_all(piece).and_then(|()| out.flush()).is_err() {
                return;
            }
            n_written.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        gathered.clear();
    }
}
