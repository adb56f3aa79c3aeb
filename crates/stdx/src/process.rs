//! Child processes that are stopped with all their descendants.
//!
//! Each child leads its own process group, so that the whole tree can be stopped: on cancellation, on timeout, or when the value is
//! dropped. Background processes that a child leaves running after a regular exit (`server &`) keep running, except with
//! [`ChildTree::ending_rest`].
//!
//! Descendants that have left the group are stopped as well. On Linux each child has an id in the environment variable `PINCH_PROCESS`,
//! which its descendants inherit, so that even daemons in another session are found. A descendant that keeps neither its parent nor the
//! variable escapes (`(env -u PINCH_PROCESS setsid server &)`). If this program is killed while children run, another process, started with
//! the first child, ends them in its place. On other Unix systems descendants without a parent escape, and on systems
//! without process groups all descendants do.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::Instant;

mod alive;
mod mark;
mod watchdog;
#[cfg(unix)]
mod table;
#[cfg(unix)]
mod family;
#[cfg(target_os = "linux")]
mod hunt;
#[cfg(unix)]
mod strays;
mod group;
mod reaper;
#[cfg(unix)]
mod last_will;
#[cfg(all(unix, feature = "pty"))]
mod terminal;
pub mod tail;

pub use alive::{is_alive, start_ticks};
#[cfg(unix)]
pub use last_will::LastWill;
pub use reaper::wait_for_killed;
pub use tail::OutputTail;
pub use watchdog::start_watchdog;

use crate::cancel::{Cancel, CancelReason};
use group::ProcessGroup;
use watchdog::RunningMark;

/// After the child has exited, output of its descendants is read as long as some arrives at least this often…
const QUIET: Duration = Duration::from_millis(100);
/// … but not longer than this: a background server may print forever.
const LONGEST_DRAIN: Duration = Duration::from_secs(1);

/// A running child with all its descendants. Dropping it before it has ended kills them: the child's group immediately, and those that have
/// left the group on a separate thread; see [`wait_for_killed`].
#[derive(Debug)]
pub struct ChildTree {
    /// Present until this is dropped.
    child: Option<Child>,
    group: ProcessGroup,
    /// Whether the whole process tree was asked to terminate.
    is_terminating: bool,
    exit: Option<Exit>,
    /// Whether what the child leaves running is still to be ended.
    ends_rest: bool,
    /// Present while descendants are to be ended if this program is killed.
    running: Option<RunningMark>,
}

/// Exit status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// It was terminated by this signal.
    Signal(i32),
}

impl Exit {
    /// Returns the status as in shells: the code, or 128 plus the signal's number.
    pub fn status(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// Returns whether it exited with code 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// Returns the signal's name, e.g. `SIGKILL`.
    pub fn signal_name(self) -> Option<String> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(group::signal_name(signal)),
        }
    }

    fn of(status: std::process::ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::Signal(signal);
        }
        Self::Code(status.code().unwrap_or(-1))
    }
}

/// How a process ended, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited by itself.
    Exited(Exit),
    /// It timed out; it was terminated with all its descendants.
    TimedOut(Exit),
    /// The caller cancelled; it was terminated with all its descendants.
    Cancelled(CancelReason, Exit),
}

