//! Steering a session while a run has it borrowed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_agent_core::queue::{QueueKind, QueueMode, Queues};
use pinch_llm::message::{Image, Message, UserMessage};
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;

use super::user_content;

/// A handle of a session; clones share it. Nothing here waits, so that hooks may use it too.
#[derive(Clone, Debug)]
pub struct SessionControl {
    queues: Queues,
    host: Host,
    running: Arc<Mutex<Option<Running>>>,
}

/// The tokens of the run under way.
#[derive(Clone, Debug)]
struct Running {
    prompt: Cancel,
    wait: Cancel,
}

impl SessionControl {
    pub(super) fn new(queues: Queues, host: Host) -> Self {
        Self { queues, host, running: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something that the model reads at its next turn; while nothing runs, with the next prompt.
    pub fn steer(&self, text: impl Into<String>, images: Vec<Image>) {
        self.push(QueueKind::Steering, text.into(), images);
    }

    /// Says something that the model reads when it would be done.
    pub fn follow_up(&self, text: impl Into<String>, images: Vec<Image>) {
        self.push(QueueKind::FollowUp, text.into(), images);
    }

    fn push(&self, kind: QueueKind, text: String, images: Vec<Image>) {
        let content = user_content(text, images);
        self.queues.push(kind, Message::User(UserMessage { content, timestamp: self.host.now_ms() }));
    }

    /// Stops the prompt under way with its retries and compactions. Queues are left alone.
    pub fn cancel(&self, why: CancelReason) {
        if let Some(running) = &*self.lock() {
            running.prompt.cancel(why);
        }
    }

    /// Stops waiting for a retry; the failed answer is the end then.
    pub fn cancel_retry(&self) {
        if let Some(running) = &*self.lock() {
            running.wait.cancel(CancelReason::User);
        }
    }

    /// Whether a prompt is under way.
    pub fn is_running(&self) -> bool {
        self.lock().is_some()
    }

    /// Texts that wait: steering, then follow-ups.
    pub fn waiting(&self) -> (Vec<String>, Vec<String>) {
        (self.texts(QueueKind::Steering), self.texts(QueueKind::FollowUp))
    }

    /// Empties both queues and returns the texts that were in them.
    pub fn clear_queues(&self) -> (Vec<String>, Vec<String>) {
        let waiting = self.waiting();
        self.queues.clear(QueueKind::Steering);
        self.queues.clear(QueueKind::FollowUp);
        waiting
    }

    /// Sets how many waiting messages are taken at a time.
    pub fn set_queue_mode(&self, kind: QueueKind, mode: QueueMode) {
        self.queues.set_mode(kind, mode);
    }

    fn texts(&self, kind: QueueKind) -> Vec<String> {
        let text = |message: &Message| match message {
            Message::User(user) => user.content.text(""),
            _ => String::new(),
        };
        self.queues.list(kind).iter().map(|waiting| text(&waiting.message)).collect()
    }

    /// Notes a run; the guard takes the note back.
    pub(super) fn enter(&self, prompt: &Cancel) -> Entered {
        *self.lock() = Some(Running { prompt: prompt.clone(), wait: prompt.child() });
        Entered { control: self.clone() }
    }

    /// A token for one wait between two attempts.
    pub(super) fn new_wait(&self, prompt: &Cancel) -> Cancel {
        let wait = prompt.child();
        *self.lock() = Some(Running { prompt: prompt.clone(), wait: wait.clone() });
        wait
    }
}

/// A run is under way as long as this lives.
pub(super) struct Entered {
    control: SessionControl,
}

impl Drop for Entered {
    fn drop(&mut self) {
        *self.control.lock() = None;
    }
}
