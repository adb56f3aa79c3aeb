//! Deduplicates accepted messages: a message resent with the same key gets no second run, even after a restart.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pinch_stdx::host::Host;
use tokio::runtime::Handle;
use tokio::task::{JoinSet, spawn_blocking};

use super::InboundMessage;
use super::journal::MessageJournal;
use super::known::{MessageId, MessageRefusal};
use crate::key::RunId;

/// Accepted messages of a state directory that have an idempotency key.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    journal: Arc<MessageJournal>,
    host: Host,
    /// Writes in the background.
    notes: Arc<Mutex<JoinSet<()>>>,
}

/// An accepted message that has not reached a run yet. It is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct Pending {
    seen: Seen,
    /// `None` if the message has no idempotency key, or a run has read it.
    id: Option<MessageId>,
}

impl Seen {
    pub(crate) fn new(state_dir: &Path, host: Host) -> Self {
        Self { journal: Arc::new(MessageJournal::new(state_dir)), host, notes: Arc::default() }
    }

    /// Accepts a new message.
    pub(crate) async fn admit(&self, session: &str, message: &InboundMessage) -> Result<Pending, MessageRefusal> {
        let id = MessageId::of(session, message);
        if let Some(id) = &id {
            self.blocking(|journal, now| journal.refresh(now)).await;
            let now = self.host.now_ms();
            let mut known = self.journal.known();
            known.expire(now);
            known.check(id)?;
            known.insert(id, None, now);
        }
        Ok(Pending { seen: self.clone(), id })
    }

    /// Waits until everything is written.
    pub(crate) async fn settle(&self) {
        let mut notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        while notes.join_next().await.is_some() {}
    }

    /// Runs a file operation on another thread. Failures are only logged; messages are then remembered only for the life of the process.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MessageJournal, i64) -> io::Result<T> + Send + 'static,
    ) -> Option<T> {
        let (journal, host) = (Arc::clone(&self.journal), self.host.clone());
        let done = spawn_blocking(move || work(&journal, host.now_ms())).await;
        done.map_err(io::Error::other).and_then(|done| done).map_err(warn).ok()
    }
}

fn warn(error: io::Error) {
    tracing::warn!(%error, "messages that are sent again after a restart may get a second run");
}

impl Pending {
    /// Claims the message for a run that is about to start. If the future is dropped before it is ready, the message may be sent again.
    ///
    /// # Errors
    /// Another process has started a run for it in the meantime.
    pub(crate) async fn claim(mut self, run_id: &str) -> Result<(), MessageRefusal> {
        let Some(id) = self.id else { return Ok(()) };
        let mut claim = Claim { seen: &self.seen, id, run_id: run_id.into(), is_over: Arc::default(), armed: true };
        let (is_over, owned) = (Arc::clone(&claim.is_over), claim.run_id.clone());
        let appended = self.seen.blocking(move |journal, now| {
            let appended = journal.append(&id, &owned, now)?;
            if is_over.swap(true, Ordering::AcqRel) && appended.is_ok() {
                journal.withdraw(&id, &owned, now)?;
            }
            Ok(appended)
        });
        let appended = appended.await;
        claim.armed = false;
        drop(claim);
        // Without the file, the message is at least known in this process.
        appended.unwrap_or(Ok(()))?;
        self.id = None;
        self.seen.journal.known().insert(&id, Some(run_id.into()), self.seen.host.now_ms());
        Ok(())
    }

    /// Records that a run has read the message. The write happens in the background, since the answer may already be on its way.
    pub(crate) fn confirm(mut self, run_id: &str) {
        let Some(id) = self.id.take() else { return };
        let (seen, owned) = (self.seen.clone(), RunId::from(run_id));
        let mut notes = self.seen.notes.lock().unwrap_or_else(PoisonError::into_inner);
        while notes.try_join_next().is_some() {}
        notes.spawn(async move {
            let appended = seen.blocking(move |journal, now| {
                let appended = journal.append(&id, &owned, now);
                let mut known = journal.known();
                if known.check_unread(&id).is_ok() {
                    known.insert(&id, Some(owned), now);
                }
                appended
            });
            // If another process had it read at the same time, that run is recorded.
            drop(appended.await);
        });
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.seen.journal.known().remove(&id.key, None);
        }
    }
}

/// A claim being written. Whichever ends second, the write or the wait for it, withdraws a claim that nobody waits for any more.
struct Claim<'a> {
    seen: &'a Seen,
    id: MessageId,
    run_id: RunId,
    is_over: Arc<AtomicBool>,
    armed: bool,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.armed || !self.is_over.swap(true, Ordering::AcqRel) {
            return;
        }
        let (seen, id, run_id) = (self.seen.clone(), self.id, std::mem::take(&mut self.run_id));
        // Outside a runtime nothing is left that could resend the message.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || {
                seen.journal.withdraw(&id, &run_id, seen.host.now_ms()).unwrap_or_else(warn);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use pinch_stdx::fs::FileLock;

    use super::*;

    #[tokio::test]
    async fn a_message_whose_claim_is_abandoned_may_be_sent_again() {
        for is_written in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("seen-messages.jsonl");
            let seen = || Seen::new(dir.path(), Host::builder().build());
            let message = InboundMessage::new("s", "text").idempotency_key("m1");
            let (one, other) = (seen(), seen());
            let lock = FileLock::acquire(&path, Duration::ZERO).unwrap();
            let mut claim = Box::pin(one.admit("s", &message).await.unwrap().claim("run"));
            assert!((&mut claim).now_or_never().is_none());
            if is_written {
                drop(lock);
                while std::fs::metadata(&path).unwrap().len() == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                drop(claim);
            } else {
                drop(claim);
                drop(lock);
            }
            tokio::time::timeout(Duration::from_secs(10), async {
                while std::fs::read_to_string(&path).unwrap().lines().count() < 2 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
            .await
            .unwrap();
            for seen in [&other, &seen(), &one] {
                drop(seen.admit("s", &message).await.unwrap());
            }
            one.admit("s", &message).await.unwrap().claim("run-2").await.unwrap();
            assert_eq!(
                other.admit("s", &message).await.unwrap_err(),
                MessageRefusal::Known { run_id: Some("run-2".into()) }
            );
        }
    }
}
