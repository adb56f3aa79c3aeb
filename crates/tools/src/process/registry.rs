//! The registry of running and finished commands.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinch_machine::{CommandSpec, Exit, Machine, MachineError, ProcessEnd, ProcessInput};
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use pinch_stdx::text::utf8::Utf8Decoder;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::screen::TerminalText;

/// Limits on what is stored about one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLimits {
    /// Characters of output; older output is dropped.
    pub output: usize,
    /// Characters of unread output.
    pub pending: usize,
    /// How long the command is kept after its end.
    pub keep: Duration,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { output: 200_000, pending: 30_000, keep: Duration::from_secs(30 * 60) }
    }
}

/// Limits on stored commands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessLimits {
    /// Number of finished commands.
    pub finished: usize,
    /// Maximum number of commands running at the same time.
    pub running: usize,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self { finished: 50, running: 200 }
    }
}

/// Owns commands. Clones share them; dropping the last clone kills every command with all its descendants. On Linux this also happens if
/// the host is killed.
#[derive(Clone, Default)]
pub struct ProcessRegistry(Arc<RegistryParts>);

/// The end of a background command, for the session that started it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitNotice {
    /// The command's scope: usually the session key.
    pub scope: String,
    /// When the command ended, in milliseconds since the epoch.
    pub ended_ms: i64,
    /// The id of the command, how it ended, and the end of its output.
    pub text: String,
}

/// Called when a background command ends.
pub type ExitListener = dyn Fn(ExitNotice) + Send + Sync;

/// Which ends of background commands are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExitNotices {
    /// None.
    Off,
    /// All except successes without output.
    #[default]
    Usual,
    /// All.
    All,
}

/// How a command is started.
pub(super) struct CommandStart<'a> {
    /// The command as shown in lists.
    pub(super) shown: &'a str,
    pub(super) scope: &'a str,
    pub(super) timeout: Option<Duration>,
    pub(super) notices: ExitNotices,
    pub(super) limits: CommandLimits,
}

#[derive(Default)]
struct RegistryParts {
    limits: ProcessLimits,
    on_exit: Option<Box<ExitListener>>,
    state: Mutex<RegistryState>,
}

#[derive(Default)]
struct RegistryState {
    sessions: Vec<Arc<TrackedCommand>>,
    drivers: JoinSet<()>,
    n_started: u64,
}

/// A command that was started.
pub(super) struct TrackedCommand {
    pub(super) id: String,
    /// The scope in which it is visible.
    pub(super) scope: String,
    pub(super) command: String,
    pub(super) cwd: String,
    pub(super) pid: Option<u32>,
    pub(super) started_ms: i64,
    pub(super) cancel: Cancel,
    pub(super) changed: Notify,
    /// On a terminal, the input cannot be closed: see [`TrackedCommand::write`].
    is_on_terminal: bool,
    notices: ExitNotices,
    limits: CommandLimits,
    input: tokio::sync::Mutex<Option<ProcessInput>>,
    output: Mutex<CommandLog>,
}

/// The output of a command, and how it ended.
#[derive(Default)]
pub(super) struct CommandLog {
    /// Whether the call that started it has returned.
    pub(super) is_backgrounded: bool,
    pub(super) kept: VecDeque<char>,
    pub(super) pending: VecDeque<char>,
    pub(super) is_truncated: bool,
    pub(super) end: Option<(Result<ProcessEnd, String>, i64)>,
    /// Whether the end was reported to the listener, if it is to be.
    is_settled: bool,
    decoder: Utf8Decoder,
    /// Present if the command runs on a terminal.
    screen: Option<TerminalText>,
}

impl CommandLog {
    fn push(&mut self, bytes: &[u8], limits: &CommandLimits) {
        let mut text = String::new();
        self.decoder.push(bytes, &mut text);
        self.show(&text, limits);
    }

    /// Adds decoded output; for a terminal, with control sequences removed.
    fn show(&mut self, text: &str, limits: &CommandLimits) {
        let Some(screen) = &mut self.screen else { return self.add(text, limits) };
        let mut shown = String::with_capacity(text.len());
        screen.push(text, &mut shown);
        self.add(&shown, limits);
    }

    fn add(&mut self, text: &str, limits: &CommandLimits) {
        for c in text.chars().filter(|c| is_shown(*c)) {
            self.kept.push_back(c);
            self.pending.push_back(c);
            if self.kept.len() > limits.output {
                self.kept.pop_front();
                self.is_truncated = true;
            }
            if self.pending.len() > limits.pending {
                self.pending.pop_front();
                self.is_truncated = true;
            }
        }
    }

    /// Returns the retained output.
    pub(super) fn text(&self) -> String {
        self.kept.iter().collect()
    }

    /// Returns the last `n` characters.
    pub(super) fn tail(&self, n: usize) -> String {
        self.kept.iter().skip(self.kept.len().saturating_sub(n)).collect()
    }
}

