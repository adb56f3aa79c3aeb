//! A program on a pseudo-terminal. This side answers terminal queries and examines the output.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::bench::process;

/// How long something may take to appear.
const LONGEST: Duration = Duration::from_secs(60);
/// The last of the queries that a program sends at its start, and the reply.
const QUESTION: &[u8] = b"\x1b[c";
const ANSWER: &[u8] = b"\x1b[?62;4c";

/// The program and its terminal.
pub(super) struct TerminalRun {
    child: Child,
    keys: File,
    output: Receiver<(Instant, Vec<u8>)>,
    /// Output that was not searched yet, without cursor movements.
    text: String,
    /// When the end of it was read.
    read_at: Instant,
    began: Instant,
}

impl TerminalRun {
    pub(super) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        tcsetwinsize(&master, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 })?;
        let name = ptsname(&master, Vec::new())?;
        let open = || -> anyhow::Result<OwnedFd> {
            Ok(rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
        };
        command.env("TERM", "xterm-256color").stdin(open()?).stdout(open()?).stderr(open()?);
        let keys = File::from(master);
        let (mut reader, mut replies) = (keys.try_clone()?, keys.try_clone()?);
        let (send, output) = sync_channel(4_096);
        let began = Instant::now();
        let child = command.spawn().context("cannot start the program")?;
        // Otherwise the command keeps its side of the terminal open.
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            // The program's exit makes the read fail.
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                let now = Instant::now();
                if buffer[..n].windows(QUESTION.len()).any(|window| window == QUESTION) {
                    drop(replies.write_all(ANSWER));
                }
                if send.send((now, buffer[..n].to_vec())).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, keys, output, text: String::new(), read_at: began, began })
    }

    /// Waits until a text is printed; returns the time since the program's start.
    pub(super) fn wait_for(&mut self, text: &str) -> anyhow::Result<Duration> {
        let at = self.read_until(|seen| seen.contains(text)).with_context(|| format!("no {text:?} on the terminal"))?;
        Ok(at - self.began)
    }

    /// Types a letter; returns the time until it is printed.
    pub(super) fn echo(&mut self, letter: char) -> anyhow::Result<Duration> {
        let typed = Instant::now();
        self.type_keys(&letter.to_string())?;
        let at = self.read_until(|seen| seen.contains(letter)).context("a key has no echo")?;
        Ok(at.saturating_duration_since(typed))
    }

    /// Waits until a text is printed; returns the time since `began`.
    pub(super) fn shown(&mut self, text: &str, began: Instant) -> anyhow::Result<Duration> {
        let at = self.read_until(|seen| seen.contains(text)).with_context(|| format!("no {text:?} on the terminal"))?;
        Ok(at.saturating_duration_since(began))
    }

    pub(super) fn type_keys(&mut self, keys: &str) -> anyhow::Result<()> {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    /// Discards the output so far.
    pub(super) fn skip(&mut self) {
        while self.output.try_recv().is_ok() {}
        self.text.clear();
    }

    /// Peak memory use in megabytes.
    pub(super) fn peak_mb(&self) -> anyhow::Result<f64> {
        process::peak_mb(self.child.id()).context("no /proc")
    }

    /// Processor time used.
    pub(super) fn used(&self) -> anyhow::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("an odd /proc/stat")?;
        let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second()))
    }

    /// Quits the program with its key.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        // An editor with text keeps the program running, so it is cleared first.
        self.type_keys("\x03\x04")?;
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                drop(self.child.kill());
                self.child.wait()?;
                bail!("the program did not end");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Reads until a condition holds for the output; returns when that was.
    fn read_until(&mut self, holds: impl Fn(&str) -> bool) -> anyhow::Result<Instant> {
        let deadline = Instant::now() + LONGEST;
        loop {
            // A later text may arrive together with an earlier one.
            if holds(&self.text) {
                return Ok(self.read_at);
            }
            let (at, bytes) = match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(read) => read,
                Err(RecvTimeoutError::Timeout) => bail!("it took more than {} s", LONGEST.as_secs()),
                Err(RecvTimeoutError::Disconnected) => bail!("the program ended"),
            };
            // Only a short tail is searched: the whole output may be many megabytes.
            let keep = self.text.len().saturating_sub(256);
            let keep = (keep..=self.text.len()).find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
            self.text.drain(..keep);
            without_sequences(&bytes, &mut self.text);
            self.read_at = at;
        }
    }
}

impl Drop for TerminalRun {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Appends the text without control sequences.
fn without_sequences(bytes: &[u8], text: &mut String) {
    let written = String::from_utf8_lossy(bytes);
    let mut chars = written.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\x1b', Some('[')) => {
                chars.next();
                while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
            ('\x1b', Some(']')) => while chars.next().is_some_and(|c| c != '\x07' && c != '\\') {},
            ('\x1b', _) => drop(chars.next()),
            (c, _) if c.is_control() => {}
            (c, _) => text.push(c),
        }
    }
}
