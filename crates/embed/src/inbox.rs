//! Queues the messages of sessions, which have one turn at a time: whose turn it is, who waits, and which messages are read together.
//!
//! There is no background task. The first waiting message leads the next turn: its caller takes the others along and starts the run. If a
//! caller gives up, the next one leads.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_llm::message::Image;
use pinch_ports::Caller;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::config::messages::{DropPolicy, InboxMode, QueueConfig};
use crate::key::{RunId, SessionKey};

mod known;

mod journal;

mod seen;

pub(crate) use known::MessageRefusal;
pub(crate) use seen::{Pending, Seen};

/// The longest line about a dropped message, in characters.
const MAX_SUMMARY_LINE: usize = 160;
/// Maximum number of dropped messages listed per session.
const MAX_SUMMARIES: usize = 20;

/// A message from a person to a session.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InboundMessage {
    /// The session key; see [`Engine::message`](crate::Engine::message).
    pub key: SessionKey,
    /// The text.
    pub text: String,
    /// Images after the text.
    pub images: Vec<Image>,
    /// The sender, and the channel it came through.
    pub caller: Caller,
    /// Reply target within the channel.
    pub to: Option<String>,
    /// What happens if a run of the session is active; `None`: according to `messages.queue`.
    pub mode: Option<InboxMode>,
    /// Identifies the message, so that a host can safely resend it after its own failure: it gets at most one run. The 4096 newest messages
    /// of a state directory are remembered for 24 hours, across restarts and processes.
    pub idempotency_key: Option<String>,
}

impl InboundMessage {
    /// Creates a message from an unknown sender.
    pub fn new(key: impl Into<SessionKey>, text: impl Into<String>) -> Self {
        Self { key: key.into(), text: text.into(), ..Self::default() }
    }

    /// Sets the sender, and the channel it came through.
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Sets the reply target within the channel.
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

    /// Sets the idempotency key.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Returns whether replies to both go to the same conversation.
    fn has_origin_of(&self, other: &Self) -> bool {
        let origin = |message: &Self| {
            let Caller { channel, account, thread, group, .. } = message.caller.clone();
            (channel, account, thread, group, message.to.clone())
        };
        origin(self) == origin(other)
    }
}

/// Sessions whose turn is taken.
#[derive(Clone, Default)]
pub(crate) struct Inbox(Arc<Mutex<HashMap<String, InboxSession>>>);

#[derive(Default)]
struct InboxSession {
    waiting: VecDeque<Waiting>,
    /// First lines and total number of dropped messages.
    dropped: Vec<String>,
    n_dropped: usize,
    last_arrival: Option<Instant>,
}

/// A message waiting for its turn.
pub(crate) struct Waiting {
    pub(crate) message: InboundMessage,
    /// Whether it may be read together with others.
    joins: bool,
    outcome: oneshot::Sender<Outcome>,
}

impl Waiting {
    /// Notifies the caller of the run that reads the message.
    pub(crate) fn join(self, run_id: &str) {
        drop(self.outcome.send(Outcome::Joined { run_id: run_id.into() }));
    }
}

/// Outcome of waiting.
pub(crate) enum Outcome {
    /// It is its turn.
    Leads(TurnGuard),
    /// A run started by another message also reads it.
    Joined { run_id: RunId },
    /// Too many messages were waiting.
    Dropped,
}

/// What an arriving message must do.
pub(crate) enum Arrival {
    /// The session is idle: it is the message's turn.
    Leads(TurnGuard),
    /// It must wait.
    Waits(oneshot::Receiver<Outcome>),
    /// Too many messages are waiting.
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

    /// Returns whether a turn of the session is in progress.
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

    /// Drops all waiting messages of a session.
    pub(crate) fn clear(&self, key: &str) {
        if let Some(session) = self.lock().get_mut(key) {
            while !session.waiting.is_empty() {
                session.drop_oldest(false);
            }
        }
    }

    /// Returns when the last message of a session arrived.
    pub(crate) fn last_arrival(&self, key: &str) -> Option<Instant> {
        self.lock().get(key)?.last_arrival
    }

    /// Takes the messages that the leader's run also reads: those that follow it in the same conversation.
    pub(crate) fn take_along(&self, key: &str, leader: &InboundMessage) -> Vec<Waiting> {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(key) else { return Vec::new() };
        session.waiting.retain(|waiting| !waiting.outcome.is_closed());
        let fits = |waiting: &&Waiting| waiting.joins && waiting.message.has_origin_of(leader);
        let n = session.waiting.iter().take_while(fits).count();
        session.waiting.drain(..n).collect()
    }

    /// Takes the summary of a session's dropped messages.
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
            // If its caller has given up, the guard is returned and dropped, and the next message leads.
            drop(next.outcome.send(Outcome::Leads(guard)));
        }
    }
}

impl fmt::Debug for TurnGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TurnGuard").field(&self.key).finish()
    }
}
