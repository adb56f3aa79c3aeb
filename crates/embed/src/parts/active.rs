//! Registry of active runs: finds them by session or run, and stops, steers and awaits them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::message::{Image, Message};
use pinch_stdx::cancel::{Cancel, CancelReason};
use tokio::sync::{oneshot, watch};

use crate::key::{RunId, SessionId, SessionKey};
use crate::run::RunRequest;
use crate::runtime::{QueueRefusal, RunControl};

/// Selects runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunTarget<'a> {
    /// Every run of a session, by its id or its key.
    Session(&'a str),
    /// One run, by its run id.
    Run(&'a str),
}

/// An active run, as listed by [`Engine::active`](crate::Engine::active).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveRun {
    /// The id of the run.
    pub run_id: RunId,
    /// The id of its session.
    pub session_id: SessionId,
    /// The routing key of its session.
    pub session_key: Option<SessionKey>,
    /// Whether an attempt is in progress, so that messages can be queued.
    pub is_streaming: bool,
    /// Whether the conversation is being compacted.
    pub is_compacting: bool,
}

/// Why a message was not added to a running conversation. The caller may start a run with it instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// No matching run is active.
    #[error("no run is active")]
    NoActiveRun,
    /// No attempt is in progress: the run is starting, waiting or switching models.
    #[error("the run is between two attempts")]
    NotStreaming,
    /// The conversation is being compacted.
    #[error("the conversation is being compacted")]
    Compacting,
    /// The runtime of the run does not accept messages during an attempt.
    #[error("the runtime of this run does not accept messages")]
    Unsupported,
    /// The run ended before the model could read the message.
    #[error("the run ended before the message was read")]
    RunEnded,
}

impl QueueError {
    /// Returns the reason as an identifier, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoActiveRun => "no_active_run",
            Self::NotStreaming => "not_streaming",
            Self::Compacting => "compacting",
            Self::Unsupported => "unsupported",
            Self::RunEnded => "run_ended",
        }
    }
}

/// The runs of one engine. Clones share the registry.
#[derive(Clone, Default)]
pub(crate) struct ActiveRuns(Arc<Mutex<Vec<Arc<RunEntry>>>>);

/// One run.
struct RunEntry {
    run_id: RunId,
    session_id: SessionId,
    session_key: Option<SessionKey>,
    cancel: Cancel,
    state: Mutex<State>,
    /// Becomes true when the run ends.
    ended: watch::Sender<bool>,
    /// True while the conversation is being compacted, and while the request interrupted by a compaction is repeated.
    compacts: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    control: Option<Arc<dyn RunControl>>,
    /// Messages that are not yet part of the conversation, oldest first.
    queued: Vec<QueuedPrompt>,
}

struct QueuedPrompt {
    text: String,
    taken: oneshot::Sender<()>,
}

