//! Requests of extensions that wait for the session's owner.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use pinch_llm::message::Message;
use tokio::sync::oneshot;

use crate::extension::actions::{ActionOutcome, SessionAction};
use crate::extension::{Draft, ExtensionError};

/// Maximum pending requests; further ones are rejected.
const MAX_WAITING: usize = 256;

/// A request and the sender for its answer.
pub(super) struct PendingRequest {
    pub(super) act: SessionAction,
    pub(super) reply: oneshot::Sender<Result<ActionOutcome, ExtensionError>>,
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.act.fmt(f)
    }
}

/// Entries of extensions to append to the log.
#[derive(Debug)]
pub(super) struct PendingEntries {
    pub(super) drafts: Vec<Draft>,
    /// Receives the reason if none was appended.
    pub(super) reply: oneshot::Sender<Result<(), String>>,
}

/// All pending requests.
#[derive(Debug, Default)]
pub(super) struct RequestQueue {
    /// Whether the model is or is about to be called.
    pub(super) is_busy: bool,
    /// Whether the session is closed.
    is_closed: bool,
    /// Requests that only read the log.
    queries: VecDeque<PendingRequest>,
    /// Requests that need the whole session.
    requests: VecDeque<PendingRequest>,
    /// Messages to send to the model.
    prompts: VecDeque<Arc<Message>>,
    /// Index of the current turn in its run, starting at 0.
    pub(super) turn_index: u64,
    /// A request to the host program.
    pub(super) to_host: Option<HostRequest>,
}

/// An extension's request to the host program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostRequest {
    /// Exit.
    Shutdown,
    /// Reload extensions, settings and resources.
    Reload,
}

impl RequestQueue {
    pub(super) fn is_idle(&self) -> bool {
        !self.is_busy && self.prompts.is_empty()
    }

    /// Returns whether there is work for the owner of the idle session.
    pub(super) fn has_work(&self) -> bool {
        self.has_queries() || !self.requests.is_empty() || !self.prompts.is_empty()
    }

    pub(super) fn has_queries(&self) -> bool {
        !self.queries.is_empty()
    }

    /// Fails all requests as stale, and rejects further ones.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.queries.clear();
        self.requests.clear();
        self.prompts.clear();
    }

    /// Adds a request and returns the receiver of its answer.
    pub(super) fn push(
        &mut self,
        act: SessionAction,
    ) -> Result<oneshot::Receiver<Result<ActionOutcome, ExtensionError>>, ExtensionError> {
        let queue = match act {
            SessionAction::Entries
            | SessionAction::Branch
            | SessionAction::Context
            | SessionAction::Header
            | SessionAction::ContextUsage => &mut self.queries,
            _ => &mut self.requests,
        };
        check_room(self.is_closed, queue.len())?;
        let (reply, answer) = oneshot::channel();
        queue.push_back(PendingRequest { act, reply });
        Ok(answer)
    }

    pub(super) fn push_prompt(&mut self, message: Arc<Message>) -> Result<(), ExtensionError> {
        check_room(self.is_closed, self.prompts.len())?;
        self.prompts.push_back(message);
        Ok(())
    }

    pub(super) fn take_query(&mut self) -> Option<PendingRequest> {
        self.queries.pop_front()
    }

    pub(super) fn take_request(&mut self) -> Option<PendingRequest> {
        self.requests.pop_front()
    }

    /// Takes a message to send to the model, marking the session as busy.
    pub(super) fn take_prompt(&mut self) -> Option<Arc<Message>> {
        let message = self.prompts.pop_front()?;
        self.is_busy = true;
        Some(message)
    }
}

fn check_room(is_closed: bool, n_waiting: usize) -> Result<(), ExtensionError> {
    match is_closed {
        true => Err(ExtensionError::Stale),
        false if n_waiting >= MAX_WAITING => Err(ExtensionError::refused("too many requests are waiting")),
        false => Ok(()),
    }
}
