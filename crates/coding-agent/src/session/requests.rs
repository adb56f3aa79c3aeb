//! Requests of extensions that wait until the owner of the session does them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use pinch_llm::message::Message;
use tokio::sync::oneshot;

use crate::extension::actions::{ActionOutcome, SessionAction};
use crate::extension::{Draft, ExtensionError};

/// Requests that can wait; further ones are refused.
const MAX_WAITING: usize = 256;

/// A request, and where its answer goes.
pub(super) struct PendingRequest {
    pub(super) act: SessionAction,
    pub(super) reply: oneshot::Sender<Result<ActionOutcome, ExtensionError>>,
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.act.fmt(f)
    }
}

/// Entries of extensions that wait to be appended to the log.
#[derive(Debug)]
pub(super) struct PendingEntries {
    pub(super) drafts: Vec<Draft>,
    /// Why none of them was appended.
    pub(super) reply: oneshot::Sender<Result<(), String>>,
}

/// All pending requests.
#[derive(Debug, Default)]
pub(super) struct RequestQueue {
    /// The model is being asked, or about to be.
    pub(super) is_busy: bool,
    /// The session is gone.
    is_closed: bool,
    /// Requests that only read the log.
    queries: VecDeque<PendingRequest>,
    /// Requests that need the whole session.
    requests: VecDeque<PendingRequest>,
    /// Messages to send to the model.
    prompts: VecDeque<Arc<Message>>,
    /// Which turn of its run is under way, counted from 0.
    pub(super) turn_index: u64,
    /// A request to the program that runs the session.
    pub(super) to_host: Option<HostRequest>,
}

/// A request of an extension to the program that runs the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostRequest {
    /// Exit.
    Shutdown,
    /// Load extensions, settings and resources again.
    Reload,
}

impl RequestQueue {
    pub(super) fn is_idle(&self) -> bool {
        !self.is_busy && self.prompts.is_empty()
    }

    /// Whether there is something to do for the owner of the idle session.
    pub(super) fn has_work(&self) -> bool {
        self.has_queries() || !self.requests.is_empty() || !self.prompts.is_empty()
    }

    pub(super) fn has_queries(&self) -> bool {
        !self.queries.is_empty()
    }

    /// Drops all requests, which fail as stale, and refuses further ones.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.queries.clear();
        self.requests.clear();
        self.prompts.clear();
    }

    /// Adds a request, and returns where its answer arrives.
    pub(super) fn push(
        &mut self,
        act: SessionAction,
    ) -> Result<oneshot::Receiver<Result<ActionOutcome, ExtensionError>>, ExtensionError> {
        let queue = match act {
            SessionAction::Entries | SessionAction::Branch | SessionAction::ContextUsage => &mut self.queries,
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

    /// Takes a message to send to the model; the session is busy from here on.
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