/// A registration; dropping it removes the entry.
pub(crate) struct Registered {
    runs: ActiveRuns,
    entry: Arc<RunEntry>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ActiveRuns {
    /// Registers a run until the result is dropped. Runs with the same session or run id have separate entries.
    pub(crate) fn register(&self, request: &RunRequest, cancel: Cancel) -> Registered {
        let entry = Arc::new(RunEntry {
            run_id: request.run_id.clone(),
            session_id: request.session_id.clone(),
            session_key: request.session_key.clone(),
            cancel,
            state: Mutex::default(),
            ended: watch::Sender::new(false),
            compacts: watch::Sender::new(false),
        });
        locked(&self.0).push(Arc::clone(&entry));
        Registered { runs: self.clone(), entry }
    }

    fn find(&self, target: RunTarget<'_>) -> Vec<Arc<RunEntry>> {
        locked(&self.0).iter().filter(|entry| entry.matches(target)).cloned().collect()
    }

    /// Returns all runs, oldest first.
    pub(crate) fn list(&self) -> Vec<ActiveRun> {
        locked(&self.0).iter().map(|entry| entry.describe()).collect()
    }

    /// Returns the id of the latest matching run.
    pub(crate) fn find_id(&self, target: RunTarget<'_>) -> Option<RunId> {
        self.find(target).pop().map(|entry| entry.run_id.clone())
    }

    /// Returns the session keys of matching runs.
    pub(crate) fn keys(&self, target: RunTarget<'_>) -> Vec<String> {
        self.find(target).iter().filter_map(|entry| entry.session_key.as_ref().map(ToString::to_string)).collect()
    }

    /// Stops the runs and returns how many there were.
    pub(crate) fn abort(&self, target: RunTarget<'_>, why: CancelReason) -> usize {
        let found = self.find(target);
        for entry in &found {
            entry.cancel.cancel(why);
        }
        found.len()
    }

    /// Queues a message in the newest matching run, and waits until it is part of the conversation.
    pub(crate) async fn queue(
        &self,
        target: RunTarget<'_>,
        text: String,
        images: Vec<Image>,
        kind: QueueKind,
    ) -> Result<(), QueueError> {
        let entry = self.find(target).pop().ok_or(QueueError::NoActiveRun)?;
        let taken = {
            let mut state = locked(&entry.state);
            let control = state.control.clone().ok_or(QueueError::NotStreaming)?;
            if control.is_compacting() {
                return Err(QueueError::Compacting);
            }
            if !control.is_streaming() {
                return Err(QueueError::NotStreaming);
            }
            control.queue(kind, text.clone(), images).map_err(|refusal| match refusal {
                QueueRefusal::Unsupported => QueueError::Unsupported,
            })?;
            let (sender, taken) = oneshot::channel();
            state.queued.push(QueuedPrompt { text, taken: sender });
            taken
        };
        drop(entry);
        taken.await.map_err(|_| QueueError::RunEnded)
    }

    /// Waits until the currently active runs have ended; false if the limit passes first.
    pub(crate) async fn wait_for_end(&self, target: RunTarget<'_>, limit: Duration) -> bool {
        let ends: Vec<_> = self.find(target).iter().map(|entry| entry.ended.subscribe()).collect();
        let all = futures::future::join_all(ends.into_iter().map(|mut end| async move {
            // An error means that the run has been dropped.
            end.wait_for(|ended| *ended).await.ok();
        }));
        tokio::time::timeout(limit, all).await.is_ok()
    }

    /// Waits until the newest matching run is not compacting and has repeated the request that a compaction interrupted.
    pub(crate) async fn wait_for_compaction(&self, target: RunTarget<'_>) -> Result<(), QueueError> {
        let entry = self.find(target).pop().ok_or(QueueError::NoActiveRun)?;
        let (mut compacts, mut ended) = (entry.compacts.subscribe(), entry.ended.subscribe());
        let cancel = entry.cancel.clone();
        drop(entry);
        tokio::select! {
            biased;
            _ = cancel.cancelled() => Err(QueueError::RunEnded),
            _ = ended.wait_for(|ended| *ended) => Err(QueueError::RunEnded),
            over = compacts.wait_for(|compacts| !*compacts) => over.map(drop).map_err(|_| QueueError::RunEnded),
        }
    }
}

impl RunEntry {
    fn matches(&self, target: RunTarget<'_>) -> bool {
        match target {
            RunTarget::Session(name) => self.session_id == name || self.session_key.as_deref() == Some(name),
            RunTarget::Run(id) => self.run_id == id,
        }
    }

    fn describe(&self) -> ActiveRun {
        let state = locked(&self.state);
        let control = state.control.as_ref();
        ActiveRun {
            run_id: self.run_id.clone(),
            session_id: self.session_id.clone(),
            session_key: self.session_key.clone(),
            is_streaming: control.is_some_and(|control| control.is_streaming()),
            is_compacting: control.is_some_and(|control| control.is_compacting()),
        }
    }
}

impl Registered {
    /// Attaches the control of the current attempt. Messages still held by the previous control move to the new one.
    pub(crate) fn attach(&self, control: Arc<dyn RunControl>) {
        let mut state = locked(&self.entry.state);
        if let Some(before) = state.control.take() {
            for left in before.take_queued() {
                // If the new runtime does not accept the message, its sender is notified when the run ends.
                if control.queue(left.kind, left.text, left.images).is_err() {
                    tracing::warn!(
                        run = self.entry.run_id.as_str(),
                        "a queued message cannot be moved to the next model"
                    );
                }
            }
        }
        state.control = Some(control);
    }

    /// Tracks whether the run is compacting, from the events of its session.
    pub(crate) fn follow_compaction(&self, event: &SessionEvent) {
        match event {
            SessionEvent::CompactionStart { .. } => self.set_compacting(true),
            // The compaction is not over until the interrupted request is repeated.
            SessionEvent::CompactionEnd { will_retry, .. } => self.set_compacting(*will_retry),
            SessionEvent::RunEnd { .. } => self.set_compacting(false),
            _ => {}
        }
    }

    /// Sets whether the run is compacting.
    pub(crate) fn set_compacting(&self, compacts: bool) {
        self.entry.compacts.send_if_modified(|now| std::mem::replace(now, compacts) != compacts);
    }

    /// Records that a message entered the conversation, and notifies its sender if it was queued.
    pub(crate) fn entered(&self, message: &Message) {
        let Message::User(user) = message else { return };
        let mut state = locked(&self.entry.state);
        if state.queued.is_empty() {
            return;
        }
        let text = user.content.text("");
        if let Some(at) = state.queued.iter().position(|queued| queued.text == text) {
            // The sender may have stopped waiting.
            state.queued.remove(at).taken.send(()).ok();
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        locked(&self.runs.0).retain(|entry| !Arc::ptr_eq(entry, &self.entry));
        // Notify the senders of unread messages now, because a clone of the entry may live longer.
        let mut state = locked(&self.entry.state);
        state.queued.clear();
        state.control = None;
        self.entry.ended.send_replace(true);
    }
}

impl fmt::Debug for ActiveRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}
