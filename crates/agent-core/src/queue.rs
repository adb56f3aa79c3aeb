//! Queued messages: steering is added at the next turn and may skip calls; follow-ups are added when the run would end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_llm::message::Message;
use tokio::sync::Notify;

/// How many waiting messages one poll takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueMode {
    /// One.
    #[default]
    OneAtATime,
    /// All.
    All,
}

impl QueueMode {
    /// Returns the word used in settings and RPC.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OneAtATime => "one-at-a-time",
            Self::All => "all",
        }
    }

    /// Parses the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::OneAtATime, Self::All].into_iter().find(|mode| mode.as_str() == word)
    }
}

/// When a run takes in steering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SteeringPoint {
    /// Between two turns: all calls of an answer run first.
    #[default]
    BetweenTurns,
    /// Also before a call starts. Calls that have not started are skipped, and their results tell the model why. Calls that run in parallel
    /// start together, so either all or none of them are skipped.
    BeforeCalls,
}

/// Identifies a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Added at the start of the next turn.
    Steering,
    /// Added when nothing else is left to do.
    FollowUp,
}

/// A queued message, with a number that distinguishes it from others with the same text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct QueuedMessage {
    /// Unique within these queues.
    pub id: u64,
    /// The message.
    pub message: Arc<Message>,
}

/// The two queues of an agent. Clones share them; they can be filled at any time, even if no run is active.
#[derive(Clone, Debug, Default)]
pub struct MessageQueues(Arc<QueuesShared>);

#[derive(Debug, Default)]
struct QueuesShared {
    inner: Mutex<QueuesInner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct QueuesInner {
    steering: VecDeque<QueuedMessage>,
    follow_up: VecDeque<QueuedMessage>,
    steering_mode: QueueMode,
    follow_up_mode: QueueMode,
    steering_point: SteeringPoint,
    next_id: u64,
    revision: u64,
}

impl QueuesInner {
    fn queue(&mut self, kind: QueueKind) -> &mut VecDeque<QueuedMessage> {
        match kind {
            QueueKind::Steering => &mut self.steering,
            QueueKind::FollowUp => &mut self.follow_up,
        }
    }
}

impl MessageQueues {
    fn lock(&self) -> MutexGuard<'_, QueuesInner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a message to a queue and returns its number.
    pub fn push(&self, kind: QueueKind, message: Message) -> u64 {
        let mut inner = self.lock();
        let id = inner.next_id;
        inner.next_id += 1;
        inner.revision += 1;
        inner.queue(kind).push_back(QueuedMessage { id, message: Arc::new(message) });
        drop(inner);
        self.0.changed.notify_waiters();
        id
    }

    /// Takes as many messages as one poll does.
    pub fn poll(&self, kind: QueueKind) -> Vec<QueuedMessage> {
        let mut inner = self.lock();
        let mode = match kind {
            QueueKind::Steering => inner.steering_mode,
            QueueKind::FollowUp => inner.follow_up_mode,
        };
        let queue = inner.queue(kind);
        let n = if mode == QueueMode::All { queue.len() } else { queue.len().min(1) };
        queue.drain(..n).collect()
    }

    /// Takes as many messages as one poll does, and holds them: undelivered messages return to their position.
    pub(crate) fn hold(&self, kind: QueueKind) -> Vec<UndeliveredMessage> {
        let held = |waiting| UndeliveredMessage { queues: self.clone(), kind, waiting: Some(waiting) };
        self.poll(kind).into_iter().map(held).collect()
    }

    fn put_back(&self, kind: QueueKind, waiting: QueuedMessage) {
        let mut inner = self.lock();
        inner.revision += 1;
        let queue = inner.queue(kind);
        // Numbers increase in order of arrival.
        let at = queue.partition_point(|other| other.id < waiting.id);
        queue.insert(at, waiting);
        drop(inner);
        self.0.changed.notify_waiters();
    }

    /// Returns the waiting messages, oldest first.
    pub fn list(&self, kind: QueueKind) -> Vec<QueuedMessage> {
        self.lock().queue(kind).iter().cloned().collect()
    }

    /// Returns whether both queues are empty.
    pub fn is_empty(&self) -> bool {
        let inner = self.lock();
        inner.steering.is_empty() && inner.follow_up.is_empty()
    }

    /// Clears a queue and returns its messages.
    pub fn clear(&self, kind: QueueKind) -> Vec<QueuedMessage> {
        let mut inner = self.lock();
        inner.revision += 1;
        let taken = inner.queue(kind).drain(..).collect();
        drop(inner);
        self.0.changed.notify_waiters();
        taken
    }

