//! Signals to a whole process group.

#[cfg(unix)]
use super::strays;
use super::strays::Stray;

/// A process group, named by its leader.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(Option<rustix::process::Pid>);

#[cfg(unix)]
impl Group {
    pub(super) fn of(leader: Option<u32>) -> Self {
        Self(leader.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw))
    }

    /// Asks every process of the group to end, and those that left it, which are told. The group is halted first: otherwise a shell whose
    /// command dies would begin the next one before the signal reaches it.
    pub(super) fn end(self) -> Vec<Stray> {
        use rustix::process::Signal;
        self.send(Signal::STOP);
        let strays = self.strays();
        send_to(&strays, Signal::TERM);
        self.send(Signal::TERM);
        self.send(Signal::CONT);
        strays
    }

    /// Kills every process of the group, and these that have left it.
    pub(super) fn kill(self, strays: &[Stray]) {
        use rustix::process::Signal;
        self.send(Signal::KILL);
        send_to(strays, Signal::KILL);
    }

    /// Those that have left the group. To be asked while its leader lives: afterwards its id may be somebody else's.
    pub(super) fn strays(self) -> Vec<Stray> {
        self.0.and_then(|leader| u32::try_from(leader.as_raw_nonzero().get()).ok()).map(strays::of).unwrap_or_default()
    }

    fn send(self, signal: rustix::process::Signal) {
        if let Some(leader) = self.0 {
            // The one error is that nobody is left, which is what we want.
            rustix::process::kill_process_group(leader, signal).ok();
        }
    }
}

#[cfg(unix)]
fn send_to(strays: &[Stray], signal: rustix::process::Signal) {
    let ids = strays.iter().filter_map(|stray| i32::try_from(stray.id()?).ok());
    for id in ids.filter_map(rustix::process::Pid::from_raw) {
        // Who is gone is what we want, and who belongs to another user by now is out of reach.
        rustix::process::kill_process(id, signal).ok();
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

    pub(super) fn end(self) -> Vec<Stray> {
        Vec::new()
    }

    pub(super) fn kill(self, _: &[Stray]) {}

    pub(super) fn strays(self) -> Vec<Stray> {
        Vec::new()
    }
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
