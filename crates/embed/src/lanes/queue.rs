//! State of the lanes' queues, without any waiting.

use std::collections::{HashMap, HashSet};

use tokio::sync::oneshot;

use super::Permit;

/// Identifies a waiter in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// All lanes in use, and the configured sizes.
#[derive(Debug, Default)]
pub(super) struct Queues {
    lanes: HashMap<String, Lane>,
    places: HashMap<String, usize>,
    clock: u64,
}

#[derive(Debug, Default)]
struct Lane {
    active: usize,
    waiters: Vec<Waiter>,
    /// Number of runs admitted so far.
    n_admitted: u64,
    /// When sessions were last served, by admission number; forgotten with the lane when it is idle.
    served: HashMap<String, u64>,
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    session: String,
    /// Number of admissions when it became first in its session, or when it was queued, whichever is later.
    since: u64,
    grant: oneshot::Sender<Permit>,
}

/// A run that is first in its session gets priority after this many other admissions; otherwise a stream of new, never served sessions
/// would starve it.
pub(super) const MAX_OVERTAKEN: u64 = 16;
/// Number of sessions that a lane remembers. Others count as never served.
const MAX_SERVED: usize = 1024;

impl Lane {
    /// Returns the waiter to admit next: the first one of the least recently served session.
    fn next(&self) -> Option<usize> {
        let mut sessions = HashSet::new();
        let first_of_session = self.waiters.iter().enumerate().filter(|(_, waiter)| sessions.insert(&waiter.session));
        let urgency = |waiter: &Waiter| match waiter.since + MAX_OVERTAKEN <= self.n_admitted {
            true => (false, waiter.since),
            false => (true, self.served.get(&waiter.session).copied().unwrap_or(0)),
        };
        // `min_by_key` returns the first of equal elements, which preserves the order of arrival.
        first_of_session.min_by_key(|(_, waiter)| urgency(waiter)).map(|(index, _)| index)
    }

    fn admit(&mut self, index: usize) -> oneshot::Sender<Permit> {
        let waiter = self.waiters.remove(index);
        self.n_admitted += 1;
        self.active += 1;
        for next in self.waiters.iter_mut().filter(|next| next.session == waiter.session) {
            next.since = self.n_admitted;
        }
        self.served.insert(waiter.session, self.n_admitted);
        if self.served.len() > MAX_SERVED {
            let newest = self.n_admitted - MAX_SERVED as u64 / 2;
            self.served.retain(|_, at| *at > newest);
        }
        waiter.grant
    }
}

impl Queues {
    pub(super) fn set_places(&mut self, lane: &str, places: usize) {
        self.places.insert(lane.to_owned(), places.max(1));
    }

    /// Queues a waiter and returns how many are ahead of it.
    pub(super) fn enqueue(&mut self, lane: &str, session: &str, grant: oneshot::Sender<Permit>) -> (Ticket, usize) {
        self.clock += 1;
        let ticket = Ticket(self.clock);
        let lane = self.lanes.entry(lane.to_owned()).or_default();
        let ahead = lane.active + lane.waiters.len();
        let since = lane.n_admitted;
        lane.waiters.push(Waiter { ticket, session: session.to_owned(), since, grant });
        (ticket, ahead)
    }

    /// Removes the waiters to admit now; their slots count as taken.
    pub(super) fn pump(&mut self, name: &str) -> Vec<oneshot::Sender<Permit>> {
        let places = self.places.get(name).copied().unwrap_or(1);
        let Some(lane) = self.lanes.get_mut(name) else { return Vec::new() };
        let mut granted = Vec::new();
        while lane.active < places
            && let Some(next) = lane.next()
        {
            granted.push(lane.admit(next));
        }
        granted
    }

    pub(super) fn release(&mut self, name: &str) {
        if let Some(lane) = self.lanes.get_mut(name) {
            lane.active = lane.active.saturating_sub(1);
        }
        self.forget_if_idle(name);
    }

    pub(super) fn leave(&mut self, name: &str, ticket: Ticket) {
        if let Some(lane) = self.lanes.get_mut(name) {
            lane.waiters.retain(|waiter| waiter.ticket != ticket);
        }
        self.forget_if_idle(name);
    }

    /// Removes all waiters; dropping the returned senders notifies them.
    pub(super) fn clear(&mut self, name: &str) -> Vec<oneshot::Sender<Permit>> {
        let Some(lane) = self.lanes.get_mut(name) else { return Vec::new() };
        let waiters = lane.waiters.drain(..).map(|waiter| waiter.grant).collect();
        self.forget_if_idle(name);
        waiters
    }

    pub(super) fn size(&self, name: &str) -> usize {
        self.lanes.get(name).map_or(0, |lane| lane.active + lane.waiters.len())
    }

    fn forget_if_idle(&mut self, name: &str) {
        if self.size(name) == 0 {
            self.lanes.remove(name);
        }
    }
}
