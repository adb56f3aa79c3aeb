//! Commands on a pseudoterminal.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use tokio::process::{ChildStdin, ChildStdout};

use super::group::ProcessGroup;
use super::mark::ProcessMark;
use super::watchdog::RunningMark;
use super::{ChildTree, SpawnError};

impl ChildTree {
    /// Starts a command on its own pseudoterminal of this size in characters, which is its input and its output; it leads its own session.
    /// [`ChildTree::take_stdin`] accepts keys, and [`ChildTree::take_stdout`] returns the output. Dropping the input does not end it:
    /// Ctrl-D ends the input of most programs. Ctrl-C works even if this process ignores SIGINT, which commands usually inherit: on a new
    /// terminal, signals have their default effects.
    ///
    /// # Errors
    /// Returns [`SpawnError`] if the command cannot be started.
    pub fn spawn_on_terminal(mut command: std::process::Command, columns: u16, rows: u16) -> Result<Self, SpawnError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let dir = command.get_current_dir().map(std::path::PathBuf::from).filter(|dir| !dir.is_dir());
        let failed = |source: io::Error| SpawnError::Io { program: program.clone(), source };
        if let Some(path) = dir {
            return Err(SpawnError::MissingDir { path });
        }
        // A session leader also leads a process group.
        let mark = ProcessMark::put_on(&mut command);
        let running = RunningMark::begin(&mut command, &mark);
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        let opened = || -> Result<_, pty_process::Error> {
            let (terminal, side_of_command) = pty_process::open()?;
            terminal.resize(pty_process::Size::new(rows, columns))?;
            let ends: (OwnedFd, OwnedFd) =
                (terminal.as_fd().try_clone_to_owned()?, terminal.as_fd().try_clone_to_owned()?);
            let child = with_default_signals(command.into()).spawn(side_of_command)?;
            Ok((child, ends))
        };
        let (mut child, (input, output)) = opened().map_err(|error| failed(into_io(error)))?;
        let group = ProcessGroup::of(child.id(), mark);
        let mut tree =
            Self { group, is_terminating: false, child: None, exit: None, ends_rest: false, running: Some(running) };
        let input = ChildStdin::from_std(std::process::ChildStdin::from(input));
        let output = ChildStdout::from_std(std::process::ChildStdout::from(output));
        let ends = input.and_then(|input| Ok((input, output?)));
        let ends = ends.map(|(input, output)| (child.stdin, child.stdout) = (Some(input), Some(output)));
        tree.child = Some(child);
        // Dropping it kills the command.
        ends.map(|()| tree).map_err(failed)
    }
}

/// Signals that a shell, a terminal or a service manager may have made this process ignore.
const IGNORABLE: [libc::c_int; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGALRM,
    libc::SIGCHLD,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

/// Returns a command that ignores no signal when it starts: otherwise it inherits which ones this process ignores.
fn with_default_signals(command: pty_process::Command) -> pty_process::Command {
    let reset = || {
        for signal in IGNORABLE {
            // SAFETY: the call is async-signal-safe, and installs no handler.
            #[expect(unsafe_code, reason = "rustix has no safe wrapper")]
            let previous = unsafe { libc::signal(signal, libc::SIG_DFL) };
            if previous == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: after the fork, the closure only makes system calls. It allocates no memory and takes no locks.
    #[expect(unsafe_code, reason = "there is no other way to run code between fork and exec")]
    unsafe {
        command.pre_exec(reset)
    }
}

fn into_io(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}