/// Reasons why a process could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The working directory does not exist.
    #[error("working directory does not exist: {}", path.display())]
    MissingDir {
        /// The directory.
        path: PathBuf,
    },
    /// The system reported an error.
    #[error("cannot start {program}")]
    Io {
        /// The program.
        program: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl ChildTree {
    /// Starts a command in its own process group, with its output piped and its input empty. If the system supports it, both outputs share
    /// one pipe, so that their order is kept; [`ChildTree::take_stdout`] returns both then.
    ///
    /// # Errors
    /// Returns [`SpawnError`] if the command cannot be started.
    pub fn spawn(mut command: std::process::Command) -> Result<Self, SpawnError> {
        command.stdin(Stdio::null());
        Self::spawn_with_output(command)
    }

    /// Like [`ChildTree::spawn`], with an input that [`ChildTree::take_stdin`] returns.
    ///
    /// # Errors
    /// Returns [`SpawnError`] if the command cannot be started.
    pub fn spawn_with_input(mut command: std::process::Command) -> Result<Self, SpawnError> {
        command.stdin(Stdio::piped());
        Self::spawn_with_output(command)
    }

    fn spawn_with_output(command: std::process::Command) -> Result<Self, SpawnError> {
        #[cfg(unix)]
        let spawned = Self::spawn_on_one_pipe(command);
        #[cfg(not(unix))]
        let spawned = {
            let mut command = command;
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            Self::spawn_as_is(command)
        };
        spawned
    }

    #[cfg(unix)]
    fn spawn_on_one_pipe(mut command: std::process::Command) -> Result<Self, SpawnError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |source| SpawnError::Io { program: program.clone(), source };
        let (reader, writer) = io::pipe().map_err(failed)?;
        command.stdout(writer.try_clone().map_err(failed)?).stderr(writer);
        let reader = std::process::ChildStdout::from(std::os::fd::OwnedFd::from(reader));
        // This drops the command and our write ends, so that the pipe ends with the child's.
        let mut process = Self::spawn_as_is(command)?;
        let reader = ChildStdout::from_std(reader).map_err(failed)?;
        if let Some(child) = &mut process.child {
            child.stdout = Some(reader);
        }
        Ok(process)
    }

    /// Starts a command in its own process group, with the command's own input and output.
    ///
    /// # Errors
    /// Returns [`SpawnError`] if the command cannot be started.
    pub fn spawn_as_is(mut command: std::process::Command) -> Result<Self, SpawnError> {
        let mark = ProcessGroup::prepare(&mut command);
        let running = RunningMark::begin(&mut command, &mark);
        let program = command.get_program().to_string_lossy().into_owned();
        let dir = command.get_current_dir().map(PathBuf::from);
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        match command.spawn() {
            Ok(child) => Ok(Self {
                group: ProcessGroup::of(child.id(), mark),
                is_terminating: false,
                child: Some(child),
                exit: None,
                ends_rest: false,
                running: Some(running),
            }),
            // The system reports a missing program and a missing directory in the same way.
            Err(source) => match dir.filter(|dir| !dir.is_dir()) {
                Some(path) => Err(SpawnError::MissingDir { path }),
                None => Err(SpawnError::Io { program, source }),
            },
        }
    }

    /// Makes [`ChildTree::pump`], or dropping this, also end what the child leaves running when it exits by itself.
    #[must_use]
    pub fn ending_rest(mut self) -> Self {
        self.ends_rest = true;
        self
    }

    /// Returns the process id, or `None` once its end was observed.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref()?.id()
    }

    /// Takes the child's input; returns it only once.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.as_mut()?.stdin.take()
    }

    /// Takes the child's output; returns it only once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.as_mut()?.stdout.take()
    }

    /// Takes the child's error output; returns it only once.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.as_mut()?.stderr.take()
    }

    /// Waits until the child has exited. Cancel safe.
    ///
    /// # Errors
    /// Returns the system's error.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        let Some(child) = &mut self.child else { return Err(io::ErrorKind::NotFound.into()) };
        let exit = Exit::of(child.wait().await?);
        self.exit = Some(exit);
        if !self.is_terminating && !self.ends_rest {
            // What it has left running is meant to keep running.
            self.running = None;
        }
        Ok(exit)
    }

    /// Stops the child with all descendants that can be found: they are halted, so that they start nothing new, asked to terminate, and
    /// killed if the child is still alive after `grace`. When this returns, none of them is running. Searching for processes that have left
    /// the group blocks for a few milliseconds, and for seconds if they multiply. If the future is dropped, they have at least been asked
    /// to terminate; dropping the process kills them.
    ///
    /// # Errors
    /// Returns the system's error.
    pub async fn terminate(&mut self, grace: Duration) -> io::Result<Exit> {
        self.end_family();
        let exit = match tokio::time::timeout(grace, self.wait()).await {
            Ok(exit) => exit,
            Err(_) => {
                self.kill();
                self.wait().await
            }
        };
        self.kill();
        exit
    }

    /// Kills immediately: the child with all its descendants, as found by [`ChildTree::terminate`]. If the child has exited by itself, only
    /// processes that are still in its group: others may be meant to keep running.
    pub fn kill(&mut self) {
        let has_leader = self.exit.is_none();
        if has_leader || self.is_terminating {
            self.group.kill(has_leader);
        } else {
            self.group.kill_known();
        }
    }

    /// Runs the child to its end, passing output and error output to `on_data` in order of arrival.
    ///
    /// On `cancel`, or after `timeout`, everything is stopped as in [`ChildTree::terminate`]; its remaining output is still passed on.
    /// After the child has exited, output of its descendants is read only for a moment, so that a background process cannot delay the call.
    /// Dropping the future does not stop anything; dropping the process does.
    ///
    /// # Errors
    /// Returns the system's error.
    pub async fn pump(
        &mut self,
        cancel: &Cancel,
        timeout: Option<Duration>,
        grace: Duration,
        on_data: &mut (dyn FnMut(&[u8]) + Send),
    ) -> io::Result<ProcessEnd> {
        let (mut out, mut err) = (self.take_stdout(), self.take_stderr());
        let (mut out_buffer, mut err_buffer) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
        let end_of_time = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut stopped: Option<Option<CancelReason>> = None;
        let mut kill_at: Option<Instant> = None;
        let mut drain: Option<OutputDrain> = None;
        while self.exit.is_none() || out.is_some() || err.is_some() {
            let is_running = self.exit.is_none();
            tokio::select! {
                read = read_from(&mut out, &mut out_buffer), if out.is_some() => {
                    handle(read, &mut out, &out_buffer, &mut drain, on_data);
                }
                read = read_from(&mut err, &mut err_buffer), if err.is_some() => {
                    handle(read, &mut err, &err_buffer, &mut drain, on_data);
                }
                exit = self.wait(), if is_running => {
                    exit?;
                    drain = Some(OutputDrain::begin());
                }
                reason = cancel.cancelled(), if is_running && stopped.is_none() => {
                    stopped = Some(Some(reason));
                    self.end_family();
                    kill_at = Some(Instant::now() + grace);
                }
                () = sleep_until(end_of_time), if is_running && stopped.is_none() && end_of_time.is_some() => {
                    stopped = Some(None);
                    self.end_family();
                    kill_at = Some(Instant::now() + grace);
                }
                () = sleep_until(kill_at), if is_running && kill_at.is_some() => {
                    self.kill();
                    kill_at = None;
                }
                () = sleep_until(drain.as_ref().map(OutputDrain::until)), if drain.is_some() => break,
            }
        }
        let exit = self.wait().await?;
        Ok(match stopped {
            None => {
                self.end_rest().await;
                ProcessEnd::Exited(exit)
            }
            Some(why) => {
                self.kill();
                self.ends_rest = false;
                why.map_or(ProcessEnd::TimedOut(exit), |reason| ProcessEnd::Cancelled(reason, exit))
            }
        })
    }

    /// Kills what the child has left running, if that is wanted.
    async fn end_rest(&mut self) {
        if !self.ends_rest {
            return;
        }
        let mut group = self.group.clone();
        // On another thread, because searching blocks. If it cannot be started, dropping this is the next chance.
        if tokio::task::spawn_blocking(move || group.kill(false)).await.is_ok() {
            self.ends_rest = false;
            self.running = None;
        }
    }

    fn end_family(&mut self) {
        if self.exit.is_none() {
            self.group.end();
            self.is_terminating = true;
        }
    }
}

