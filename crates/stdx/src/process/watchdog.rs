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
    pub(super) fn begin(_: &super::mark::ProcessMark) -> Self {
        Self
    }

    pub(super) fn started(&self, _: Option<u32>) {}
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, Write as _};
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
        /// Records that a command with this mark is about to start.
        pub(in super::super) fn begin(mark: &ProcessMark) -> Self {
            watchdog().send(&format!("+ {} 0\n", mark.id()));
            Self(mark.clone())
        }

        /// Records the process group of the command.
        pub(in super::super) fn started(&self, pid: Option<u32>) {
            if let Some(pid) = pid {
                watchdog().send_if_running(&format!("- {0}\n+ {0} {pid}\n", self.0.id()));
            }
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
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
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
