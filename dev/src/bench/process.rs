//! Programs that are observed while they run.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// Measurements of a program's run.
pub(super) struct ProcessRun {
    /// Time from start to exit.
    pub(super) time: Duration,
    /// Highest memory use observed, in megabytes.
    pub(super) peak_mb: f64,
    /// Bytes printed.
    pub(super) n_bytes: usize,
}

/// Runs a program to its end and reads its output. With `watched`, its memory use is sampled every few milliseconds.
pub(super) fn run(command: &mut Command, watched: bool) -> anyhow::Result<ProcessRun> {
    let began = Instant::now();
    let mut child = start(command.stdout(Stdio::piped()))?;
    let mut stdout = child.stdout.take().context("no output")?;
    let (pid, done) = (child.id(), AtomicBool::new(false));
    let (n_bytes, peak_mb) = std::thread::scope(|scope| -> anyhow::Result<(usize, f64)> {
        let watcher = watched.then(|| scope.spawn(|| watch(pid, &done)));
        let mut n_bytes = 0;
        let mut buffer = vec![0; 256 * 1024];
        loop {
            match stdout.read(&mut buffer)? {
                0 => break,
                n => n_bytes += n,
            }
        }
        done.store(true, Ordering::Relaxed);
        Ok((n_bytes, watcher.and_then(|watcher| watcher.join().ok()).unwrap_or(0.0)))
    })?;
    let status = child.wait()?;
    let time = began.elapsed();
    if !status.success() {
        bail!("{:?} ended with {status}", command.get_program());
    }
    Ok(ProcessRun { time, peak_mb, n_bytes })
}

/// Measurements of a program that runs until its input ends.
pub(super) struct Answered {
    /// Time from its start to the end of the first line.
    pub(super) time: Duration,
    /// Highest memory use until then, in megabytes.
    pub(super) peak_mb: f64,
}

/// Starts a program, sends it a question and reads the first line as the answer; the program must then exit by itself.
pub(super) fn answer(command: &mut Command, question: &str) -> anyhow::Result<Answered> {
    let began = Instant::now();
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = spawned.with_context(|| format!("cannot start {:?}", command.get_program()))?;
    let mut stdin = child.stdin.take().context("no input")?;
    let mut stdout = BufReader::new(child.stdout.take().context("no output")?);
    stdin.write_all(question.as_bytes())?;
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    let (time, peak_mb) = (began.elapsed(), peak_mb(child.id()).context("no /proc")?);
    drop(stdin);
    std::io::copy(&mut stdout, &mut std::io::sink())?;
    let status = child.wait()?;
    if !status.success() || !line.contains("\"success\":true") {
        bail!("{:?} ended with {status} after {line:?}", command.get_program());
    }
    Ok(Answered { time, peak_mb })
}

/// Peak memory of a program in megabytes, measured while it blocks on writing its output, which is not read.
pub(super) fn peak_before_output(command: &mut Command) -> anyhow::Result<f64> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    while theirs.write(&[0; 4096]).is_ok() {}
    theirs.set_nonblocking(false)?;
    let mut child = start(command.stdout(OwnedFd::from(theirs)))?;
    // The command keeps its end of the socket; replace it so that the output ends.
    command.stdout(Stdio::null());
    let (mut peak, mut unchanged) = (0.0, 0);
    while unchanged < 100 && child.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(3));
        match peak_mb(child.id()) {
            Some(now) if now > peak => (peak, unchanged) = (now, 0),
            _ => unchanged += 1,
        }
    }
    let mut sink = Vec::new();
    ours.read_to_end(&mut sink)?;
    if !child.wait()?.success() {
        bail!("{:?} failed", command.get_program());
    }
    Ok(peak)
}

/// The peak memory use of a program (or of this one as `self`) in megabytes.
pub(super) fn peak_mb(pid: impl std::fmt::Display) -> Option<f64> {
    status_mb(pid, "VmHWM:")
}

/// Processor time used by this process, in milliseconds.
pub(super) fn used_ms() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// The current memory use of a program (or of this one as `self`) in megabytes.
pub(super) fn in_use_mb(pid: impl std::fmt::Display) -> Option<f64> {
    status_mb(pid, "VmRSS:")
}

fn status_mb(pid: impl std::fmt::Display, name: &str) -> Option<f64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok().map(|kilobytes| kilobytes / 1024.0)
}

fn start(command: &mut Command) -> anyhow::Result<Child> {
    command.stdin(Stdio::null()).spawn().with_context(|| format!("cannot start {:?}", command.get_program()))
}

fn watch(pid: u32, done: &AtomicBool) -> f64 {
    let mut peak = 0.0;
    while !done.load(Ordering::Relaxed) {
        peak = peak_mb(pid).map_or(peak, |now| now.max(peak));
        std::thread::sleep(Duration::from_millis(4));
    }
    peak
}
