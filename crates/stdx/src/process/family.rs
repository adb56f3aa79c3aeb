//! The processes that belong to a command.

use std::collections::HashSet;

use super::mark::ProcessMark;
use super::table::{self, ProcessRow};

/// A process, distinguished from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stray {
    pub(super) id: u32,
    started: u64,
}

impl Stray {
    /// Returns those that are still the same processes.
    pub(super) fn living(strays: &[Self]) -> Vec<Self> {
        let ids: Vec<u32> = strays.iter().map(|stray| stray.id).collect();
        let there: HashSet<Self> = table::of(&ids).into_iter().map(Self::from).collect();
        strays.iter().copied().filter(|stray| there.contains(stray)).collect()
    }
}

impl From<ProcessRow> for Stray {
    fn from(row: ProcessRow) -> Self {
        Self { id: row.id, started: row.started }
    }
}

/// Identifies the processes that belong to a command.
#[derive(Clone, Debug)]
pub(super) struct ProcessFamily {
    /// The process that was started, which is also the id of its group.
    pub(super) leader: u32,
    /// Its start time: no process of the family is older.
    pub(super) since: u64,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "marks can only be read on Linux"))]
    pub(super) mark: ProcessMark,
}

impl ProcessFamily {
    pub(super) fn of(leader: u32, mark: ProcessMark) -> Self {
        Self { leader, since: table::of(&[leader]).first().map_or(0, |row| row.started), mark }
    }
}
