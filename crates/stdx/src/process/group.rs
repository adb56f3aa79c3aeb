//! Signals to a whole process group.

/// A process group, named by its leader.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(Option<rustix::process::Pid>);

#[cfg(unix)]
impl Group {
    pub(super) fn of(leader: Option<u32>) -> Self {
        Self(leader.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw))
    }

    /// Asks every process of the group to end. The group is halted first: otherwise a shell whose command dies would begin the next one
    /// before the signal reaches it.
    pub(super) fn end(self) {
        use rustix::process::Signal;
        self.send(Signal::STOP);
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    /// Kills every process of the group.
    pub(super) fn kill(self) {
        self.send(rustix::process::Signal::KILL);
    }

    fn send(self, signal: rustix::process::Signal) {
        if let Some(leader) = self.0 {
            // The one error is that nobody is left, which is what we want.
            rustix::process::kill_process_group(leader, signal).ok();
        }
    }
}

/// Without process groups only the child itself can be killed, which tokio does.
#[cfg(not(unix))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Group;

#[cfg(not(unix))]
impl Group {
    pub(super) fn of(_: Option<u32>) -> Self {
        Self
    }

    pub(super) fn end(self) {}

    pub(super) fn kill(self) {}
}

/// The name of a signal; the number where the name is not known everywhere.
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
