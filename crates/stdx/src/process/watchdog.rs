//! Ends running commands when this program is killed and cannot do it itself. On Linux only.

#[cfg(target_os = "linux")]
pub(super) use linux::RunningMark;
#[cfg(target_os = "linux")]
pub use linux::start_watchdog;

/// Starts nothing: descendants of commands cannot be found here.
#[cfg(not(target_os = "linux"))]
pub fn start_watchdog() {}

/// A running command, which nothing watches here.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) struct RunningMark;

#[cfg(not(target_os = "linux"))]
impl RunningMark {
    pub(super) fn begin(_: &mut std::process::Command, _: &super::mark::ProcessMark) -> Self {
        Self
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, Write as _};
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::io::ioctl_fionbio;

    use super::super::mark::ProcessMark;

    /// Reads which commands are running until its input ends, which it does when this program is gone. Then it kills each command's group, and
    /// every process that inherited the command's id, until none is left.
    const SCRIPT: &str = r#"
ids=' '
while read -r op id pid; do
    case $op in
        +) ids="$ids$id:$pid " ;;
        -) case $ids in *" $id:"*)
            rest=${ids#*" $id:"}
            ids="${ids%%" $id:"*} ${rest#* }" ;;
        esac ;;
    esac
done
set --
for entry in $ids; do
    [ "${entry#*:}" = 0 ] || kill -s KILL -- "-${entry#*:}"
    set -- "$@" -e "${entry%:*}"
done
n=0
while [ $# -gt 0 ] && [ $n -lt 1000 ]; do
    # Its status is useless: some processes cannot be read, and others end meanwhile.
    files=$(grep -ls "$@" /proc/[0-9]*/environ)
    [ -n "$files" ] || break
    for file in $files; do
        file=${file#/proc/}
        kill -s KILL "${file%/environ}"
    done
    n=$((n + 1))
done
"#;

    /// The process that outlives this one. Global, because processes belong to the whole program.
    static WATCHDOG: Mutex<Watchdog> = Mutex::new(Watchdog::Unused);

    enum Watchdog {
        Unused,
        Running(Child),
        /// It cannot be started, as on a system without a shell.
        Unavailable,
    }

    /// Starts the process that ends running commands when this program is killed, if it is not running yet. The first command does so too:
    /// call this before a thread that starts commands gives up permissions, which would be those of the process as well.
    pub fn start_watchdog() {
        watchdog().start();
    }

    fn watchdog() -> MutexGuard<'static, Watchdog> {
        WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl Watchdog {
        fn start(&mut self) {
            if matches!(self, Self::Unused) {
                *self = spawn().map_or(Self::Unavailable, Self::Running);
            }
        }

        /// Sends lines. A process that was killed or halted meanwhile is replaced.
        fn send(&mut self, lines: &str) {
            for _ in 0..2 {
                self.start();
                let Self::Running(child) = self else { return };
                if write(child, lines).is_ok() {
                    return;
                }
                self.stop();
            }
        }

        /// Sends lines that only matter to a running process.
        fn send_if_running(&mut self, lines: &str) {
            if let Self::Running(child) = self
                && write(child, lines).is_err()
            {
                self.stop();
            }
        }

        /// Returns another end of its input.
        fn input(&self) -> Option<OwnedFd> {
            let Self::Running(child) = self else { return None };
            child.stdin.as_ref()?.as_fd().try_clone_to_owned().ok()
        }

        fn stop(&mut self) {
            if let Self::Running(mut child) = std::mem::replace(self, Self::Unused) {
                // Killed first, so that it does not take the end of its input for the end of this program.
                drop(child.kill());
                drop(child.wait());
            }
        }
    }

    /// A command that is running. Dropping it records that the command has ended; processes that it left running are not affected any more.
    #[derive(Debug)]
    pub(in super::super) struct RunningMark(ProcessMark);

    impl RunningMark {
        /// Records that a command with this mark is about to start, and makes it record its process group when it does.
        pub(in super::super) fn begin(command: &mut Command, mark: &ProcessMark) -> Self {
            let mut watchdog = watchdog();
            watchdog.send(&format!("+ {} 0\n", mark.id()));
            if let Some(input) = watchdog.input() {
                record_group(command, mark, input);
            }
            Self(mark.clone())
        }
    }

    /// Makes a command tell the watchdog the id of its process, which leads its group. This program could do so only after the command has
    /// begun to run, and may be killed in between. The command has the watchdog's input open until it runs, so that the line is read before
    /// the end of the input.
    fn record_group(command: &mut Command, mark: &ProcessMark, input: OwnedFd) {
        let begin = format!("- {0}\n+ {0} ", mark.id());
        let record = move || {
            let mut line = [0; 128];
            let mut rest = &mut line[..];
            // The buffer is large enough.
            writeln!(rest, "{begin}{}", std::process::id())?;
            let n_left = rest.len();
            // Without the line, the command is still found by its mark.
            rustix::io::write(&input, &line[..line.len() - n_left]).ok();
            Ok(())
        };
        // SAFETY: after the fork, the closure formats a number into its own memory and makes a system call. It allocates no memory and takes
        // no locks.
        #[expect(unsafe_code, reason = "there is no other way to run code between fork and exec")]
        unsafe {
            command.pre_exec(record);
        }
    }

    impl Drop for RunningMark {
        fn drop(&mut self) {
            watchdog().send_if_running(&format!("- {}\n", self.0.id()));
        }
    }

    fn spawn() -> io::Result<Child> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).current_dir("/").env_clear().env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Signals from the terminal of this program must not reach it.
        command.process_group(0);
        let child = command.spawn()?;
        if let Some(input) = &child.stdin {
            // A process that does not read must not block commands.
            ioctl_fionbio(input, true)?;
        }
        Ok(child)
    }

    /// Writes lines, which are short enough to be written as a whole or not at all.
    fn write(child: &mut Child, lines: &str) -> io::Result<()> {
        child.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(lines.as_bytes())
    }
}
