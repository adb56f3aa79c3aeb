//! Which messages were accepted: a message that is sent again with the same key gets no second run.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use super::InboundMessage;

/// How many messages are remembered.
const MAX_SEEN: usize = 4096;

/// The messages of one engine that were accepted with an idempotency key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    messages: HashMap<String, Accepted>,
    /// Oldest first.
    order: VecDeque<String>,
}

#[derive(Debug)]
struct Accepted {
    content: [u8; 32],
    run_id: Option<String>,
}

/// What a message's idempotency key says about it.
#[derive(Debug)]
pub(crate) enum MessageAdmission {
    /// It is new. Unless it is confirmed, it is forgotten when this is dropped.
    New(Pending),
    /// It was accepted before, by this run, if one has read it already.
    Known { run_id: Option<String> },
    /// Another message had the same key.
    Conflict,
}

/// A message that was accepted and has not reached a run yet.
#[derive(Debug)]
pub(crate) struct Pending {
    seen: Seen,
    /// `None`: the message has no idempotency key, or it is confirmed.
    key: Option<String>,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn admit(&self, session: &str, message: &InboundMessage) -> MessageAdmission {
        let Some(key) = &message.idempotency_key else {
            return MessageAdmission::New(Pending { seen: self.clone(), key: None });
        };
        let key = format!("{session}\n{key}");
        let content = content_hash(message);
        let mut known = self.lock();
        if let Some(accepted) = known.messages.get(&key) {
            return match accepted.content == content {
                true => MessageAdmission::Known { run_id: accepted.run_id.clone() },
                false => MessageAdmission::Conflict,
            };
        }
        known.messages.insert(key.clone(), Accepted { content, run_id: None });
        known.order.push_back(key.clone());
        if known.order.len() > MAX_SEEN
            && let Some(oldest) = known.order.pop_front()
        {
            known.messages.remove(&oldest);
        }
        MessageAdmission::New(Pending { seen: self.clone(), key: Some(key) })
    }
}

fn content_hash(message: &InboundMessage) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(message.text.len().to_le_bytes());
    hash.update(&message.text);
    for image in &message.images {
        hash.update(image.data.len().to_le_bytes());
        hash.update(image.data.as_bytes());
    }
    hash.finalize().into()
}

impl Pending {
    /// A run reads the message.
    pub(crate) fn confirm(mut self, run_id: &str) {
        if let Some(key) = self.key.take()
            && let Some(accepted) = self.seen.lock().messages.get_mut(&key)
        {
            accepted.run_id = Some(run_id.to_owned());
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            let mut known = self.seen.lock();
            known.messages.remove(&key);
            known.order.retain(|other| *other != key);
        }
    }
}
