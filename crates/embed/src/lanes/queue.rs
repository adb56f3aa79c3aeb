//! The queues behind the lanes: state without any waiting.

use std::collections::HashMap;

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
    /// When each session was served last; forgotten with the lane when it is idle.
    served: HashMap<String, u64>,
}

#[derive(Debug)]
struct Waiter {
    ticket: Ticket,
    session: String,
    grant: oneshot::Sender<Permit>,
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
        lane.waiters.push(Waiter { ticket, session: session.to_owned(), grant });
        (ticket, ahead)
    }

    /// Removes the waiters that are admitted now; their slots count as taken.
    pub(super) fn pump(&mut self, name: &str) -> Vec<oneshot::Sender<Permit>> {
        let places = self.places.get(name).copied().unwrap_or(1);
        let Some(lane) = self.lanes.get_mut(name) else { return Vec::new() };
        let mut granted = Vec::new();
        while lane.active < places {
            // `min_by_key` returns the first of equal elements, which keeps the order within a session.
            let served = |waiter: &Waiter| lane.served.get(&waiter.session).copied().unwrap_or(0);
            let Some((next, _)) = lane.waiters.iter().enumerate().min_by_key(|(_, waiter)| served(waiter)) else {
                break;
            };
            let waiter = lane.waiters.remove(next);
            self.clock += 1;
            lane.served.insert(waiter.session, self.clock);
            lane.active += 1;
            granted.push(waiter.grant);
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