    /// Removes a message by its number; returns `None` if it is no longer waiting.
    pub fn remove(&self, id: u64) -> Option<QueuedMessage> {
        let mut inner = self.lock();
        let taken = [QueueKind::Steering, QueueKind::FollowUp].into_iter().find_map(|kind| {
            let queue = inner.queue(kind);
            let at = queue.iter().position(|waiting| waiting.id == id)?;
            queue.remove(at)
        })?;
        inner.revision += 1;
        drop(inner);
        self.0.changed.notify_waiters();
        Some(taken)
    }

    /// Returns a number that changes when a message is added, when one is removed by its number, and when a queue is cleared, but not when
    /// a run takes messages: use it to detect when to redraw the queues.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// Waits until the revision changes.
    pub async fn changed_since(&self, revision: u64) {
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            // Do not miss changes between the check and the wait.
            changed.as_mut().enable();
            if self.revision() != revision {
                return;
            }
            changed.await;
        }
    }

    /// Sets how many messages one poll takes.
    pub fn set_mode(&self, kind: QueueKind, mode: QueueMode) {
        let mut inner = self.lock();
        match kind {
            QueueKind::Steering => inner.steering_mode = mode,
            QueueKind::FollowUp => inner.follow_up_mode = mode,
        }
    }

    /// Returns how many messages one poll takes.
    pub fn mode(&self, kind: QueueKind) -> QueueMode {
        let inner = self.lock();
        match kind {
            QueueKind::Steering => inner.steering_mode,
            QueueKind::FollowUp => inner.follow_up_mode,
        }
    }

    /// Sets when a run takes in steering.
    pub fn set_steering_point(&self, point: SteeringPoint) {
        self.lock().steering_point = point;
    }

    /// Returns when a run takes in steering.
    pub fn steering_point(&self) -> SteeringPoint {
        self.lock().steering_point
    }

    /// Returns whether waiting steering keeps calls from starting.
    pub(crate) fn skips_calls(&self) -> bool {
        let inner = self.lock();
        inner.steering_point == SteeringPoint::BeforeCalls && !inner.steering.is_empty()
    }
}

/// A message being taken from a queue. If it is dropped before it is delivered, it returns to its position.
#[derive(Debug)]
pub(crate) struct UndeliveredMessage {
    queues: MessageQueues,
    kind: QueueKind,
    waiting: Option<QueuedMessage>,
}

impl UndeliveredMessage {
    /// Returns the message, or `None` once it is delivered.
    pub(crate) fn message(&self) -> Option<Arc<Message>> {
        self.waiting.as_ref().map(|waiting| Arc::clone(&waiting.message))
    }

    /// Marks the message as delivered, so that it is not put back. Returns its number.
    pub(crate) fn delivered(mut self) -> Option<u64> {
        self.waiting.take().map(|waiting| waiting.id)
    }
}

impl Drop for UndeliveredMessage {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.queues.put_back(self.kind, waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_one_message_keeps_the_others() {
        let queues = MessageQueues::default();
        let ids = ["a", "b", "c"].map(|text| queues.push(QueueKind::FollowUp, Message::user(text, 0)));
        let steering = queues.push(QueueKind::Steering, Message::user("d", 0));
        let before = queues.revision();
        assert_eq!(queues.remove(ids[1]).map(|taken| taken.id), Some(ids[1]));
        assert!(queues.revision() > before);
        assert_eq!(queues.remove(ids[1]), None);
        assert_eq!(queues.list(QueueKind::FollowUp).iter().map(|w| w.id).collect::<Vec<_>>(), [ids[0], ids[2]]);
        assert!(queues.remove(steering).is_some() && queues.list(QueueKind::Steering).is_empty());
    }

    #[test]
    fn the_mode_limits_how_many_messages_a_poll_takes() {
        let queues = MessageQueues::default();
        for text in ["a", "b", "c"] {
            queues.push(QueueKind::Steering, Message::user(text, 0));
        }
        assert_eq!(queues.poll(QueueKind::Steering).len(), 1);
        queues.set_mode(QueueKind::Steering, QueueMode::All);
        let rest = queues.poll(QueueKind::Steering);
        assert_eq!(rest.iter().map(|w| w.id).collect::<Vec<_>>(), [1, 2]);
        assert!(queues.is_empty());
    }
}
