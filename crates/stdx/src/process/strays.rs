//! Descendants that left the group of their ancestor, for example with `setsid`.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::family::{Family, Stray};
#[cfg(target_os = "linux")]
use super::hunt;
use super::table::{self, Row};

/// How long is looked at most: whoever makes processes faster than they are found for so long gets away.
const LONGEST: Duration = Duration::from_secs(2);
/// How often is looked again when nobody was found, and somebody may have been overseen.
const MAX_DOUBTS: usize = 2;

impl Family {
    /// Finds those that are in another group now, until there is nobody new, and hands each to `stop`: they make new ones until they are
    /// stopped. `known` are those found before, and takes the new ones. The leader's id is its own as long as nobody has taken note of its
    /// end, which `has_leader` says. Blocks, for 3 s at most.
    ///
    /// Linux tells who has the command's mark, wherever it has gone. Elsewhere those whose parents have ended are nobody's descendants any
    /// more, and so they are on Linux when they have emptied their environment.
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

    /// Whether nobody can have been overseen.
    #[cfg(target_os = "linux")]
    fn find_marked(&self, known: &mut Vec<Stray>, stop: fn(Stray), until: Instant) -> bool {
        hunt::marked(self, known, stop, until)
    }

    /// Nothing tells what environment a process has.
    #[cfg(not(target_os = "linux"))]
    fn find_marked(&self, _: &mut Vec<Stray>, _: fn(Stray), _: Instant) -> bool {
        true
    }

    fn find_descendants(&self, has_leader: bool, known: &mut Vec<Stray>, stop: fn(Stray)) {
        let old: HashSet<Stray> = known.iter().copied().collect();
        let mut children: HashMap<u32, Vec<Row>> = HashMap::new();
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
            // Taken out: ids that are given anew while we look could make a circle.
            for child in children.remove(&row.id).unwrap_or_default() {
                kin.push(child);
                stop(child.into());
                known.push(child.into());
            }
        }
    }
}
