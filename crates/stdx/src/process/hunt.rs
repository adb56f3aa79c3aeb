//! Processes that carry a mark, found while they run away.

use std::collections::HashSet;
use std::sync::mpsc;
use std::time::Instant;

use super::family::{Family, Stray};
use super::mark::Carries;
use super::table;

/// How often the list of processes is gone through at most.
const MAX_PASSES: usize = 10_000;
/// How often it is gone through again when only somebody went away, or became another program: most have nothing to do with us.
const MAX_DOUBTS: usize = 20;
/// The parent of the kernel's own threads, which have no environment.
const KERNEL: u32 = 2;

/// Stops those of a family who carry its mark, and adds them to `known`. Tells whether nobody can have been overseen.
///
/// Who starts its successor and ends is gone before the end of a long list is reached. So each is stopped as soon as it is seen, and who was
/// looked at once is not looked at again.
///
/// The hunt has a thread of its own, because nobody can say how long one file takes: an environment may lie in memory that answers never. When
/// the family took all the threads that the system has, this one has to do.
pub(super) fn marked(family: &Family, known: &mut Vec<Stray>, stop: fn(Stray), until: Instant) -> bool {
    let (tell, told) = mpsc::sync_channel(1024);
    let hunt = {
        let (family, known) = (family.clone(), known.clone());
        move || {
            go(&family, &known, until, |stray| {
                stop(stray);
                tell.send(stray).is_ok()
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
        match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(stray) => known.push(stray),
            Err(mpsc::RecvTimeoutError::Disconnected) => return hunter.join().unwrap_or(false),
            Err(mpsc::RecvTimeoutError::Timeout) => return false,
        }
    }
}

/// Goes through all processes until there is nobody new, or nobody wants to know of them any more.
fn go(family: &Family, known: &[Stray], until: Instant, mut found: impl FnMut(Stray) -> bool) -> bool {
    let mut looked_at: HashSet<u32> = known.iter().map(|stray| stray.id).collect();
    let mut n_doubts = 0;
    for _ in 0..MAX_PASSES {
        let (mut has_found, mut has_doubt) = (false, false);
        for id in table::ids() {
            if !looked_at.insert(id) {
                continue;
            }
            let Some(row) = table::row(id) else {
                has_doubt = true;
                continue;
            };
            if row.is_dead || row.parent == KERNEL || row.started < family.since || row.group == family.leader {
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