/// Returns whether a character is shown in a log.
fn is_shown(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r')
        || !(c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
}

/// How a successful command ended, in an exit notice.
const COMPLETED: &str = "completed";
/// Characters of output in an exit notice.
const NOTICE_TAIL: usize = 400;
/// The key that ends the input on a terminal: Ctrl-D.
const END_OF_INPUT: &[u8] = b"\x04";
/// Reply to a cursor position request: the first column of the first row.
const CURSOR_POSITION: &[u8] = b"\x1b[1;1R";
/// Maximum pending replies; programs send one request at a time.
const MAX_ANSWERS: usize = 16;
/// How long a command may take to exit before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long a command may take to read its input.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

impl TrackedCommand {
    pub(super) fn log(&self) -> MutexGuard<'_, CommandLog> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, end: Result<ProcessEnd, String>, now_ms: i64) {
        let mut log = self.log();
        let mut rest = String::new();
        log.decoder.finish(&mut rest);
        log.show(&rest, &self.limits);
        log.end = Some((end, now_ms));
    }

    /// Returns the exit notice of a background command; `None` if it was killed on request, or if the notice is disabled.
    fn exit_notice(&self) -> Option<ExitNotice> {
        let log = self.log();
        let (end, ended_ms) = log.end.as_ref().filter(|_| log.is_backgrounded)?;
        let (word, how) = match end {
            Ok(ProcessEnd::Cancelled(..)) => return None,
            Ok(ProcessEnd::Exited(Exit::Code(0))) => (COMPLETED, "code 0".to_owned()),
            Ok(ProcessEnd::Exited(exit) | ProcessEnd::TimedOut(exit)) => match exit.signal_name() {
                Some(signal) => ("failed", format!("signal {signal}")),
                None => ("failed", format!("code {}", exit.status())),
            },
            Err(error) => ("failed", error.clone()),
        };
        let tail = log.tail(NOTICE_TAIL);
        let tail = tail.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_silent = tail.is_empty() && word == COMPLETED;
        if self.notices == ExitNotices::Off || (is_silent && self.notices == ExitNotices::Usual) {
            return None;
        }
        let id: String = self.id.chars().take(8).collect();
        let tail = if tail.is_empty() { tail } else { format!(" :: {tail}") };
        let text = format!("Exec {word} ({id}, {how}){tail}");
        Some(ExitNotice { scope: self.scope.clone(), ended_ms: *ended_ms, text })
    }

    /// Returns whether the command runs, or its end still has to be reported.
    pub(super) fn is_running(&self) -> bool {
        !self.log().is_settled
    }

    /// Writes to the command's input, and optionally closes it. Returns `None` if the input is not accepting data.
    pub(super) async fn write(&self, data: &[u8], ends: bool) -> Option<()> {
        let mut input = self.input.lock().await;
        let writer = input.as_mut()?;
        let written = async {
            writer.write_all(data).await?;
            if ends && self.is_on_terminal {
                writer.write_all(END_OF_INPUT).await?;
            }
            writer.flush().await
        };
        // On a terminal, a key ends the input, and the next program can keep reading.
        let is_closed = ends && !self.is_on_terminal;
        let is_written = matches!(tokio::time::timeout(WRITE_PATIENCE, written).await, Ok(Ok(())));
        if is_closed || !is_written {
            *input = None;
        }
        is_written.then_some(())
    }

    /// Kills the command and waits until it has ended.
    pub(super) async fn kill(&self) {
        self.cancel.cancel(CancelReason::User);
        self.ended().await;
    }

    pub(super) async fn ended(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.is_running() {
                return;
            }
            changed.await;
        }
    }
}

/// First and second words of ids.
const ADJECTIVES: [&str; 24] = [
    "amber", "bold", "brisk", "calm", "clear", "cool", "crisp", "dawn", "ember", "fast", "fresh", "gentle", "keen",
    "kind", "lucky", "mellow", "mild", "neat", "nimble", "quick", "quiet", "swift", "tidy", "warm",
];
const NOUNS: [&str; 24] = [
    "atlas", "basil", "bloom", "breeze", "canyon", "cedar", "cloud", "comet", "coral", "cove", "crest", "daisy",
    "dune", "falcon", "fjord", "glade", "harbor", "haven", "lagoon", "meadow", "orbit", "reef", "sage", "willow",
];

impl ProcessRegistry {
    /// Creates an empty registry.
    pub fn new(limits: ProcessLimits) -> Self {
        Self(Arc::new(RegistryParts { limits, ..RegistryParts::default() }))
    }

