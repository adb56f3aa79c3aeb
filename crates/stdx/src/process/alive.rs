//! Checks whether a process recorded by another one is still running.

/// Returns whether a process is running. If the system cannot be asked, it counts as running; a zombie does not.
#[cfg(unix)]
pub fn is_alive(id: u32) -> bool {
    let Some(pid) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    if stat(id).is_some_and(|stat| matches!(stat.split(' ').next(), Some("Z" | "X"))) {
        return false;
    }
    // Any other error means that the process exists and belongs to another user.
    rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

/// Returns whether a process is running. If the system cannot be asked, it counts as running.
#[cfg(not(unix))]
pub fn is_alive(id: u32) -> bool {
    id != 0
}

/// Returns when a process started, in ticks since boot, which distinguishes processes with the same id. `None` if the system does not
/// report it.
pub fn start_ticks(id: u32) -> Option<u64> {
    // The 22nd field; the first two are cut off.
    stat(id)?.split(' ').nth(19)?.parse().ok()
}

/// Returns Linux's status of a process, from the third field on: the second is its name, which may contain anything.
pub(super) fn stat(id: u32) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let bytes = std::fs::read(format!("/proc/{id}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.rsplit_once(") ").map(|(_, rest)| rest.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive() {
        assert!(is_alive(std::process::id()));
        assert_eq!(start_ticks(std::process::id()).is_some(), cfg!(target_os = "linux"));
    }

    #[test]
    fn unused_ids_are_not_alive() {
        assert!(!is_alive(0));
        assert_eq!(is_alive(u32::MAX), !cfg!(unix));
        assert_eq!(start_ticks(u32::MAX), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let id = child.id();
        while is_alive(id) {
            std::thread::yield_now(); // not reaped, so its id cannot be reused
        }
        child.wait().unwrap();
        assert!(!is_alive(id));
    }
}
