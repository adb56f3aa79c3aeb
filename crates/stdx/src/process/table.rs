//! The process table of this machine, with parents.

/// A process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessRow {
    pub(super) id: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    /// Start time, in system-specific units. Together with the id it identifies the process.
    pub(super) started: u64,
    /// Whether it is a zombie.
    pub(super) is_dead: bool,
}

#[cfg(target_os = "linux")]
pub(super) use linux::{ids, now, of, row};
#[cfg(not(target_os = "linux"))]
pub(super) use ps::{now, of};

#[cfg(target_os = "linux")]
mod linux {
    use super::ProcessRow;
    use crate::process::alive::stat;

    /// Returns the ids of all processes.
    pub(in super::super) fn ids() -> impl Iterator<Item = u32> {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    /// Returns all processes.
    pub(in super::super) fn now() -> Vec<ProcessRow> {
        ids().filter_map(row).collect()
    }

    /// Returns those of these processes that exist.
    pub(in super::super) fn of(ids: &[u32]) -> Vec<ProcessRow> {
        ids.iter().filter_map(|id| row(*id)).collect()
    }

    /// Returns a process, if it exists.
    pub(in super::super) fn row(id: u32) -> Option<ProcessRow> {
        let stat = stat(id)?;
        let mut fields = stat.split(' ');
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(ProcessRow { id, parent, group, started: fields.nth(16)?.parse().ok()?, is_dead })
    }
}

/// Uses the system's `ps` where there is no `/proc`. Its tests run on Linux as well.
#[cfg(any(test, not(target_os = "linux")))]
mod ps {
    use std::io::Read as _;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::ProcessRow;

    /// Time limit of the program.
    const PATIENCE: Duration = Duration::from_secs(1);
    /// Maximum bytes of its output that are read: more than a hundred thousand processes.
    const MAX_ANSWER: u64 = 16 * 1024 * 1024;

    /// Returns all processes, or none if the program does not respond.
    pub(in super::super) fn now() -> Vec<ProcessRow> {
        ask(&["-ax"])
    }

    /// Returns those of these processes that exist.
    pub(in super::super) fn of(ids: &[u32]) -> Vec<ProcessRow> {
        let list: Vec<String> = ids.iter().map(u32::to_string).collect();
        if list.is_empty() { Vec::new() } else { ask(&["-p", &list.join(",")]) }
    }

    fn ask(whom: &[&str]) -> Vec<ProcessRow> {
        let mut command = Command::new("/bin/ps");
        command.args(whom).args(["-o", "pid=,ppid=,pgid=,state=,lstart="]).current_dir("/");
        command.env_clear().env("LC_ALL", "C").env("TZ", "UTC");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { return Vec::new() };
        let (sender, receiver) = mpsc::sync_channel(1);
        let reading = child.stdout.take().and_then(|answer| {
            let read = move || {
                let mut text = Vec::new();
                drop(answer.take(MAX_ANSWER).read_to_end(&mut text));
                drop(sender.send(text));
            };
            std::thread::Builder::new().spawn(read).ok()
        });
        let answer = reading.and_then(|_| receiver.recv_timeout(PATIENCE).ok());
        child.kill().ok();
        child.wait().ok();
        let answer = answer.unwrap_or_default();
        String::from_utf8_lossy(&answer).lines().filter_map(parse).collect()
    }

    /// Parses `PID PPID PGID STATE Sun Nov 22 12:55:17 2026`.
    fn parse(line: &str) -> Option<ProcessRow> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [id, parent, group, state, _, month, day, time, year] = fields[..] else { return None };
        let month = MONTHS.iter().position(|name| *name == month)?;
        let digits: String = time.split(':').collect();
        let started = format!("{year}{month:02}{day:0>2}{digits}").parse().ok()?;
        let [id, parent, group] = [id, parent, group].map(|number| number.parse().ok());
        Some(ProcessRow { id: id?, parent: parent?, group: group?, started, is_dead: state.starts_with('Z') })
    }

    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn ps_output_of_both_system_families_is_parsed() {
            let of_mac = "  501     1   501 Ss   Thu Jan  1 00:00:09 1970    ";
            let wanted = ProcessRow { id: 501, parent: 1, group: 501, started: 19_700_001_000_009, is_dead: false };
            assert_eq!(parse(of_mac), Some(wanted));
            let of_linux = "30669 30652 30660 Z Sun Nov 22 12:55:17 2026";
            let wanted =
                ProcessRow { id: 30_669, parent: 30_652, group: 30_660, started: 20_261_022_125_517, is_dead: true };
            assert_eq!(parse(of_linux), Some(wanted));
            for line in ["", "1 2 3", "1 2 3 S Sun Foo 22 12:55:17 2026", "-1 2 3 S Sun Nov 22 12:55:17 2026"] {
                assert_eq!(parse(line), None, "{line}");
            }
        }

        /// Uses this machine's `ps`, which has the same options.
        #[cfg(target_os = "linux")]
        #[test]
        fn both_ways_find_the_same_processes() {
            let mut child = Command::new("sleep").arg("30").spawn().unwrap();
            let row = now().into_iter().find(|row| row.id == child.id()).unwrap();
            let known = super::super::row(child.id()).unwrap();
            assert_eq!((row.parent, row.group, row.is_dead), (std::process::id(), known.group, false));
            assert_eq!(of(&[child.id()]), [row]);
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!((of(&[child.id()]), of(&[])), (vec![], vec![]));
        }
    }
}
