//! Arranges sessions below those that they were forked from.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use pinch_coding_agent::store::SessionSummary;

/// Places each session below the one that it was forked from, if that is in the list; the order on each level is preserved. Each is
/// returned with the lines that connect it.
pub(super) fn threaded(sessions: Vec<SessionSummary>) -> Vec<(String, SessionSummary)> {
    let place: HashMap<&Path, usize> =
        sessions.iter().enumerate().map(|(at, session)| (session.path.as_path(), at)).collect();
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); sessions.len()];
    let mut roots = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        let parent = session.parent_session.as_deref().and_then(|parent| place.get(Path::new(parent)));
        match parent.filter(|parent| **parent != at) {
            Some(parent) => below[*parent].push(at),
            None => roots.push(at),
        }
    }
    let mut order = Vec::with_capacity(sessions.len());
    let mut seen = HashSet::new();
    let mut waiting: Vec<(usize, String, String)> =
        roots.into_iter().rev().map(|at| (at, String::new(), String::new())).collect();
    while let Some((at, prefix, below_prefix)) = waiting.pop() {
        if !seen.insert(at) {
            continue;
        }
        order.push((at, prefix));
        let children = std::mem::take(&mut below[at]);
        let n = children.len();
        for (nth, child) in children.into_iter().enumerate().rev() {
            let (sign, line) = if nth + 1 == n { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            waiting.push((child, format!("{below_prefix}{sign}"), format!("{below_prefix}{line}")));
        }
    }
    // Sessions that are forks of each other have no root.
    order.extend((0..sessions.len()).filter(|at| !seen.contains(at)).map(|at| (at, String::new())));
    let mut sessions: Vec<Option<SessionSummary>> = sessions.into_iter().map(Some).collect();
    order.into_iter().filter_map(|(at, prefix)| Some((prefix, sessions[at].take()?))).collect()
}
