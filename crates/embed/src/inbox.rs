//! Messages of sessions, each session one turn at a time: who has the turn, who waits, and which messages are read together.
//!
//! No task works here. The first message that waits becomes the leader of the next turn: its caller takes the others along and starts the
//! run. When a caller gives up, the next one leads.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_llm::message::Image;
use pinch_ports::Caller;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::config::messages::{DropPolicy, InboxMode, QueueConfig};

mod known;

mod journal;

mod seen;

pub(crate) use known::MessageRefusal;
pub(crate) use seen::{Pending, Seen};

/// The longest line about a dropped message, in characters.
const MAX_SUMMARY_LINE: usize = 160;
/// How many dropped messages of a session are listed at most.
const MAX_SUMMARIES: usize = 20;

/// A message from a person to a session.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InboundMessage {
    /// The session key; see [`Engine::message`](crate::Engine::message).
    pub key: String,
    /// The text.
    pub text: String,
    /// Images that follow the text.
    pub images: Vec<Image>,
    /// Who sent it, and through what.
    pub caller: Caller,
    /// Where answers go within the channel.
    pub to: Option<String>,
    /// What happens if a run of the session is active; `None`: what `messages.queue` says.
    pub mode: Option<InboxMode>,
    /// Identifies the message, so that a host can send it again after a failure of its own: it gets one run at most.
    /// Messages are remembered for 24 hours, the 4096 newest of a state directory, across restarts and processes.
    pub idempotency_key: Option<String>,
}

impl InboundMessage {
    /// A message about whose sender nothing is known.
    pub fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        Self { key: key.into(), text: text.into(), ..Self::default() }
    }

    /// Sets who sent it, and through what.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Sets where answers go within the channel.
    #[must_use]
    pub fn to(mut self, target: impl Into<String>) -> Self {
        self.to = Some(target.into());
        self
    }

    /// Sets the images.
    #[must_use]
    pub fn images(mut self, images: Vec<Image>) -> Self {
        self.images = images;
        self
    }

    /// Sets what happens if a run of the session is active.
    #[must_use]
    pub fn mode(mut self, mode: InboxMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets the key that identifies the message.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Whether answers to both go to the same place.
    fn has_origin_of(&self, other: &Self) -> bool {
        let origin = |message: &Self| {
            let Caller { channel, account, thread, group, .. } = message.caller.clone();
            (channel, account, thread, group, message.to.clone())
        };
        origin(self) == origin(other)
    }
}

/// The sessions that have a turn under way.
#[derive(Clone, Default)]
pub(crate) struct Inbox(Arc<Mutex<HashMap<String, InboxSession>>>);

#[derive(Default)]
struct InboxSession {
    waiting: VecDeque<Waiting>,
    /// First lines of messages that were dropped, and how many there were.
    dropped: Vec<String>,
    n_dropped: usize,
    last_arrival: Option<Instant>,
}

/// A message that waits for its turn.
pub(crate) struct Waiting {
    pub(crate) message: InboundMessage,
    /// Whether it may be read together with others.
    joins: bool,
    outcome: oneshot::Sender<Outcome>,
}

impl Waiting {
    /// Tells its caller which run reads it.
    pub(crate) fn join(self, run_id: &str) {
        drop(self.outcome.send(Outcome::Joined { run_id: run_id.to_owned() }));
    }
}

/// What became of a message that waited.
pub(crate) enum Outcome {
    /// It is its turn.
    Leads(TurnGuard),
    /// A run that another message started reads it, too.
    Joined { run_id: String },
    /// Too many messages waited.
    Dropped,
}

/// What an arriving message has to do.
pub(crate) enum Arrival {
    /// Nothing is under way: it is its turn.
    Leads(TurnGuard),
    /// It waits.
    Waits(oneshot::Receiver<Outcome>),
    /// Too many messages wait.
    Dropped,
}

/// The turn of a session. Dropping it passes the turn on.
pub(crate) struct TurnGuard {
    inbox: Inbox,
    key: String,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, InboxSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a turn of the session is under way.
    pub(crate) fn is_busy(&self, key: &str) -> bool {
        self.lock().contains_key(key)
    }

    /// Takes the turn, or queues the message.
    pub(crate) fn arrive(&self, key: &str, message: &InboundMessage, joins: bool, rules: &QueueConfig) -> Arrival {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(key) else {
            sessions.insert(key.to_owned(), InboxSession::default());
            return Arrival::Leads(TurnGuard { inbox: self.clone(), key: key.to_owned() });
        };
        session.waiting.retain(|waiting| !waiting.outcome.is_closed());
        if session.waiting.len() >= rules.cap {
            if rules.drop == DropPolicy::New {
                return Arrival::Dropped;
            }
            session.drop_oldest(rules.drop == DropPolicy::Summarize);
        }
        let (sender, receiver) = oneshot::channel();
        session.waiting.push_back(Waiting { message: message.clone(), joins, outcome: sender });
        session.last_arrival = Some(Instant::now());
        Arrival::Waits(receiver)
    }

    /// Drops all messages of a session that wait.
    pub(crate) fn clear(&self, key: &str) {
        if let Some(session) = self.lock().get_mut(key) {
            while !session.waiting.is_empty() {
                session.drop_oldest(false);
            }
        }
    }

    /// When the last message of a session arrived.
    pub(crate) fn last_arrival(&self, key: &str) -> Option<Instant> {
        self.lock().get(key)?.last_arrival
    }

    /// Takes the messages that the leader's run reads as well: those that follow it from the same place.
    pub(crate) fn take_along(&self, key: &str, leader: &InboundMessage) -> Vec<Waiting> {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(key) else { return Vec::new() };
        session.waiting.retain(|waiting| !waiting.outcome.is_closed());
        let fits = |waiting: &&Waiting| waiting.joins && waiting.message.has_origin_of(leader);
        let n = session.waiting.iter().take_while(fits).count();
        session.waiting.drain(..n).collect()
    }

    /// Takes what is to be said about dropped messages of a session.
    pub(crate) fn take_dropped(&self, key: &str) -> Option<String> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(key)?;
        let (n, lines) = (std::mem::take(&mut session.n_dropped), std::mem::take(&mut session.dropped));
        (n > 0).then(|| {
            let lines: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
            format!(
                "[{n} earlier messages were dropped because too many were waiting. They began with:\n{}]",
                lines.join("\n")
            )
        })
    }
}

impl InboxSession {
    fn drop_oldest(&mut self, summarize: bool) {
        let Some(oldest) = self.waiting.pop_front() else { return };
        if summarize {
            self.n_dropped += 1;
            if self.dropped.len() < MAX_SUMMARIES {
                let line = oldest.message.text.trim().lines().next().unwrap_or("");
                self.dropped.push(line.chars().take(MAX_SUMMARY_LINE).collect());
            }
        }
        drop(oldest.outcome.send(Outcome::Dropped));
    }
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let mut sessions = self.inbox.lock();
        let Some(session) = sessions.get_mut(&self.key) else { return };
        let next = session.waiting.pop_front();
        if next.is_none() {
            sessions.remove(&self.key);
        }
        drop(sessions);
        if let Some(next) = next {
            let guard = Self { inbox: self.inbox.clone(), key: self.key.clone() };
            // If its caller has given up, the guard comes back and is dropped: the next one leads.
            drop(next.outcome.send(Outcome::Leads(guard)));
        }
    }
}

impl fmt::Debug for TurnGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TurnGuard").field(&self.key).finish()
    }
}