impl Drop for ChildTree {
    fn drop(&mut self) {
        let has_leader = self.exit.is_none();
        if (has_leader || self.ends_rest)
            && let Some(child) = self.child.take()
        {
            reaper::kill_aside(child, has_leader, std::mem::take(&mut self.group), self.running.take());
        }
    }
}

/// Reads the last output after the child has exited.
struct OutputDrain {
    last_data: Instant,
    longest: Instant,
}

impl OutputDrain {
    fn begin() -> Self {
        let now = Instant::now();
        Self { last_data: now, longest: now + LONGEST_DRAIN }
    }

    fn until(&self) -> Instant {
        (self.last_data + QUIET).min(self.longest)
    }
}

async fn read_from<R: AsyncRead + Unpin>(reader: &mut Option<R>, buffer: &mut [u8]) -> io::Result<usize> {
    match reader {
        Some(reader) => reader.read(buffer).await,
        None => std::future::pending().await,
    }
}

/// Passes on the data that was read; an end or error of the pipe closes it.
fn handle<R>(
    read: io::Result<usize>,
    reader: &mut Option<R>,
    buffer: &[u8],
    drain: &mut Option<OutputDrain>,
    on_data: &mut (dyn FnMut(&[u8]) + Send),
) {
    match read {
        Ok(0) | Err(_) => *reader = None,
        Ok(n_read) => {
            on_data(&buffer[..n_read]);
            if let Some(drain) = drain {
                drain.last_data = Instant::now();
            }
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
