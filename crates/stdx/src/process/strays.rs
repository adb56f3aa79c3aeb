//! Descendants that left the group of their ancestor, for example with `setsid`.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::family::{ProcessFamily, Stray};
#[cfg(target_os = "linux")]
use super::hunt;
use super::table::{self, ProcessRow};

/// Time limit of the search. A program that keeps starting processes faster than they are found escapes.
const LONGEST: Duration = Duration::from_secs(2);
/// How often the search is repeated if it found nothing but may have missed a process.
const MAX_DOUBTS: usize = 2;

impl ProcessFamily {
    /// Finds the descendants in other process groups and passes each to `stop`, until there are no new ones: they start further processes
    /// until they are stopped. `known` has the ones found before, and new ones are added to it. `has_leader` means that the leader has not
    /// been reaped, so that its id is still its own. Blocks for at most 3 s.
    ///
    /// On Linux this finds all processes with the command's mark. On other systems, and for processes that have cleared their environment,
    /// descendants whose parents have ended cannot be found.
    pub(super) fn find(&self, has_leader: bool, known: &mut Vec<Stray>, stop: fn(Stray)) {
        let until = Instant::now() + LONGEST;
        let mut n_doubts = 0;
        while n_doubts <= MAX_DOUBTS && Instant::now() < until {
            let n_known = known.len();
            let is_certain = self.find_marked(known, stop, until);
            self.find_descendants(has_leader, known, stop);
            if known.len() == n_known {
                if is_certain {
                    break;
                }
                n_doubts += 1;
            }
        }
    }

    /// Searches by mark. Returns true if no process can have been missed.
    #[cfg(target_os = "linux")]
    fn find_marked(&self, known: &mut Vec<Stray>, stop: fn(Stray), until: Instant) -> bool {
        hunt::marked(self, known, stop, until)
    }

    /// The environment of other processes cannot be read here.
    #[cfg(not(target_os = "linux"))]
    fn find_marked(&self, _: &mut Vec<Stray>, _: fn(Stray), _: Instant) -> bool {
        true
    }

    fn find_descendants(&self, has_leader: bool, known: &mut Vec<Stray>, stop: fn(Stray)) {
        let old: HashSet<Stray> = known.iter().copied().collect();
        let mut children: HashMap<u32, Vec<ProcessRow>> = HashMap::new();
        let mut kin = Vec::new();
        for row in table::now().into_iter().filter(|row| row.started >= self.since && !row.is_dead) {
            let of_group = has_leader && (row.id == self.leader || row.group == self.leader);
            if of_group || old.contains(&row.into()) {
                kin.push(row);
            } else {
                children.entry(row.parent).or_default().push(row);
            }
        }
        while let Some(row) = kin.pop() {
            // Removed, because ids that are reused during the search could form a cycle.
            for child in children.remove(&row.id).unwrap_or_default() {
                kin.push(child);
                stop(child.into());
                known.push(child.into());
            }
        }
    }
}
