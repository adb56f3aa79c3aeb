//! Signals to a process group, and to members of its family that have left it.

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

#[cfg(unix)]
use super::family::{ProcessFamily, Stray};
use super::mark::ProcessMark;

/// A process group, identified by its leader, and the leader's family.
#[cfg(unix)]
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessGroup {
    family: Option<(Pid, ProcessFamily)>,
    /// Processes that have left the group and were asked to terminate.
    strays: Vec<Stray>,
}

#[cfg(unix)]
impl ProcessGroup {
    /// Prepares a command to lead a group. Pass the mark to [`ProcessGroup::of`].
    pub(super) fn prepare(command: &mut std::process::Command) -> ProcessMark {
        std::os::unix::process::CommandExt::process_group(command, 0);
        ProcessMark::put_on(command)
    }

    pub(super) fn of(leader: Option<u32>, mark: ProcessMark) -> Self {
        let pid = leader.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Self { family: leader.and_then(|id| Some((pid?, ProcessFamily::of(id, mark)))), strays: Vec::new() }
    }

    /// Asks every process of the family to terminate. All are halted first: otherwise a shell whose command dies would start the next one
    /// before the signal reaches it. Call this before the leader has been reaped.
    pub(super) fn end(&mut self) {
        self.halt(true);
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    /// Kills every process of the family. `has_leader` means that the leader has not been reaped.
    pub(super) fn kill(&mut self, has_leader: bool) {
        // Some descendants can only be found through their parents, so search before killing.
        self.halt(has_leader);
        self.kill_known();
        if let Some((_, family)) = &self.family {
            family.find(has_leader, &mut self.strays, kill);
        }
    }

    /// Kills the rest of the group, and the processes that were asked to terminate.
    pub(super) fn kill_known(&self) {
        self.send(Signal::KILL);
    }

    /// Halts the group, so that it starts nothing new. Processes that have left it continue.
    pub(super) fn halt_known(&self) {
        self.send(Signal::STOP);
    }

    fn halt(&mut self, has_leader: bool) {
        self.send(Signal::STOP);
        if let Some((_, family)) = &self.family {
            family.find(has_leader, &mut self.strays, halt);
        }
    }

    fn send(&self, signal: Signal) {
        if let Some((leader, _)) = &self.family {
            // The only error is that no process is left, which is the goal.
            kill_process_group(*leader, signal).ok();
        }
        // Checked right before sending: the id of an ended process may have been reused.
        Stray::living(&self.strays).into_iter().for_each(|stray| send_to(stray, signal));
    }
}

#[cfg(unix)]
fn halt(stray: Stray) {
    send_to(stray, Signal::STOP);
}

#[cfg(unix)]
fn kill(stray: Stray) {
    send_to(stray, Signal::KILL);
}

#[cfg(unix)]
fn send_to(stray: Stray, signal: Signal) {
    if let Some(id) = i32::try_from(stray.id).ok().and_then(Pid::from_raw) {
        // A process that is gone is fine, and one that belongs to another user by now is out of reach.
        kill_process(id, signal).ok();
    }
}

/// Without process groups only the child itself can be killed, which tokio does.
#[cfg(not(unix))]
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessGroup;

#[cfg(not(unix))]
impl ProcessGroup {
    pub(super) fn prepare(command: &mut std::process::Command) -> ProcessMark {
        ProcessMark::put_on(command)
    }

    pub(super) fn of(_: Option<u32>, _: ProcessMark) -> Self {
        Self
    }

    pub(super) fn end(&mut self) {}

    pub(super) fn kill(&mut self, _: bool) {}

    pub(super) fn kill_known(&self) {}

    pub(super) fn halt_known(&self) {}
}

/// Returns the name of a signal, or its number if the name is not universal.
pub(super) fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
