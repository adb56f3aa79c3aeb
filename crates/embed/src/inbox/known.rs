//! Records of messages with an idempotency key: hashes of key and content, and the run. Limited in number and age.

use std::collections::{HashMap, VecDeque};

use sha2::{Digest as _, Sha256};

use super::InboundMessage;
use crate::key::RunId;

/// Maximum number of messages.
pub(super) const MAX_KNOWN: usize = 4096;

/// Maximum age of a message, in milliseconds.
pub(super) const MAX_AGE_MS: i64 = 24 * 60 * 60 * 1000;

pub(super) type MessageHash = [u8; 32];

/// Identity of a message, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageId {
    /// Hash of the session key and the idempotency key.
    pub(super) key: MessageHash,
    /// Hash of the text, the images and `key`, so that equal texts have different hashes.
    pub(super) content: MessageHash,
}

impl MessageId {
    /// Returns the id, or `None` if the message has no idempotency key.
    pub(super) fn of(session: &str, message: &InboundMessage) -> Option<Self> {
        let idempotency_key = message.idempotency_key.as_ref()?;
        let key = hash([session.as_bytes(), idempotency_key.as_bytes()]);
        let images = message.images.iter().map(|image| image.data.as_bytes());
        let content = hash([&key[..], message.text.as_bytes()].into_iter().chain(images));
        Some(Self { key, content })
    }
}

fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> MessageHash {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Why a message gets no run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageRefusal {
    /// It was accepted before. `run_id`: the run that read it, if any yet.
    Known { run_id: Option<RunId> },
    /// Another message had the same key.
    Conflict,
}

/// Accepted messages.
#[derive(Debug, Default)]
pub(super) struct KnownMessages {
    messages: HashMap<MessageHash, Accepted>,
    /// Oldest first.
    order: VecDeque<MessageHash>,
}

#[derive(Debug)]
struct Accepted {
    content: MessageHash,
    /// `None` if no run has read it yet.
    run_id: Option<RunId>,
    /// Milliseconds since the Unix epoch.
    at: i64,
}

impl KnownMessages {
    /// Checks that a message is new.
    pub(super) fn check(&self, id: &MessageId) -> Result<(), MessageRefusal> {
        match self.messages.get(&id.key) {
            None => Ok(()),
            Some(known) if known.content == id.content => Err(MessageRefusal::Known { run_id: known.run_id.clone() }),
            Some(_) => Err(MessageRefusal::Conflict),
        }
    }

    /// Like [`Self::check`], but ignores the message's own record if no run has read it.
    pub(super) fn check_unread(&self, id: &MessageId) -> Result<(), MessageRefusal> {
        self.check(id).or_else(|refusal| match refusal {
            MessageRefusal::Known { run_id: None } => Ok(()),
            refusal => Err(refusal),
        })
    }

    /// Records an accepted message, or replaces its record.
    pub(super) fn insert(&mut self, id: &MessageId, run_id: Option<RunId>, at: i64) {
        if self.messages.insert(id.key, Accepted { content: id.content, run_id, at }).is_none() {
            self.order.push_back(id.key);
        }
        if self.order.len() > MAX_KNOWN {
            self.remove_oldest();
        }
    }

    /// Forgets a message unless a different run has read it.
    pub(super) fn remove(&mut self, key: &MessageHash, run_id: Option<&str>) {
        if self.messages.get(key).is_some_and(|known| known.run_id.as_deref() == run_id) {
            self.messages.remove(key);
            self.order.retain(|other| other != key);
        }
    }

    /// Forgets messages that are too old.
    pub(super) fn expire(&mut self, now: i64) {
        let oldest = |known: &Self| known.order.front().and_then(|key| known.messages.get(key)).map(|known| known.at);
        while oldest(self).is_some_and(|at| at < now.saturating_sub(MAX_AGE_MS)) {
            self.remove_oldest();
        }
    }

    fn remove_oldest(&mut self) {
        if let Some(key) = self.order.pop_front() {
            self.messages.remove(&key);
        }
    }

    /// Returns the messages that runs have read, oldest first: id, run, time.
    pub(super) fn read(&self) -> impl Iterator<Item = (MessageId, &str, i64)> {
        self.order.iter().filter_map(|key| {
            let known = self.messages.get(key)?;
            Some((MessageId { key: *key, content: known.content }, known.run_id.as_deref()?, known.at))
        })
    }
}
