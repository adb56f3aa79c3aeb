//! Finds processes that carry a mark, even while they keep respawning.

use std::collections::HashSet;
use std::sync::mpsc;
use std::time::Instant;

use super::family::{ProcessFamily, Stray};
use super::mark::Carries;
use super::table;

/// Maximum number of passes over the process list.
const MAX_PASSES: usize = 10_000;
/// Maximum number of further passes because a process ended or changed its program: most of these are unrelated.
const MAX_DOUBTS: usize = 20;
/// The parent of kernel threads, which have no environment.
const KERNEL: u32 = 2;

/// Stops the processes that carry a family's mark and adds them to `known`. Returns true if none can have been missed.
///
/// A process may start a successor and end before the end of a long list is reached. So each is stopped as soon as it is found, and no
/// process is inspected twice.
///
/// The search runs on its own thread, because reading an environment may block forever. If no thread can be created, because the family
/// uses up the system's limit, it runs on the current one.
pub(super) fn marked(family: &ProcessFamily, known: &mut Vec<Stray>, stop: fn(Stray), until: Instant) -> bool {
    let (sender, receiver) = mpsc::sync_channel(1024);
    let hunt = {
        let (family, known) = (family.clone(), known.clone());
        move || {
            go(&family, &known, until, |stray| {
                stop(stray);
                sender.send(stray).is_ok()
            })
        }
    };
    let Ok(hunter) = std::thread::Builder::new().name("pinch-hunt".to_owned()).spawn(hunt) else {
        let before = known.clone();
        return go(family, &before, until, |stray| {
            stop(stray);
            known.push(stray);
            true
        });
    };
    loop {
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(stray) => known.push(stray),
            Err(mpsc::RecvTimeoutError::Disconnected) => return hunter.join().unwrap_or(false),
            Err(mpsc::RecvTimeoutError::Timeout) => return false,
        }
    }
}

/// Passes over all processes until there are no new ones, or until `found` returns false.
fn go(family: &ProcessFamily, known: &[Stray], until: Instant, mut found: impl FnMut(Stray) -> bool) -> bool {
    let mut looked_at: HashSet<u32> = known.iter().map(|stray| stray.id).collect();
    let mut n_doubts = 0;
    for _ in 0..MAX_PASSES {
        let (mut has_found, mut has_doubt) = (false, false);
        for id in table::ids() {
            if !looked_at.insert(id) {
                continue;
            }
            // It may have left a successor that started after the ids were read. A process that stays a zombie is a doubt only once.
            let Some(row) = table::row(id).filter(|row| !row.is_dead) else {
                has_doubt = true;
                continue;
            };
            if row.parent == KERNEL || row.started < family.since || row.group == family.leader {
                continue;
            }
            match family.mark.of(id) {
                Carries::Yes if !found(row.into()) => return false,
                Carries::Yes => has_found = true,
                Carries::No => {}
                Carries::Unclear => {
                    looked_at.remove(&id);
                    has_doubt = true;
                }
            }
        }
        n_doubts = if has_found { 0 } else { n_doubts + 1 };
        if !has_found && (!has_doubt || n_doubts > MAX_DOUBTS) {
            return !has_doubt;
        }
        if Instant::now() > until {
            break;
        }
    }
    false
}