    /// Creates a registry that reports when background commands end, except those killed through it.
    pub fn with_listener(limits: ProcessLimits, on_exit: impl Fn(ExitNotice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(RegistryParts { limits, on_exit: Some(Box::new(on_exit)), ..RegistryParts::default() }))
    }

    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a command, which keeps running unattended.
    pub(super) async fn start(
        &self,
        machine: &dyn Machine,
        spec: CommandSpec,
        how: CommandStart<'_>,
        host: &Host,
    ) -> Result<Arc<TrackedCommand>, MachineError> {
        self.sweep(host.now_ms());
        if self.state().sessions.iter().filter(|session| session.is_running()).count() >= self.0.limits.running {
            let error = std::io::Error::other("too many commands are running; end some of them first");
            return Err(MachineError::new(error, "spawn", None));
        }
        let cwd = spec.cwd.display().to_string();
        let is_on_terminal = spec.terminal.is_some();
        let mut process = machine.spawn(spec).await?;
        let mut state = self.state();
        while state.drivers.try_join_next().is_some() {}
        let session = Arc::new(TrackedCommand {
            id: state.new_id(host),
            scope: how.scope.to_owned(),
            command: how.shown.to_owned(),
            cwd,
            pid: process.id(),
            started_ms: host.now_ms(),
            cancel: Cancel::new(),
            changed: Notify::new(),
            is_on_terminal,
            notices: how.notices,
            limits: how.limits,
            input: tokio::sync::Mutex::new(process.take_input()),
            output: Mutex::new(CommandLog {
                screen: is_on_terminal.then(TerminalText::default),
                ..CommandLog::default()
            }),
        });
        state.sessions.push(Arc::clone(&session));
        let (driven, host) = (Arc::clone(&session), host.clone());
        let timeout = how.timeout;
        // Weak: a running command must not keep the registry that owns it alive.
        let registry = Arc::downgrade(&self.0);
        state.drivers.spawn(async move {
            let (requests, mut requested) = mpsc::channel::<()>(MAX_ANSWERS);
            let mut take = |bytes: &[u8]| {
                let n_requests = {
                    let mut log = driven.log();
                    log.push(bytes, &driven.limits);
                    log.screen.as_mut().map_or(0, TerminalText::take_requests)
                };
                // A program that requests more than it reads gets no reply.
                for _ in 0..n_requests {
                    if requests.try_send(()).is_err() {
                        break;
                    }
                }
                driven.changed.notify_waiters();
            };
            let answering = async {
                while requested.recv().await.is_some() {
                    driven.write(CURSOR_POSITION, false).await;
                }
                std::future::pending().await
            };
            let end = tokio::select! {
                end = process.pump(&driven.cancel, timeout, GRACE, &mut take) => end,
                () = answering => Ok(ProcessEnd::Exited(Exit::Code(0))),
            };
            driven.finish(end.map_err(|error| error.to_string()), host.now_ms());
            if let Some(notice) = driven.exit_notice()
                && let Some(registry) = registry.upgrade()
                && let Some(listener) = &registry.on_exit
            {
                listener(notice);
            }
            driven.log().is_settled = true;
            driven.changed.notify_waiters();
            *driven.input.lock().await = None;
        });
        drop(state);
        Ok(session)
    }

    /// Returns the background commands of a scope, newest first.
    pub(super) fn list(&self, scope: &str, now_ms: i64) -> Vec<Arc<TrackedCommand>> {
        self.sweep(now_ms);
        let state = self.state();
        let is_listed = |session: &&Arc<TrackedCommand>| session.scope == scope && session.log().is_backgrounded;
        state.sessions.iter().rev().filter(is_listed).cloned().collect()
    }

    /// Returns the command with an id.
    pub(super) fn find(&self, scope: &str, id: &str) -> Option<Arc<TrackedCommand>> {
        self.state().sessions.iter().find(|session| session.scope == scope && session.id == id).cloned()
    }

    /// Removes a command.
    pub(super) fn forget(&self, id: &str) {
        self.state().sessions.retain(|session| session.id != id);
    }

    /// Removes commands that ended long ago, and the oldest beyond the limit.
    fn sweep(&self, now_ms: i64) {
        let keep = |session: &TrackedCommand| i64::try_from(session.limits.keep.as_millis()).unwrap_or(i64::MAX);
        let mut state = self.state();
        let ended = |session: &TrackedCommand| session.log().end.as_ref().map(|(_, at)| *at);
        state.sessions.retain(|session| ended(session).is_none_or(|at| now_ms.saturating_sub(at) < keep(session)));
        let n_ended = state.sessions.iter().filter(|session| ended(session).is_some()).count();
        let mut n_over = n_ended.saturating_sub(self.0.limits.finished);
        state.sessions.retain(|session| {
            let goes = n_over > 0 && ended(session).is_some();
            n_over -= usize::from(goes);
            !goes
        });
    }
}

impl RegistryState {
    /// Returns two words that no other command has as its id, with a number if all are taken.
    fn new_id(&mut self, host: &Host) -> String {
        self.n_started += 1;
        let random = host.ids().hex8();
        let number = usize::from_str_radix(&random, 16).unwrap_or_default();
        let words =
            format!("{}-{}", ADJECTIVES[number % ADJECTIVES.len()], NOUNS[(number / ADJECTIVES.len()) % NOUNS.len()]);
        match self.sessions.iter().any(|session| session.id == words) {
            false => words,
            true => format!("{words}-{}", self.n_started),
        }
    }
}
