//! Descendants that left the group of their ancestor, for example with `setsid`.

#![cfg_attr(not(unix), expect(dead_code, reason = "where there are no groups nobody leaves one"))]

use std::collections::HashMap;

use super::alive::{parent_and_group, start_ticks};

/// A process, told apart from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stray {
    id: u32,
    started: Option<u64>,
}

impl Stray {
    /// Its id, when it is still the same process.
    pub(super) fn id(self) -> Option<u32> {
        (start_ticks(self.id) == self.started).then_some(self.id)
    }
}

/// The descendants of a group's leader that are in another group now. Those whose parents have ended are nobody's descendants any more, and
/// only Linux says who is.
pub(super) fn of(leader: u32) -> Vec<Stray> {
    let mut children: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for id in all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some((parent, group)) = parent_and_group(id) {
            children.entry(parent).or_default().push((id, group));
        }
    }
    let mut strays = Vec::new();
    let mut parents = vec![leader];
    while let Some(parent) = parents.pop() {
        // Taken out: ids that are given anew while we look could make a circle.
        for (id, group) in children.remove(&parent).unwrap_or_default() {
            parents.push(id);
            if group != leader {
                strays.push(Stray { id, started: start_ticks(id) });
            }
        }
    }
    strays
}
